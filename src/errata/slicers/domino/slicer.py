"""`domino`: a mixture that sees embedding, label and prediction together, and the components that err most.

Eyuboglu and others, "Domino: discovering systematic errors with cross-modal embeddings", 2022. Rows of one
component look alike, are labelled alike and are predicted alike; a slice is a component whose predictions
and labels disagree.

`as_published` starts from the confusion matrix, counts label and prediction ten times, chooses components by
the largest difference between predicted and true class, and assigns new rows by embedding, label and
prediction: it knows the outcome, so an audit measures an approximation. `recommended` differs in:

- the posterior of new rows reads the embedding alone (label and prediction summed out): no approximation needed;
- so a component should hold the right rows of a region beside the wrong ones: it starts from k-means and
  counts label and prediction once, where the published start and weights keep them apart;
- components are ranked by the errors they hold beyond the overall rate, over the root of their size;
- soft predictions agree by cross-entropy, of which the M-step is the maximiser, so EM never goes down;
- variances have a floor relative to each column's own, so neither scale nor single rows matter.
"""

from __future__ import annotations

import warnings
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.linalg import eigh
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning

from ...core import Array, Evaluation, InputError, Matrix
from ...core.blocks import blocks
from ..contract import BaseSlicer, check_columns
from .mixture import Agreement, Mixture, Rows, Variance, Weights, normalise, run, with_squares

Start = Literal["kmeans", "confusion", "random"]

LEAST_ROWS = 4  # per component: a mixture of single rows is not one
FLAT = 1e-10  # share of the largest variance below which a direction is rounding
KMEANS_ROWS = 10_000  # enough to place centres; all rows are then assigned to them
PROFILE = 10  # classes named in a rule
DECIMALS = 10  # of a weight: what lies below depends on where in a block of rows a row stood


class _Reads:
    """What membership reads of the outcome: of a slicer, by its posterior; of the class, all it could."""

    def __get__(self, slicer: Domino | None, owner: type[Domino]) -> frozenset[str]:
        blind = slicer is not None and slicer.posterior == "embedding"
        return frozenset() if blind else frozenset({"label", "prediction"})


