"""Training rows whose labels are worth a second look: they raise the loss of errors, and their neighbours differ."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..core import Array, Audit, Evaluation, InputError
from ..core.blocks import blocks
from ..core.evaluation import INFLUENCE
from ..core.record import json_key
from .context import Context
from .kinds import AuditExplanation
from .training_rows import TrainingRow, has_influence, influence_on, training_fields

NEIGHBOURS = 10
LOOKED_AT = 500  # of the most harmful training rows: the neighbours of others are not searched
MAX_ROWS = 20


@dataclass(frozen=True)
class RelabelRow(TrainingRow):
    """A training row to look at again; its influence is the mean over all errors."""

    opposes: tuple[int, int]  # errors whose loss it raises, of all errors
    suggested: str  # the neighbours' commonest label
    agree: tuple[int, int]  # neighbours with its own label, of all that were counted


@dataclass(frozen=True)
class Relabel(AuditExplanation):
    """Training rows whose labels are worth a second look."""

    kind = "relabel"
    needs = frozenset({"train", "errors"})

    total: int = field(metadata=json_key("of"))  # training rows
    rows: tuple[RelabelRow, ...]

    @classmethod
    def explain(cls, audit: Audit, context: Context) -> tuple[Relabel, ...]:
        """None where the training rows have no classes."""
        train = context.train
        assert train is not None
        if train.task != "classification":
            return ()
        return (cls(len(train), tuple(relabel_candidates(audit.evaluation, train))),)


def relabel_candidates(evaluation: Evaluation, train: Evaluation, count: int = MAX_ROWS) -> list[RelabelRow]:
    """Training rows that oppose the model's errors most and whose neighbours mostly have another label.

    evaluation, train: both with influence embeddings, and with classes. count: how many to return, at most.
    """
    if not has_influence(evaluation, train):
        raise InputError(
            f"relabel candidates need the representation `{INFLUENCE}` in the evaluation and in `train`; "
            "collect both with the same errata.inputs.fit_influence"
        )
    if evaluation.errors is None or train.labels is None or train.task != "classification":
        raise InputError("relabel candidates need classes: labels and predictions of the evaluation, labels of `train`")
    wrong = evaluation.errors
    if not wrong.any():
        return []
    scores = influence_on(evaluation.representations[INFLUENCE], train, wrong) / wrong.sum()
    harmful = np.argsort(scores, kind="stable")[: min(LOOKED_AT, int((scores < 0).sum()))]
    suggested, agree = neighbour_labels(train, harmful)
    doubtful = np.flatnonzero(suggested != train.labels[harmful])[:count]
    opposed = _count_opposed(evaluation, train, harmful[doubtful], wrong)
    return [
        RelabelRow(
            **training_fields(train, int(harmful[j])),
            influence=float(scores[harmful[j]]),
            opposes=(int(opposed[i]), int(wrong.sum())),
            suggested=train.class_name(int(suggested[j])),
            agree=(int(agree[j]), min(NEIGHBOURS, len(train) - 1)),
        )
        for i, j in enumerate(doubtful)
    ]


def neighbour_labels(train: Evaluation, rows: Array) -> tuple[Array, Array]:
    """(r,) the commonest label among each row's nearest others, and (r,) how many have its own."""
    from sklearn.neighbors import NearestNeighbors

    assert train.labels is not None
    blind = [name for name in train.representations if not train.source(name).reads]
    X = np.asarray(train.representations[next(iter(blind), INFLUENCE)])
    k = min(NEIGHBOURS, len(X) - 1)
    if not len(rows) or k < 1:
        return train.labels[rows], np.zeros(len(rows), dtype=np.int64)
    near = NearestNeighbors(n_neighbors=k + 1, algorithm="brute").fit(X).kneighbors(X[rows], return_distance=False)
    # The row itself is not always first: rows may repeat.
    others = np.array([[j for j in nearest if j != row][:k] for row, nearest in zip(rows, near, strict=True)])
    labels = train.labels[others]
    common = np.array([np.bincount(row_labels).argmax() for row_labels in labels])
    return common, (labels == train.labels[rows][:, None]).sum(axis=1)


def _count_opposed(evaluation: Evaluation, train: Evaluation, rows: Array, wrong: Array) -> Array:
    """(r,) how many errors each training row has a negative influence on."""
    T = np.asarray(train.representations[INFLUENCE][rows])
    counts = np.zeros(len(rows), dtype=np.int64)
    for part, block in blocks(evaluation.representations[INFLUENCE]):
        counts += ((block[wrong[part]] @ T.T) < 0).sum(axis=0)
    return counts
