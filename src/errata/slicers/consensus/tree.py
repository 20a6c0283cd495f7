"""The evidence tree: fine cells, Ward's tree over them, and the disjoint nodes that together have most evidence.

Cells are made from the representation alone, as many as the rows can carry, so that small sharp groups are seen in
large data; only k-means touches the rows. Nodes are chosen by one pass up the tree.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...core import Array
from ...core.evidence import log_evidence
from ..numerics import pick, unconverged
from .cells import NOWHERE
from .space import nearest

ROWS_PER_CELL = 8
MOST_CELLS = 512
ROWS_PER_MORE = 400  # search rows for each cell beyond those: a million rows have 1,250
FITTED_PER_CELL = 40  # rows that cells are fitted to
ITERATIONS = 15
APART = 3.0  # pooled standard deviations between two children that stay two


@dataclass(frozen=True, eq=False)
class Nodes:
    """The chosen nodes of a tree.

    Parameters
    ----------
    centres
        (k, r) of all cells.
    owner
        (k,) the node of each cell; -1 for none.
    price
        Logarithm of the number of nodes that were looked at.
    """

    centres: Array
    owner: Array
    price: float


def grow_tree(P: Array, search: Array, bad: Array, base: float, seed: int) -> Nodes:
    """The nodes with most evidence.

    Parameters
    ----------
    P
        (n, r) rows on local axes; those that are not searched help to place the cells.
    search
        (m,) positions of the search rows in P.
    bad
        (m,) bool: which of them are bad.
    base
        The rate that a node must exceed.
    seed
        Of the cells.
    """
    from sklearn.cluster import KMeans

    most = max(MOST_CELLS, len(search) // ROWS_PER_MORE)
    k = int(np.clip(len(search) // ROWS_PER_CELL, 2, most))
    rows = P[pick(len(P), FITTED_PER_CELL * k, seed)]
    with unconverged():
        fitted = KMeans(min(k, len(rows)), init="random", n_init=1, max_iter=ITERATIONS, random_state=seed).fit(rows)
    centres = fitted.cluster_centers_.astype(np.float32)
    cell = nearest(P[search], centres)
    k = len(centres)
    n = np.bincount(cell, minlength=k)
    errors = np.bincount(cell[bad], minlength=k)
    merges = ward(centres, np.maximum(np.bincount(fitted.labels_, minlength=k), 1))
    spread = _within_spread(P[search], cell, centres)
    chosen = best_antichain(merges, n, errors, base, centres, spread)
    owner = np.full(k, NOWHERE)
    for j, cells in enumerate(chosen):
        owner[cells] = j
    return Nodes(centres, owner, float(np.log(2 * k - 1)))


def _within_spread(P: Array, cell: Array, centres: Array) -> Array:
    """(k,) sums of squares of the rows about their centres."""
    squares = np.square(P - centres[cell]).sum(axis=1)
    return np.bincount(cell, weights=squares, minlength=len(centres))


def ward(centres: Array, sizes: Array) -> Array:
    """(k - 1, 2) merges in an order in which children come before their parents; node k + i is merge i.

    Ward's criterion with the sizes of the cells, by chains of nearest neighbours: time k², memory k x r.
    """
    k = len(centres)
    points = np.zeros((2 * k - 1, centres.shape[1]))
    weight = np.zeros(2 * k - 1)
    points[:k] = centres
    weight[:k] = sizes
    alive = np.zeros(2 * k - 1, dtype=bool)
    alive[:k] = True
    merges = np.empty((k - 1, 2), dtype=np.int64)
    chain: list[int] = []
    for i in range(k - 1):
        if not chain:
            chain.append(int(np.argmax(alive)))
        _follow(chain, points, weight, alive)
        a = chain.pop()
        b = chain.pop()
        new = k + i
        merges[i] = a, b
        weight[new] = weight[a] + weight[b]
        points[new] = (weight[a] * points[a] + weight[b] * points[b]) / weight[new]
        alive[[a, b]] = False
        alive[new] = True
    return merges


def _follow(chain: list[int], points: Array, weight: Array, alive: Array) -> None:
    """Lengthen the chain until its last two are each other's nearest."""
    while True:
        tip = chain[-1]
        others = np.flatnonzero(alive)
        cost = np.square(points[others] - points[tip]).sum(axis=1) * weight[others] * weight[tip]
        cost /= weight[others] + weight[tip]
        cost[others == tip] = np.inf
        best = float(cost.min())
        if len(chain) > 1 and cost[others == chain[-2]][0] <= best:
            return
        chain.append(int(others[int(cost.argmin())]))


def best_antichain(merges: Array, n: Array, errors: Array, base: float, centres: Array, spread: Array) -> list[Array]:
    """Cells of the disjoint nodes with most evidence in sum, each after the price of having looked at all nodes.

    Two children that both stand out and lie far apart stay two, whatever their parent has.
    """
    k = len(n)
    price = np.log(2 * k - 1)
    cells = [np.array([i]) for i in range(k)]
    own = (log_evidence(n, errors, base) - price).tolist()
    best = [max(value, 0.0) for value in own]
    chosen = [[i] * (value > 0) for i, value in enumerate(own)]
    for i, (a, b) in enumerate(merges):
        node = k + i
        cells.append(np.concatenate([cells[a], cells[b]]))
        inside = cells[node]
        value = float(log_evidence(n[inside].sum(), errors[inside].sum(), base)) - price
        apart = bool(chosen[a]) and bool(chosen[b]) and _distance(cells[a], cells[b], n, centres, spread) > APART
        if value > best[a] + best[b] and not apart:
            best.append(value)
            chosen.append([node])
        else:
            best.append(best[a] + best[b])
            chosen.append(chosen[a] + chosen[b])
    return [cells[node] for node in chosen[-1]]


def _distance(a: Array, b: Array, n: Array, centres: Array, spread: Array) -> float:
    """How far two nodes lie apart, in pooled standard deviations along the line between them."""
    means = []
    variances = []
    for cells in (a, b):
        weight = np.maximum(n[cells], 1e-9)
        mean = np.average(centres[cells], axis=0, weights=weight)
        means.append(mean)
    line = means[0] - means[1]
    length = float(np.linalg.norm(line))
    if length == 0:
        return 0.0
    for cells, mean in zip((a, b), means, strict=True):
        weight = np.maximum(n[cells], 1e-9)
        along = (centres[cells] - mean) @ line / length
        noise = spread[cells].sum() / weight.sum() / centres.shape[1]  # as wide in every direction
        variances.append(np.average(np.square(along), weights=weight) + noise)
    wide = float(np.sqrt(np.mean(variances)))
    return length / wide if wide > 0 else np.inf  # cells of equal rows have no width
