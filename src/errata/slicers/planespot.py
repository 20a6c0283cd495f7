"""`planespot`: a mixture on a plane of the representation with the model's confidence as a further axis.

Plumb, Johnson, Cabrera and Talwalkar, "Evaluating Systemic Error Detection Methods using Synthetic Images", 2022.
The representation is reduced to two axes, each scaled to [0, 1]; `weight` times the probability of the positive
class stands beside them; a Gaussian mixture with the lowest BIC cuts this space into groups, which are ranked by
n (mean error)^2, where the error of a row is 1 - p(true class).
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from copy import deepcopy
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.manifold import TSNE
from sklearn.mixture import GaussianMixture
from sklearn.neighbors import NearestNeighbors

from ..core import Array, Evaluation, InputError, State
from ..core.blocks import blocks
from .contract import BaseSlicer, check_columns
from .gaussians import Gaussians, likeliest

LEAST_ROWS = 4  # per component: a mixture of single rows is not one
TSNE_INPUT = 50  # principal components that t-SNE and its neighbours read
TSNE_ROWS = 5000  # more are placed by their neighbours, which keeps the cost linear
TSNE_PERPLEXITY = 30.0
NEIGHBOURS = 5
DIGITS = 9  # the last bits of a product depend on which rows stand in one block; sets must not


@runtime_checkable
class Reducer(Protocol):
    """Anything like a scikit-learn transformer: (n, d) in, (n, dims) out."""

    def fit(self, X: Any) -> Any: ...

    def transform(self, X: Any) -> Any: ...


class Planespot(BaseSlicer):
    """Groups of a Gaussian mixture on a plane of the representation beside the model's confidence.

    reducer: "pca"; "tsne", with new rows placed by their neighbours; or an object with `fit` and `transform`.
    dims: how many axes it gives. scaling: "minmax", or "published", which divides by the raw maximum.
    weight: of the probability (of class 1; of the predicted class where there are more than two).
    covariance, least, most, stride: shape and numbers of components tried. hard: one group a row instead of the
    posterior. count: slices kept.
    """

    name = "planespot"
    needs = frozenset({"representations", "labels", "probs"})
    reads = frozenset({"prediction"})
    presets: ClassVar = {
        "recommended": {},
        "as_published": {"dims": 2, "scaling": "published", "covariance": "full", "stride": 1, "hard": True},
    }
    learnt: ClassVar[tuple[str, ...]] = (
        "centre_", "axes_", "anchors_", "places_", "low_", "width_", "log_weights_", "means_", "precisions_", "kept_",
    )  # fmt: skip

    centre_: Array  # (d,)
    axes_: Array  # (d, r)
    anchors_: Array  # (a, r) rows that t-SNE placed; none where the axes are the plane
    places_: Array  # (a, dims)
    low_: Array  # (dims,)
    width_: Array  # (dims,)
    log_weights_: Array  # (components,)
    means_: Array  # (components, dims + 1)
    precisions_: Array  # Cholesky factors: (components, dims + 1, dims + 1), or (components, dims + 1) for "diag"
    reducer_: Reducer  # only where it is the user's own
    kept_: Array  # (s,) components, the most important first

    def __init__(
        self,
        reducer: Literal["pca", "tsne"] | Reducer = "pca",
        dims: int = 16,
        scaling: Literal["minmax", "published"] = "minmax",
        weight: float = 0.025,
        covariance: Literal["full", "diag"] = "diag",
        least: int = 10,
        most: int = 32,
        stride: int = 2,
        hard: bool = False,
        count: int = 10,
        representation: str | None = None,
        seed: int = 0,
    ):
        self.reducer, self.dims, self.scaling, self.weight = reducer, dims, scaling, weight
        self.covariance, self.least, self.most, self.stride = covariance, least, most, stride
        self.hard, self.count, self.representation, self.seed = hard, count, representation, seed

    def _check(self) -> None:
        limits = {
            "dims": (self.dims >= 1, "at least 1"),
            "weight": (self.weight >= 0, "at least 0"),
            "least": (self.least >= 1, "at least 1"),
            "most": (self.most >= self.least, "at least `least`"),
            "stride": (self.stride >= 1, "at least 1"),
            "count": (self.count >= 1, "at least 1"),
        }
        for option, (good, want) in limits.items():
            if not good:
                raise InputError(f"`planespot.{option}` must be {want}; got {getattr(self, option)!r}")

    def _fit(self, evaluation: Evaluation, train: Evaluation | None) -> None:
        self._check()
        assert evaluation.probs is not None
        assert evaluation.labels is not None
        X = np.asarray(self.matrix(evaluation), dtype=np.float64)
        self._fit_axes(X)
        self._fit_places((X - self.centre_) @ self.axes_)
        plane = self._plane(X)
        self.low_, self.width_ = plane.min(axis=0), _widths(plane, self.scaling)
        features = self._features(evaluation)
        mixture = lowest_bic(features, self._numbers(len(X)), self.covariance, self.seed)
        self.log_weights_, self.means_ = np.log(mixture.weights_), mixture.means_
        self.precisions_ = mixture.precisions_cholesky_
        errors = 1 - evaluation.probs[np.arange(len(X)), evaluation.labels]
        self.kept_ = np.argsort(-scores(self._weights(features), errors), kind="stable")[: self.count]
        self.rules_ = tuple(
            {"kind": "component", "representation": self.representation_, "component": int(j)} for j in self.kept_
        )

    def _numbers(self, n: int) -> list[int]:
        """Numbers of components to try; one where rows are few."""
        few = max(1, n // LEAST_ROWS)
        return [j for j in range(self.least, self.most + 1, self.stride) if j <= few] or [few]

    # --- the plane -------------------------------------------------------------------------------------------

    def _fit_axes(self, X: Array) -> None:
        """Principal axes: the plane itself, or what t-SNE reads. An object of the user's has its own."""
        n, d = X.shape
        self.centre_ = X.mean(axis=0)
        if not isinstance(self.reducer, str):
            self.axes_ = np.empty((d, 0))
            self.reducer_ = deepcopy(self.reducer)  # the user's own, or another slicer's, stays as it is
            self.reducer_.fit(X)
            return
        keep = min(TSNE_INPUT if self.reducer == "tsne" else self.dims, d, n)
        solver = "randomized" if keep < min(n, d) / 2 else "full"
        with np.errstate(invalid="ignore"):  # rows that are all equal have no variance to explain
            self.axes_ = PCA(keep, svd_solver=solver, random_state=self.seed).fit(X).components_.T

    def _fit_places(self, reduced: Array) -> None:
        """Where t-SNE puts some of the rows; the others, and new ones, go between their neighbours."""
        self.anchors_, self.places_ = np.empty((0, reduced.shape[1])), np.empty((0, self.dims))
        if self.reducer != "tsne":
            return
        rng = np.random.default_rng(self.seed)
        rows = np.sort(rng.permutation(len(reduced))[:TSNE_ROWS])
        # Rows that are equal, as all may be, would make its distances 0/0.
        spread = 1e-9 * max(float(reduced.std()), 1e-3)
        self.anchors_ = reduced[rows] + spread * rng.normal(size=(len(rows), reduced.shape[1]))
        perplexity = min(TSNE_PERPLEXITY, max(1.0, (len(rows) - 1) / 3))
        method = "barnes_hut" if self.dims < 4 else "exact"
        tsne = TSNE(self.dims, perplexity=perplexity, init="random", random_state=self.seed, method=method)
        self.places_ = tsne.fit_transform(self.anchors_).astype(np.float64)

    def _plane(self, X: Any) -> Array:
        """(n, dims) unscaled places."""
        check_columns(X, len(self.centre_), "method `planespot`")
        if not isinstance(self.reducer, str):
            return np.concatenate([np.asarray(self.reducer_.transform(block), dtype=float) for _, block in blocks(X)])
        reduced = np.concatenate([(block - self.centre_) @ self.axes_ for _, block in blocks(X)])
        return reduced if self.reducer == "pca" else between(self.anchors_, self.places_, reduced)

    def _features(self, evaluation: Evaluation) -> Array:
        """(n, dims + 1) scaled plane and weighted probability."""
        plane = self._plane(self.matrix(evaluation))
        evaluation.need(frozenset({"probs"}), "method `planespot`")
        assert evaluation.probs is not None
        probs = evaluation.probs
        p = probs[:, 1] if probs.shape[1] == 2 else probs.max(axis=1)
        return np.column_stack([(plane - self.low_) / self.width_, self.weight * p])

    # --- the groups ------------------------------------------------------------------------------------------

    def membership(self, evaluation: Evaluation) -> Array:
        return self._weights(self._features(evaluation))[:, self.kept_]

    def _weights(self, features: Array) -> Array:
        """(n, components) posteriors, or 1 for the likeliest."""
        posterior = Gaussians(self.log_weights_, self.means_, self.precisions_).posterior(features)
        return likeliest(posterior) if self.hard else np.round(posterior, DIGITS)

    def to_state(self) -> State:
        if not isinstance(self.reducer, str):
            raise InputError("`planespot` with a reducer of your own cannot be saved; name `pca` or `tsne` instead")
        return super().to_state()


