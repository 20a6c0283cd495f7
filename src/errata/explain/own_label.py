"""Training rows of a slice's own label that pull its rows the wrong way, beside those that pull them the right way.

The strongest opponents of a slice have other labels, which says little more than that labels compete. Among rows of
one label they differ by what the model reads: where a label came with a signal (a tag, a stripe), rows that carry it
oppose the rows of that label that do not. By cosine, since a row that the model is sure of has a short gradient.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..core import Array, Evaluation
from ..core.blocks import Matrix, blocks, unit
from ..core.drawn import corrected_p_values
from ..core.evaluation import INFLUENCE
from ..core.gaps import wilson
from ..core.record import Record, json_key
from .context import Context
from .kinds import SliceExplanation
from .training_rows import TrainingRow, influence_on, training_fields
from .training_values import CountedColumn, count_values
from .view import MEASURED_ON, SLICE, SliceView, view_of_cluster

SHOWN = 6
COUNTED = 50  # opponents, and helpers, whose columns are counted
VALUES = 6  # that are told
LEVEL = 0.05  # of telling any value for a slice where none differs, over all values of all columns and both sides
FITTED = "fitted"  # the column that says whether the model has a row right: what influence itself is made of
FEWEST = 20  # training rows of a label that are worth ranking


@dataclass(frozen=True)
class RankedRow(TrainingRow):
    """A training row with the cosine of its influence embedding with those of a slice."""

    cosine: float  # with the sum of the members' embeddings


@dataclass(frozen=True)
class LabelShare(Record):
    """How often opponents, helpers and all training rows of the label have a value."""

    column: str
    value: str
    opponents: tuple[int, int]
    helpers: tuple[int, int]
    label: tuple[int, int]
    interval: tuple[float, float]  # of the share among opponents: Wilson, 95%
    helpers_interval: tuple[float, float]
    p_value: float | None = None  # of either side being drawn from the label, corrected; None up to version 0.7.0

    @property
    def points(self) -> float:
        """The share among opponents less that among helpers."""
        return self.opponents[0] / max(1, self.opponents[1]) - self.helpers[0] / max(1, self.helpers[1])

    @property
    def differs(self) -> bool:
        """Whether opponents or helpers have the value more or less often than chance would draw it from the label."""
        return self.p_value is not None and self.p_value <= LEVEL


@dataclass(frozen=True)
class OwnLabel(SliceExplanation):
    """Of the training rows with the slice's label: those that oppose it most and those that help it most."""

    kind = "own_label"
    needs = frozenset({"train", "labels"})

    chosen_on: str
    measured_on: str
    label: str  # the commonest of the members, of the wrong ones where there are any
    total: int = field(metadata=json_key("of"))  # training rows of that label
    opponents: tuple[RankedRow, ...]
    helpers: tuple[RankedRow, ...]
    held: tuple[int, int] | None  # of the counted opponents, those that oppose the held-out members too
    losses: tuple[float, ...] | None  # mean training loss of the counted opponents, of helpers, of all of the label
    shares: tuple[LabelShare, ...]
    group: str = SLICE  # whose rows chose: "cluster", those that the method put together; "slice", always up to 0.7.0

    @classmethod
    def explain(cls, view: SliceView, context: Context) -> OwnLabel | None:
        """Chosen for members that were searched, measured on the others; None where there are too few such rows.

        Members of the method's own cluster, where the slice is an approximation of one.
        """
        train = context.train
        assert train is not None
        view, group = view_of_cluster(view, context.own)
        label = commonest_label(view.evaluation, view.inside & view.chosen)
        if label is None or train.labels is None or train.task != "classification":
            return None
        asked = of_label(view.evaluation, view.inside, label)
        rows = np.flatnonzero(train.labels == label)
        if len(rows) < FEWEST:
            return None
        E = view.evaluation.representations[INFLUENCE]
        cosines = label_cosines(E, train, asked & view.chosen, rows)
        opposing, helping = ends(cosines)
        later = asked & view.measured
        held = None
        if later.any():
            again = label_cosines(E, train, later, rows)
            held = (int((again[opposing] < 0).sum()), len(opposing))
        strength = influence_on(E, train, asked & view.chosen)[rows] / max(1, int((asked & view.chosen).sum()))

        def shown(some: Array) -> tuple[RankedRow, ...]:
            return tuple(_ranked(train, int(rows[j]), float(strength[j]), float(cosines[j])) for j in some[:SHOWN])

        return cls(
            chosen_on=view.chosen_on,
            measured_on=MEASURED_ON,
            label=train.class_name(label),
            total=len(rows),
            opponents=shown(opposing),
            helpers=shown(helping),
            held=held,
            losses=_losses(train, rows[opposing], rows[helping], rows),
            shares=_shares(train, rows, opposing, helping),
            group=group,
        )


