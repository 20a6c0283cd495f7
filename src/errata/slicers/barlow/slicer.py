"""`barlow`: in each group of rows, the few features that tell failure, and a shallow tree of them.

Singla, Nushi, Shah, Kamar and Horvitz, "Understanding Failures of Deep Networks via Robust Feature Extraction",
2021. The features are meant to be the penultimate layer of a robust model, which people can look at; any
representation does. Within a group (a class, say) the features with the most mutual information with failure make
an entropy tree of depth at most three; a leaf that fails more often than its group and holds enough of its
failures is a slice, and the path to it is the explanation.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Self

import numpy as np

from ...core import Array, Evaluation, InputError, State
from ...core.errors import unknown
from ...core.leaves import PAIR, Leaves, count_leaves, group_mask
from ..contract import BaseSlicer, check_columns
from .tree import Tree, grow, join, neighbour_information, threshold_information

ALL, LABEL, PREDICTION = "all", "label", "prediction"
READS = {LABEL: {"label"}, PREDICTION: {"prediction"}, PAIR: {"label", "prediction"}}
NEEDS = {LABEL: {"labels"}, PREDICTION: {"predictions"}, PAIR: {"labels", "predictions"}}
MOST_GROUPS = 2_000  # of a metadata column: one with more is a measurement, not a grouping
DEEPEST = 3  # of the paper: people hold few conditions in mind


@dataclass(frozen=True, eq=False)
class GroupLeaves:
    """One group, and what the leaves of its tree hold on some rows."""

    group: Mapping[str, Any]  # {"label": 3}, {"site": "a"}, {"pair": [3, 5]}; empty for all rows
    leaves: Leaves


class Barlow(BaseSlicer):
    """Paths of shallow trees within each class, to leaves that hold many of its failures.

    group: by "label", by "prediction", by "pair" (the `pairs` of classes most often taken for each other; rows whose
    label and prediction are both of the pair), "all" in one, or by a metadata column, named. information: of a feature
    and failure, exactly that of its best "threshold", or estimated from nearest "neighbours". features: how many of
    the most informative a tree may use. depth: of the tree. balanced: in the tree, a group's failures weigh as much
    as its other rows. least: fewest rows of a leaf. delta, tau: a slice fails delta more often than its group and
    has more than tau of its failures. count: slices kept.
    """

    name = "barlow"
    needs = frozenset({"representations", "labels", "predictions"})
    reads = frozenset({"label", "prediction"})  # with `group="pair"`; an instance knows better
    presets: ClassVar = {
        "recommended": {},
        "as_published": {"information": "neighbours", "balanced": True, "least": 1},
    }
    learnt: ClassVar[tuple[str, ...]] = (
        "width_", "starts_", "features_", "cuts_", "lefts_", "rights_", "trees_", "leaves_",
    )  # fmt: skip

    groups_: tuple[Mapping[str, Any], ...]  # (g,)
    width_: Array  # () columns of the representation
    starts_: Array  # (g + 1,) where the nodes of each group's tree begin in the next four
    features_: Array  # (m,)
    cuts_: Array  # (m,)
    lefts_: Array  # (m,)
    rights_: Array  # (m,)
    trees_: Array  # (s,) tree of each slice
    leaves_: Array  # (s,) number of its leaf there

    def __init__(
        self,
        group: str = LABEL,
        information: Literal["threshold", "neighbours"] = "threshold",
        features: int = 20,
        depth: int = 3,
        balanced: bool = False,
        least: int = 10,
        delta: float = 0.1,
        tau: float = 0.2,
        pairs: int = 20,
        count: int = 10,
        representation: str | None = None,
        seed: int = 0,
    ):
        self.group, self.information, self.features = group, information, features
        self.depth, self.balanced, self.least = depth, balanced, least
        self.delta, self.tau, self.pairs, self.count = delta, tau, pairs, count
        self.representation, self.seed = representation, seed
        # The class says the most that is ever read; `vars` since types allow no instance to differ.
        vars(self)["reads"] = frozenset(READS.get(group, ()))

    def _check(self) -> None:
        limits = {
            "features": (self.features >= 1, "at least 1"),
            "depth": (1 <= self.depth <= DEEPEST, f"from 1 to {DEEPEST}"),
            "least": (self.least >= 1, "at least 1"),
            "delta": (0 <= self.delta < 1, "in [0, 1)"),
            "tau": (0 <= self.tau < 1, "in [0, 1)"),
            "pairs": (self.pairs >= 1, "at least 1"),
            "count": (self.count >= 1, "at least 1"),
        }
        for option, (good, want) in limits.items():
            if not good:
                raise InputError(f"`barlow.{option}` must be {want}; got {getattr(self, option)!r}")

    # --- learning --------------------------------------------------------------------------------------------

    def _fit(self, evaluation: Evaluation, train: Evaluation | None) -> None:
        self._check()
        evaluation.need(frozenset({"errors"}), "method `barlow`")
        failed, X = np.asarray(evaluation.errors), self.matrix(evaluation)
        self.groups_, self.width_ = tuple(self._find_groups(evaluation, failed)), np.array(X.shape[1])
        trees, found = [], []
        for g, group in enumerate(self.groups_):
            rows = np.flatnonzero(group_mask(evaluation, group))
            tree = self._tree(np.asarray(X[rows]), failed[rows])
            trees.append(tree)
            found.append(count_leaves(tree.leaf_of(X, rows), failed[rows], len(tree.leaves)))
            self.report_progress(self.name, (g + 1) / len(self.groups_))
        self.starts_, joined = join(trees)
        self.features_, self.cuts_, self.lefts_, self.rights_ = (
            joined.features, joined.cuts, joined.lefts, joined.rights,
        )  # fmt: skip
        self._choose(found)

    def _find_groups(self, evaluation: Evaluation, failed: Array) -> list[dict[str, Any]]:
        if self.group == ALL:
            return [{}]
        if self.group == PAIR:
            return [{PAIR: pair} for pair in self._find_pairs(evaluation, failed)]
        if self.group in (LABEL, PREDICTION):
            values = evaluation.labels if self.group == LABEL else evaluation.predictions
            return [{self.group: int(value)} for value in np.unique(np.asarray(values))]
        if self.group not in evaluation.metadata:
            raise unknown("`barlow.group`", self.group, [ALL, LABEL, PREDICTION, PAIR, *evaluation.metadata])
        return [{self.group: value} for value in self._column_values(evaluation.metadata[self.group])]

    def _find_pairs(self, evaluation: Evaluation, failed: Array) -> list[list[int]]:
        """Classes taken for each other, in either direction, most often first."""
        taken = np.stack([np.asarray(evaluation.labels), np.asarray(evaluation.predictions)], axis=1)[failed]
        pairs, counts = np.unique(np.sort(taken.astype(np.int64), axis=1), axis=0, return_counts=True)
        found: list[list[int]] = pairs[np.argsort(-counts, kind="stable")[: self.pairs]].tolist()
        return found

    def _column_values(self, column: Array) -> list[Any]:
        values = np.unique(column)
        values = values[values == values]  # a missing number equals nothing, not even itself
        if len(values) > MOST_GROUPS:
            raise InputError(
                f"`barlow.group` = {self.group} has {len(values):,} values; "
                f"give a column with at most {MOST_GROUPS:,}, such as one of ranges"
            )
        listed: list[Any] = values.tolist()
        return listed

    def _tree(self, X: Array, failed: Array) -> Tree:
        """Of one group. Without failures, or with nothing else, it is a single leaf."""
        X = X if X.dtype.kind == "f" else X.astype(np.float64)
        failures = int(failed.sum())
        if failures in (0, len(X)):
            return grow(X[:0], failed[:0], np.empty(0, dtype=np.int64), 0)
        if self.information == "threshold":
            information = threshold_information(X, failed, self.least)
        else:
            information = neighbour_information(X, failed, self.seed)
        columns = np.argsort(-information, kind="stable")[: self.features]
        weight = (len(X) - failures) / failures if self.balanced else 1.0
        return grow(X, failed, columns, self.depth, weight, self.least)

    def _choose(self, found: list[Leaves]) -> None:
        """Valid leaves of all trees, by importance. Coverage is of all failures here, so that groups compare."""
        slices = [(g, int(leaf)) for g, one in enumerate(found) for leaf in one.valid(self.delta, self.tau)]
        importance = np.array([found[g].error_rates[leaf] * found[g].failures[leaf] for g, leaf in slices])
        order = np.argsort(-importance, kind="stable")[: self.count]
        self.trees_, self.leaves_ = np.array([slices[j] for j in order], dtype=np.int64).reshape(-1, 2).T
        self.rules_ = tuple(
            self._rule(int(g), int(leaf), found[g]) for g, leaf in zip(self.trees_, self.leaves_, strict=True)
        )

    def _rule(self, g: int, leaf: int, searched: Leaves) -> dict[str, Any]:
        """`searched` are the numbers on the rows that grew the tree, and flatter; `tree_statistics` has others."""
        group, tree = self.groups_[g], self._tree_of(g)
        paths = [tree.path(other) for other in range(len(tree.leaves))]
        return {
            "kind": "path",
            "representation": self.representation_,
            **(group if PAIR in group else {"scope": dict(group)}),
            "conditions": paths[leaf],
            "names": [f"feature {one['feature']}" for one in paths[leaf]],
            "leaves": paths,  # of the whole tree: its ALER can be counted on any rows
            "nodes": tree.nodes(),  # of the same, to be drawn; rules saved before have none
            "tree": g,
            "leaf": leaf,
            "searched": searched.numbers(leaf),
        }

    def _tree_of(self, g: int) -> Tree:
        nodes = slice(int(self.starts_[g]), int(self.starts_[g + 1]))
        return Tree(self.features_[nodes], self.cuts_[nodes], self.lefts_[nodes], self.rights_[nodes])

    # --- new rows --------------------------------------------------------------------------------------------

    def membership(self, evaluation: Evaluation) -> Array:
        X = self.matrix(evaluation)
        check_columns(X, int(self.width_), "method `barlow`")
        evaluation.need(frozenset(NEEDS.get(self.group, ())), f"method `barlow` with group={self.group}")
        weights = np.zeros((len(evaluation), len(self.trees_)))
        for g in np.unique(self.trees_):
            rows = np.flatnonzero(group_mask(evaluation, self.groups_[g]))
            leaf = self._tree_of(g).leaf_of(X, rows)
            for j in np.flatnonzero(self.trees_ == g):
                weights[rows, j] = leaf == self.leaves_[j]
        return weights

    def to_state(self) -> State:
        state = super().to_state()
        return State(state.name, {**state.facts, "groups": list(self.groups_)}, state.arrays)

    @classmethod
    def from_state(cls, state: State) -> Self:
        new = super().from_state(state)
        new.groups_ = tuple(state.facts["groups"])
        return new


def tree_statistics(slicer: Barlow, evaluation: Evaluation) -> tuple[GroupLeaves, ...]:
    """(g,) what every leaf of every group's tree holds on these rows, and on no others.

    On the rows it was fitted to, they are what the paper prints; on others, what to believe. A slice's rule says
    which tree and leaf are its own.
    """
    evaluation.need(slicer.needs | {"errors"}, "the statistics of method `barlow`")
    failed, X = np.asarray(evaluation.errors), slicer.matrix(evaluation)
    check_columns(X, int(slicer.width_), "method `barlow`")
    found = []
    for g, group in enumerate(slicer.groups_):
        rows, tree = np.flatnonzero(group_mask(evaluation, group)), slicer._tree_of(g)
        leaves = count_leaves(tree.leaf_of(X, rows), failed[rows], len(tree.leaves))
        found.append(GroupLeaves(group, leaves))
    return tuple(found)