def _widths(plane: Array, scaling: str) -> Array:
    """(dims,) what each axis is divided by once its minimum is subtracted; an axis without width stays."""
    width = plane.max(axis=0) - (0.0 if scaling == "published" else plane.min(axis=0))
    return np.where(width == 0, 1.0, width)


def lowest_bic(features: Array, numbers: Iterable[int], covariance: str, seed: int) -> Any:
    """The mixture with the lowest BIC; the fewest components among equals."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than components is no harm here
        mixtures = [GaussianMixture(j, covariance_type=covariance, random_state=seed).fit(features) for j in numbers]
        return min(mixtures, key=lambda mixture: mixture.bic(features))


def scores(weights: Array, errors: Array) -> Array:
    """(components,) n (mean error)^2, with n the sum of weights."""
    sizes = weights.sum(axis=0)
    score: Array = (errors @ weights) ** 2 / np.maximum(sizes, 1e-12)
    return score


def between(anchors: Array, places: Array, rows: Array) -> Array:
    """(n, dims) means of the nearest anchors' places, the nearer the heavier; an anchor's own place on an anchor."""
    nearest = NearestNeighbors(n_neighbors=min(NEIGHBOURS, len(anchors))).fit(anchors)
    distances, index = nearest.kneighbors(rows)
    # Relative to the nearest, so that a row on an anchor is not divided by zero.
    closeness = 1 / np.maximum(distances, 1e-6 * np.maximum(distances[:, -1:], 1e-12))
    closeness /= closeness.sum(axis=1, keepdims=True)
    return np.asarray((closeness[:, :, None] * places[index]).sum(axis=1))
