"""Training rows whose labels are worth a second look: they raise the loss of errors, and their neighbours differ."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.neighbors import NearestNeighbors

from ..core import Array, Evaluation, Explanation, InputError
from ..core.blocks import blocks
from .opponents import REPRESENTATION, can_explain, influence_on, training_facts

NEIGHBOURS = 10
LOOKED_AT = 500  # of the most harmful training rows: the neighbours of others are not asked for
SHOWN = 20


def relabel_candidates(evaluation: Evaluation, train: Evaluation, count: int = SHOWN) -> list[dict[str, Any]]:
    """Training rows that oppose the model's errors most and whose neighbours mostly have another label.

    Each has its facts, `influence` (the mean over all errors), `opposes` ([how many errors it opposes, of how many]),
    `suggested` (the neighbours' commonest label) and `agree` ([neighbours with its own label, of how many]).
    """
    if not can_explain(evaluation, train):
        raise InputError(
            f"relabel candidates need the representation `{REPRESENTATION}` in the evaluation and in `train`; "
            "collect both with the same errata.inputs.influence"
        )
    if evaluation.errors is None or train.labels is None or train.task != "classification":
        raise InputError("relabel candidates need classes: labels and predictions of the evaluation, labels of `train`")
    wrong = evaluation.errors
    if not wrong.any():
        return []
    scores = influence_on(evaluation.representations[REPRESENTATION], train, wrong) / wrong.sum()
    harmful = np.argsort(scores, kind="stable")[: min(LOOKED_AT, int((scores < 0).sum()))]
    suggested, agree = _neighbours(train, harmful)
    doubtful = np.flatnonzero(suggested != train.labels[harmful])[:count]
    opposed = _opposed(evaluation, train, harmful[doubtful], wrong)
    return [
        {
            **training_facts(train, int(harmful[j])),
            "influence": float(scores[harmful[j]]),
            "opposes": [int(opposed[place]), int(wrong.sum())],
            "suggested": train.class_name(int(suggested[j])),
            "agree": [int(agree[j]), min(NEIGHBOURS, len(train) - 1)],
        }
        for place, j in enumerate(doubtful)
    ]


def relabel(evaluation: Evaluation, train: Evaluation) -> Explanation:
    return Explanation("relabel", {"of": len(train), "rows": relabel_candidates(evaluation, train)})


def _neighbours(train: Evaluation, rows: Array) -> tuple[Array, Array]:
    """(r,) the commonest label among each row's nearest others, and (r,) how many have its own."""
    assert train.labels is not None
    blind = [name for name in train.representations if not train.source(name).reads]
    X = np.asarray(train.representations[blind[0] if blind else REPRESENTATION])
    k = min(NEIGHBOURS, len(X) - 1)
    if not len(rows) or k < 1:
        return train.labels[rows], np.zeros(len(rows), dtype=np.int64)
    near = NearestNeighbors(n_neighbors=k + 1, algorithm="brute").fit(X).kneighbors(X[rows], return_distance=False)
    # The row itself is not always first: rows may repeat.
    others = np.array([[j for j in found if j != row][:k] for row, found in zip(rows, near, strict=True)])
    labels = train.labels[others]
    common = np.array([np.bincount(one).argmax() for one in labels])
    return common, (labels == train.labels[rows][:, None]).sum(axis=1)


def _opposed(evaluation: Evaluation, train: Evaluation, rows: Array, wrong: Array) -> Array:
    """(r,) how many errors each training row has a negative influence on."""
    T = np.asarray(train.representations[REPRESENTATION][rows])
    counts = np.zeros(len(rows), dtype=np.int64)
    for part, block in blocks(evaluation.representations[REPRESENTATION]):
        counts += ((block[wrong[part]] @ T.T) < 0).sum(axis=0)
    return counts
