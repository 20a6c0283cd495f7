"""`infembed-rule`: the largest clusters of influence embeddings that satisfy a rule (Wang et al., 2023, section 3.4).

A cluster that satisfies the rule is a slice and is not cut further; one that may still hold some is cut in B and each
part is looked at in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from ...core import Array, Evaluation, InputError, State
from ...core.influence import AXES, columns_used
from ...core.membership import excess_order
from ..contract import BaseSlicer, check_columns
from ..options import AT_LEAST_ONE, NOT_NEGATIVE, Interval
from .clusters import lloyd, nearest_centre, to_cluster

ROOT = -1


@dataclass(frozen=True)
class Statistics:
    """What a rule may ask of a cluster, on the rows that were searched.

    Parameters
    ----------
    n
        Rows of the cluster.
    accuracy
        Share of its rows that are right; None where an outcome is a loss.
    mean_loss
        Mean loss of its rows.
    label
        The commonest label; None where labels are not classes.
    label_share
        Share of the rows with that label.
    prediction
        The commonest prediction; None where predictions are not classes.
    prediction_share
        Share of the rows with that prediction.
    depth
        Cuts from all rows to the cluster.
    """

    n: int
    accuracy: float | None
    mean_loss: float
    label: int | None
    label_share: float | None
    prediction: int | None
    prediction_share: float | None
    depth: int


Rule = Callable[[Statistics], bool]


@dataclass(frozen=True)
class InfembedRuleAdvanced:
    """Options of `infembed-rule` that are rarely set.

    Parameters
    ----------
    depth
        Cuts at most, one after another.
    stop
        Clusters with fewer rows are not cut; null for twice `min_rows`.
    clusterer
        `normalised` (k-means with centroids of length one) or `kmeans`.
    unit_length
        Scale embeddings to length one first.
    steps
        Steps of k-means at most.
    """

    depth: int = 7
    stop: int | None = None
    clusterer: Literal["normalised", "kmeans"] = "kmeans"
    unit_length: bool = False
    steps: int = 100


class InfembedRule(BaseSlicer):
    """The largest clusters of influence embeddings that satisfy a rule: a low accuracy and enough rows.

    Parameters
    ----------
    accuracy
        Highest accuracy of a slice.
    min_rows
        Fewest rows of a slice.
    rule
        A function of `Statistics` that says yes or no, instead of `accuracy` and `min_rows`; null for those.
    branch
        Parts that a cluster is cut into, the paper's B.
    axes
        Leading columns of the embedding that are clustered, for each class; null for all, as published.
    advanced
        Options that are rarely set.
    representation
        The representation that is searched.
    seed
        Of the clusterings.
    """

    name = "infembed-rule"
    needs = frozenset({"representations", "losses"})
    presets: ClassVar = {
        "recommended": {},
        "as_published": {"branch": 3, "axes": None, "advanced": {"clusterer": "normalised", "steps": 25}},
    }
    limits: ClassVar = {
        "accuracy": Interval(0, 1),
        "min_rows": AT_LEAST_ONE,
        "branch": Interval(2),
        "axes": AT_LEAST_ONE,
        "depth": NOT_NEGATIVE,
        "steps": AT_LEAST_ONE,
    }
    advanced_type: ClassVar = InfembedRuleAdvanced
    renamed: ClassVar = {
        "size": "min_rows",
        "dims_a_class": "axes",
        "unit": "advanced.unit_length",
        "rounds": "advanced.steps",
    }
    fitted_arrays: ClassVar[tuple[str, ...]] = ("centres_", "parents_", "leaves_", "columns_")

    centres_: Array  # (c, d) centroid of each part of the tree, the root left out
    parents_: Array  # (c,) which part it was cut from; ROOT: all rows
    leaves_: Array  # (c,) the slice it is, or -1; the root is one where all rows satisfy the rule
    columns_: Array  # (1,) of the embedding that it was fitted on

    def __init__(
        self,
        accuracy: float = 0.4,
        min_rows: int = 25,
        rule: Rule | None = None,
        branch: int = 2,
        axes: int | None = AXES,
        advanced: Mapping[str, Any] | None = None,
        representation: str = "influence",
        seed: int = 0,
    ):
        self.accuracy = accuracy
        self.min_rows = min_rows
        self.rule = rule
        self.branch = branch
        self.axes = axes
        self.advanced = advanced
        self.representation = representation
        self.seed = seed

    @property
    def _rare(self) -> InfembedRuleAdvanced:
        return InfembedRuleAdvanced(**(self.advanced or {}))

    def _fit(self, evaluation: Evaluation, train: Evaluation | None) -> None:
        if self.rule is None and evaluation.errors is None:
            raise InputError(
                "`infembed-rule` asks for accuracy, which needs classes as labels and predictions; "
                "give a `rule` over mean_loss instead"
            )
        d = self.matrix(evaluation).shape[1]
        self.columns_ = np.array([d])
        X = to_cluster(self.matrix(evaluation), columns_used(evaluation, d, self.axes), self._rare.unit_length)
        parts = list(self._grow(X, evaluation, np.arange(len(X)), ROOT, [0]))
        self.centres_ = np.array([part.centre for part in parts]).reshape(-1, X.shape[1])
        self.parents_ = np.array([part.parent for part in parts], dtype=np.int64)
        slices = [part for part in parts if part.satisfies]
        hard = np.zeros((len(X), len(slices)), dtype=bool)
        for column, part in enumerate(slices):
            hard[part.rows, column] = True
        order = np.empty(0, dtype=np.int64)
        if slices:
            order = excess_order(hard, np.asarray(evaluation.losses))
        self.leaves_ = np.full(len(parts), -1, dtype=np.int64)
        for rank, j in enumerate(order):
            self.leaves_[slices[j].number] = rank
        self.rules_ = tuple(
            {
                "kind": "component",
                "representation": self.representation_,
                "component": rank,
                "columns": X.shape[1],
                "depth": slices[j].statistics.depth,
            }
            for rank, j in enumerate(order)
        )

    def _grow(
        self, X: Array, evaluation: Evaluation, rows: Array, parent: int, counter: list[int], depth: int = 0
    ) -> Iterator[_Part]:
        """The parts below some rows, each before its own parts. A root that satisfies the rule is its own part."""
        facts = statistics(evaluation, rows, depth)
        if depth == 0 and self._satisfied(facts):
            yield _Part(0, X.mean(axis=0), ROOT, rows, True, facts)
            return
        stop = self._rare.stop
        if stop is None:
            stop = 2 * self.min_rows
        if depth < self._rare.depth and len(rows) >= stop:
            yield from self._cut(X, evaluation, rows, parent, counter, depth + 1)

    def _cut(
        self, X: Array, evaluation: Evaluation, rows: Array, parent: int, counter: list[int], depth: int
    ) -> Iterator[_Part]:
        centres = lloyd(
            X[rows], self.branch, spherical=self._spherical, steps=self._rare.steps, seed=self.seed, engine=self.engine
        )
        if len(centres) < 2:  # all rows are alike
            return
        nearest, _ = nearest_centre(X[rows], centres, spherical=self._spherical)
        for j, centre in enumerate(centres):
            inside = rows[nearest == j]
            number = counter[0]
            counter[0] += 1
            facts = statistics(evaluation, inside, depth)
            satisfies = self._satisfied(facts)
            yield _Part(number, centre, parent, inside, satisfies, facts)
            if not satisfies:
                yield from self._grow(X, evaluation, inside, number, counter, depth)

    @property
    def _spherical(self) -> bool:
        return self._rare.clusterer == "normalised"

    def _satisfied(self, facts: Statistics) -> bool:
        if facts.n == 0:
            return False
        if self.rule is not None:
            return bool(self.rule(facts))
        return facts.n >= self.min_rows and facts.accuracy is not None and facts.accuracy <= self.accuracy

    def membership(self, evaluation: Evaluation) -> Array:
        """(n, s) 1 for the rows of a cluster that satisfies the rule."""
        check_columns(self.matrix(evaluation), int(self.columns_[0]), f"method `{self.name}`")
        X = to_cluster(self.matrix(evaluation), self.centres_.shape[1], self._rare.unit_length)
        slice_of = np.full(len(X), -1, dtype=np.int64)
        self._descend(X, np.arange(len(X)), ROOT, slice_of)
        inside: Array = slice_of[:, None] == np.arange(len(self.rules_))
        return inside.astype(np.float64)

    def _descend(self, X: Array, rows: Array, parent: int, slice_of: Array) -> None:
        """Rows go to the nearest part at every cut, until they are in a slice or there are no more cuts."""
        children = np.flatnonzero(self.parents_ == parent)
        if not len(children) or not len(rows):
            return
        nearest, _ = nearest_centre(X[rows], self.centres_[children], spherical=self._spherical)
        for j, child in enumerate(children):
            inside = rows[nearest == j]
            slice_of[inside] = self.leaves_[child]
            if self.leaves_[child] < 0:
                self._descend(X, inside, int(child), slice_of)

    def to_state(self) -> State:
        """What is saved; a rule of the user's own by its name, since its clusters are all that new rows need."""
        state = super().to_state()
        if self.rule is None:
            return state
        name = getattr(self.rule, "__name__", type(self.rule).__name__)
        facts = {**state.facts, "params": {**state.facts["params"], "rule": name}}
        return State(state.name, facts, state.arrays)


