"""`infembed-rule`: the largest clusters of influence embeddings that satisfy a rule (Wang et al., 2023, section 3.4).

A cluster that satisfies the rule is a slice and is not cut further; one that may still hold some is cut in B and each
part is looked at in turn.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...core import Array, Evaluation, InputError, State
from ...core.membership import excess_order
from ..contract import BaseSlicer, check_columns
from .clusters import columns_used, lloyd, nearest_centre, to_cluster

ROOT = -1


@dataclass(frozen=True)
class Statistics:
    """What a rule may ask of a cluster, on the rows that were searched."""

    n: int
    accuracy: float | None  # None where an outcome is a loss
    mean_loss: float
    label: int | None  # the commonest, and its share
    label_share: float | None
    prediction: int | None
    prediction_share: float | None
    depth: int


Rule = Callable[[Statistics], bool]


class InfembedRule(BaseSlicer):
    """The largest clusters of influence embeddings with at most `accuracy` and at least `size` rows.

    branch: B, the parts that a cluster is cut into. depth: cuts at most, one after another. stop: clusters with fewer
    rows are not cut; left out, twice the size. rule: a function of `Statistics` that says yes or no, instead of
    accuracy and size. clusterer: `normalised` or `kmeans`. dims_a_class, unit: as in `infembed`.
    """

    name = "infembed-rule"
    needs = frozenset({"representations", "losses"})
    presets: ClassVar = {
        "recommended": {},
        "as_published": {"branch": 3, "clusterer": "normalised", "rounds": 25, "dims_a_class": None},
    }
    learnt: ClassVar[tuple[str, ...]] = ("centres_", "parents_", "leaves_", "columns_")

    centres_: Array  # (c, d) centroid of each part of the tree, the root left out
    parents_: Array  # (c,) which part it was cut from; ROOT: all rows
    leaves_: Array  # (c,) the slice it is, or -1; the root is one where all rows satisfy the rule
    columns_: Array  # (1,) of the embedding that it was fitted on

    def __init__(
        self,
        accuracy: float = 0.4,
        size: int = 25,
        branch: int = 2,
        depth: int = 7,
        stop: int | None = None,
        rule: Any = None,
        clusterer: str = "kmeans",
        dims_a_class: int | None = 4,
        unit: bool = False,
        rounds: int = 100,
        representation: str = "influence",
        seed: int = 0,
    ):
        self.accuracy, self.size, self.branch, self.depth, self.stop = accuracy, size, branch, depth, stop
        self.rule, self.clusterer, self.dims_a_class, self.unit = rule, clusterer, dims_a_class, unit
        self.rounds, self.representation, self.seed = rounds, representation, seed

    def _fit(self, evaluation: Evaluation, train: Evaluation | None) -> None:
        self._check(evaluation)
        d = self.matrix(evaluation).shape[1]
        self.columns_ = np.array([d])
        X = to_cluster(self.matrix(evaluation), columns_used(evaluation, d, self.dims_a_class), self.unit)
        parts = list(self._grow(X, evaluation, np.arange(len(X)), ROOT, [0]))
        self.centres_ = np.array([part.centre for part in parts]).reshape(-1, X.shape[1])
        self.parents_ = np.array([part.parent for part in parts], dtype=np.int64)
        found = [part for part in parts if part.satisfies]
        hard = np.zeros((len(X), len(found)), dtype=bool)
        for j, part in enumerate(found):
            hard[part.rows, j] = True
        assert evaluation.losses is not None
        order = excess_order(hard, evaluation.losses) if found else np.empty(0, dtype=np.int64)
        self.leaves_ = np.full(len(parts), -1, dtype=np.int64)
        for rank, j in enumerate(order):
            self.leaves_[found[j].number] = rank
        self.rules_ = tuple(
            {"kind": "component", "representation": self.representation_, "component": rank, **found[j].facts}
            for rank, j in enumerate(order)
        )

    def _check(self, evaluation: Evaluation) -> None:
        if not 0 <= self.accuracy <= 1:
            raise InputError(f"`infembed-rule.accuracy` must lie from 0 to 1; got {self.accuracy}")
        for name, least in (("size", 1), ("branch", 2), ("depth", 0), ("rounds", 1), ("dims_a_class", 1)):
            if getattr(self, name) is not None and getattr(self, name) < least:
                raise InputError(f"`infembed-rule.{name}` must be at least {least}; got {getattr(self, name)}")
        if self.clusterer not in ("normalised", "kmeans"):
            raise InputError(f"`infembed-rule.clusterer` must be `normalised` or `kmeans`; got {self.clusterer!r}")
        if self.rule is not None and not callable(self.rule):
            raise InputError(f"`infembed-rule.rule` must be a function of Statistics; got {self.rule!r}")
        if self.rule is None and evaluation.errors is None:
            raise InputError(
                "`infembed-rule` asks for accuracy, which needs classes as labels and predictions; "
                "give a `rule` over mean_loss instead"
            )

    def _grow(
        self, X: Array, evaluation: Evaluation, rows: Array, parent: int, counter: list[int], depth: int = 0
    ) -> Iterator[_Part]:
        """The parts below some rows, each before its own parts. A root that satisfies the rule is its own part."""
        facts = statistics(evaluation, rows, depth)
        if depth == 0 and self._satisfied(facts):
            yield _Part(0, X.mean(axis=0), ROOT, rows, True, facts)
        elif depth < self.depth and len(rows) >= (2 * self.size if self.stop is None else self.stop):
            yield from self._cut(X, evaluation, rows, parent, counter, depth + 1)

    def _cut(
        self, X: Array, evaluation: Evaluation, rows: Array, parent: int, counter: list[int], depth: int
    ) -> Iterator[_Part]:
        centres = lloyd(X[rows], self.branch, spherical=self._spherical, rounds=self.rounds, seed=self.seed)
        if len(centres) < 2:  # all rows are alike
            return
        nearest, _ = nearest_centre(X[rows], centres, spherical=self._spherical)
        for j, centre in enumerate(centres):
            inside, number = rows[nearest == j], counter[0]
            counter[0] += 1
            facts = statistics(evaluation, inside, depth)
            satisfies = self._satisfied(facts)
            yield _Part(number, centre, parent, inside, satisfies, facts)
            if not satisfies:
                yield from self._grow(X, evaluation, inside, number, counter, depth)

    @property
    def _spherical(self) -> bool:
        return self.clusterer == "normalised"

    def _satisfied(self, facts: Statistics) -> bool:
        if facts.n == 0:
            return False
        if self.rule is not None:
            return bool(self.rule(facts))
        return facts.n >= self.size and facts.accuracy is not None and facts.accuracy <= self.accuracy

    def membership(self, evaluation: Evaluation) -> Array:
        check_columns(self.matrix(evaluation), int(self.columns_[0]), f"method `{self.name}`")
        X = to_cluster(self.matrix(evaluation), self.centres_.shape[1], self.unit)
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
        """A rule of the user's is saved by its name: what it found is all that new rows need."""
        state = super().to_state()
        named = None if self.rule is None else getattr(self.rule, "__name__", type(self.rule).__name__)
        facts = {**state.facts, "params": {**state.facts["params"], "rule": named}}
        return State(state.name, facts, state.arrays)


@dataclass(frozen=True, eq=False)
class _Part:
    number: int
    centre: Array  # (d,)
    parent: int
    rows: Array
    satisfies: bool
    statistics: Statistics

    @property
    def facts(self) -> dict[str, Any]:
        """For the rule of a slice: where in the tree it lies."""
        return {"depth": self.statistics.depth}


def statistics(evaluation: Evaluation, rows: Array, depth: int = 0) -> Statistics:
    """Of some of the rows, by their numbers."""
    errors, losses = evaluation.errors, evaluation.losses
    label, label_share = _commonest(evaluation.labels, rows)
    prediction, prediction_share = _commonest(evaluation.predictions, rows)
    return Statistics(
        n=len(rows),
        accuracy=None if errors is None or not len(rows) else float((~errors[rows]).mean()),
        mean_loss=float(losses[rows].mean()) if losses is not None and len(rows) else 0.0,
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
