"""Near copies: rows that lie far nearer to each other than to anything else.

A set of k + 1 rows is isolated where, for each of them, the others are its nearest rows and the farthest of them is
much nearer than the next row outside. That adapts to how dense the rows lie, and sets cannot grow by chaining: all
members must agree on who is a member. By chance d_k / d_(k+1) <= c happens with probability c^(k D) in D dimensions,
so the c that is taken shrinks where rows lie along few dimensions, and for small sets.

Distances are measured along at most 64 random directions of standardised columns (right to about a tenth), candidates
are the nearest rows along the widest six. Constants were chosen on normal rows, clusters and four real tables.
"""

from __future__ import annotations

import numpy as np

from .blocks import Array, Matrix, blocks

MOST_ROWS = 100_000  # above which near copies are not looked for
MOST_COPIES = 20  # of one row, besides itself
NEIGHBOURS = MOST_COPIES + 1  # and one that is none
LARGEST_RATIO = 0.8  # of the distance to the farthest copy to that of the next row outside
CHANCE = 1e-4  # that a row without copies has so small a ratio, for each k, before its neighbours must agree
FINE_VALUES = 50  # of a column that is a quantity
FINE_SHARE = 0.5  # of the columns: with fewer quantities, rows lie on a lattice and nearness says nothing
COMMON_SHARE = 0.25  # of screened rows with the same number of copies, at least two: then rows were copied on purpose,
COMMON_RATIO = 0.9  # and sets of that size need not be as isolated
DIRECTIONS = 64
AXES = 6  # of the tree
SCREENED = 1000  # rows that are looked at first
LEAST_SHARE = 0.005  # of screened rows with copies: below it, the others are not looked at
BLOCK = 1 << 25  # bytes
FLOOR = 1e-12
ROUNDING = 1e-6  # of a column's mean: a column that varies less is constant


def find_near_copies(X: Matrix, order: Array) -> Array:
    """(n,) one number for each isolated set of rows; -1 for a row in none.

    Parameters
    ----------
    X : array
        (n, d), of which no two rows are equal.
    order : array
        (n,) row numbers in an order that does not depend on the order of the rows: rows are sampled from it.
    """
    n = len(X)
    none = np.full(n, -1)
    if n > MOST_ROWS or n <= 2 * MOST_COPIES:
        return none
    rng = np.random.default_rng(0)
    some = order[np.sort(rng.permutation(n)[:SCREENED])]
    if not _mostly_quantities(np.asarray(X[np.sort(some)])):
        return none
    Z = _coordinates(X)
    distances = _nearest_of_all(Z, some)
    ratios = _largest_ratios(distances)
    isolated = _isolated(distances, ratios)
    if isolated.any(axis=1).mean() < LEAST_SHARE:
        return none
    common = (isolated.mean(axis=0) >= COMMON_SHARE) & (np.arange(MOST_COPIES) > 0)
    ratios = np.where(common, COMMON_RATIO, ratios)
    nearest, distances = _nearest_candidates(Z)
    return _agreed(nearest, _isolated(distances, ratios), rng)


def _mostly_quantities(some: Array) -> bool:
    """Whether most columns that vary have many values."""
    ordered = np.sort(some, axis=0)
    values = 1 + (ordered[1:] != ordered[:-1]).sum(axis=0)
    varies = values > 1
    fine = values >= min(FINE_VALUES, len(some) / 4)
    return bool(fine.sum() >= max(1, FINE_SHARE * varies.sum()))


def _coordinates(X: Matrix) -> Array:
    """(n, q) float32 along random directions of standardised columns, widest axes first."""
    d = X.shape[1]
    total = np.zeros(d)
    square = np.zeros(d)
    for _, block in blocks(X, BLOCK):
        values = np.asarray(block, dtype=np.float64)
        total += values.sum(axis=0)
        square += np.square(values).sum(axis=0)
    centre = total / len(X)
    spread = np.sqrt(np.maximum(square / len(X) - centre**2, 0))
    used = spread > ROUNDING * np.maximum(np.abs(centre), FLOOR)
    directions = np.eye(d)
    if d > DIRECTIONS:
        directions = np.random.default_rng(1).normal(size=(d, DIRECTIONS)) / np.sqrt(DIRECTIONS)
    directions = np.where(used[:, None], directions / np.where(used, spread, 1)[:, None], 0)
    Z = np.empty((len(X), directions.shape[1]), dtype=np.float32)
    for rows, block in blocks(X, BLOCK):
        Z[rows] = (np.asarray(block, dtype=np.float64) - centre) @ directions
    axes = np.linalg.eigh((Z.T @ Z).astype(np.float64))[1][:, ::-1]
    return np.asarray(Z @ axes.astype(np.float32))


