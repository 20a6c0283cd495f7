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

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from ...core import Array, Evaluation
from ...core.blocks import blocks
from ...core.soften import class_probs
from ..contract import BaseSlicer, check_columns
from ..numerics import LEAST_ROWS, principal_axes, unconverged
from ..options import AT_LEAST_ONE, NOT_NEGATIVE, POSITIVE, Interval
from .mixture import (
    AgreementTerm,
    DominoMixture,
    MixtureRows,
    Variance,
    Weights,
    expect_in,
    normalise,
    run,
    with_squares,
)

Start = Literal["kmeans", "confusion", "random"]

KMEANS_ROWS = 10_000  # enough to place centres; all rows are then assigned to them
PROFILE = 10  # classes named in a rule
DECIMALS = 10  # of a weight: what lies below depends on where in a block of rows a row stood


@dataclass(frozen=True)
class DominoAdvanced:
    """Options of `domino` that are rarely set.

    Parameters
    ----------
    axes_rows
        Rows, the first ones, that the principal axes are computed from; null for all.
    agreement
        Of a soft prediction with a component's: `cross-entropy`, or the log of their `inner` product.
    init
        Where EM starts: from `kmeans`, the `confusion` matrix, or at `random`.
    noise
        Added to the start from the confusion matrix, to tell copies of a cell apart.
    rank
        Order components by their `excess` errors, or by the `gap` between predicted and true class.
    posterior
        Of new rows: from the `embedding` alone, or `full`, from embedding, label and prediction.
    tolerance
        Gain in mean log-likelihood below which EM stops.
    steps
        Steps of EM at most.
    regularise
        Variances are at least a `floor`, in shares of each column's own, or get something to `add`.
    regularisation
        That floor, or what is added.
    """

    axes_rows: int | None = None
    agreement: AgreementTerm = "cross-entropy"
    init: Start = "kmeans"
    noise: float = 1e-3
    rank: Literal["excess", "gap"] = "excess"
    posterior: Literal["embedding", "full"] = "embedding"
    tolerance: float = 1e-3
    steps: int = 100
    regularise: Literal["floor", "add"] = "floor"
    regularisation: float = 1e-3


