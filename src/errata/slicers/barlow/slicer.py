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
from ...core.leaves import PAIR, GrownTree, InformativeFeature, Leaves, count_leaves, group_mask, leaf_paths
from ..contract import BaseSlicer, check_columns
from ..options import AT_LEAST_ONE, Interval
from .tree import DecisionTree, best_splits, grow, join, neighbour_information, threshold_information

ALL = "all"
LABEL = "label"
PREDICTION = "prediction"
READS = {LABEL: {"label"}, PREDICTION: {"prediction"}, PAIR: {"label", "prediction"}}
NEEDS = {LABEL: {"labels"}, PREDICTION: {"predictions"}, PAIR: {"labels", "predictions"}}
MOST_GROUPS = 2_000  # of a metadata column: one with more is a measurement, not a grouping
DEEPEST = 3  # of the paper: people hold few conditions in mind
INFORMATIVE = 10  # features of a group that are recorded, as many as the paper's crowd was shown
NO_FEATURE = -1


@dataclass(frozen=True, eq=False)
class GroupLeaves:
    """One group, and what the leaves of its tree hold on some rows.

    Parameters
    ----------
    group
        {"label": 3}, {"site": "a"}, {"pair": [3, 5]}; empty for all rows.
    leaves
        Of its tree.
    """

    group: Mapping[str, Any]
    leaves: Leaves


@dataclass(frozen=True)
class BarlowAdvanced:
    """Options of `barlow` that are rarely set.

    Parameters
    ----------
    features
        How many of the most informative features a tree may use.
    min_rows
        Fewest rows of a leaf.
    information
        Of a feature and failure: exactly that of its best `threshold`, or estimated from nearest `neighbours`.
    balanced
        In the tree, a group's failures weigh as much as its other rows.
    pairs
        Pairs of classes that are searched at most, where `scope` is `pair`.
    """

    features: int = 20
    min_rows: int = 10
    information: Literal["threshold", "neighbours"] = "threshold"
    balanced: bool = False
    pairs: int = 20


