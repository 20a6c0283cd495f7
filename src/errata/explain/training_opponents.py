"""Which training rows a slice owes its errors to (InfEmbed, section 3.6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..core import Array, Evaluation, InputError
from ..core.drawn import corrected_p_values
from ..core.evaluation import INFLUENCE
from ..core.gaps import wilson
from ..core.record import Record, json_key
from .context import Context
from .kinds import SliceExplanation
from .training_rows import TrainingRow, has_influence, influence_on, training_fields
from .training_values import CountedColumn, count_texts, count_values
from .view import MEASURED_ON, SLICE, SliceView, view_of_cluster

MAX_ROWS = 8
PROFILED = 50  # opponents whose labels and metadata are counted
VALUES = 8  # of a column
LEVEL = 0.05  # of telling any value where opponents are as all rows, over all values of all columns


@dataclass(frozen=True)
class MeasuredTrainingRow(TrainingRow):
    """A training row with its mean influence on members that were searched, and on the others."""

    measured: float | None  # None where no member was held out


@dataclass(frozen=True)
class OpponentShare(Record):
    """A value that is commoner among opponents than among all training rows."""

    column: str
    value: str
    opponents: tuple[int, int]
    train: tuple[int, int]
    lift: float
    interval: tuple[float, float]  # of the share among opponents: Wilson, 95%
    p_value: float | None = None  # of being drawn from all rows, corrected; None up to version 0.7.0

    @property
    def differs(self) -> bool:
        """Whether opponents have the value more often than chance would draw it; as it was told up to version 0.7.0."""
        return self.p_value is None or self.p_value <= LEVEL


@dataclass(frozen=True)
class Opponents(SliceExplanation):
    """Training rows that raise the loss of a slice most, and those that lower it most."""

    kind = "opponents"
    needs = frozenset({"train"})

    chosen_on: str
    measured_on: str
    total: int = field(metadata=json_key("of"))  # training rows
    members: tuple[int, int]  # searched, held out
    opponents: tuple[MeasuredTrainingRow, ...]
    helpers: tuple[MeasuredTrainingRow, ...]
    held: tuple[int, int] | None  # of the profiled opponents, those that oppose the held-out members too
    profile: tuple[OpponentShare, ...]
    group: str = SLICE  # whose rows chose: "cluster", those that the method put together; "slice", always up to 0.7.0

    @classmethod
    def explain(cls, view: SliceView, context: Context) -> Opponents:
        """Chosen for members that were searched, measured on the others.

        Members of the method's own cluster, where the slice is an approximation of one.
        """
        train = context.train
        assert train is not None
        view, group = view_of_cluster(view, context.own)
        E = view.evaluation.representations[INFLUENCE]
        chosen = view.inside & view.chosen
        measured = view.inside & view.measured
        scores = influence_on(E, train, chosen)
        later = influence_on(E, train, measured)
        order = np.argsort(scores, kind="stable")
        n = max(1, int(chosen.sum()))
        m = int(measured.sum())

        def rows(chosen_rows: Array) -> tuple[MeasuredTrainingRow, ...]:
            entries = []
            for i in chosen_rows:
                mean = float(later[i]) / m if m else None
                facts = training_fields(train, int(i))
                entries.append(MeasuredTrainingRow(**facts, influence=float(scores[i]) / n, measured=mean))
            return tuple(entries)

        profiled = order[: min(PROFILED, int((scores < 0).sum()))]
        held = (int((later[profiled] < 0).sum()), len(profiled)) if m else None
        return cls(
            chosen_on=view.chosen_on,
            measured_on=MEASURED_ON,
            total=len(train),
            members=(n, m),
            opponents=rows(order[: min(MAX_ROWS, int((scores < 0).sum()))]),
            helpers=rows(order[::-1][: min(MAX_ROWS, int((scores > 0).sum()))]),
            held=held,
            profile=tuple(_profile(train, profiled)),
            group=group,
        )


def opponents(
    evaluation: Evaluation, train: Evaluation, rows: Sequence[Any] | Array, count: int = 10, *, helpers: bool = False
) -> list[TrainingRow]:
    """The training rows that raise the loss of some rows most, or lower it most (`helpers`).

    evaluation, train: both with influence embeddings. rows: ids of rows of the evaluation, one or many; or (n,) bool.
    count: how many to return, at most. Each has `influence`, the mean over `rows`.
    """
    if not has_influence(evaluation, train):
        raise InputError(
            f"opponents need the representation `{INFLUENCE}` in the evaluation and in `train`, of one factor; "
            "collect both with the same errata.inputs.fit_influence"
        )
    inside = _mask(evaluation, rows)
    scores = influence_on(evaluation.representations[INFLUENCE], train, inside) / inside.sum()
    signed = -scores if helpers else scores
    order = np.argsort(signed, kind="stable")[: int((signed < 0).sum())][:count]
    return [TrainingRow(**training_fields(train, int(i)), influence=float(scores[i])) for i in order]


def _mask(evaluation: Evaluation, rows: Sequence[Any] | Array) -> Array:
    array = np.asarray(rows)
    inside = array if array.dtype == bool else np.isin(evaluation.row_ids, array)
    if inside.shape != (len(evaluation),) or not inside.any():
        raise InputError("`rows` names no row of the evaluation; give ids that it has, or one yes or no a row")
    return inside


def _profile(train: Evaluation, rows: Array) -> list[OpponentShare]:
    """Values of labels and metadata that are commoner among some training rows than among all of them."""
    if not len(rows):
        return []
    groups = (rows, np.arange(len(train)))
    counted = []
    if train.labels is not None and train.labels.ndim == 1 and train.task == "classification":
        labels = np.array([train.class_name(int(c)) for c in train.labels])
        counted.append(count_texts("label", labels, groups))
    if train.errors is not None:
        counted.append(count_texts("fitted", np.where(train.errors, "wrong", "right"), groups))
    counted += [count_values(name, np.asarray(values), groups) for name, values in train.metadata.items()]
    if not counted:
        return []
    counts = np.concatenate([column.counts for column in counted], axis=1)
    corrected = corrected_p_values(counts[:1], [len(rows)], counts[1], len(train), LEVEL)[0][0]
    ends = np.cumsum([len(column.values) for column in counted])[:-1]
    shares = []
    for column, p_values in zip(counted, np.split(corrected, ends), strict=True):
        shares += _enriched(column, p_values, len(rows), len(train))
    return shares


def _enriched(column: CountedColumn, p_values: Array, drawn: int, total: int) -> list[OpponentShare]:
    """The values that are commoner among the rows than among all, those by the largest difference first."""
    inside, everywhere = column.counts
    shares = inside / drawn
    base = everywhere / total
    best = np.argsort(-(shares - base), kind="stable")[:VALUES]
    if column.numeric:  # neighbouring ranges say the same again: the surest, if it is a commoner one
        best = np.lexsort((base - shares, p_values, shares <= base))[:1]
    return [
        OpponentShare(
            column=column.column,
            value=column.values[j],
            opponents=(int(inside[j]), drawn),
            train=(int(everywhere[j]), total),
            lift=float(shares[j] / base[j]),
            interval=wilson(int(inside[j]), drawn),
            p_value=float(p_values[j]),
        )
        for j in best
        if shares[j] > base[j]
    ]
