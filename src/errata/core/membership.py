"""From weights to sets: thresholds, overlap, merging of near-identical slices."""

from __future__ import annotations

import numpy as np

from .blocks import Array

SMALLEST_WEIGHT = 1e-12
OVERLAP = 0.5  # Jaccard index at which two slices are near-identical


def threshold(weights: Array) -> float:
    """The weight that cuts off a slice of as many rows as the weights sum to.

    With m the rounded sum, the m-th largest weight; ties enter. A 0/1 membership stays as it
    is, and a kernel that never exceeds 0.3 still gets its m rows. Infinity: an empty slice.
    """
    m = round(float(weights.sum(dtype=np.float64)))
    if m < 1:
        return float("inf")
    m = min(m, len(weights))
    return max(float(np.partition(weights, -m)[-m]), SMALLEST_WEIGHT)


def thresholds(weights: Array) -> Array:
    """(s,) one threshold for each column of (n, s) weights."""
    return np.array([threshold(column) for column in weights.T], dtype=np.float64)


def jaccard(a: Array, b: Array) -> float:
    """Overlap of two boolean sets; 0 where both are empty."""
    union = int(np.count_nonzero(a | b))
    if not union:
        return 0.0
    return np.count_nonzero(a & b) / union


def standing_out(hard: Array, losses: Array, least: float = 3.0) -> Array:
    """Columns of (n, s) hard sets whose mean loss is at least `least` standard errors above the mean of all.

    At least one, where there are any. A filter on search rows, where chance stands out too: it drops what is plainly
    no finding, and confirms nothing.
    """
    if not hard.shape[1]:
        return np.empty(0, dtype=np.int64)
    sizes = np.maximum(hard.sum(axis=0), 1)
    excess = np.array([losses[column].sum() for column in hard.T]) / sizes - losses.mean()
    scores = excess * np.sqrt(sizes) / max(float(losses.std()), 1e-12)
    columns = np.flatnonzero(scores >= least)
    if not len(columns):
        return np.array([int(np.argmax(scores))])
    return columns


def excess_order(hard: Array, outcome: Array) -> Array:
    """Columns of (n, s) hard sets, by excess (rate - overall rate) * sqrt(m) on search rows, largest first."""
    sizes = hard.sum(axis=0)
    bad = np.array([outcome[column].sum() for column in hard.T])
    rates = bad / np.maximum(sizes, 1)
    return np.argsort(-(rates - outcome.mean()) * np.sqrt(sizes), kind="stable")


def drop_overlapping(hard: Array, order: Array) -> list[int]:
    """Columns of (n, s) hard sets, in `order`, without those that are near-identical to an earlier one."""
    distinct: list[int] = []
    for j in map(int, order):
        if all(jaccard(hard[:, j], hard[:, other]) < OVERLAP for other in distinct):
            distinct.append(j)
    return distinct
