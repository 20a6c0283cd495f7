"""`multiaccuracy`: regressions that find where the model is wrong more often than it says, one a round.

Kim, Ghorbani and Zou, "Multiaccuracy: Black-Box Post-Processing for Fairness in Classification", 2019. In each
round a ridge regression of the smoothed slope of the loss on the representation is fitted to the rows of each
predicted class and to all rows; the best of them on rows held back is an auditor. It corrects the probabilities by
a small step, and the next round looks at what is left.

Everything is seen from the predicted class: q is its probability and a row is right or wrong, so that two classes
and two hundred are one problem. The slope of the loss is 1 / p(what happened): q or 1 - q. Where the model knows
what it does not know, its mean is the same everywhere, so an auditor that finds a pattern has found news.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.special import expit, logit

from ..core import Array, Evaluation
from ..core.blocks import blocks
from ..core.soften import class_probs
from .contract import BaseSlicer, check_columns
from .numerics import DIGITS, principal_components
from .options import AT_LEAST_ONE, NOT_NEGATIVE, POSITIVE, SHARE, Interval

FEWEST_ROWS = 10  # of a partition, in each part of the split: an auditor of fewer is noise
STEEP = 0.1  # probability below which the slope of the loss goes on as its tangent: 1 / p is infinite at 0
EDGE = 1e-6  # probabilities stay this far from 0 and 1, where a logit is infinite
LARGEST = 0.25  # of a partition that one slice may hold: where classes are many, each is smaller than a slice
SOFTNESS = 0.25  # width of a slice's edge, in spreads of its auditor
ALL = -1  # the partition of all rows


@dataclass(frozen=True)
class Auditor:
    """h(x) = features . slopes + height, for rows of one predicted class or of all."""

    partition: int
    slopes: Array  # (f,)
    height: float


@dataclass(frozen=True)
class MultiaccuracyAdvanced:
    """Options of `multiaccuracy` that are rarely set.

    Parameters
    ----------
    step
        How far each auditor corrects the probabilities.
    target
        What is regressed: the smoothed `derivative` of the loss, or the `residual` error beyond 1 - q.
    share
        Share of the rows that auditors are fitted to; the others choose among them.
    shuffle
        Draw those rows at random instead of taking the first.
    choose
        Choose a partition by the residual of the rows highest in h (`top`), or by mean(h |residual|) (`published`).
    """

    step: float = 0.1
    target: Literal["derivative", "residual"] = "derivative"
    share: float = 0.7
    shuffle: bool = True
    choose: Literal["top", "published"] = "top"


class Multiaccuracy(BaseSlicer):
    """Rows for which ridge regressions predict more errors than the model's own probabilities do.

    Hard predictions are enough: without `probs` the predicted class counts as .9, and .1 is spread over the others.

    Parameters
    ----------
    slices
        Rounds of the algorithm; each gives one slice.
    size
        Share of all rows in a slice, though no more than a quarter of its partition.
    axes
        Principal axes, each scaled to unit spread, that are read; null for all columns as they are.
    landmarks
        Rows whose closeness is read too, so that an auditor may be round.
    alpha
        Penalty of the ridge regressions.
    advanced
        Options that are rarely set.
    representation
        The representation that is searched. Default: the first.
    seed
        Of the axes, the landmarks and the rows that are held back.
    """

    name = "multiaccuracy"
    needs = frozenset({"representations", "labels", "predictions"})
    reads_probs = True
    presets: ClassVar = {
        "recommended": {},
        "as_published": {
            "axes": None,
            "landmarks": 0,
            "alpha": 1.0,
            "advanced": {
                "step": 0.1,
                "target": "derivative",
                "share": 0.9,
                "shuffle": False,
                "choose": "published",
            },
        },
    }
    limits: ClassVar = {
        "slices": AT_LEAST_ONE,
        "size": SHARE,
        "axes": AT_LEAST_ONE,
        "landmarks": NOT_NEGATIVE,
        "alpha": POSITIVE,
        "step": NOT_NEGATIVE,
        "share": Interval(0, 1, excluded="both"),
    }
    advanced_type: ClassVar = MultiaccuracyAdvanced
    renamed: ClassVar = {"rounds": "slices", "reduce": "axes"}
    fitted_arrays: ClassVar[tuple[str, ...]] = (
        "centre_",
        "axes_",
        "landmarks_",
        "nearness_",
        "slopes_",
        "heights_",
        "partitions_",
        "cuts_",
        "edges_",
    )

    centre_: Array  # (d,)
    axes_: Array  # (d, r); no columns where all are read as they are
    landmarks_: Array  # (l, r)
    nearness_: Array  # () one over the squared distance at which a landmark is no longer near
    slopes_: Array  # (s, f)
    heights_: Array  # (s,)
    partitions_: Array  # (s,) predicted class, or -1 for all
    cuts_: Array  # (s,) where h gives the weight one half
    edges_: Array  # (s,)

    def __init__(
        self,
        slices: int = 5,
        size: float = 0.05,
        axes: int | None = 32,
        landmarks: int = 200,
        alpha: float = 1.0,
        advanced: Mapping[str, Any] | None = None,
        representation: str | None = None,
        seed: int = 0,
    ):
        self.slices = slices
        self.size = size
        self.axes = axes
        self.landmarks = landmarks
        self.alpha = alpha
        self.advanced = advanced
        self.representation = representation
        self.seed = seed

    @property
    def reads(self) -> frozenset[str]:
        """The prediction: partitions are by predicted class."""
        return frozenset({"prediction"})

    @property
    def _rare(self) -> MultiaccuracyAdvanced:
        return MultiaccuracyAdvanced(**(self.advanced or {}))

    # --- learning --------------------------------------------------------------------------------------------

    def _fit(self, evaluation: Evaluation, train: Evaluation | None) -> None:
        assert evaluation.predictions is not None
        wrong = evaluation.predictions != evaluation.labels
        self._fit_features(np.asarray(self.matrix(evaluation), dtype=np.float64))
        F = self._features(self.matrix(evaluation))
        inside, q = _partitions(evaluation)
        auditors = self._boost(F, wrong, q, inside)
        self._calibrate(F, auditors, inside)
        self._order(self.membership(evaluation), wrong)

    def _fit_features(self, X: Array) -> None:
        n, d = X.shape
        self.centre_ = X.mean(axis=0)
        self.axes_ = np.empty((d, 0))
        if self.axes is not None:
            pca = principal_components(X, self.axes, self.seed)
            self.axes_ = pca.components_.T / np.maximum(
                np.sqrt(pca.explained_variance_), 1e-12 + 1e-9 * np.abs(X).max()
            )
        Z = self._reduced(X)
        rows = np.sort(np.random.default_rng(self.seed).permutation(n)[: self.landmarks])
        self.landmarks_ = Z[rows]
        self.nearness_ = np.array(1 / max(float(Z.var(axis=0).sum()), 1e-12))

    def _boost(self, F: Array, wrong: Array, q: Array, inside: dict[int, Array]) -> list[Auditor]:
        """One auditor a round, each on what the ones before it left over."""
        fitted_on = self._fitted_on(len(F))
        usable = {
            part: rows
            for part, rows in inside.items()
            if min((rows & fitted_on).sum(), (rows & ~fitted_on).sum()) >= FEWEST_ROWS
        }
        solvers = {part: ridge(F[rows & fitted_on], self.alpha) for part, rows in usable.items()}
        q = np.clip(q, EDGE, 1 - EDGE)
        auditors: list[Auditor] = []
        if not usable:
            return auditors
        for round_ in range(self.slices):
            target = self._target(wrong, q)
            offers = [Auditor(part, *solvers[part](target[rows & fitted_on])) for part, rows in usable.items()]
            values = [self._value(F, offer, usable[offer.partition] & ~fitted_on, wrong, q) for offer in offers]
            best = offers[int(np.argmax(values))]
            auditors.append(best)
            rows = inside[best.partition]
            q = q.copy()
            q[rows] = np.clip(expit(logit(q[rows]) - self._rare.step * _heights(F[rows], best)), EDGE, 1 - EDGE)
            self.report_progress(self.name, (round_ + 1) / self.slices)
        return auditors

    def _fitted_on(self, n: int) -> Array:
        """(n,) bool: rows that auditors are fitted to; the others choose among them."""
        order = np.arange(n)
        if self._rare.shuffle:
            order = np.random.default_rng(self.seed).permutation(n)
        rows = np.zeros(n, dtype=bool)
        rows[order[: round(self._rare.share * n)]] = True
        return rows

    def _target(self, wrong: Array, q: Array) -> Array:
        if self._rare.target == "residual":
            return np.asarray(wrong - (1 - q))
        return smoothed_slope(np.where(wrong, 1 - q, q))

    def _value(self, F: Array, auditor: Auditor, held: Array, wrong: Array, q: Array) -> float:
        """How good an auditor is on rows held back."""
        h = _heights(F[held], auditor)
        residual = wrong[held] - (1 - q[held])
        if self._rare.choose == "published":
            return float(np.mean(h * np.abs(residual)))
        top = max(1, min(round(self.size * len(F) * (1 - self._rare.share)), int(LARGEST * len(h))))
        return float(residual[np.argsort(-h, kind="stable")[:top]].mean())

    def _calibrate(self, F: Array, auditors: list[Auditor], inside: dict[int, Array]) -> None:
        """Where each slice ends, so that its weights sum to the share of rows asked for."""
        self.slopes_ = np.array([a.slopes for a in auditors]).reshape(-1, F.shape[1])
        self.heights_ = np.array([a.height for a in auditors], dtype=np.float64)
        self.partitions_ = np.array([a.partition for a in auditors], dtype=np.int64)
        ends = [slice_end(_heights(F[inside[a.partition]], a), self.size * len(F)) for a in auditors]
        self.cuts_ = np.array([cut for cut, _ in ends], dtype=np.float64)
        self.edges_ = np.array([edge for _, edge in ends], dtype=np.float64)

    def _order(self, weights: Array, wrong: Array) -> None:
        order = np.argsort(-(wrong @ weights), kind="stable")
        for name in ("slopes_", "heights_", "partitions_", "cuts_", "edges_"):
            setattr(self, name, getattr(self, name)[order])
        self.rules_ = tuple(self._rule(int(part), int(j)) for part, j in zip(self.partitions_, order, strict=True))

    def _rule(self, part: int, j: int) -> dict[str, Any]:
        rule: dict[str, Any] = {"kind": "direction", "representation": self.representation_, "round": j}
        if part != ALL:
            rule["scope"] = {"prediction": part}
        return rule

    # --- new rows --------------------------------------------------------------------------------------------

    def membership(self, evaluation: Evaluation) -> Array:
        """(n, s) weights that rise with what an auditor predicts; 0 outside its partition."""
        X = self.matrix(evaluation)
        check_columns(X, len(self.centre_), "method `multiaccuracy`")
        F = self._features(X)
        weights = expit((F @ self.slopes_.T + self.heights_ - self.cuts_) / self.edges_)
        if (self.partitions_ != ALL).any():
            evaluation.need(frozenset({"predictions"}), "method `multiaccuracy`")
            assert evaluation.predictions is not None
            weights *= (self.partitions_ == ALL) | (evaluation.predictions[:, None] == self.partitions_)
        return np.asarray(np.round(weights, DIGITS))

    def _reduced(self, X: Any) -> Array:
        parts = []
        for _, block in blocks(X):
            part = block - self.centre_
            if self.axes_.shape[1]:
                part = part @ self.axes_
            parts.append(part)
        return np.concatenate(parts)

    def _features(self, X: Any) -> Array:
        """(n, f) what an auditor reads of the representation."""
        Z = self._reduced(X)
        if not len(self.landmarks_):
            return Z
        squares = np.square(Z).sum(axis=1)[:, None] + np.square(self.landmarks_).sum(axis=1) - 2 * Z @ self.landmarks_.T
        return np.hstack([Z, np.exp(-self.nearness_ * np.maximum(squares, 0))])


def _partitions(evaluation: Evaluation) -> tuple[dict[int, Array], Array]:
    """Rows of each predicted class and of all; (n,) probability of the predicted class."""
    predictions = evaluation.predictions
    probs = class_probs(evaluation, "method `multiaccuracy`")
    assert predictions is not None
    inside = {int(value): predictions == value for value in np.unique(predictions)}
    q = probs[np.arange(len(probs)), predictions].astype(np.float64)
    return {**inside, ALL: np.ones(len(probs), dtype=bool)}, q


def smoothed_slope(p: Array) -> Array:
    """1 / p, the slope of -log p; its tangent below `STEEP`."""
    slope: Array = np.where(p >= STEEP, 1 / np.maximum(p, STEEP), 2 / STEEP - p / STEEP**2)
    return slope


def ridge(F: Array, alpha: float) -> Callable[[Array], tuple[Array, float]]:
    """A solver for many targets on the same rows: (n,) target -> slopes and height.

    The factor of the smaller of the two Gram matrices is kept, since only the target changes from round to round.
    """
    from scipy.linalg import cho_factor, cho_solve

    centre = F.mean(axis=0)
    centred = F - centre
    tall = F.shape[0] >= F.shape[1]
    gram = centred.T @ centred if tall else centred @ centred.T
    factor = cho_factor(gram + alpha * np.eye(len(gram)))

    def solve(target: Array) -> tuple[Array, float]:
        rest = target - target.mean()
        if tall:
            slopes = cho_solve(factor, centred.T @ rest)
        else:
            slopes = centred.T @ cho_solve(factor, rest)
        return slopes, float(target.mean() - centre @ slopes)

    return solve


def slice_end(h: Array, size: float) -> tuple[float, float]:
    """(cut, edge): sum of expit((h - cut) / edge) is `size`, or the largest share of the rows where that is less."""
    from scipy.optimize import brentq

    size = min(size, LARGEST * len(h))
    edge = max(SOFTNESS * float(h.std()), 1e-9 * max(1.0, float(np.abs(h).max())))
    far = 40 * edge  # beyond which no weight is left, or none is missing

    def excess(cut: float) -> float:
        return float(expit((h - cut) / edge).sum() - size)

    return float(brentq(excess, h.min() - far, h.max() + far)), edge


def _heights(F: Array, auditor: Auditor) -> Array:
    h: Array = F @ auditor.slopes + auditor.height
    return h
