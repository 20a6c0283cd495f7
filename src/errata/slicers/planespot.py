"""`planespot`: a mixture on a plane of the representation with the model's confidence as a further axis.

Plumb, Johnson, Cabrera and Talwalkar, "Evaluating Systemic Error Detection Methods using Synthetic Images", 2022.
The representation is reduced to two axes, each scaled to [0, 1]; `weight` times the probability of the positive
class stands beside them; a Gaussian mixture with the lowest BIC cuts this space into groups, which are ranked by
n (mean error)^2, where the error of a row is 1 - p(true class).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np

from ..core import Array, Evaluation, InputError, State
from ..core.blocks import blocks
from ..core.soften import class_probs
from ..engine import Engine
from .contract import BaseSlicer, check_columns
from .expectation import EmOptions, fit_gaussians, parameter_count
from .numerics import DIGITS, LEAST_ROWS, Gaussians, likeliest, principal_components
from .options import AT_LEAST_ONE, NOT_NEGATIVE, Interval

TSNE_INPUT = 50  # principal components that t-SNE and its neighbours read
TSNE_ROWS = 5000  # more are put between their neighbours, which keeps the cost linear
TSNE_PERPLEXITY = 30.0
NEIGHBOURS = 5


@runtime_checkable
class Reducer(Protocol):
    """Anything like a scikit-learn transformer: (n, d) in, (n, axes) out."""

    def fit(self, X: Any) -> Any:
        """Learn from rows."""

    def transform(self, X: Any) -> Any:
        """Reduce rows."""


@dataclass(frozen=True)
class PlanespotAdvanced:
    """Options of `planespot` that are rarely set.

    Parameters
    ----------
    scaling
        Of each axis to [0, 1] by `minmax`; `published` divides by the raw maximum.
    covariance
        Of a component: `full` or `diag`.
    min_components
        Fewest components that are tried.
    max_components
        Most components that are tried.
    stride
        Step between the numbers of components that are tried.
    """

    scaling: Literal["minmax", "published"] = "minmax"
    covariance: Literal["full", "diag"] = "diag"
    min_components: int = 10
    max_components: int = 32
    stride: int = 2


class Planespot(BaseSlicer):
    """Groups of a Gaussian mixture on a plane of the representation beside the model's confidence.

    Hard predictions are enough: without `probs` the predicted class counts as .9, and .1 is spread over the others.

    Parameters
    ----------
    reducer
        `pca`; `tsne`, with new rows put between their neighbours; or an object with `fit` and `transform`.
    axes
        Axes that the reducer gives.
    weight
        Of the probability (of class 1; of the predicted class where there are more than two) beside the axes.
    slices
        Slices to return at most.
    hard
        Give each row to its likeliest group instead of weighing it by the posterior.
    advanced
        Options that are rarely set.
    representation
        The representation that is searched. Default: the first.
    seed
        Of the reduction and of the mixture.
    """

    name = "planespot"
    needs = frozenset({"representations", "labels", "predictions"})
    reads_probs = True
    presets: ClassVar = {
        "recommended": {},
        "as_published": {
            "axes": 2,
            "hard": True,
            "advanced": {"scaling": "published", "covariance": "full", "stride": 1},
        },
    }
    limits: ClassVar = {
        "axes": AT_LEAST_ONE,
        "weight": NOT_NEGATIVE,
        "slices": AT_LEAST_ONE,
        "min_components": AT_LEAST_ONE,
        "max_components": Interval("min_components"),
        "stride": AT_LEAST_ONE,
    }
    advanced_type: ClassVar = PlanespotAdvanced
    renamed: ClassVar = {
        "dims": "axes",
        "count": "slices",
        "least": "advanced.min_components",
        "most": "advanced.max_components",
    }
    fitted_arrays: ClassVar[tuple[str, ...]] = (
        "centre_",
        "axes_",
        "anchors_",
        "places_",
        "low_",
        "width_",
        "log_weights_",
        "means_",
        "precisions_",
        "kept_",
        "classes_",
    )

    centre_: Array  # (d,)
    axes_: Array  # (d, r)
    anchors_: Array  # (a, r) rows that t-SNE placed; none where the axes are the plane
    places_: Array  # (a, axes) where it placed them
    low_: Array  # (axes,)
    width_: Array  # (axes,)
    log_weights_: Array  # (components,)
    means_: Array  # (components, axes + 1)
    precisions_: Array  # Cholesky factors: (components, axes + 1, axes + 1), or (components, axes + 1) for "diag"
    reducer_: Reducer  # only where it is the user's own
    kept_: Array  # (s,) components, the most important first
    classes_: Array = np.array(0)  # () how many, which hard predictions of few rows do not show; 0: as these rows show

    def __init__(
        self,
        reducer: Literal["pca", "tsne"] | Reducer = "pca",
        axes: int = 16,
        weight: float = 0.025,
        slices: int = 10,
        hard: bool = False,
        advanced: Mapping[str, Any] | None = None,
        representation: str | None = None,
        seed: int = 0,
    ):
        self.reducer = reducer
        self.axes = axes
        self.weight = weight
        self.slices = slices
        self.hard = hard
        self.advanced = advanced
        self.representation = representation
        self.seed = seed

    @property
    def reads(self) -> frozenset[str]:
        """The prediction: its probability is an axis."""
        return frozenset({"prediction"})

    @property
    def _rare(self) -> PlanespotAdvanced:
        return PlanespotAdvanced(**(self.advanced or {}))

    def _fit(self, evaluation: Evaluation, train: Evaluation | None) -> None:
        assert evaluation.labels is not None
        probs = class_probs(evaluation, "method `planespot`")
        self.classes_ = np.array(probs.shape[1])
        X = np.asarray(self.matrix(evaluation), dtype=np.float64)
        self._fit_axes(X)
        self._fit_places((X - self.centre_) @ self.axes_)
        plane = self._plane(X)
        self.low_ = plane.min(axis=0)
        self.width_ = _widths(plane, self._rare.scaling)
        features = self._features(evaluation)
        mixture = lowest_bic(features, self._numbers(len(X)), self._rare.covariance, self.seed, self.engine)
        self.log_weights_ = mixture.log_weights
        self.means_ = mixture.means
        self.precisions_ = mixture.factors
        errors = 1 - probs[np.arange(len(X)), evaluation.labels]
        self.kept_ = np.argsort(-scores(self._weights(features), errors), kind="stable")[: self.slices]
        self.rules_ = tuple(
            {"kind": "component", "representation": self.representation_, "component": int(j)} for j in self.kept_
        )

    def _numbers(self, n: int) -> list[int]:
        """Numbers of components to try; one where rows are few."""
        few = max(1, n // LEAST_ROWS)
        numbers = range(self._rare.min_components, self._rare.max_components + 1, self._rare.stride)
        return [j for j in numbers if j <= few] or [few]

    # --- the plane -------------------------------------------------------------------------------------------

    def _fit_axes(self, X: Array) -> None:
        """Principal axes: the plane itself, or what t-SNE reads. An object of the user's has its own."""
        self.centre_ = X.mean(axis=0)
        if not isinstance(self.reducer, str):
            self.axes_ = np.empty((X.shape[1], 0))
            self.reducer_ = deepcopy(self.reducer)  # the user's own, or another slicer's, stays as it is
            self.reducer_.fit(X)
            return
        axes = TSNE_INPUT if self.reducer == "tsne" else self.axes
        self.axes_ = principal_components(X, axes, self.seed).components_.T

    def _fit_places(self, reduced: Array) -> None:
        """Where t-SNE puts some of the rows; the others, and new ones, go between their neighbours."""
        from sklearn.manifold import TSNE

        self.anchors_ = np.empty((0, reduced.shape[1]))
        self.places_ = np.empty((0, self.axes))
        if self.reducer != "tsne":
            return
        rng = np.random.default_rng(self.seed)
        rows = np.sort(rng.permutation(len(reduced))[:TSNE_ROWS])
        # Rows that are equal, as all may be, would make its distances 0/0.
        spread = 1e-9 * max(float(reduced.std()), 1e-3)
        self.anchors_ = reduced[rows] + spread * rng.normal(size=(len(rows), reduced.shape[1]))
        perplexity = min(TSNE_PERPLEXITY, max(1.0, (len(rows) - 1) / 3))
        method = "barnes_hut" if self.axes < 4 else "exact"
        tsne = TSNE(self.axes, perplexity=perplexity, init="random", random_state=self.seed, method=method)
        self.places_ = tsne.fit_transform(self.anchors_).astype(np.float64)

    def _plane(self, X: Any) -> Array:
        """(n, axes) unscaled positions."""
        check_columns(X, len(self.centre_), "method `planespot`")
        if not isinstance(self.reducer, str):
            return np.concatenate([np.asarray(self.reducer_.transform(block), dtype=float) for _, block in blocks(X)])
        reduced = np.concatenate([(block - self.centre_) @ self.axes_ for _, block in blocks(X)])
        if self.reducer == "pca":
            return reduced
        return between(self.anchors_, self.places_, reduced)

    def _features(self, evaluation: Evaluation) -> Array:
        """(n, axes + 1) scaled plane and weighted probability."""
        plane = self._plane(self.matrix(evaluation))
        probs = class_probs(evaluation, "method `planespot`", int(self.classes_))
        p = probs[:, 1] if probs.shape[1] == 2 else probs.max(axis=1)
        return np.column_stack([(plane - self.low_) / self.width_, self.weight * p])

    # --- the groups ------------------------------------------------------------------------------------------

    def membership(self, evaluation: Evaluation) -> Array:
        """(n, s) posteriors of the groups, or 1 for the likeliest."""
        return self._weights(self._features(evaluation))[:, self.kept_]

    def _weights(self, features: Array) -> Array:
        """(n, components) posteriors, or 1 for the likeliest."""
        posterior = Gaussians(self.log_weights_, self.means_, self.precisions_).posterior(features)
        return likeliest(posterior) if self.hard else np.round(posterior, DIGITS)

    def to_state(self) -> State:
        """What is saved; refused for a reducer of the user's own, which cannot be."""
        if not isinstance(self.reducer, str):
            raise InputError("`planespot` with a reducer of your own cannot be saved; name `pca` or `tsne` instead")
        return super().to_state()