class Domino(BaseSlicer):
    """Components of a mixture over embedding, label and prediction, the most erroneous first.

    components: of the mixture; slices: of them kept. reduce: principal components, from the first `reduce_rows`
    rows or all. label_weight, prediction_weight: how much label and prediction count beside the embedding.
    agreement: of a soft prediction with a component's, "cross-entropy" or "inner". init: "kmeans", "confusion"
    (with `noise`) or "random". rank: "excess" errors or "gap" between prediction and label. posterior:
    of new rows from the "embedding", or "full". regularise: "floor", in shares of each column's variance, or "add".
    """

    name = "domino"
    needs = frozenset({"representations", "labels", "probs"})
    reads: ClassVar[Any] = _Reads()
    presets: ClassVar = {
        "recommended": {},
        "as_published": {
            "slices": 5,
            "label_weight": 10.0,
            "prediction_weight": 10.0,
            "agreement": "inner",
            "init": "confusion",
            "rank": "gap",
            "posterior": "full",
            "regularise": "add",
            "regularisation": 1e-6,
        },
    }
    learnt: ClassVar[tuple[str, ...]] = (
        "centre_", "axes_", "log_weights_", "means_", "variances_", "labels_", "predictions_", "chosen_",
    )  # fmt: skip

    centre_: Array  # (d,)
    axes_: Array  # (d, r)
    log_weights_: Array  # (c,) of all components: a slice's posterior is beside theirs
    means_: Array  # (c, r)
    variances_: Array  # (c, r)
    labels_: Array  # (c, k)
    predictions_: Array  # (c, k)
    chosen_: Array  # (s,) components that are slices
    log_likelihoods_: list[float]  # mean over rows before each M-step; of the last fit, not saved

    def __init__(
        self,
        components: int = 25,
        slices: int = 10,
        reduce: int | None = 128,
        reduce_rows: int | None = None,
        label_weight: float = 1.0,
        prediction_weight: float = 1.0,
        agreement: Agreement = "cross-entropy",
        init: Start = "kmeans",
        noise: float = 1e-3,
        rank: Literal["excess", "gap"] = "excess",
        posterior: Literal["embedding", "full"] = "embedding",
        tol: float = 1e-3,
        steps: int = 100,
        regularise: Literal["floor", "add"] = "floor",
        regularisation: float = 1e-3,
        representation: str | None = None,
        seed: int = 0,
    ):
        self.components, self.slices, self.reduce, self.reduce_rows = components, slices, reduce, reduce_rows
        self.label_weight, self.prediction_weight, self.agreement = label_weight, prediction_weight, agreement
        self.init, self.noise, self.rank, self.posterior = init, noise, rank, posterior
        self.tol, self.steps, self.regularise, self.regularisation = tol, steps, regularise, regularisation
        self.representation, self.seed = representation, seed

    def _fit(self, evaluation: Evaluation, train: Evaluation | None) -> None:
        self._check()
        rows = self._rows(evaluation)
        components = max(1, min(self.components, len(rows.Z) // LEAST_ROWS))
        shares = start(self.init, rows, components, self.noise, self.seed)
        mixture, self.log_likelihoods_ = run(
            rows,
            shares,
            self._weights(),
            self._variance(rows.Z),
            tol=self.tol,
            steps=self.steps,
            progress=self.report_progress,
        )
        self.log_weights_, self.means_, self.variances_ = mixture.log_weights, mixture.means, mixture.variances
        self.labels_, self.predictions_ = mixture.labels, mixture.predictions
        scores = self._gap() if self.rank == "gap" else self._excess(evaluation)
        self.chosen_ = np.argsort(-scores, kind="stable")[: self.slices]
        self.rules_ = tuple(self._rule(evaluation, int(j)) for j in self.chosen_)

    def _check(self) -> None:
        limits: dict[str, tuple[bool, str]] = {
            "components": (self.components >= 1, "at least 1"),
            "slices": (self.slices >= 1, "at least 1"),
            "reduce": (self.reduce is None or self.reduce >= 1, "at least 1, or null to keep all columns"),
            "reduce_rows": (self.reduce_rows is None or self.reduce_rows >= 2, "at least 2, or null for all rows"),
            "label_weight": (0 <= self.label_weight < np.inf, "0 or more"),
            "prediction_weight": (0 <= self.prediction_weight < np.inf, "0 or more"),
            "noise": (0 <= self.noise < np.inf, "0 or more"),
            "tol": (self.tol >= 0, "0 or more"),
            "steps": (self.steps >= 1, "at least 1"),
            "regularisation": (0 < self.regularisation < np.inf, "positive"),
        }
        for option, (good, want) in limits.items():
            if not good:
                raise InputError(f"`domino.{option}` must be {want}; got {getattr(self, option)!r}")

    def _rows(self, evaluation: Evaluation) -> Rows:
        assert evaluation.labels is not None
        assert evaluation.probs is not None
        X = self.matrix(evaluation)
        self.centre_, self.axes_ = principal_axes(X, self.reduce, self.reduce_rows)
        Z = np.empty((len(X), self.axes_.shape[1]), dtype=np.float32 if X.dtype.itemsize <= 4 else np.float64)
        for where, block in blocks(X):
            Z[where] = (block - self.centre_) @ self.axes_
        return Rows(Z, evaluation.labels, np.maximum(evaluation.probs, 0))

    def _weights(self) -> Weights:
        return Weights(self.label_weight, self.prediction_weight, self.agreement)

    def _variance(self, Z: Array) -> Variance:
        moments = sum(with_squares(block).sum(axis=0) for _, block in blocks(Z)) / len(Z)
        mean, square = np.split(moments, 2)
        whole = np.maximum(square - mean**2, np.finfo(float).tiny ** 0.5)
        if self.regularise == "add":
            return Variance(whole, added=self.regularisation)
        return Variance(whole, floor=self.regularisation * whole)

    def _gap(self) -> Array:
        """(c,) |max_j (p^_sj - p_sj)|: how much more often some class is predicted than true."""
        gap: Array = np.abs((self.predictions_ - self.labels_).max(axis=1))
        return gap

    def _excess(self, evaluation: Evaluation) -> Array:
        """(c,) errors beyond the overall rate over the root of the size, by the posterior that new rows will get."""
        assert evaluation.errors is not None
        shares = self._posterior(evaluation)
        beyond = evaluation.errors - evaluation.errors.mean()
        excess: Array = (shares.T @ beyond) / np.sqrt(np.maximum(shares.sum(axis=0), 1.0))
        return excess

    def _rule(self, evaluation: Evaluation, component: int) -> dict[str, Any]:
        return {
            "kind": "component",
            "representation": self.representation_,
            "component": component,
            "labels": _profile(evaluation, self.labels_[component]),
            "predictions": _profile(evaluation, self.predictions_[component]),
        }

    def membership(self, evaluation: Evaluation) -> Array:
        return np.round(self._posterior(evaluation)[:, self.chosen_], DECIMALS)

    def _posterior(self, evaluation: Evaluation) -> Array:
        """(n, c) of all components."""
        X = self.matrix(evaluation)
        check_columns(X, len(self.centre_), "method `domino`")
        if self.posterior == "full":
            evaluation.need(frozenset({"labels", "probs"}), "method `domino` with `posterior=full`")
        mixture = Mixture(self.log_weights_, self.means_, self.variances_, self.labels_, self.predictions_)
        posterior = np.empty((len(X), len(self.log_weights_)))
        for where, block in blocks(X):
            density = mixture.embedding(with_squares((block - self.centre_) @ self.axes_))
            if self.posterior == "full":
                density += self._outcome(mixture, evaluation, where)
            posterior[where] = normalise(density)[0]
        return np.minimum(posterior, 1.0)

    def _outcome(self, mixture: Mixture, evaluation: Evaluation, where: slice) -> Array:
        assert evaluation.labels is not None
        assert evaluation.probs is not None
        probs = np.maximum(evaluation.probs[where].astype(np.float64), 0)
        return mixture.outcome(evaluation.labels[where], probs, self._weights())


def _profile(evaluation: Evaluation, shares: Array) -> dict[str, float]:
    """The likeliest classes by name, those that round to nothing left out."""
    likeliest = np.argsort(-shares, kind="stable")[:PROFILE]
    return {evaluation.class_name(int(j)): round(float(shares[j]), 3) for j in likeliest if shares[j] >= 5e-4}


def principal_axes(X: Matrix, keep: int | None, rows: int | None) -> tuple[Array, Array]:
    """(d,) the mean and (d, r) the principal axes, read in blocks; the first `rows` rows, or all.

    Directions without spread are left out: there a variance would be a rounding error.
    """
    few = X if rows is None else X[:rows]
    n, d = few.shape
    centre = sum((block.sum(axis=0, dtype=np.float64) for _, block in blocks(few)), np.zeros(d)) / n
    if keep is None:
        return centre, np.eye(d)
    scatter = np.zeros((d, d))
    for _, block in blocks(few):
        offset = block - centre
        scatter += offset.T @ offset
    values, axes = eigh(scatter, subset_by_index=(d - min(keep, d), d - 1))
    wide = values > FLAT * max(values[-1], 0)
    wide[-1] = True
    return centre, np.ascontiguousarray(axes[:, wide][:, ::-1])


# --- where EM starts: (n, c) responsibilities -----------------------------------------------------------------


def start(kind: Start, rows: Rows, components: int, noise: float, seed: int) -> Array:
    rng = np.random.default_rng(seed)
    if kind == "random":
        return rng.dirichlet(np.ones(components), len(rows.Z))
    if kind == "kmeans":
        return _one_hot(_kmeans(rows.Z, components, seed), components)
    return confusion_start(rows, components, noise, rng)


def confusion_start(rows: Rows, components: int, noise: float, rng: np.random.Generator) -> Array:
    """Label times prediction, the cells tiled over the components, with noise to tell the copies apart.

    Where there are more cells than components, those that occur are used, the largest first.
    """
    k = rows.probs.shape[1]
    if components >= k * k:
        cells = np.arange(components) % (k * k)
    else:
        mass = np.zeros((k, k))
        np.add.at(mass, rows.labels, rows.probs)
        order = np.argsort(-mass.ravel(), kind="stable")
        occurring = order[: max(1, np.count_nonzero(mass))]
        cells = np.resize(occurring, components)
    true, predicted = np.divmod(cells, k)
    cellwise = _to_one((rows.labels[:, None] == true) * rows.probs[:, predicted])
    return _to_one(cellwise + noise * rng.random(cellwise.shape))


def _to_one(shares: Array) -> Array:
    """Rows that sum to one; even where a row lies in none of the cells."""
    totals = shares.sum(axis=1, keepdims=True)
    even = np.full(shares.shape, 1 / shares.shape[1])
    normal: Array = np.divide(shares, totals, out=even, where=totals > 0)
    return normal


def _kmeans(Z: Array, clusters: int, seed: int) -> Array:
    """(n,) cluster of each row, from the centres of some."""
    clusters = min(clusters, max(1, len(Z) // LEAST_ROWS))
    some = Z[:: max(1, len(Z) // KMEANS_ROWS)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters is no harm here
        found = KMeans(clusters, n_init=1, max_iter=30, random_state=seed).fit(some)
    assigned: Array = found.predict(Z)
    return assigned


def _one_hot(cluster: Array, components: int) -> Array:
    hot: Array = (cluster[:, None] == np.arange(components)).astype(np.float64)
    return hot
