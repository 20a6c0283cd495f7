"""Whether the errors of a slice have one cause: whether their influence embeddings point the same way (InfEmbed).

All in the columns that were clustered: beyond them an embedding is noise, and the cosines of noise are near zero.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..core import Array
from ..core.blocks import mean_cosine, unit
from ..core.evaluation import INFLUENCE
from ..core.influence import clustered_columns
from ..core.record import Record, json_key
from ..core.soften import class_probs
from .context import Context
from .examples import Example, example
from .kinds import SliceExplanation
from .view import MEASURED_ON, SliceView

CENTRAL = 4
DRAWS = 200  # random groups that a slice's coherence is compared with
CHANCE = 0.05  # a cosine that so many random groups reach is one of chance
MEANS_SOMETHING = 0.1  # a smaller difference of mean cosines is called little, however many rows make it sure


@dataclass(frozen=True)
class Homogeneity(Record):
    """How alike labels and predictions of these rows are: the factor (y - p)'(y' - p') of the paper's equation 8."""

    label: str  # the commonest
    labels: tuple[int, int]  # rows with it, of all that are counted
    prediction: str
    predictions: tuple[int, int]
    margins: float | None  # mean product of the margins y - p, 2 at most; None with fewer than two rows, as the next
    random: float | None  # of as many rows at random


@dataclass(frozen=True)
class Similarity(Record):
    """How alike some rows are: the mean cosine between their influence embeddings, beside that of other rows."""

    n: int
    cosine: float | None  # None with fewer than two rows, as the next three
    random: float | None
    p_value: float | None
    spread: float | None  # the k-means objective a row
    same_label: float | None = None  # mean cosine of as many errors of the same labels; None where there are no others
    same_label_p: float | None = None
    homogeneity: Homogeneity | None = None  # None where there are no classes

    @property
    def alike(self) -> bool:
        """Whether the errors are more alike than random ones, by a difference that means something."""
        return _beyond(self.cosine, self.random, self.p_value)

    @property
    def beyond_label(self) -> bool:
        """The same beside errors of the same labels."""
        return _beyond(self.cosine, self.same_label, self.same_label_p)


@dataclass(frozen=True, kw_only=True)
class Coherence(SliceExplanation, Similarity):
    """The mean cosine between the errors of a slice, beside that of as many errors at random; on held-out rows.

    The paper's coherence is of the rows that were clustered: where the slice is an approximation of these, they are
    under `cluster`, and the other figures are of the approximation.
    """

    kind = "coherence"
    needs = frozenset({"representations"})

    measured_on: str
    rows: str  # "wrong"; "all" where there are no errors
    total: int = field(metadata=json_key("of"))
    central: tuple[Example, ...]  # the errors nearest to their mean: of `cluster`, where there is one
    columns: int | None = None  # leading columns that count: those that were clustered
    clustered: tuple[int, int] | None = None  # of an approximation: its n errors that the method's own cluster holds
    cluster: Similarity | None = None  # of an approximation: the errors of that cluster; None up to version 0.7.0

    @classmethod
    def explain(cls, view: SliceView, context: Context) -> Coherence | None:
        """None without influence embeddings."""
        evaluation = view.evaluation
        if INFLUENCE not in evaluation.representations:
            return None
        E = evaluation.representations[INFLUENCE]
        columns = clustered_columns(view.slice.rule, evaluation, E.shape[1])
        wrong = evaluation.errors
        pool = view.measured if wrong is None else view.measured & wrong
        everything = np.flatnonzero(pool & (view.inside | view.rest))
        inside = view.inside[everything]
        X = np.asarray(E[everything], dtype=np.float64)[:, :columns]
        own = context.own.get(view.slice.id)
        counted = "all" if wrong is None else "wrong"
        group = inside
        clustered = None
        cluster = None
        if own is not None:
            group = own[everything]
            clustered = (int((group & inside).sum()), int(inside.sum()))
            cluster = Similarity(**_figures(view, X, everything, group, context.seed))
        # Only errors, where they are known: a right row has a gradient near zero and lies near the mean of anything.
        central = everything[_central(X, group)]
        return cls(
            **_figures(view, X, everything, inside, context.seed),
            measured_on=MEASURED_ON,
            rows=counted,
            total=len(everything),
            central=tuple(example(evaluation, int(row)) for row in central),
            columns=columns,
            clustered=clustered,
            cluster=cluster,
        )


def _figures(view: SliceView, X: Array, rows: Array, inside: Array, seed: int) -> dict[str, Any]:
    """The fields of a `Similarity` of those among some rows, of which X are the embeddings, that are inside."""
    return {
        "n": int(inside.sum()),
        **_compared(X, inside, _labels(view, rows), seed),
        "homogeneity": _homogeneity(view, rows, inside, seed),
    }


def _beyond(cosine: float | None, other: float | None, p_value: float | None) -> bool:
    if cosine is None or other is None or p_value is None:
        return False
    return p_value <= CHANCE and cosine - other >= MEANS_SOMETHING


def _labels(view: SliceView, rows: Array) -> Array | None:
    labels = view.evaluation.labels
    if labels is None or labels.ndim != 1 or view.evaluation.task != "classification":
        return None
    return np.asarray(labels[rows])


def _compared(X: Array, inside: Array, labels: Array | None, seed: int) -> dict[str, float | None]:
    """The cosine of the members, beside random rows and beside random rows of the same labels."""
    names = ("cosine", "random", "p_value", "spread", "same_label", "same_label_p")
    found: dict[str, float | None] = dict.fromkeys(names)
    if inside.sum() < 2:
        return found
    U = unit(X)
    rng = np.random.default_rng(seed)
    found["cosine"] = mean_cosine(U[inside])
    found["random"], found["p_value"] = _null(U, inside, np.zeros(len(U), dtype=np.int64), rng)
    found["spread"] = float(((X[inside] - X[inside].mean(axis=0)) ** 2).sum(axis=1).mean())
    if labels is not None and np.isin(labels[~inside], labels[inside]).any():
        found["same_label"], found["same_label_p"] = _null(U, inside, labels, rng)
    return found


def _null(U: Array, inside: Array, strata: Array, rng: np.random.Generator) -> tuple[float, float]:
    """The mean cosine of groups in which members changed places with random rows of their stratum, and its p-value."""
    own = mean_cosine(U[inside])
    draws = np.array([mean_cosine(U[_shuffled(inside, strata, rng)]) for _ in range(DRAWS)])
    return float(draws.mean()), (1 + int((draws >= own).sum())) / (1 + DRAWS)


def _shuffled(inside: Array, strata: Array, rng: np.random.Generator) -> Array:
    """(n,) bool: as many rows of each stratum as before, others."""
    shuffled = np.zeros_like(inside)
    for value in np.unique(strata[inside]):
        rows = np.flatnonzero(strata == value)
        shuffled[rng.permutation(rows)[: int(inside[rows].sum())]] = True
    return shuffled


def _homogeneity(view: SliceView, rows: Array, inside: Array, seed: int) -> Homogeneity | None:
    """Of the members among some rows; None where there are no classes or no members."""
    evaluation = view.evaluation
    labels = _labels(view, rows)
    predictions = evaluation.predictions
    if labels is None or predictions is None or not inside.any():
        return None
    label, with_label = _commonest(labels[inside])
    prediction, with_prediction = _commonest(predictions[rows[inside]])
    n = int(inside.sum())
    margins = None
    random = None
    if n >= 2:
        M = _margins(class_probs(evaluation, "coherence")[rows], labels)
        margins = mean_cosine(M[inside])
        random, _ = _null(M, inside, np.zeros(len(M), dtype=np.int64), np.random.default_rng(seed))
    return Homogeneity(
        label=evaluation.class_name(label),
        labels=(with_label, n),
        prediction=evaluation.class_name(prediction),
        predictions=(with_prediction, n),
        margins=margins,
        random=random,
    )


def _commonest(classes: Array) -> tuple[int, int]:
    values, counts = np.unique(classes, return_counts=True)
    return int(values[counts.argmax()]), int(counts.max())


def _margins(probs: Array, labels: Array) -> Array:
    """(n, k) y - p: one for the label, less what the model gives each class."""
    margins = -np.asarray(probs, dtype=np.float64)
    margins[np.arange(len(labels)), labels] += 1
    return margins


def _central(X: Array, group: Array) -> Array:
    """The members of a group ((n,) bool) whose embeddings, rows of X, are nearest to the mean of the group."""
    members = np.flatnonzero(group)
    if not len(members):
        return members
    distances = np.linalg.norm(X[members] - X[members].mean(axis=0), axis=1)
    return members[np.argsort(distances, kind="stable")[:CENTRAL]]
