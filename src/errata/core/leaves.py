"""The numbers of a tree's leaves that Barlow's tables print (definitions 1 to 5 of the paper)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .blocks import Array
from .evaluation import Evaluation
from .scope import rows_in_scope

PAIR = "pair"  # two classes taken for each other


def group_mask(evaluation: Evaluation, group: Mapping[str, Any]) -> Array:
    """(n,) bool: rows of a group, {"label": 3}, {"site": "a"} or {"pair": [3, 5]}; all of them where it is empty."""
    if PAIR not in group:
        return rows_in_scope(evaluation, group)
    return np.isin(np.asarray(evaluation.labels), group[PAIR]) & np.isin(
        np.asarray(evaluation.predictions), group[PAIR]
    )


@dataclass(frozen=True)
class InformativeFeature:
    """A feature and what its best cut says about failure, on the rows that grew a tree.

    Attributes
    ----------
    feature : int
        Column of the representation.
    information : float
        Mutual information with failure, in nats, as the tree's method measures it.
    cut : float
        The threshold that says most about failure.
    """

    feature: int
    information: float
    cut: float


@dataclass(frozen=True)
class GrownTree:
    """The tree of one group, as a slicer grew it.

    Attributes
    ----------
    group : mapping
        As `group_mask` takes it.
    nodes : list of mappings
        Every node, the root first: where it splits and into which, or the number of its leaf.
    informative : tuple of InformativeFeature, optional
        Those that say most about failure, most first; None where they were not recorded.
    """

    group: Mapping[str, Any]
    nodes: Sequence[Mapping[str, Any]]
    informative: tuple[InformativeFeature, ...] | None


@dataclass(frozen=True, eq=False)
class SearchedTrees:
    """The trees that one search grew, and where.

    Attributes
    ----------
    trees : tuple of GrownTree
        One for each group.
    task : str
        The label of several that was searched; "" where there is one.
    representation : str
        That the features are columns of.
    searched : array
        (n,) bool: the rows that the trees were grown on.
    knows_outcome : bool
        Whether a tree reads the outcome: its leaves are then wrong by construction, on any rows.
    """

    trees: tuple[GrownTree, ...]
    task: str
    representation: str
    searched: Array
    knows_outcome: bool


@dataclass(frozen=True, eq=False)
class Leaves:
    """The rows and failures in each leaf of one tree (definitions 1 to 5 of the paper).

    A rate of no rows, and a share of no failures, is NaN; it adds nothing to `aler`.

    Attributes
    ----------
    sizes, failures : array
        (l,) rows of each of l leaves, and those on which the model fails.
    """

    sizes: Array
    failures: Array

    @property
    def base_error_rate(self) -> float:
        """Of all rows."""
        return float(_ratio(self.failures.sum(), self.sizes.sum()))

    @property
    def error_rates(self) -> Array:
        """(l,) of each leaf."""
        return _ratio(self.failures, self.sizes)

    @property
    def coverages(self) -> Array:
        """(l,) the share of all failures that is in each leaf."""
        return _ratio(self.failures, self.failures.sum())

    @property
    def importances(self) -> Array:
        """(l,) error rate times coverage."""
        return np.asarray(np.nan_to_num(self.error_rates * self.coverages))

    @property
    def aler(self) -> float:
        """Average leaf error rate: the mean over failures of the error rate of their leaf."""
        if not self.sizes.sum():
            return float("nan")
        return float(self.importances.sum())

    def valid(self, delta: float, tau: float) -> Array:
        """(v,) leaves with an error rate above the base by delta and more than tau of the failures (algorithm 1)."""
        valid: Array = (self.error_rates > self.base_error_rate + delta) & (self.coverages > tau)
        return np.flatnonzero(valid)

    def numbers(self, leaf: int) -> dict[str, Any]:
        """One leaf and its tree, as the paper's tables print them: BER, ER, EC, IV, ALER."""
        return {
            "n": int(self.sizes[leaf]),
            "failures": int(self.failures[leaf]),
            "group_n": int(self.sizes.sum()),
            "group_failures": int(self.failures.sum()),
            "base_error_rate": self.base_error_rate,
            "error_rate": float(self.error_rates[leaf]),
            "error_coverage": float(self.coverages[leaf]),
            "importance": float(self.importances[leaf]),
            "aler": self.aler,
        }


def leaf_paths(nodes: Sequence[Mapping[str, Any]]) -> list[list[dict[str, Any]]]:
    """Conditions from the root to each leaf, derived from its nodes.

    Of several conditions on one side of a feature, the tightest.
    """
    paths: list[list[dict[str, Any]]] = [[] for node in nodes if "leaf" in node]

    def descend(at: int, above: Mapping[tuple[int, str], dict[str, Any]]) -> None:
        node = nodes[at]
        if "leaf" in node:
            paths[node["leaf"]] = list(above.values())
            return
        for side, op in (("left", "<="), ("right", ">")):
            condition = {"feature": node["feature"], "op": op, "value": node["cut"]}
            # A cut below another on the same side of a feature is tighter, and takes its place.
            descend(node[side], {**above, (node["feature"], op): condition})

    descend(0, {})
    return paths


def leaf_numbers(values: Mapping[int, Array], leaves: Sequence[Sequence[Mapping[str, Any]]], rows: int) -> Array:
    """(n,) number of the leaf that each row falls into.

    values: feature -> (n,) its values. leaves: of each, the conditions from the root to it, as a rule has
    them. rows: n.
    """
    number = np.full(rows, -1)
    for leaf, conditions in enumerate(leaves):
        inside = np.ones(rows, dtype=bool)
        for condition in conditions:
            below = values[condition["feature"]].astype(np.float64) <= condition["value"]
            if condition["op"] == "<=":
                inside &= below
            else:
                inside &= ~below
        number[inside] = leaf
    return number


def count_leaves(leaf: Array, failed: Array, count: int) -> Leaves:
    """From the leaf that each row falls into, and whether the model fails on it."""
    return Leaves(np.bincount(leaf, minlength=count), np.bincount(leaf[failed], minlength=count))


def _ratio(part: Array, whole: Array) -> Array:
    return np.where(whole > 0, part / np.maximum(whole, 1), np.nan)
