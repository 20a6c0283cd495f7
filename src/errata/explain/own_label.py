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
from ..core.evaluation import INFLUENCE
from ..core.gaps import wilson
from ..core.record import Record, json_key
from .context import Context
from .kinds import SliceExplanation
from .training_rows import TrainingRow, influence_on, training_fields
from .view import MEASURED_ON, SliceView

SHOWN = 6
COUNTED = 50  # opponents, and helpers, whose columns are counted
VALUES = 6  # that are told
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

    @property
    def points(self) -> float:
        """The share among opponents less that among helpers."""
        return self.opponents[0] / max(1, self.opponents[1]) - self.helpers[0] / max(1, self.helpers[1])

    @property
    def differs(self) -> bool:
        """Whether one of the intervals leaves out what is usual in the label."""
        base = self.label[0] / self.label[1]
        return any(not low <= base <= high for low, high in (self.interval, self.helpers_interval))


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

    @classmethod
    def explain(cls, view: SliceView, context: Context) -> OwnLabel | None:
        """Chosen for members that were searched, measured on the others; None where there are too few such rows."""
        train = context.train
        assert train is not None
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
            shares=tuple(_shares(train, rows[opposing], rows[helping], rows)),
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


def _shares(train: Evaluation, opposing: Array, helping: Array, label: Array) -> list[LabelShare]:
    """Values by which opponents and helpers differ most, of all columns together."""
    if not len(opposing) or not len(helping):
        return []
    columns: dict[str, Array] = {}
    if train.errors is not None:
        columns["fitted"] = np.where(train.errors, "wrong", "right")
    columns |= {name: np.asarray(values).astype(str) for name, values in train.metadata.items()}
    found = [share for name, values in columns.items() for share in _of_column(name, values, opposing, helping, label)]
    telling = [share for share in found if share.differs]
    return sorted(telling, key=lambda share: -abs(share.points))[:VALUES]


def _of_column(column: str, values: Array, opposing: Array, helping: Array, label: Array) -> list[LabelShare]:
    names, codes = np.unique(values, return_inverse=True)
    against, beside, base = (np.bincount(codes[rows], minlength=len(names)) for rows in (opposing, helping, label))
    told = np.flatnonzero(against + beside)
    if len(names) == 2:  # the other value says the same again
        told = np.array([(against - beside).argmax()])
    return [
        LabelShare(
            column=column,
            value=str(names[j]),
            opponents=(int(against[j]), len(opposing)),
            helpers=(int(beside[j]), len(helping)),
            label=(int(base[j]), len(label)),
            interval=wilson(int(against[j]), len(opposing)),
            helpers_interval=wilson(int(beside[j]), len(helping)),
        )
        for j in told
    ]