def _nearest_of_all(Z: Array, rows: Array) -> Array:
    """(m, k) distances of some rows to their nearest others, among all rows."""
    squares = np.einsum("id,id->i", Z, Z, dtype=np.float64)
    nearest = np.empty((len(rows), NEIGHBOURS))
    step = max(1, BLOCK // (8 * len(Z)))
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        gaps = squares - 2.0 * (Z[part] @ Z.T) + squares[part, None]
        gaps[np.arange(len(part)), part] = np.inf
        best = np.argpartition(gaps, NEIGHBOURS, axis=1)[:, :NEIGHBOURS]
        nearest[start : start + step] = _distances(Z, part, best)  # again, for what cancels between large squares
    return np.sort(nearest, axis=1)


def _nearest_candidates(Z: Array) -> tuple[Array, Array]:
    """(n, k) for each row the others that are nearest along the widest axes, and their distances, which grow."""
    from scipy.spatial import KDTree

    rows = np.arange(len(Z))
    candidates = KDTree(Z[:, :AXES]).query(Z[:, :AXES], k=NEIGHBOURS + 1)[1]
    distances = np.empty(candidates.shape)
    step = max(1, BLOCK // (candidates.shape[1] * Z.shape[1] * 4))
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        distances[part] = _distances(Z, part, candidates[part])
    distances[candidates == rows[:, None]] = -1  # the row itself comes first
    best = np.argsort(distances, axis=1, kind="stable")[:, 1:]
    return np.take_along_axis(candidates, best, 1), np.take_along_axis(distances, best, 1)


def _distances(Z: Array, rows: Array, others: Array) -> Array:
    gaps = Z[others] - Z[rows, None]
    return np.asarray(np.maximum(np.sqrt(np.einsum("ikd,ikd->ik", gaps, gaps)), FLOOR))


def _largest_ratios(distances: Array) -> Array:
    """(k,) the ratios d_k / d_(k+1) that chance allows, for each number of copies k.

    In D dimensions k log(d_(k+1) / d_k) is exponential with mean 1 / D. Medians over rows and then over k: where a
    set of copies ends, neighbours say nothing of the dimension.
    """
    k = np.arange(1, distances.shape[1])
    growth = np.median(k * np.log(distances[:, 1:] / distances[:, :-1]), axis=0)
    dimensions = np.log(2) / max(float(np.median(growth)), FLOOR)
    return np.asarray(np.minimum(LARGEST_RATIO, CHANCE ** (1 / (k * dimensions))))


def _isolated(distances: Array, ratios: Array) -> Array:
    """(m, k) bool: the first j + 1 neighbours are much nearer than the next."""
    return np.asarray(distances[:, :-1] <= ratios * distances[:, 1:])


def _agreed(nearest: Array, isolated: Array, rng: np.random.Generator) -> Array:
    """(n,) the number of the largest set that a row is in and on which all its members agree, or -1."""
    n = len(nearest)
    mark = rng.integers(1, 2**63, size=n, dtype=np.uint64)
    sets = mark[:, None] + np.cumsum(mark[nearest[:, : isolated.shape[1]]], axis=1, dtype=np.uint64)
    row, size = np.nonzero(isolated)
    _, code, votes = np.unique(sets[row, size], return_inverse=True, return_counts=True)
    agreed = votes[code] == size + 2  # all of size + 1 neighbours and the row itself
    found = np.full(n, -1)
    found[row[agreed]] = code[agreed]  # in growing size: the largest set is written last
    return found
