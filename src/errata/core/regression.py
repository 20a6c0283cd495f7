"""Regression to the mean: how much too high the rate of a slice looks on the rows that confirmed it.

A slice is confirmed where at least m of its n held-out rows are wrong. Of K wrong rows with chance p each,

    E[(K - n p) 1(K >= m)]  =  m (1 - p) P(K = m),

so what selection adds to K is m (1 - p) for slices that only just passed, and nothing for the others: that is the one
unbiased correction, since the binomial family is complete. As it stands it would take all from a slice at the
threshold and nothing from one that is a row above. So it is spread over the counts above m by a geometric kernel whose
width is a fraction of a standard deviation: little bias is left, and the correction falls off smoothly.
"""

from __future__ import annotations

import math

from .audit import Slice
from .confirm import SplitTask, count_against_rest
from .gaps import critical_errors
from .known_slices import candidate_of

WIDTH = 0.2  # of the kernel, in standard deviations of the count: narrower has less bias and more variance


def selected_excess(wrong: float, n: float, needed: float) -> float:
    """How many of the wrong rows of a confirmed slice are there, on average, because it was confirmed on them.

    Parameters
    ----------
    wrong, n : float
        Wrong rows, and all rows of the slice.
    needed : float
        The fewest wrong rows with which it would have been confirmed.
    """
    if not 0 < needed <= wrong or n <= needed:
        return 0.0
    variance = needed * (1 - needed / n)
    keep = math.exp(-1 / (WIDTH * math.sqrt(variance)))
    excess = variance * (1 - keep) * keep ** (wrong - needed)
    return float(min(excess, wrong))


def flattery(split: SplitTask, slice_: Slice, tested: int) -> float:
    """How much too high the rate of a slice is on the rows that confirmed it; 0 where they did not.

    Parameters
    ----------
    split : SplitTask
        The rows that it was tested on.
    slice_ : Slice
        As it was found.
    tested : int
        How many slices were tested with it.
    """
    if slice_.verdict != "confirmed" or slice_.side != "hard":
        return 0.0
    level = split.settings.level / tested
    candidate = candidate_of(slice_)
    scope = slice_.rule.get("scope")
    scopes = [scope, None] if scope else [None]
    against = [count_against_rest(split, candidate, one) for one in scopes]
    needed = max(critical_errors(counts.m, counts.b, counts.nref, split.delta, level) for counts in against)
    counts = against[0]
    if not math.isfinite(needed):
        return 0.0
    return selected_excess(counts.k, counts.m, needed) / counts.m
