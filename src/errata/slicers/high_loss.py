"""`high-loss`: the rows with the highest losses. What a person looks at first, and the baseline of every paper."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np

from ..core import Array, Evaluation
from ..core.scope import Scoping, rows_in_scope, scopes
from .contract import BaseSlicer
from .options import SHARE

SCOPE_OF: dict[str, Scoping] = {"all": "none", "label": "label", "prediction": "prediction"}


class HighLoss(BaseSlicer):
    """The rows with the highest loss: one slice, or one in each class.

    It reads the loss, so its slices are wrong by construction: the audit measures an approximation. The preset
    `within_label` ranks the rows of each label by 1 - p(true class) and reads no embedding: what every search has to
    beat.

    Parameters
    ----------
    size
        Share of the rows in a slice.
    scope
        One slice of `all` rows, or one in each `label` or `prediction`.
    graded
        Weigh rows by 1 - exp(-loss), which is 1 - p(true class) for cross-entropy, instead of by 0 and 1.
    """

    name = "high-loss"
    needs = frozenset({"losses"})
    own_scopes: ClassVar = {
        "none": {"scope": "all"},
        "label": {"scope": "label"},
        "prediction": {"scope": "prediction"},
    }
    presets: ClassVar = {"recommended": {}, "as_published": {}, "within_label": {"scope": "label", "graded": True}}
    limits: ClassVar = {"size": SHARE}
    fitted_arrays: ClassVar[tuple[str, ...]] = ("cut_",)

    cut_: Array  # (s,) the smallest loss of a member

    def __init__(self, size: float = 0.02, scope: Literal["all", "label", "prediction"] = "all", graded: bool = False):
        self.size = size
        self.scope = scope
        self.graded = graded

    @property
    def reads(self) -> frozenset[str]:
        """The loss, and what classes are by."""
        by = frozenset[str]() if self.scope == "all" else frozenset({self.scope})
        return by | {"loss"}

    def _fit(self, evaluation: Evaluation, train: Evaluation | None) -> None:
        if self.scope != "all":
            evaluation.need(frozenset({f"{self.scope}s"}), f"method `high-loss` with scope={self.scope}")
        losses = np.asarray(evaluation.losses)
        found = []
        for scope in scopes(evaluation, SCOPE_OF[self.scope]):
            inside = losses[rows_in_scope(evaluation, scope)]
            rows = max(1, round(self.size * len(inside)))
            cut = float(np.partition(inside, -rows)[-rows])
            excess = float((inside[inside >= cut] - inside.mean()).sum())
            found.append((excess, cut, scope))
        found.sort(key=lambda slice_: -slice_[0])
        self.cut_ = np.array([cut for _, cut, _ in found], dtype=np.float64)
        self.rules_ = tuple(self._rule(cut, scope) for _, cut, scope in found)

    def _rule(self, cut: float, scope: Mapping[str, Any]) -> dict[str, Any]:
        rule: dict[str, Any] = {"kind": "loss", "at_least": cut}
        return {**rule, "scope": dict(scope)} if scope else rule

    def _thresholds(self, evaluation: Evaluation) -> Array:
        """(s,) the weight of the smallest loss of a member."""
        return self._weights(self.cut_) if self.graded else np.ones(len(self.cut_))

    def _weights(self, losses: Array) -> Array:
        weights: Array = -np.expm1(-np.maximum(losses, 0.0))
        return weights

    def membership(self, evaluation: Evaluation) -> Array:
        """(n, s) 1 for the rows with the highest losses, or weights that rise with the loss; 0 outside the scope."""
        evaluation.need(self.needs, "method `high-loss`")
        losses = np.asarray(evaluation.losses, dtype=np.float64)
        weights = np.empty((len(losses), len(self.cut_)))
        for j, rule in enumerate(self.rules_):
            own = self._weights(losses) if self.graded else (losses >= self.cut_[j]).astype(np.float64)
            weights[:, j] = own * rows_in_scope(evaluation, rule.get("scope"))
        return weights
