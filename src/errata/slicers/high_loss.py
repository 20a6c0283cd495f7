"""`high-loss`: the rows with the highest losses. What a person looks at first, and the baseline of every paper."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..core import Array, Evaluation
from .contract import BaseSlicer
from .options import SHARE


class HighLoss(BaseSlicer):
    """One slice: the rows with the highest loss.

    It reads the loss, so its slice is wrong by construction: the audit measures an approximation.

    Parameters
    ----------
    size
        Share of the rows in the slice.
    """

    name = "high-loss"
    needs = frozenset({"losses"})
    limits: ClassVar = {"size": SHARE}
    fitted_arrays: ClassVar[tuple[str, ...]] = ("cut_",)

    cut_: Array  # (1,) the smallest loss of a member

    def __init__(self, size: float = 0.02):
        self.size = size

    @property
    def reads(self) -> frozenset[str]:
        """The loss."""
        return frozenset({"loss"})

    def _fit(self, evaluation: Evaluation, train: Evaluation | None) -> None:
        assert evaluation.losses is not None
        rows = max(1, round(self.size * len(evaluation)))
        self.cut_ = np.array([np.partition(evaluation.losses, -rows)[-rows]], dtype=np.float64)
        self.rules_ = ({"kind": "loss", "at_least": float(self.cut_[0])},)

    def membership(self, evaluation: Evaluation) -> Array:
        """(n, 1) 1 for the rows with the highest losses."""
        evaluation.need(self.needs, "method `high-loss`")
        assert evaluation.losses is not None
        above: Array = (evaluation.losses >= self.cut_[0]).astype(np.float64)
        return above[:, None]
