"""Whether rows that were picked have a value more or less often than rows drawn at random would: an exact test.

For tables of many values, where an interval around every share would find differences in noise.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from .blocks import Array


def draw_p_values(hits: Array, drawn: int, carriers: Array, total: int) -> Array:
    """Two-sided p-values: twice the smaller tail of the hypergeometric distribution.

    Parameters
    ----------
    hits : array
        (v,) how many of the rows picked have each value.
    drawn : int
        Rows picked.
    carriers : array
        (v,) how many of all rows have it.
    total : int
        All rows.
    """
    from scipy.stats import hypergeom

    # Values are many and counts of them few: ids, numbers with decimals.
    (hits, carriers), index = np.unique(np.stack([hits, carriers]), axis=1, return_inverse=True)
    at_most = hypergeom.cdf(hits, total, carriers, drawn)
    at_least = hypergeom.sf(hits - 1, total, carriers, drawn)
    return np.asarray(np.minimum(1.0, 2 * np.minimum(at_most, at_least))[index.reshape(-1)])


def least_p_values(drawn: int, carriers: Array, total: int) -> Array:
    """(v,) the smallest p-values that any such draw could have."""
    fewest = np.maximum(0, drawn + carriers - total)
    most = np.minimum(drawn, carriers)
    low = draw_p_values(fewest, drawn, carriers, total)
    high = draw_p_values(most, drawn, carriers, total)
    return np.minimum(low, high)


def comparisons(least: Array, level: float) -> int:
    """By how many comparisons p-values are multiplied so that one below `level` is a chance of that level over all.

    Those that cannot fall below `level`, however the draw ends, count for nothing (Tarone, 1990).

    Parameters
    ----------
    least : array
        The smallest p-value that each comparison could have.
    level : float
        Over all of them.
    """
    counts = np.arange(1, len(least) + 1)
    possible = np.searchsorted(np.sort(least), level / counts, side="right")
    return int(counts[possible <= counts][0]) if len(least) else 1


def corrected_p_values(
    hits: Array, drawn: Sequence[int], carriers: Array, total: int, level: float
) -> tuple[Array, Array]:
    """p-values of several picks of the same rows, corrected over all values of all picks, and which could be told.

    Parameters
    ----------
    hits : array
        (g, v) how many of the rows of each pick have each value.
    drawn : list of int
        Rows of each pick.
    carriers, total
        As of `draw_p_values`.
    level : float
        Over all of them.

    Returns
    -------
    tuple
        (g, v) p-values, 1 where none could fall below the level; (g, v) bool: where one could.
    """
    least = np.stack([least_p_values(n, carriers, total) for n in drawn])
    p_values = np.stack([draw_p_values(own, n, carriers, total) for own, n in zip(hits, drawn, strict=True)])
    compared = comparisons(least.ravel(), level)
    testable = least <= level / compared
    return np.where(testable, np.minimum(1.0, compared * p_values), 1.0), testable
