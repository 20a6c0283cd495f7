"""Training rows and their influence on rows of an evaluation.

All from influence embeddings. The product of a training row's and a test row's embedding is the influence g' H⁻¹ g:
positive, and more of the training row would lower the test row's loss (a helper; removing it raises the loss);
negative, and it raises that loss (an opponent).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core import Array, Evaluation
from ..core.blocks import Matrix, blocks
from ..core.evaluation import INFLUENCE
from ..core.media import data_address
from .examples import Example, example_fields

PX = 72
TEXT = 240


@dataclass(frozen=True)
class TrainingRow(Example):
    """One training row, with a small image or the beginning of its text: an audit does not hold the rest."""

    row: int  # its number among the training rows
    text: str | None
    picture: str | None  # as a data: address
    influence: float  # the mean over the rows that were asked about


def training_fields(train: Evaluation, row: int) -> dict[str, Any]:
    """The fields of a training row, but for its influence."""
    media = train.media
    text = None
    picture = None
    if media is not None and media.kind == "text":
        text = (media.text(row) or "")[:TEXT]
    elif media is not None:
        image = media.thumbnail(row, PX)
        picture = None if image is None else data_address(image)
    return {**example_fields(train, row), "text": text, "picture": picture}


def has_influence(evaluation: Evaluation, train: Evaluation | None) -> bool:
    """Whether both have influence embeddings of the same factor, as far as their columns can say."""
    if train is None or INFLUENCE not in train.representations:
        return False
    mine = evaluation.representations.get(INFLUENCE)
    return mine is not None and mine.shape[1] == train.representations[INFLUENCE].shape[1]


def influence_on(E: Matrix, train: Evaluation, rows: Array) -> Array:
    """(n',) the influence of every training row on some rows ((n,) bool) together: a sum of products."""
    total = np.zeros(E.shape[1])
    for part, block in blocks(E):
        total += rows[part].astype(np.float64) @ block
    T = train.representations[INFLUENCE]
    scores = np.empty(len(T))
    for part, block in blocks(T):
        scores[part] = block @ total
    return scores
