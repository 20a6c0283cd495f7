"""`confusion`: the cells of the confusion matrix. The slices every team already knows."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..core import Array, Evaluation
from .contract import BaseSlicer
from .options import AT_LEAST_ONE

CELLS = "its cells lie within a label and a prediction already; leave it out"


class Confusion(BaseSlicer):
    """One slice for each of the most frequent pairs (true class, another predicted class).

    It reads label and prediction, so every cell is 100% error: the audit measures an approximation.

    Parameters
    ----------
    slices
        Slices to return at most.
    """

    name = "confusion"
    needs = frozenset({"labels", "predictions"})
    refused_scopes: ClassVar = {"label": CELLS, "prediction": CELLS}
    limits: ClassVar = {"slices": AT_LEAST_ONE}
    renamed: ClassVar = {"count": "slices"}
    fitted_arrays: ClassVar[tuple[str, ...]] = ("pairs_",)

    pairs_: Array  # (s, 2) label, prediction

    def __init__(self, slices: int = 10):
        self.slices = slices

    @property
    def reads(self) -> frozenset[str]:
        """Label and prediction."""
        return frozenset({"label", "prediction"})

    def _fit(self, evaluation: Evaluation, train: Evaluation | None) -> None:
        evaluation.need(frozenset({"errors"}), "method `confusion`")
        wrong = np.asarray(evaluation.errors)
        both = np.stack([np.asarray(evaluation.labels), np.asarray(evaluation.predictions)], axis=1)
        cells, sizes = np.unique(both[wrong].astype(np.int64), axis=0, return_counts=True)
        self.pairs_ = cells[np.argsort(-sizes, kind="stable")[: self.slices]].reshape(-1, 2)
        self.rules_ = tuple({"kind": "cell", "label": int(a), "prediction": int(b)} for a, b in self.pairs_)

    def membership(self, evaluation: Evaluation) -> Array:
        """(n, s) 1 for the rows of a cell."""
        evaluation.need(self.needs, "method `confusion`")
        labels = np.asarray(evaluation.labels)[:, None]
        predictions = np.asarray(evaluation.predictions)[:, None]
        inside: Array = (labels == self.pairs_[:, 0]) & (predictions == self.pairs_[:, 1])
        return inside.astype(np.float64)