class Domino(BaseSlicer):
    """Components of a mixture over embedding, label and prediction, the most erroneous first.

    Hard predictions are enough: without `probs` the predicted class counts as .9, and .1 is spread over the others.

    Parameters
    ----------
    components
        Components of the mixture.
    slices
        Components to return as slices at most.
    axes
        Principal axes that the representation is reduced to; null for all columns as they are.
    label_weight
        How much the label counts beside the embedding.
    prediction_weight
        How much the prediction counts beside the embedding.
    advanced
        Options that are rarely set.
    representation
        The representation that is searched. Default: the first.
    seed
        Of the start of EM.
    """

    name = "domino"
    needs = frozenset({"representations", "labels", "predictions"})
    reads_probs = True
    presets: ClassVar = {
        "recommended": {},
        "as_published": {
            "slices": 5,
            "label_weight": 10.0,
            "prediction_weight": 10.0,
            "advanced": {
                "agreement": "inner",
                "init": "confusion",
                "rank": "gap",
                "posterior": "full",
                "regularise": "add",
                "regularisation": 1e-6,
            },
        },
    }
    limits: ClassVar = {
        "components": AT_LEAST_ONE,
        "slices": AT_LEAST_ONE,
        "axes": AT_LEAST_ONE,
        "label_weight": NOT_NEGATIVE,
        "prediction_weight": NOT_NEGATIVE,
        "axes_rows": Interval(2),
        "noise": NOT_NEGATIVE,
        "tolerance": NOT_NEGATIVE,
        "steps": AT_LEAST_ONE,
        "regularisation": POSITIVE,
    }
    advanced_type: ClassVar = DominoAdvanced
    renamed: ClassVar = {"reduce": "axes", "reduce_rows": "advanced.axes_rows", "tol": "advanced.tolerance"}
    fitted_arrays: ClassVar[tuple[str, ...]] = (
        "centre_",
        "axes_",
        "log_weights_",
        "means_",
        "variances_",
        "labels_",
        "predictions_",
        "chosen_",
    )

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
        axes: int | None = 128,
        label_weight: float = 1.0,
        prediction_weight: float = 1.0,
        advanced: Mapping[str, Any] | None = None,
        representation: str | None = None,
        seed: int = 0,
    ):
        self.components = components
        self.slices = slices
        self.axes = axes
        self.label_weight = label_weight
        self.prediction_weight = prediction_weight
        self.advanced = advanced
        self.representation = representation
        self.seed = seed

    @property
    def reads(self) -> frozenset[str]:
        """Label and prediction, where the posterior of new rows is the full one."""
        if self._rare.posterior == "full":
            return frozenset({"label", "prediction"})
        return frozenset()

    @property
    def _rare(self) -> DominoAdvanced:
        return DominoAdvanced(**(self.advanced or {}))

    def _fit(self, evaluation: Evaluation, train: Evaluation | None) -> None:
        rare = self._rare
        rows = self._rows(evaluation)
        components = max(1, min(self.components, len(rows.Z) // LEAST_ROWS))
        shares = start(rare.init, rows, components, rare.noise, self.seed)
        with self.engine.hold(rows.Z, rows.labels, rows.probs) as held:
            mixture, self.log_likelihoods_ = run(
                rows,
                shares,
                self._weights(),
                self._variance(rows.Z),
                tolerance=rare.tolerance,
                steps=rare.steps,
                progress=self.report_progress,
                expectation=expect_in(held),
            )
        self.log_weights_ = mixture.log_weights
        self.means_ = mixture.means
        self.variances_ = mixture.variances
        self.labels_ = mixture.labels
        self.predictions_ = mixture.predictions
        scores = self._gap() if rare.rank == "gap" else self._excess(evaluation)
        self.chosen_ = np.argsort(-scores, kind="stable")[: self.slices]
        self.rules_ = tuple(self._rule(evaluation, int(j)) for j in self.chosen_)

    def _rows(self, evaluation: Evaluation) -> MixtureRows:
        assert evaluation.labels is not None
        probs = class_probs(evaluation, "method `domino`")
        X = self.matrix(evaluation)
        self.centre_, self.axes_ = principal_axes(X, self.axes, self._rare.axes_rows, self.engine)
        precision = np.float32 if X.dtype.itemsize <= 4 else np.float64
        Z = np.empty((len(X), self.axes_.shape[1]), dtype=precision)
        for where, block in blocks(X):
            Z[where] = (block - self.centre_) @ self.axes_
        return MixtureRows(Z, evaluation.labels, np.maximum(probs, 0))

    def _weights(self) -> Weights:
        return Weights(self.label_weight, self.prediction_weight, self._rare.agreement)

    def _variance(self, Z: Array) -> Variance:
        moments = sum(with_squares(block).sum(axis=0) for _, block in blocks(Z)) / len(Z)
        mean, square = np.split(moments, 2)
        whole = np.maximum(square - mean**2, np.finfo(float).tiny ** 0.5)
        rare = self._rare
        if rare.regularise == "add":
            return Variance(whole, added=rare.regularisation)
        return Variance(whole, floor=rare.regularisation * whole)

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
        """(n, s) posteriors of the components that are slices."""
        return np.round(self._posterior(evaluation)[:, self.chosen_], DECIMALS)

    def _posterior(self, evaluation: Evaluation) -> Array:
        """(n, c) of all components."""
        X = self.matrix(evaluation)
        check_columns(X, len(self.centre_), "method `domino`")
        full = self._rare.posterior == "full"
        if full:
            evaluation.need(frozenset({"labels", "predictions"}), "method `domino` with `posterior=full`")
            probs = class_probs(evaluation, "method `domino` with `posterior=full`", self.labels_.shape[1])
        mixture = DominoMixture(self.log_weights_, self.means_, self.variances_, self.labels_, self.predictions_)
        posterior = np.empty((len(X), len(self.log_weights_)))
        for where, block in blocks(X):
            density = mixture.embedding(with_squares((block - self.centre_) @ self.axes_))
            if full:
                density += self._outcome(mixture, evaluation, where, probs[where])
            posterior[where] = normalise(density)[0]
        return np.minimum(posterior, 1.0)

    def _outcome(self, mixture: DominoMixture, evaluation: Evaluation, where: slice, probs: Array) -> Array:
        assert evaluation.labels is not None
        return mixture.outcome(evaluation.labels[where], np.maximum(probs.astype(np.float64), 0), self._weights())


def _profile(evaluation: Evaluation, shares: Array) -> dict[str, float]:
    """The likeliest classes by name, those that round to nothing left out."""
    likeliest = np.argsort(-shares, kind="stable")[:PROFILE]
    return {evaluation.class_name(int(j)): round(float(shares[j]), 3) for j in likeliest if shares[j] >= 5e-4}


# --- where EM starts: (n, c) responsibilities -----------------------------------------------------------------


def start(kind: Start, rows: MixtureRows, components: int, noise: float, seed: int) -> Array:
    """(n, c) responsibilities that EM starts from."""
    rng = np.random.default_rng(seed)
    if kind == "random":
        return rng.dirichlet(np.ones(components), len(rows.Z))
    if kind == "kmeans":
        cluster = _kmeans(rows.Z, components, seed)
        return np.asarray(cluster[:, None] == np.arange(components), dtype=np.float64)
    return confusion_start(rows, components, noise, rng)


def confusion_start(rows: MixtureRows, components: int, noise: float, rng: np.random.Generator) -> Array:
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
    from sklearn.cluster import KMeans

    clusters = min(clusters, max(1, len(Z) // LEAST_ROWS))
    some = Z[:: max(1, len(Z) // KMEANS_ROWS)]
    with unconverged():
        means = KMeans(clusters, n_init=1, max_iter=30, random_state=seed).fit(some)
    assigned: Array = means.predict(Z)
    return assigned