def _widths(plane: Array, scaling: str) -> Array:
    """(axes,) what each axis is divided by once its minimum is subtracted; an axis without width stays."""
    width = plane.max(axis=0)
    if scaling == "minmax":
        width = width - plane.min(axis=0)
    return np.where(width == 0, 1.0, width)


def lowest_bic(
    features: Array, numbers: Iterable[int], covariance: Literal["full", "diag"], seed: int, engine: Engine
) -> Gaussians:
    """The mixture with the lowest BIC; the fewest components among equals."""
    n, columns = features.shape
    options = EmOptions(covariance, seed=seed)
    tried = []
    for components in numbers:
        mixture, likelihood = fit_gaussians(features, components, options, engine)
        bic = parameter_count(components, columns, covariance) * np.log(n) - 2 * n * likelihood
        tried.append((bic, mixture))
    return min(tried, key=lambda pair: pair[0])[1]


def scores(weights: Array, errors: Array) -> Array:
    """(components,) n (mean error)^2, with n the sum of weights."""
    sizes = weights.sum(axis=0)
    score: Array = (errors @ weights) ** 2 / np.maximum(sizes, 1e-12)
    return score


def between(anchors: Array, places: Array, rows: Array) -> Array:
    """(n, axes) means of the nearest anchors' places, the nearer the heavier; an anchor's own place on an anchor."""
    from sklearn.neighbors import NearestNeighbors

    nearest = NearestNeighbors(n_neighbors=min(NEIGHBOURS, len(anchors))).fit(anchors)
    distances, index = nearest.kneighbors(rows)
    # Relative to the nearest, so that a row on an anchor is not divided by zero.
    closeness = 1 / np.maximum(distances, 1e-6 * np.maximum(distances[:, -1:], 1e-12))
    closeness /= closeness.sum(axis=1, keepdims=True)
    return np.asarray((closeness[:, :, None] * places[index]).sum(axis=1))