@dataclass(frozen=True, eq=False)
class _Part:
    """One part of the tree of clusters."""

    number: int
    centre: Array  # (d,)
    parent: int
    rows: Array
    satisfies: bool
    statistics: Statistics


def statistics(evaluation: Evaluation, rows: Array, depth: int = 0) -> Statistics:
    """Of some of the rows, by their numbers."""
    accuracy = None
    mean_loss = 0.0
    if evaluation.errors is not None and len(rows):
        accuracy = float((~evaluation.errors[rows]).mean())
    if evaluation.losses is not None and len(rows):
        mean_loss = float(evaluation.losses[rows].mean())
    label, label_share = _commonest(evaluation.labels, rows)
    prediction, prediction_share = _commonest(evaluation.predictions, rows)
    return Statistics(
        n=len(rows),
        accuracy=accuracy,
        mean_loss=mean_loss,
        label=label,
        label_share=label_share,
        prediction=prediction,
        prediction_share=prediction_share,
        depth=depth,
    )


def _commonest(classes: Array | None, rows: Array) -> tuple[int | None, float | None]:
    if classes is None or classes.dtype.kind not in "iu" or not len(rows):
        return None, None
    values, counts = np.unique(classes[rows], return_counts=True)
    return int(values[counts.argmax()]), float(counts.max() / len(rows))
