"""Texts that lie near a slice in a space that rows and texts share (Domino's descriptions).

A text's score is its product with the slice's mean minus the mean of what the slice is compared with, all rows
and texts of length one. Nothing here embeds anything: a shared space such as CLIP's arrives as arrays.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np

from ..core import Array, Captions, InputError
from ..core.blocks import Matrix, blocks, unit
from ..core.membership import threshold
from ..core.record import FLAT, OMIT_NONE, Record, json_key
from .context import Context
from .kinds import SliceExplanation
from .view import MEASURED_ON, SliceView

MOST = 10

Reference = Literal["class", "all positives"]


@dataclass(frozen=True)
class Retrieval(Record):
    """How well nearness to a text retrieves the members among some rows."""

    average_precision: float | None  # None where all rows, or none, are members
    base_rate: float | None
    n: int


@dataclass(frozen=True)
class DescriptionRow(Record):
    """A text, its score, and how well it retrieves the members."""

    text: str
    score: float
    retrieval: Retrieval = field(metadata=FLAT)


@dataclass(frozen=True)
class Descriptions(SliceExplanation):
    """The texts nearest to a slice and farthest from its class, best first."""

    kind = "descriptions"
    needs = frozenset({"texts"})

    reference: str  # what the slice is compared with: "class" or "all positives"
    majority: int  # the class that holds most of the slice's weight
    representation: str
    total: int = field(metadata=json_key("of"))  # texts to choose from
    rows: tuple[DescriptionRow, ...]
    chosen_on: str | None = field(default=None, metadata=OMIT_NONE)
    measured_on: str | None = field(default=None, metadata=OMIT_NONE)
    class_name: str | None = field(default=None, metadata={**json_key("class"), **OMIT_NONE})

    @classmethod
    def explain(cls, view: SliceView, context: Context) -> Descriptions:
        """The texts that tell a slice of an audit from its class."""
        evaluation = view.evaluation
        captions = context.texts
        assert evaluation.labels is not None
        assert captions is not None
        descriptions = describe(
            view.slice.weights,
            evaluation.labels,
            evaluation.representations[captions.representation],
            captions,
            chosen=view.chosen,
            members=view.inside,
            measured=view.measured & (view.inside | view.rest),
        )
        name = evaluation.class_name(descriptions.majority)
        return replace(descriptions, chosen_on=view.chosen_on, measured_on=MEASURED_ON, class_name=name)


def describe(
    weights: Array,
    labels: Array,
    embeddings: Matrix,
    captions: Captions,
    *,
    chosen: Array | None = None,
    members: Array | None = None,
    measured: Array | None = None,
    reference: Reference = "class",
    most: int = MOST,
) -> Descriptions:
    """The texts that tell a slice from its class, chosen on some rows, measured on others.

    weights: (n,) of the slice. labels: (n,) class indices. embeddings: (n, d). captions: the texts to choose from.
    chosen: (n,) bool, such as the search rows. Default: all rows choose, and nothing is measured. members:
    (n,) bool. Default: as many as the weights sum to. measured: (n,) bool. Default: the rows that did not
    choose. reference: what the slice's mean is compared with, the class most of its weight lies in, or the
    rows with label 1 as in the code of 2021. most: texts that are returned.
    """
    _check(weights, labels, embeddings, captions, reference)
    if chosen is None:
        chosen = np.ones(len(weights), dtype=bool)
    else:
        chosen = np.asarray(chosen, dtype=bool)
    if members is None:
        members = weights >= threshold(weights[chosen])
    measured = ~chosen if measured is None else measured
    majority = _majority(weights * chosen, labels)
    positive = majority if reference == "class" else 1
    compared = labels == positive
    columns = np.stack([weights * chosen, compared & chosen], axis=1)
    directions = unit(captions.embeddings)
    scores = _offset(embeddings, columns) @ directions.T
    best = np.argsort(-scores, kind="stable")[:most]
    cosines = unit_products(embeddings, directions[best])
    rows = [
        DescriptionRow(captions.texts[j], float(scores[j]), retrieve(members, measured, cosines[:, i]))
        for i, j in enumerate(best)
    ]
    return Descriptions(reference, majority, captions.representation, len(captions), tuple(rows))


def _check(weights: Array, labels: Array, embeddings: Matrix, captions: Captions, reference: str) -> None:
    n, d = embeddings.shape
    if reference not in ("class", "all positives"):
        raise InputError(f"`reference` must be `class` or `all positives`; got {reference!r}")
    if weights.shape != (n,) or labels.shape != (n,):
        raise InputError(
            f"`weights` and `labels` must have one value a row, shape ({n},); got {weights.shape}, {labels.shape}"
        )
    if captions.embeddings.shape[1] != d:
        raise InputError(
            f"the texts have {captions.embeddings.shape[1]} columns where the rows have {d}; "
            "embed both with the same model"
        )


def unit_products(embeddings: Matrix, directions: Array) -> Array:
    """(n, m) cosines of rows and texts, a block of rows at a time."""
    cosines = np.empty((len(embeddings), len(directions)))
    for rows, block in blocks(embeddings):
        cosines[rows] = unit(block) @ directions.T
    return cosines


def _majority(weights: Array, labels: Array) -> int:
    """The class that holds most of the slice's weight; the smaller one of two that hold the same."""
    classes, index = np.unique(labels, return_inverse=True)
    return int(classes[np.bincount(index, weights=weights).argmax()])


def _offset(embeddings: Matrix, columns: Array) -> Array:
    """(d,) weighted mean of the slice minus that of its reference; an empty one has its mean at zero."""
    sums = np.zeros((2, embeddings.shape[1]))
    for rows, block in blocks(embeddings):
        sums += columns[rows].T @ unit(block)
    totals = columns.sum(axis=0)
    means = sums / np.where(totals > 0, totals, 1.0)[:, None]
    offset: Array = means[0] - means[1]
    return offset


def retrieve(members: Array, rows: Array, cosines: Array) -> Retrieval:
    """How well nearness to a text ((n,) cosines) retrieves the members among some rows ((n,) bool)."""
    from sklearn.metrics import average_precision_score

    inside = members[rows]
    n = len(inside)
    base_rate = float(inside.mean()) if n else None
    if not 0 < int(inside.sum()) < n:
        return Retrieval(None, base_rate, n)
    return Retrieval(float(average_precision_score(inside, cosines[rows])), base_rate, n)
