"""Did the same rows get better? Counts of rows whose outcome changed, and an interval for many comparisons at once.

Of n rows `fixed` were wrong and now are right, `broken` the other way round; the others carry no information. The
change of the error rate is (broken - fixed) / n, that is: the share of rows that changed, times how one-sided they
changed. Each of the two has its exact binomial interval; together they bound the product, without a large-sample
approximation, so that the bound holds far in the tail, where a correction for many slices operates. Most of the error
is spent on the second, which decides the sign: that is McNemar's exact test.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import special

from .blocks import Array
from .references import effective_rows

ON_SIGN = 0.9  # of the error
POWER = 0.8  # at which a change counts as visible


@dataclass(frozen=True)
class OutcomeChanges:
    """Rows whose outcome changed; counts are fractional where rows of one group count as fewer.

    Attributes
    ----------
    n : float
        All rows.
    fixed, broken : float
        Rows that were wrong and now are right, and the other way round.
    """

    n: float
    fixed: float
    broken: float

    @property
    def change(self) -> float:
        """Of the error rate: negative is better."""
        if not self.n:
            return 0.0
        return (self.broken - self.fixed) / self.n


def count_changes(before: Array, after: Array, groups: Array | None = None) -> OutcomeChanges:
    """Count the rows whose outcome changed.

    Parameters
    ----------
    before, after : array
        (n,) 0/1 outcomes of the same rows.
    groups : array, optional
        (n,) rows that belong together count as fewer.
    """
    n = len(before)
    fixed = before > after
    broken = after > before
    counts = OutcomeChanges(float(n), float(fixed.sum()), float(broken.sum()))
    if groups is None or not n:
        return counts
    shrink = min(effective_rows(changed.astype(np.float64), groups) for changed in (fixed, broken)) / n
    return OutcomeChanges(n * shrink, counts.fixed * shrink, counts.broken * shrink)


def change_interval(counts: OutcomeChanges, level: float) -> tuple[float, float]:
    """The interval of the change of the error rate, with error at most `level` on each side."""
    if not counts.n:
        return -1.0, 1.0
    changed = counts.fixed + counts.broken
    # Either end of the share may be the one that is used.
    share_low, share_high = binomial_interval(changed, counts.n, (1 - ON_SIGN) / 2 * level)
    broken_low = 0.0
    broken_high = 1.0
    if changed:
        broken_low, broken_high = binomial_interval(counts.broken, changed, ON_SIGN * level)
    low = 2 * broken_low - 1  # -1: all that changed were fixed; 1: all were broken
    high = 2 * broken_high - 1
    outer = share_high if low < 0 else share_low
    inner = share_low if high < 0 else share_high
    return low * outer, high * inner


def binomial_interval(k: float, n: float, level: float) -> tuple[float, float]:
    """Clopper and Pearson's interval of k of n, with error `level` on each side."""
    low = float(special.betaincinv(k, n - k + 1, level)) if k > 0 else 0.0
    high = float(special.betainccinv(k + 1, n - k, level)) if k < n else 1.0
    return low, high


def visible_rise(n: float, fixed: float, level: float) -> float | None:
    """The smallest rise of the error rate that n rows would show with 80% power; None where none would.

    Parameters
    ----------
    n : float
        Rows.
    fixed : float
        The share of them that the second model puts right: every one hides a row that it breaks.
    level : float
        As of `change_interval`.
    """
    rows = round(n)
    if rows < 1 or _power_of_rise(rows, fixed, 1 - fixed, level) < POWER:
        return None
    low = fixed
    high = 1 - fixed
    for _ in range(30):
        broken = (low + high) / 2
        if _power_of_rise(rows, fixed, broken, level) < POWER:
            low = broken
        else:
            high = broken
    return high - fixed


def _power_of_rise(rows: int, fixed: float, broken: float, level: float) -> float:
    """The chance that the interval of the change lies above 0."""
    from scipy import stats

    changed = min(fixed + broken, 1.0)
    if changed <= 0:
        return 0.0
    # How many rows change is averaged over its quantiles; given it, both what is needed and what comes are binomial.
    steps = (np.arange(60) + 0.5) / 60
    counts = stats.binom.ppf(steps, rows, changed)
    needed = stats.binom.isf(ON_SIGN * level, counts, 0.5) + 1
    return float(np.mean(stats.binom.sf(needed - 1, counts, broken / (fixed + broken))))
