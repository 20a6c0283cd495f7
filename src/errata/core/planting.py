"""Groups with more errors than the rest, planted in rows: what a search is tested with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .blocks import Array, blocks
from .evaluation import Evaluation
from .null_outcomes import has_one_label, take_outcomes

COORDINATES = 0.75  # share of those of a representation in which the rows of a group are near: no search's own metric
NEAR_SIZE = 1.5  # a rule holds the wanted number of rows within this factor
MOST_DRAWS = 200  # of rules, until one has the wanted size
FEWEST_NUMBERS = 10  # values of a column of numbers from which ranges of it are drawn; with fewer, single values


def region(X: Any, count: int, free: Array, rng: np.random.Generator) -> Array:
    """(n,) bool: a random row and the rows nearest to it, in a random three quarters of the coordinates.

    Parameters
    ----------
    X : array
        (n, d) representation.
    count : int
        Rows of the group.
    free : array
        (n,) bool: the rows that it may hold.
    rng : Generator
        Of the row and the coordinates.
    """
    d = X.shape[1]
    some = np.sort(rng.choice(d, max(1, round(COORDINATES * d)), replace=False))
    centre = np.asarray(X[int(rng.choice(np.flatnonzero(free)))], dtype=np.float32)[some]
    distances = np.empty(len(X))
    for rows, block in blocks(X):
        distances[rows] = np.square(block[:, some] - centre).sum(axis=1)
    distances[~free] = np.inf
    inside = np.zeros(len(X), dtype=bool)
    inside[np.argsort(distances, kind="stable")[:count]] = True
    return inside & free


def rule(columns: Mapping[str, Array], count: int, free: Array, rng: np.random.Generator) -> Array | None:
    """(n,) bool: the rows for which a random condition on one column, or conditions on two, hold.

    Parameters
    ----------
    columns : mapping
        Name -> (n,) metadata. A condition is a value, or a range of numbers.
    count : int
        About how many rows the group has. None is returned where no rule that was drawn is near it.
    free : array
        (n,) bool: the rows that it may hold.
    rng : Generator
        Of columns, values and ranges.
    """
    values = {name: _sortable(columns[name]) for name in sorted(columns)}
    names = list(values)
    for _ in range(MOST_DRAWS):
        row = int(rng.choice(np.flatnonzero(free)))
        conditions = min(int(rng.integers(1, 3)), len(names))
        inside = free.copy()
        for left, j in enumerate(rng.choice(len(names), conditions, replace=False), start=1 - conditions):
            wanted = count if left == 0 else round(np.sqrt(count * len(free)))
            inside &= _condition(values[names[j]], row, inside, wanted, rng)
        if count / NEAR_SIZE <= inside.sum() <= count * NEAR_SIZE:
            return inside
    return None


def _sortable(column: Array) -> Array:
    """(n,) float64 where ranges can be drawn, else whole numbers that stand for values; missing is a value too."""
    if column.dtype.kind in "iuf" and len(np.unique(column)) >= FEWEST_NUMBERS:
        return column.astype(np.float64)
    return np.unique(column, return_inverse=True)[1].ravel()


def _condition(values: Array, row: int, inside: Array, wanted: int, rng: np.random.Generator) -> Array:
    """(n,) bool: rows with the value of one row, or in a range around it that holds so many of the rows inside."""
    own = values[row]
    if values.dtype.kind == "i":
        return np.asarray(values == own)
    if np.isnan(own):
        return np.isnan(values)
    known = np.sort(values[inside & ~np.isnan(values)])
    wanted = min(wanted, len(known))
    place = int(np.searchsorted(known, own))
    start = int(np.clip(place - rng.integers(wanted), 0, len(known) - wanted))
    return np.asarray((values >= known[start]) & (values <= known[start + wanted - 1]))


def plant(
    evaluation: Evaluation, task: int, inside: Array, gap: float, tolerance: float, rng: np.random.Generator
) -> Evaluation:
    """The same rows with more errors in a group: its good rows take the outcome of a bad row.

    Each does with probability gap / (1 - rate), so that the rate of the group rises by the gap. The outcome is that of
    a random wrong row with the same prediction: the label that the class is confused with elsewhere. Without errors, it
    is the loss of a row above the tolerance. Rows of one group (a patient, copies) change together as often as their
    outcomes are alike in all rows.

    Parameters
    ----------
    evaluation : Evaluation
        All rows.
    task : int
        Which of its tasks.
    inside : array
        (n,) bool: the rows of the group.
    gap : float
        What the share of bad outcomes rises by.
    tolerance : float
        The loss above which an outcome is bad, where there are no errors.
    rng : Generator
        Of the rows that change, and of whose outcome they take.
    """
    views = [view for _, view in evaluation.tasks()]
    view = views[task]
    bad = is_bad(view, tolerance)
    rate = float(bad[inside].mean())
    chance = min(1.0, gap / max(1 - rate, 1e-12))
    chosen = np.flatnonzero(inside & ~bad & (_draws(evaluation.groups, bad, rng) < chance))
    donors = np.tile(np.arange(len(evaluation))[:, None], (1, len(views)))
    donors[chosen, task] = _bad_donors(view, bad, chosen, rng)
    return take_outcomes(evaluation, donors)


def is_bad(view: Evaluation, tolerance: float) -> Array:
    """(n,) bool: errors of one task, or losses above the tolerance where there are none."""
    if view.errors is not None:
        return view.errors
    assert view.losses is not None
    return np.asarray(view.losses > tolerance)


def _bad_donors(view: Evaluation, bad: Array, chosen: Array, rng: np.random.Generator) -> Array:
    """(m,) int: for each chosen row one whose outcome would be bad; itself where there is none."""
    donors = chosen.copy()
    if view.errors is None or has_one_label(view):
        pool = np.flatnonzero(bad)
        return rng.choice(pool, len(chosen)) if len(pool) else donors
    assert view.labels is not None
    assert view.predictions is not None
    predicted = view.predictions[chosen]
    for value in np.unique(predicted):
        pools = (
            bad & (view.predictions == value),
            bad & (view.labels != value),  # where nothing of this prediction is wrong
            view.labels != value,
        )
        here = predicted == value
        for pool in pools:
            if pool.any():
                donors[here] = rng.choice(np.flatnonzero(pool), int(here.sum()))
                break
    return donors


def _draws(groups: Array | None, bad: Array, rng: np.random.Generator) -> Array:
    """(n,) uniform numbers, in part one for a whole group: two rows share it as often as their outcomes correlate."""
    own = rng.random(len(bad))
    if groups is None:
        return own
    codes = np.unique(groups, return_inverse=True)[1].ravel()
    shared = rng.random(int(codes.max()) + 1)[codes]
    alike = np.sqrt(intraclass_correlation(codes, bad))
    return np.where(rng.random(len(bad)) < alike, shared, own)


def intraclass_correlation(codes: Array, bad: Array) -> float:
    """How alike the outcomes of rows of one group are, from 0 to 1: the estimate of an analysis of variance.

    Parameters
    ----------
    codes : array
        (n,) int: the group of each row, from 0.
    bad : array
        (n,) bool.
    """
    sizes = np.bincount(codes)
    n = len(codes)
    many = len(sizes)
    if many == n or many < 2:
        return 0.0
    means = np.bincount(codes, weights=bad) / sizes
    between = float((sizes * np.square(means - bad.mean())).sum()) / (many - 1)
    within = float(np.square(bad - means[codes]).sum()) / (n - many)
    size = (n - float(np.square(sizes).sum()) / n) / (many - 1)
    total = between + (size - 1) * within
    return float(np.clip((between - within) / total, 0, 1)) if total > 0 else 0.0
