"""`gmm`: clusters of a Gaussian mixture, worst first. The baseline of the Spotlight paper's figure 5."""

from __future__ import annotations

import warnings
from typing import ClassVar

import numpy as np
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from ..core import Array, Evaluation, InputError
from ..core.blocks import blocks
from .contract import BaseSlicer, check_columns
from .gaussians import Gaussians, likeliest

LEAST_ROWS = 4  # per component: a mixture of single rows is not one


class Gmm(BaseSlicer):
    """The components of a mixture fitted to the representation, ordered by mean loss.

    `as_published` fits 50 components with full covariances to the representation as it is and assigns
    each row to one. `recommended` first reduces to `reduce` principal components, since a full
    covariance in hundreds of dimensions has more parameters than most audits have rows, and keeps
    the posterior as a weight.
    """

    name = "gmm"
    needs = frozenset({"representations", "losses"})
    presets: ClassVar = {
        "recommended": {},
        "as_published": {"components": 50, "reduce": None, "hard": True},
    }
    learnt: ClassVar[tuple[str, ...]] = ("centre_", "axes_", "log_weights_", "means_", "precisions_")

    centre_: Array  # (d,)
    axes_: Array  # (d, r)
    log_weights_: Array  # (s,)
    means_: Array  # (s, r)
    precisions_: Array  # (s, r, r) Cholesky factors

    def __init__(
        self,
        components: int = 20,
        reduce: int | None = 16,
        hard: bool = False,
        representation: str | None = None,
        seed: int = 0,
    ):
        self.components, self.reduce, self.hard = components, reduce, hard
        self.representation, self.seed = representation, seed

    def _fit(self, evaluation: Evaluation, train: Evaluation | None) -> None:
        if self.components < 1:
            raise InputError(f"`gmm.components` must be at least 1; got {self.components}")
        if self.reduce is not None and self.reduce < 1:
            raise InputError(f"`gmm.reduce` must be at least 1, or null to keep all columns; got {self.reduce}")
        X = np.asarray(self.matrix(evaluation), dtype=np.float64)
        self._fit_axes(X)
        reduced = (X - self.centre_) @ self.axes_
        components = max(1, min(self.components, len(X) // LEAST_ROWS))
        mixture = GaussianMixture(components, random_state=self.seed, reg_covar=1e-6 * max(1e-12, reduced.var()))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a cluster that still drifts is a cluster
            clusters = mixture.fit_predict(reduced)
        assert evaluation.losses is not None
        sizes = np.bincount(clusters, minlength=components)
        sums = np.bincount(clusters, weights=evaluation.losses, minlength=components)
        losses = np.where(sizes > 0, sums / np.maximum(sizes, 1), -np.inf)
        order = np.argsort(-losses, kind="stable")
        self.log_weights_ = np.log(mixture.weights_[order])
        self.means_, self.precisions_ = mixture.means_[order], mixture.precisions_cholesky_[order]
        self.rules_ = tuple(
            {"kind": "component", "representation": self.representation_, "component": j} for j in range(components)
        )

    def _fit_axes(self, X: Array) -> None:
        """Principal axes, or all of the columns."""
        n, d = X.shape
        self.centre_ = X.mean(axis=0)
        keep = d if self.reduce is None else min(self.reduce, d, n)
        if keep == d:
            self.axes_ = np.eye(d)
        else:
            self.axes_ = PCA(keep, svd_solver="randomized", random_state=self.seed).fit(X).components_.T

    def membership(self, evaluation: Evaluation) -> Array:
        X = self.matrix(evaluation)
        check_columns(X, len(self.centre_), "method `gmm`")
        mixture = Gaussians(self.log_weights_, self.means_, self.precisions_)
        posterior = np.empty((len(X), len(self.means_)))
        for rows, block in blocks(X):
            posterior[rows] = mixture.posterior((block - self.centre_) @ self.axes_)
        return likeliest(posterior) if self.hard else posterior
