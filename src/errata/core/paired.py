"""Did the same rows get better? Counts of rows whose outcome turned, and an interval that many may share.

Of n rows `fixed` were wrong and now are right, `broken` the other way round; the others say nothing. The change of the
error rate is (broken - fixed) / n, that is: the share of rows that turned, times how one-sided they turned. Each
of the two has its exact binomial interval; together they bound the product, with no appeal to large numbers, so that
the bound holds far in the tail, where a correction for many slices lives. Most of the error is spent on the second,
which decides the sign: that is McNemar's exact test.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from .blocks import Array
from .references import effective_rows

ON_SIGN = 0.9  # of the error


@dataclass(frozen=True)
class Turned:
    """n rows, of which some turned; may be fractional, where rows of one group count for less than one each."""

    n: float
    fixed: float
    broken: float

    @property
    def change(self) -> float:
        """Of the error rate: negative is better."""
        return (self.broken - self.fixed) / self.n if self.n else 0.0


def turned(before: Array, after: Array, groups: Array | None = None) -> Turned:
    """before, after: (n,) 0/1, of the same rows; groups: (n,) rows that belong together."""
    n, fixed, broken = len(before), float((before > after).sum()), float((after > before).sum())
    if groups is None or not n:
        return Turned(float(n), fixed, broken)
    shrink = min(effective_rows(kind.astype(np.float64), groups) for kind in (before > after, after > before)) / n
    return Turned(n * shrink, fixed * shrink, broken * shrink)


def change_interval(seen: Turned, level: float) -> tuple[float, float]:
    """Of the change of the error rate, with error at most `level` on each side."""
    if not seen.n:
        return -1.0, 1.0
    moved = seen.fixed + seen.broken
    share = binomial_interval(moved, seen.n, (1 - ON_SIGN) / 2 * level)  # either end may be the one that is used
    sided = binomial_interval(seen.broken, moved, ON_SIGN * level) if moved else (0.0, 1.0)
    ends = [2 * end - 1 for end in sided]  # -1: all that turned were fixed; 1: all were broken
    low = ends[0] * (share[1] if ends[0] < 0 else share[0])
    high = ends[1] * (share[0] if ends[1] < 0 else share[1])
    return low, high


def binomial_interval(k: float, n: float, level: float) -> tuple[float, float]:
    """Clopper and Pearson's, with error `level` on each side."""
    low = float(special.betaincinv(k, n - k + 1, level)) if k > 0 else 0.0
    high = float(special.betainccinv(k + 1, n - k, level)) if k < n else 1.0
    return low, high
