"""Texts that lie near a slice in a space that rows and texts share (Domino's descriptions).

A text's score is its product with the slice's mean minus the mean of what the slice is compared with, all rows
and texts of length one. Nothing here embeds anything: a shared space such as CLIP's arrives as arrays.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from sklearn.metrics import average_precision_score

from ..core import Array, Captions, Explanation, InputError
from ..core.blocks import Matrix, blocks, unit
from ..core.membership import threshold
from .view import View

MOST = 10

Reference = Literal["class", "all positives"]


def describe_slice(view: View, captions: Captions) -> Explanation:
    """The texts that tell a slice of an audit from its class."""
    evaluation = view.evaluation
    assert evaluation.labels is not None
    found = describe(
        view.slice.weights,
        evaluation.labels,
        evaluation.representations[captions.representation],
        captions,
        chosen=view.chosen,
        members=view.inside,
        measured=view.measured & (view.inside | view.rest),
    )
    name = evaluation.class_name(found.data["majority"])
    return Explanation("descriptions", {**found.data, **view.roles, "class": name})


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
) -> Explanation:
    """The texts that tell a slice from its class, chosen on some rows, measured on others.

    weights: (n,) of the slice; labels: (n,) class indices; embeddings: (n, d). chosen: (n,) bool, such as the discover
    rows; without it all rows choose and nothing is measured. members: (n,) bool; by default as many as the weights
    sum to. measured: (n,) bool; by default the rows that did not choose. reference: what the slice's mean is
    compared with, the class most of its weight lies in, or the rows with label 1 as in the code of 2021.
    """
    _check(weights, labels, embeddings, captions, reference)
    chosen = np.ones(len(weights), dtype=bool) if chosen is None else np.asarray(chosen, dtype=bool)
    members = weights >= threshold(weights[chosen]) if members is None else members
    majority = _majority(weights * chosen, labels)
    compared = labels == (majority if reference == "class" else 1)
    columns = np.stack([weights * chosen, compared & chosen], axis=1)
    directions = unit(captions.embeddings)
    scores = _offset(embeddings, columns) @ directions.T
    best = np.argsort(-scores, kind="stable")[:most]
    cosines, others = unit_products(embeddings, directions[best]), ~chosen if measured is None else measured
    data: dict[str, Any] = {
        "reference": reference,
        "majority": majority,
        "representation": captions.representation,
        "of": len(captions),
        "rows": [
            {"text": captions.texts[j], "score": float(scores[j]), **retrieval(members, others, cosines[:, i])}
            for i, j in enumerate(best)
        ],
    }
    return Explanation("descriptions", data)


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


def retrieval(members: Array, rows: Array, cosines: Array) -> dict[str, Any]:
    """How well nearness to a text ((n,) cosines) retrieves the members among some rows ((n,) bool)."""
    inside, n = members[rows], int(np.count_nonzero(rows))
    mixed = 0 < int(inside.sum()) < n
    return {
        "average_precision": float(average_precision_score(inside, cosines[rows])) if mixed else None,
        "base_rate": float(inside.mean()) if n else None,
        "n": n,
    }
