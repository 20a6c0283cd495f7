"""The stand-in: a slice that does not know the outcome, in place of one that does.

A method that reads the outcome finds 100% error by construction. What it found may still point at a
real group: so membership is predicted from what is known before the outcome (the representation and
the prediction), and that predicted set is measured, saved, shown and applied instead.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from ..core import Array, Evaluation, State
from .contract import Slicer, check_columns

FEWEST_MEMBERS = 10
FOLDS = 5
PENALTY = 1.0
ROWS_A_COLUMN = 20  # from here on a regression's own scores are as good as out-of-fold ones


class StandIn:
    """Logistic regressions of a slicer's hard sets on the representation and the prediction.

    Fitted on discover rows. Slices with too few members there have no stand-in; `columns_` says which
    columns of the slicer those that have one came from.
    """

    name: ClassVar[str] = "stand-in"

    columns_: Array  # (s,) columns of the slicer
    coefficients_: Array  # (s, f)
    intercepts_: Array  # (s,)
    thresholds_: Array  # (s,) probabilities
    centre_: Array  # (d,)
    scale_: Array  # (d,)
    classes_: Array  # (c,) predicted classes known; empty where predictions were not given
    representation_: str | None
    rules_: tuple[Mapping[str, Any], ...]

    def __init__(self, method: str, seed: int = 0):
        self.method, self.seed = method, seed

    def fit(self, slicer: Slicer, evaluation: Evaluation) -> Self:
        evaluation = evaluation.by_id()
        hard = slicer.membership(evaluation) >= slicer.thresholds_
        self.representation_ = _blind_representation(evaluation)
        self._learn_features(evaluation)
        F = self._features(evaluation)
        sizes = hard.sum(axis=0)
        able = (sizes >= FEWEST_MEMBERS) & (len(hard) - sizes >= FEWEST_MEMBERS) & (F.shape[1] > 0)
        self.columns_ = np.flatnonzero(able)
        fitted = [self._fit_one(F, hard[:, j]) for j in self.columns_]
        self.coefficients_ = np.array([c for c, _, _ in fitted]).reshape(len(fitted), F.shape[1])
        self.intercepts_ = np.array([b for _, b, _ in fitted])
        self.thresholds_ = np.array([t for _, _, t in fitted])
        self.rules_ = tuple(self._rule(slicer, int(j)) for j in self.columns_)
        return self

    def _learn_features(self, evaluation: Evaluation) -> None:
        X = self._matrix(evaluation)
        self.centre_ = X.mean(axis=0)
        self.scale_ = np.maximum(X.std(axis=0), 1e-12)
        predictions = evaluation.predictions
        whole = predictions is not None and predictions.dtype.kind in "iu"
        self.classes_ = np.unique(np.asarray(predictions)) if whole else np.empty(0, dtype=np.int64)

    def _matrix(self, evaluation: Evaluation) -> Array:
        """(n, d); no columns where every representation reads the outcome."""
        if self.representation_ is None:
            return np.empty((len(evaluation), 0))
        name = evaluation.representation(self.representation_, f"the stand-in of `{self.method}`")
        return np.asarray(evaluation.representations[name], dtype=np.float64)

    def _features(self, evaluation: Evaluation) -> Array:
        """(n, f) standardised representation beside a one-hot prediction. No label, no loss."""
        X = self._matrix(evaluation)
        check_columns(X, len(self.centre_), f"the stand-in of `{self.method}`")
        standard = (X - self.centre_) / self.scale_
        if len(self.classes_) < 2:
            return standard
        evaluation.need(frozenset({"predictions"}), f"the stand-in of `{self.method}`")
        assert evaluation.predictions is not None
        return np.hstack([standard, evaluation.predictions[:, None] == self.classes_])

    def _fit_one(self, F: Array, member: Array) -> tuple[Array, float, float]:
        """Coefficients, intercept, and the score that as many rows reach as there are members."""
        regression = LogisticRegression(C=PENALTY, max_iter=1000).fit(F, member)
        coefficients, intercept = regression.coef_[0].copy(), float(regression.intercept_[0])
        enough = F.shape[1] < len(F) / ROWS_A_COLUMN
        scores = regression.decision_function(F) if enough else self._out_of_fold(F, member)
        m = int(member.sum())
        cut = np.partition(scores, -m)[-m]
        return coefficients, intercept, _sigmoid(np.array(cut)).item()

    def _out_of_fold(self, F: Array, member: Array) -> Array:
        """(n,) scores of rows by regressions that did not see them: with few rows a column, own scores flatter."""
        scores = np.empty(len(F))
        for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=self.seed).split(F, member):
            fold = LogisticRegression(C=PENALTY, max_iter=1000).fit(F[train], member[train])
            scores[test] = fold.decision_function(F[test])
        return scores

    def _rule(self, slicer: Slicer, column: int) -> Mapping[str, Any]:
        return {"kind": "stand-in", "of": dict(slicer.rules_[column]), "representation": self.representation_}

    def membership(self, evaluation: Evaluation) -> Array:
        """(n, s) probability of belonging, known before the outcome is."""
        F = self._features(evaluation)
        return _sigmoid(F @ self.coefficients_.T + self.intercepts_)

    def to_state(self) -> State:
        facts = {
            "method": self.method,
            "seed": self.seed,
            "representation": self.representation_,
            "rules": list(self.rules_),
        }
        names = ("columns_", "coefficients_", "intercepts_", "thresholds_", "centre_", "scale_", "classes_")
        return State(self.name, facts, {name: getattr(self, name) for name in names})

    @classmethod
    def from_state(cls, state: State) -> Self:
        new = cls(state.facts["method"], state.facts["seed"])
        new.representation_ = state.facts["representation"]
        new.rules_ = tuple(state.facts["rules"])
        for name, array in state.arrays.items():
            setattr(new, name, array)
        return new


def _blind_representation(evaluation: Evaluation) -> str | None:
    """The first representation that reads no outcome itself."""
    blind = [name for name in evaluation.representations if not evaluation.source(name).reads]
    return blind[0] if blind else None


def _sigmoid(x: Array) -> Array:
    share: Array = 1 / (1 + np.exp(-np.clip(x, -500, 500)))
    return share
