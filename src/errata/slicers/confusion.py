"""`confusion`: the cells of the confusion matrix. The slices every team already knows."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..core import Array, Evaluation, InputError
from .contract import BaseSlicer


class Confusion(BaseSlicer):
    """One slice for each of the `count` most frequent pairs (true class, another predicted class).

    It reads label and prediction, so every cell is 100% error: the audit measures an approximation.
    """

    name = "confusion"
    needs = frozenset({"labels", "predictions"})
    reads = frozenset({"label", "prediction"})
    learnt: ClassVar[tuple[str, ...]] = ("pairs_",)

    pairs_: Array  # (s, 2) label, prediction

    def __init__(self, count: int = 10):
        self.count = count

    def _fit(self, evaluation: Evaluation, train: Evaluation | None) -> None:
        if self.count < 1:
            raise InputError(f"`confusion.count` must be at least 1; got {self.count}")
        wrong = evaluation.errors
        if wrong is None:
            evaluation.need(frozenset({"errors"}), "method `confusion`")
        pairs = np.stack([evaluation.labels, evaluation.predictions], axis=1)[wrong].astype(np.int64)  # type: ignore[list-item]
        cells, sizes = np.unique(pairs, axis=0, return_counts=True)
        self.pairs_ = cells[np.argsort(-sizes, kind="stable")[: self.count]].reshape(-1, 2)
        self.rules_ = tuple({"kind": "cell", "label": int(a), "prediction": int(b)} for a, b in self.pairs_)

    def membership(self, evaluation: Evaluation) -> Array:
        evaluation.need(self.needs, "method `confusion`")
        assert evaluation.labels is not None
        assert evaluation.predictions is not None
        labels, predictions = evaluation.labels[:, None], evaluation.predictions[:, None]
        inside: Array = (labels == self.pairs_[:, 0]) & (predictions == self.pairs_[:, 1])
        return inside.astype(np.float64)