def commonest_label(evaluation: Evaluation, members: Array) -> int | None:
    """The label of most members, of the wrong ones where there are any; None where labels are not classes."""
    labels = evaluation.labels
    if labels is None or labels.ndim != 1 or evaluation.task != "classification":
        return None
    errors = evaluation.errors
    if errors is not None and (members & errors).any():
        members = members & errors
    if not members.any():
        return None
    return int(np.bincount(labels[members].astype(np.int64)).argmax())


def of_label(evaluation: Evaluation, members: Array, label: int) -> Array:
    """(n,) bool: the members of one label, the wrong ones where there are any: others pull towards other labels."""
    labels = evaluation.labels
    assert labels is not None
    own: Array = members & (labels == label)
    errors = evaluation.errors
    return own & errors if errors is not None and (own & errors).any() else own


def label_cosines(E: Matrix, train: Evaluation, members: Array, rows: Array) -> Array:
    """(r,) cosine of some training rows' embeddings with the sum of the members' ((n,) bool).

    In all columns, not those alone that were clustered: a signal that the model is sure of curves its loss little, and
    lies in the last ones.
    """
    total = np.zeros(E.shape[1])
    for part, block in blocks(E):
        total += members[part].astype(np.float64) @ block
    T = train.representations[INFLUENCE]
    return np.asarray(unit(np.asarray(T[rows])) @ unit(total[None])[0])


def ends(cosines: Array) -> tuple[Array, Array]:
    """Positions of the strongest opponents and of the strongest helpers: at most COUNTED, and half of all rows."""
    order = np.argsort(cosines, kind="stable")
    count = min(COUNTED, len(order) // 2)
    opposing = order[:count]
    helping = order[::-1][:count]
    return opposing[cosines[opposing] < 0], helping[cosines[helping] > 0]


def _ranked(train: Evaluation, row: int, influence: float, cosine: float) -> RankedRow:
    return RankedRow(**training_fields(train, row), influence=influence, cosine=cosine)


def _losses(train: Evaluation, *groups: Array) -> tuple[float, ...] | None:
    losses = train.losses
    if losses is None or not all(len(rows) for rows in groups):
        return None
    return tuple(float(np.asarray(losses[rows], dtype=np.float64).mean()) for rows in groups)


def _shares(train: Evaluation, rows: Array, opposing: Array, helping: Array) -> tuple[LabelShare, ...]:
    """Values that opponents or helpers have more or less often than the label, metadata first; if none, the nearest.

    opposing, helping: positions among `rows`, the training rows of the label.
    """
    counted = _count_columns(train, rows, opposing, helping)
    if not counted or not len(opposing) or not len(helping):
        return ()
    drawn = (len(opposing), len(helping))
    counts = np.concatenate([column.counts for column in counted], axis=1)
    p_values, testable = corrected_p_values(counts[:2], drawn, counts[2], len(rows), LEVEL)
    ends = np.cumsum([len(column.values) for column in counted])[:-1]
    parts = zip(counted, np.split(p_values.min(axis=0), ends), np.split(testable.any(axis=0), ends), strict=True)
    shares = []
    for column, least, told in parts:
        compared = [_label_share(column, int(j), drawn, len(rows), float(least[j])) for j in np.flatnonzero(told)]
        if column.numeric:  # neighbouring ranges say the same again
            compared = sorted(compared, key=lambda share: (share.p_value, -share.points))[:1]
        shares += compared
    return _most_telling(shares)


def _label_share(column: CountedColumn, j: int, drawn: tuple[int, int], total: int, p_value: float) -> LabelShare:
    against, beside, base = (int(count) for count in column.counts[:, j])
    return LabelShare(
        column=column.column,
        value=column.values[j],
        opponents=(against, drawn[0]),
        helpers=(beside, drawn[1]),
        label=(base, total),
        interval=wilson(against, drawn[0]),
        helpers_interval=wilson(beside, drawn[1]),
        p_value=p_value,
    )


def _most_telling(shares: list[LabelShare]) -> tuple[LabelShare, ...]:
    """The values of metadata that differ, or the one that comes nearest to it, and what the model has right."""
    shares.sort(key=lambda share: (share.p_value, -abs(share.points)))
    metadata = [share for share in shares if share.column != FITTED]
    differing = [share for share in metadata if share.differs]
    fitted = [share for share in shares if share.column == FITTED]
    return (*(differing or metadata[:1])[:VALUES], *fitted)


def _count_columns(train: Evaluation, rows: Array, opposing: Array, helping: Array) -> list[CountedColumn]:
    """The columns of the label's training rows, counted among opponents, among helpers and among all of them."""
    columns = {name: np.asarray(values[rows]) for name, values in train.metadata.items()}
    if train.errors is not None:
        columns.setdefault(FITTED, np.where(train.errors[rows], "wrong", "right"))
    groups = (opposing, helping, np.arange(len(rows)))
    return [count_values(name, values, groups) for name, values in columns.items()]