class Barlow(BaseSlicer):
    """Paths of shallow trees within each class, to leaves that hold many of its failures.

    Parameters
    ----------
    scope
        What rows are grouped by: `label`; `prediction`; `pair`, classes that are taken for each other, with the rows
        whose label and prediction are both of the pair; `all` in one; or the name of a metadata column.
    slices
        Slices to return at most.
    depth
        Of each tree at most.
    delta
        A slice fails this much more often than its group.
    tau
        A slice has more than this share of its group's failures.
    advanced
        Options that are rarely set.
    representation
        The representation that is searched. Default: the first.
    seed
        Of the estimate from nearest neighbours.
    """

    name = "barlow"
    needs = frozenset({"representations", "labels", "predictions"})
    own_scopes: ClassVar = {"none": {"scope": ALL}, "label": {"scope": LABEL}, "prediction": {"scope": PREDICTION}}
    presets: ClassVar = {
        "recommended": {},
        "as_published": {"advanced": {"information": "neighbours", "balanced": True, "min_rows": 1}},
    }
    limits: ClassVar = {
        "slices": AT_LEAST_ONE,
        "depth": Interval(1, DEEPEST),
        "delta": Interval(0, 1, excluded="high"),
        "tau": Interval(0, 1, excluded="high"),
        "features": AT_LEAST_ONE,
        "min_rows": AT_LEAST_ONE,
        "pairs": AT_LEAST_ONE,
    }
    advanced_type: ClassVar = BarlowAdvanced
    renamed: ClassVar = {"group": "scope", "count": "slices", "least": "advanced.min_rows"}
    fitted_arrays: ClassVar[tuple[str, ...]] = (
        "width_",
        "starts_",
        "features_",
        "cuts_",
        "lefts_",
        "rights_",
        "trees_",
        "leaves_",
        "informative_",
        "information_",
        "best_cuts_",
    )

    groups_: tuple[Mapping[str, Any], ...]  # (g,)
    width_: Array  # () columns of the representation
    starts_: Array  # (g + 1,) where the nodes of each group's tree begin in the next four
    features_: Array  # (m,)
    cuts_: Array  # (m,)
    lefts_: Array  # (m,)
    rights_: Array  # (m,)
    trees_: Array  # (s,) tree of each slice
    leaves_: Array  # (s,) number of its leaf there
    # What versions before 0.6 did not save: no group has a line.
    informative_: Array = np.empty((0, INFORMATIVE), dtype=np.int64)  # (g, 10) most informative first; NO_FEATURE
    information_: Array = np.empty((0, INFORMATIVE))  # (g, 10) of each
    best_cuts_: Array = np.empty((0, INFORMATIVE))  # (g, 10) the cut of each that says most

    def __init__(
        self,
        scope: str = LABEL,
        slices: int = 10,
        depth: int = 3,
        delta: float = 0.1,
        tau: float = 0.2,
        advanced: Mapping[str, Any] | None = None,
        representation: str | None = None,
        seed: int = 0,
    ):
        self.scope = scope
        self.slices = slices
        self.depth = depth
        self.delta = delta
        self.tau = tau
        self.advanced = advanced
        self.representation = representation
        self.seed = seed

    @property
    def reads(self) -> frozenset[str]:
        """What rows are grouped by, where that is of the outcome."""
        return frozenset(READS.get(self.scope, ()))

    @property
    def _rare(self) -> BarlowAdvanced:
        return BarlowAdvanced(**(self.advanced or {}))

    # --- learning --------------------------------------------------------------------------------------------

    def _fit(self, evaluation: Evaluation, train: Evaluation | None) -> None:
        evaluation.need(frozenset({"errors"}), "method `barlow`")
        failed = np.asarray(evaluation.errors)
        X = self.matrix(evaluation)
        self.groups_ = tuple(self._find_groups(evaluation, failed))
        self.width_ = np.array(X.shape[1])
        self.informative_ = np.full((len(self.groups_), INFORMATIVE), NO_FEATURE)
        self.information_ = np.zeros((len(self.groups_), INFORMATIVE))
        self.best_cuts_ = np.zeros((len(self.groups_), INFORMATIVE))
        trees = []
        counts = []
        for g, group in enumerate(self.groups_):
            rows = np.flatnonzero(group_mask(evaluation, group))
            tree = self._tree(g, np.asarray(X[rows]), failed[rows])
            trees.append(tree)
            counts.append(count_leaves(tree.leaf_of(X, rows), failed[rows], len(tree.leaves)))
            self.report_progress(self.name, (g + 1) / len(self.groups_))
        self.starts_, joined = join(trees)
        self.features_ = joined.features
        self.cuts_ = joined.cuts
        self.lefts_ = joined.lefts
        self.rights_ = joined.rights
        self._choose(counts)

    def _find_groups(self, evaluation: Evaluation, failed: Array) -> list[dict[str, Any]]:
        if self.scope == ALL:
            return [{}]
        if self.scope == PAIR:
            return [{PAIR: pair} for pair in self._find_pairs(evaluation, failed)]
        if self.scope in (LABEL, PREDICTION):
            values = evaluation.labels if self.scope == LABEL else evaluation.predictions
            return [{self.scope: int(value)} for value in np.unique(np.asarray(values))]
        if self.scope not in evaluation.metadata:
            raise unknown("`barlow.scope`", self.scope, [ALL, LABEL, PREDICTION, PAIR, *evaluation.metadata])
        return [{self.scope: value} for value in self._column_values(evaluation.metadata[self.scope])]

    def _find_pairs(self, evaluation: Evaluation, failed: Array) -> list[list[int]]:
        """Classes taken for each other, in either direction, most often first."""
        taken = np.stack([np.asarray(evaluation.labels), np.asarray(evaluation.predictions)], axis=1)[failed]
        pairs, counts = np.unique(np.sort(taken.astype(np.int64), axis=1), axis=0, return_counts=True)
        commonest: list[list[int]] = pairs[np.argsort(-counts, kind="stable")[: self._rare.pairs]].tolist()
        return commonest

    def _column_values(self, column: Array) -> list[Any]:
        values = np.unique(column)
        values = values[values == values]  # a missing number equals nothing, not even itself
        if len(values) > MOST_GROUPS:
            raise InputError(
                f"`barlow.scope` = {self.scope} has {len(values):,} values; "
                f"give a column with at most {MOST_GROUPS:,}, such as one of ranges"
            )
        listed: list[Any] = values.tolist()
        return listed

    def _tree(self, g: int, X: Array, failed: Array) -> DecisionTree:
        """Of group g. Without failures, or with nothing else, it is a single leaf, and no feature is informative."""
        rare = self._rare
        if X.dtype.kind != "f":
            X = X.astype(np.float64)
        failures = int(failed.sum())
        if failures in (0, len(X)):
            return grow(X[:0], failed[:0], np.empty(0, dtype=np.int64), 0)
        if rare.information == "threshold":
            information = threshold_information(X, failed, rare.min_rows)
        else:
            information = neighbour_information(X, failed, self.seed)
        order = np.argsort(-information, kind="stable")
        columns = order[: rare.features]
        self._record_informative(g, X, failed, order[information[order] > 0][:INFORMATIVE], information)
        weight = (len(X) - failures) / failures if rare.balanced else 1.0
        return grow(X, failed, columns, self.depth, weight, rare.min_rows)

    def _record_informative(self, g: int, X: Array, failed: Array, columns: Array, information: Array) -> None:
        """The most informative features of group g, and where each is best cut; not those that no cut splits."""
        gains, cuts = best_splits(X[:, columns], failed, least=self._rare.min_rows)
        split = gains > 0
        some = slice(0, int(split.sum()))
        self.informative_[g, some] = columns[split]
        self.information_[g, some] = information[columns[split]]
        self.best_cuts_[g, some] = cuts[split]

    def _choose(self, counts: list[Leaves]) -> None:
        """Valid leaves of all trees, by importance. Coverage is of all failures here, so that groups compare."""
        valid = [(g, int(leaf)) for g, leaves in enumerate(counts) for leaf in leaves.valid(self.delta, self.tau)]
        importance = np.array([counts[g].error_rates[leaf] * counts[g].failures[leaf] for g, leaf in valid])
        order = np.argsort(-importance, kind="stable")[: self.slices]
        self.trees_, self.leaves_ = np.array([valid[j] for j in order], dtype=np.int64).reshape(-1, 2).T
        self.rules_ = tuple(
            self._rule(int(g), int(leaf), counts[g]) for g, leaf in zip(self.trees_, self.leaves_, strict=True)
        )

    def _rule(self, g: int, leaf: int, searched: Leaves) -> dict[str, Any]:
        """`searched` are the numbers on the rows that grew the tree, and flatter; `tree_statistics` has others."""
        group = self.groups_[g]
        nodes = self._tree_of(g).nodes()
        paths = leaf_paths(nodes)  # of the whole tree: its ALER can be counted on any rows
        scope = group if PAIR in group else {"scope": dict(group)}
        return {
            "kind": "path",
            "representation": self.representation_,
            **scope,
            "conditions": paths[leaf],
            "names": [f"feature {condition['feature']}" for condition in paths[leaf]],
            "leaves": paths,
            "nodes": nodes,  # what `leaves` and `conditions` follow from; rules saved before have none
            "tree": g,
            "leaf": leaf,
            "searched": searched.numbers(leaf),
        }

    def _tree_of(self, g: int) -> DecisionTree:
        nodes = slice(int(self.starts_[g]), int(self.starts_[g + 1]))
        return DecisionTree(self.features_[nodes], self.cuts_[nodes], self.lefts_[nodes], self.rights_[nodes])

    def grown_trees(self) -> tuple[GrownTree, ...]:
        """(g,) the tree of every group, with a slice or without, and the features that say most about its failures."""
        return tuple(
            GrownTree(group, self._tree_of(g).nodes(), self._informative(g)) for g, group in enumerate(self.groups_)
        )

    def _informative(self, g: int) -> tuple[InformativeFeature, ...] | None:
        if g >= len(self.informative_):
            return None
        lines = zip(self.informative_[g], self.information_[g], self.best_cuts_[g], strict=True)
        return tuple(
            InformativeFeature(int(feature), float(information), float(cut))
            for feature, information, cut in lines
            if feature != NO_FEATURE
        )

    # --- new rows --------------------------------------------------------------------------------------------

    def membership(self, evaluation: Evaluation) -> Array:
        """(n, s) 1 for the rows of a leaf."""
        X = self.matrix(evaluation)
        check_columns(X, int(self.width_), "method `barlow`")
        evaluation.need(frozenset(NEEDS.get(self.scope, ())), f"method `barlow` with scope={self.scope}")
        weights = np.zeros((len(evaluation), len(self.trees_)))
        for g in np.unique(self.trees_):
            rows = np.flatnonzero(group_mask(evaluation, self.groups_[g]))
            leaf = self._tree_of(g).leaf_of(X, rows)
            for j in np.flatnonzero(self.trees_ == g):
                weights[rows, j] = leaf == self.leaves_[j]
        return weights

    def to_state(self) -> State:
        """What is saved, with the groups."""
        state = super().to_state()
        return State(state.name, {**state.facts, "groups": list(self.groups_)}, state.arrays)

    @classmethod
    def from_state(cls, state: State) -> Self:
        """A fitted slicer from what was saved."""
        new = super().from_state(state)
        new.groups_ = tuple(state.facts["groups"])
        return new


def tree_statistics(slicer: Barlow, evaluation: Evaluation) -> tuple[GroupLeaves, ...]:
    """(g,) what every leaf of every group's tree holds on these rows, and on no others.

    On the rows it was fitted to, they are what the paper prints; on others, what to believe. A slice's rule says
    which tree and leaf are its own.
    """
    evaluation.need(slicer.needs | {"errors"}, "the statistics of method `barlow`")
    failed = np.asarray(evaluation.errors)
    X = slicer.matrix(evaluation)
    check_columns(X, int(slicer.width_), "method `barlow`")
    groups = []
    for g, group in enumerate(slicer.groups_):
        rows = np.flatnonzero(group_mask(evaluation, group))
        tree = slicer._tree_of(g)
        leaves = count_leaves(tree.leaf_of(X, rows), failed[rows], len(tree.leaves))
        groups.append(GroupLeaves(group, leaves))
    return tuple(groups)
