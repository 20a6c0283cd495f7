"""The approximation: a slice that does not know the outcome, in place of one that does.

A method that reads the outcome finds 100% error by construction. Its slices may still point at a real group: so
membership is predicted from what is known before the outcome (the representation and the prediction), and that
predicted set is measured, saved, shown and applied instead.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold

from ..core import Array, Evaluation, State
from .contract import Slicer, check_columns

FEWEST_MEMBERS = 10
FOLDS = 5
PENALTY = 1.0
ROWS_PER_COLUMN = 20  # from here on a regression's own scores are as good as out-of-fold ones
FITTED_ARRAYS = ("columns_", "coefficients_", "intercepts_", "thresholds_", "centre_", "scale_", "classes_")


class Approximation:
    """Logistic regressions of a slicer's hard sets on the representation and the prediction.

    Fitted on search rows. A slice with too few members there has no approximation.

    Parameters
    ----------
    method
        The name of the method that is approximated, for messages.
    seed
        Of the folds that out-of-fold scores come from.

    Attributes
    ----------
    columns_
        (s,) columns of the slicer that have an approximation.
    coefficients_
        (s, f) of the regressions.
    intercepts_
        (s,) of the regressions.
    thresholds_
        (s,) probabilities from which a row is a member: as many search rows reach it as the slice has.
    centre_
        (d,) mean of each column of the representation.
    scale_
        (d,) standard deviation of each column.
    classes_
        (c,) predicted classes in the search rows; empty where there are no predicted classes.
    representation_
        The representation that is read; None where every one reads the outcome.
    rules_
        One for each approximation, with the slice's own rule under "of".
    """

    name: ClassVar[str] = "approximation"

    columns_: Array
    coefficients_: Array
    intercepts_: Array
    thresholds_: Array
    centre_: Array
    scale_: Array
    classes_: Array
    representation_: str | None
    rules_: tuple[Mapping[str, Any], ...]

    def __init__(self, method: str, seed: int = 0):
        self.method = method
        self.seed = seed

    @property
    def _who(self) -> str:
        return f"the approximation of `{self.method}`"

    def fit(self, slicer: Slicer, evaluation: Evaluation, columns: Sequence[int] | None = None) -> Self:
        """Learn the hard sets of a fitted slicer from search rows; of some of its columns. Default: of all."""
        evaluation = evaluation.by_id()
        hard = slicer.membership(evaluation) >= slicer.thresholds_
        self.representation_ = _blind_representation(evaluation)
        self._fit_features(evaluation)
        F = self._features(evaluation)
        sizes = hard.sum(axis=0)
        able = (sizes >= FEWEST_MEMBERS) & (len(hard) - sizes >= FEWEST_MEMBERS) & (F.shape[1] > 0)
        if columns is not None:
            able &= np.isin(np.arange(len(sizes)), columns)
        self.columns_ = np.flatnonzero(able)
        fits = [self._fit_column(F, hard[:, j]) for j in self.columns_]
        self.coefficients_ = np.array([coefficients for coefficients, _, _ in fits]).reshape(len(fits), F.shape[1])
        self.intercepts_ = np.array([intercept for _, intercept, _ in fits])
        self.thresholds_ = np.array([threshold for _, _, threshold in fits])
        self.rules_ = tuple(
            {"kind": self.name, "of": dict(slicer.rules_[j]), "representation": self.representation_}
            for j in self.columns_
        )
        return self

    def _fit_features(self, evaluation: Evaluation) -> None:
        X = self._matrix(evaluation)
        self.centre_ = X.mean(axis=0)
        self.scale_ = np.maximum(X.std(axis=0), 1e-12)
        predictions = evaluation.predictions
        self.classes_ = np.empty(0, dtype=np.int64)
        if predictions is not None and predictions.dtype.kind in "iu":
            self.classes_ = np.unique(np.asarray(predictions))

    def _matrix(self, evaluation: Evaluation) -> Array:
        """(n, d); no columns where every representation reads the outcome."""
        if self.representation_ is None:
            return np.empty((len(evaluation), 0))
        name = evaluation.representation(self.representation_, self._who)
        return np.asarray(evaluation.representations[name], dtype=np.float64)

    def _features(self, evaluation: Evaluation) -> Array:
        """(n, f) standardised representation beside a one-hot prediction. No label, no loss."""
        X = self._matrix(evaluation)
        check_columns(X, len(self.centre_), self._who)
        standard = (X - self.centre_) / self.scale_
        if len(self.classes_) < 2:
            return standard
        evaluation.need(frozenset({"predictions"}), self._who)
        assert evaluation.predictions is not None
        return np.hstack([standard, evaluation.predictions[:, None] == self.classes_])

    def _fit_column(self, F: Array, member: Array) -> tuple[Array, float, float]:
        """Coefficients, intercept, and the probability that as many rows reach as there are members."""
        regression = LogisticRegression(C=PENALTY, max_iter=1000).fit(F, member)
        if F.shape[1] < len(F) / ROWS_PER_COLUMN:
            scores = regression.decision_function(F)
        else:
            scores = self._out_of_fold(F, member)
        m = int(member.sum())
        cut = np.partition(scores, -m)[-m]
        return regression.coef_[0].copy(), float(regression.intercept_[0]), _sigmoid(np.array(cut)).item()

    def _out_of_fold(self, F: Array, member: Array) -> Array:
        """(n,) scores of rows by regressions that were not fitted to them: with few rows per column, in-sample
        scores are too high, and so would the threshold be."""
        scores = np.empty(len(F))
        for train, test in StratifiedKFold(FOLDS, shuffle=True, random_state=self.seed).split(F, member):
            fold = LogisticRegression(C=PENALTY, max_iter=1000).fit(F[train], member[train])
            scores[test] = fold.decision_function(F[test])
        return scores

    def membership(self, evaluation: Evaluation) -> Array:
        """(n, s) probability of belonging, known before the outcome is."""
        F = self._features(evaluation)
        return _sigmoid(F @ self.coefficients_.T + self.intercepts_)

    def to_state(self) -> State:
        """What is saved."""
        facts = {
            "method": self.method,
            "seed": self.seed,
            "representation": self.representation_,
            "rules": list(self.rules_),
        }
        return State(self.name, facts, {name: getattr(self, name) for name in FITTED_ARRAYS})

    @classmethod
    def from_state(cls, state: State) -> Self:
        """A fitted approximation from what was saved."""
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
