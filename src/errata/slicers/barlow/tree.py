"""Barlow's numbers: what a threshold says about failure, shallow trees of such thresholds, and what their leaves hold.

Mutual information is in nats. A split sends `x <= cut` to the left.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import xlogy

from ...core import Array
from ...core.blocks import block_rows
from ...core.leaves import leaf_numbers, leaf_paths

CELLS = 1 << 17  # values sorted at a time: what is computed of them stays near the core, and small for many rows
NEIGHBOURS = 3  # of the published estimate
TINY = 1e-12  # of information: less than the rounding of a sum over all rows
LEAF = -1


def best_splits(X: Array, failed: Array, weight: float = 1.0, least: int = 1) -> tuple[Array, Array]:
    """(d,) mutual information of failure and the best split of each feature; (d,) where that split lies.

    Every threshold between two different values that leaves `least` rows on both sides is tried. A failure counts
    as `weight` rows. 0 where there is nothing to split.
    """
    n, d = X.shape
    gains = np.zeros(d)
    cuts = np.zeros(d, dtype=X.dtype)
    if n < 2 * least:
        return gains, cuts
    gain_of = _GainTable(n, int(failed.sum()), weight)
    last = slice(least - 1, n - least)  # the row before a cut
    first = slice(least, n - least + 1)  # and the row after it
    size = np.arange(least, n - least + 1)
    step = max(1, CELLS // n)
    for start in range(0, d, step):
        some = slice(start, start + step)
        values, marks = _sorted(X[:, some].T, failed)
        wrong = np.cumsum(marks, axis=1, dtype=np.int32)[:, last]
        below = values[:, last]
        above = values[:, first]
        gain = np.where(below < above, gain_of(wrong, size), 0.0)
        best = gain.argmax(axis=1)[:, None]
        gains[some] = np.take_along_axis(gain, best, axis=1)[:, 0]
        cuts[some] = _between(*(np.take_along_axis(side, best, axis=1)[:, 0] for side in (below, above)))
    return np.maximum(gains, 0.0), cuts


def _sorted(columns: Array, failed: Array) -> tuple[Array, Array]:
    """(d, n) values in order, and whether the row of each is a failure."""
    if columns.dtype.itemsize < 8:
        # A double has room below the digits of a shorter number: the mark travels there, which takes half the time.
        marked = np.ascontiguousarray(columns, dtype=np.float64)
        bits = marked.view(np.int64)
        bits |= failed
        marked.sort(axis=1)
        return marked.astype(columns.dtype), bits & 1
    columns = np.ascontiguousarray(columns)
    order = np.argsort(columns, axis=1)
    return np.take_along_axis(columns, order, axis=1), failed[order]


class _GainTable:
    """The information of a split, from counts. Counts are whole, so x log x is looked up instead of computed."""

    def __init__(self, n: int, failures: int, weight: float):
        self.n = n
        self.failures = failures
        self.weight = weight
        counts = np.arange(n + 1)
        self.rows = xlogy(counts, counts)
        self.wrong = xlogy(weight * counts, weight * counts)
        self.mass = weight * failures + n - failures
        self.before = self._certainty(np.array(failures), np.array(n))

    def _certainty(self, wrong: Array, size: Array) -> Array:
        """Minus the entropy of failure among `size` rows, times what they weigh."""
        if self.weight == 1:
            whole = self.rows[size]
        else:
            mass = size + (self.weight - 1) * wrong
            whole = xlogy(mass, mass)
        sides: Array = self.wrong[wrong] + self.rows[size - wrong]
        return np.asarray(sides - whole)

    def __call__(self, wrong: Array, size: Array) -> Array:
        """Of splits with `size` rows on the left, `wrong` of them failures."""
        after = self._certainty(wrong, size) + self._certainty(self.failures - wrong, self.n - size)
        return np.asarray((after - self.before) / self.mass)


def _between(below: Array, above: Array) -> Array:
    """The middle of two values, in their own precision; the lower one where that has nothing in between."""
    middle = below / 2 + above / 2
    return np.where((below <= middle) & (middle < above), middle, below)


def threshold_information(X: Array, failed: Array, least: int = 1) -> Array:
    """(d,) the most that a threshold of each feature tells of failure."""
    return best_splits(X, failed, least=least)[0]


def neighbour_information(X: Array, failed: Array, seed: int) -> Array:
    """(d,) the published estimate: by distances to the nearest rows of the same outcome (Ross 2014)."""
    from sklearn.feature_selection import mutual_info_classif

    if max(failed.sum(), (~failed).sum()) < 2:
        return np.zeros(X.shape[1])  # nobody has a neighbour of its own outcome
    information = mutual_info_classif(X, failed, discrete_features=False, n_neighbors=NEIGHBOURS, random_state=seed)
    return np.asarray(information)


@dataclass(frozen=True, eq=False)
class DecisionTree:
    """Nodes in the order in which they were split, the root first. Leaves are numbered in that order, from 0."""

    features: Array  # (m,) column of the representation; LEAF for a leaf
    cuts: Array  # (m,)
    lefts: Array  # (m,) node of the rows with x <= cut
    rights: Array  # (m,)

    @property
    def leaves(self) -> Array:
        """(l,) nodes"""
        return np.flatnonzero(self.features == LEAF)

    def leaf_of(self, X: Any, rows: Array) -> Array:
        """(r,) number of the leaf that each of `rows` falls into."""
        paths = leaf_paths(self.nodes())
        columns = np.unique(self.features[self.features != LEAF]).tolist()
        numbers = np.empty(len(rows), dtype=np.int64)
        step = block_rows(X)
        for start in range(0, len(rows), step):
            block = np.asarray(X[rows[start : start + step]])
            values = {column: block[:, column] for column in columns}
            numbers[start : start + step] = leaf_numbers(values, paths, len(block))
        return numbers

    def nodes(self) -> list[dict[str, Any]]:
        """Every node, the root first: where it splits and into which, or the number of its leaf."""
        nodes: list[dict[str, Any]] = []
        leaves = 0
        for feature, cut, left, right in zip(self.features, self.cuts, self.lefts, self.rights, strict=True):
            if feature == LEAF:
                nodes.append({"leaf": leaves})
                leaves += 1
            else:
                nodes.append({"feature": int(feature), "cut": float(cut), "left": int(left), "right": int(right)})
        return nodes


def grow(X: Array, failed: Array, columns: Array, depth: int, weight: float = 1.0, least: int = 1) -> DecisionTree:
    """The tree that takes the most informative split of `columns` at every node; the earlier column wins a tie."""
    nodes: list[list[float]] = []

    def split(rows: Array, left_to_go: int) -> int:
        here = len(nodes)
        nodes.append([LEAF, 0.0, here, here])
        if left_to_go == 0:
            return here
        values = X[np.ix_(rows, columns)]
        gains, cuts = best_splits(values, failed[rows], weight, least)
        best = int(gains.argmax())
        if gains[best] <= TINY:
            return here
        goes_left = values[:, best] <= cuts[best]
        left = split(rows[goes_left], left_to_go - 1)
        right = split(rows[~goes_left], left_to_go - 1)
        nodes[here] = [columns[best], cuts[best], left, right]
        return here

    split(np.arange(len(X)), depth)
    features, cuts, lefts, rights = np.array(nodes, dtype=np.float64).T
    return DecisionTree(features.astype(np.int64), cuts, lefts.astype(np.int64), rights.astype(np.int64))


def join(trees: Sequence[DecisionTree]) -> tuple[Array, DecisionTree]:
    """(g + 1,) where the nodes of each tree begin, and all of them in one row, numbered as before."""
    starts = np.cumsum([0, *(len(tree.features) for tree in trees)])
    whole = np.empty(0, dtype=np.int64)  # where there is no tree at all
    real = np.empty(0)
    return starts, DecisionTree(
        np.concatenate([whole, *(tree.features for tree in trees)]),
        np.concatenate([real, *(tree.cuts for tree in trees)]),
        np.concatenate([whole, *(tree.lefts for tree in trees)]),
        np.concatenate([whole, *(tree.rights for tree in trees)]),
    )
