"""`high-loss`: the rows with the highest losses. What a person looks at first, and the baseline of every paper."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..core import Array, Evaluation, InputError
from .contract import BaseSlicer


class HighLoss(BaseSlicer):
    """One slice: the `size` share of rows with the highest loss.

    It reads the loss, so its slice is wrong by construction: the audit measures an approximation.
    """

    name = "high-loss"
    needs = frozenset({"losses"})
    reads = frozenset({"loss"})
    learnt: ClassVar[tuple[str, ...]] = ("cut_",)

    cut_: Array

    def __init__(self, size: float = 0.02):
        self.size = size

    def _fit(self, evaluation: Evaluation, train: Evaluation | None) -> None:
        if not 0 < self.size <= 0.5:
            raise InputError(f"`high-loss.size` must lie in (0, .5]; got {self.size}")
        assert evaluation.losses is not None
        rows = max(1, round(self.size * len(evaluation)))
        self.cut_ = np.array([np.partition(evaluation.losses, -rows)[-rows]], dtype=np.float64)
        self.rules_ = ({"kind": "loss", "at_least": float(self.cut_[0])},)

    def membership(self, evaluation: Evaluation) -> Array:
        evaluation.need(self.needs, "method `high-loss`")
        assert evaluation.losses is not None
        above: Array = (evaluation.losses >= self.cut_[0]).astype(np.float64)
        return above[:, None]
