"""Is the mean loss of a slice higher than that of the rest? Bounds that hold for losses of any shape.

Losses are skewed, and a verdict for many slices lies far in the tail: Welch's t and the bootstrap-t reject there up to
a hundred times too often where most losses are high. So losses are cut at a cap that search rows set, and the mean of
bounded values is bounded without a limit theorem. Of a slice: bets against the hypothesis that its mean is at most mu
multiply a capital by 1 + lambda (x - mu) a row; no bet wins in the mean where the hypothesis is true, so that a capital
of 1 / level is reached with probability at most `level` (Ville). The mean capital of several fixed bets does not depend
on the order of rows. Of the rest, which is large: the empirical Bernstein bound of Maurer and Pontil (2009).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .blocks import Array

CAP_QUANTILE = 0.99  # of the losses of search rows: larger ones count as this
BETS = np.geomspace(0.01, 0.9, 16)  # of the largest bet that cannot lose everything
MOST_BETTING_ROWS = 5000  # above it, the bound of the rest is as good and much cheaper
REST_SHARE = 0.1  # of the level that is spent on the mean of the rest
STEPS = 30  # of a bisection
FEWEST = 2  # rows on each side


@dataclass(frozen=True)
class MeanGap:
    """The mean loss of a slice less that of the rest, all losses cut at a cap.

    Attributes
    ----------
    cap : float
        What larger losses count as.
    gap : float
        The difference of the means.
    interval : (float, float)
        Of the gap, with error `level` on each side, whatever the shape of the losses.
    """

    cap: float
    gap: float
    interval: tuple[float, float]


def compare_means(inside: Array, rest: Array, cap: float, level: float) -> MeanGap | None:
    """Compare the mean losses of a slice and of the rest.

    Parameters
    ----------
    inside, rest : array
        (m,) and (n,) losses of independent rows, from 0 on.
    cap : float
        What larger losses count as; not from these rows.
    level : float
        The error on each side.

    Returns
    -------
    MeanGap, optional
        None where there are fewer than two rows on a side, or no losses above 0 to compare.
    """
    if len(inside) < FEWEST or len(rest) < FEWEST or cap <= 0:
        return None
    x = np.clip(inside, 0, cap) / cap
    y = np.clip(rest, 0, cap) / cap
    low_x, high_x = _bounds(x, (1 - REST_SHARE) * level)
    low_y, high_y = _bernstein(y, REST_SHARE * level)
    gap = float(x.mean() - y.mean())
    return MeanGap(cap, cap * gap, (cap * (low_x - high_y), cap * (high_x - low_y)))


def loss_cap(losses: Array) -> float:
    """The cap that the losses of search rows set."""
    return float(np.quantile(losses, CAP_QUANTILE))


def _bounds(x: Array, level: float) -> tuple[float, float]:
    """Lower and upper bound of the mean of values in [0, 1], each with error `level`."""
    if len(x) > MOST_BETTING_ROWS:
        return _bernstein(x, level)
    return _lower_by_betting(x, level), 1 - _lower_by_betting(1 - x, level)


def _lower_by_betting(x: Array, level: float) -> float:
    """The smallest mean that bets do not refute."""
    goal = np.log(1 / level)
    low = 0.0
    high = float(x.mean())
    for _ in range(STEPS):
        middle = (low + high) / 2
        if middle > 0 and _log_capital(x, middle) >= goal:
            low = middle
        else:
            high = middle
    return low


def _log_capital(x: Array, mean: float) -> float:
    """Logarithm of the mean capital of all bets on "larger than `mean`"."""
    lambdas = BETS / mean
    logs = np.log1p(lambdas[:, None] * (x[None, :] - mean)).sum(axis=1)
    largest = logs.max()
    return float(largest + np.log(np.exp(logs - largest).mean()))


def _bernstein(x: Array, level: float) -> tuple[float, float]:
    """Lower and upper bound of the mean of values in [0, 1], each with error `level`; good for many rows."""
    n = len(x)
    logarithm = np.log(2 / level)
    half = np.sqrt(2 * x.var(ddof=1) * logarithm / n) + 7 * logarithm / (3 * (n - 1))
    return max(0.0, float(x.mean() - half)), min(1.0, float(x.mean() + half))
