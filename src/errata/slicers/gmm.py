"""`gmm`: clusters of a Gaussian mixture, worst first. The baseline of the Spotlight paper's figure 5."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from ..core import Array, Evaluation
from ..core.blocks import blocks
from .contract import BaseSlicer, check_columns
from .expectation import EmOptions, fit_gaussians
from .numerics import LEAST_ROWS, Gaussians, likeliest, principal_components
from .options import AT_LEAST_ONE


class Gmm(BaseSlicer):
    """The components of a mixture fitted to the representation, ordered by mean loss.

    `as_published` fits 50 components with full covariances to the representation as it is and assigns each row to
    one. `recommended` first reduces it, since a full covariance in hundreds of dimensions has more parameters than
    most audits have rows, and keeps the posterior as a weight.

    Parameters
    ----------
    components
        Components of the mixture; each is a slice.
    axes
        Principal axes that the representation is reduced to; null for all columns as they are.
    hard
        Give each row to its likeliest component instead of weighing it by the posterior.
    representation
        The representation that is searched. Default: the only one, or the first.
    seed
        Of the fit.
    """

    name = "gmm"
    needs = frozenset({"representations", "losses"})
    presets: ClassVar = {
        "recommended": {},
        "as_published": {"components": 50, "axes": None, "hard": True},
    }
    limits: ClassVar = {"components": AT_LEAST_ONE, "axes": AT_LEAST_ONE}
    renamed: ClassVar = {"reduce": "axes"}
    fitted_arrays: ClassVar[tuple[str, ...]] = ("centre_", "axes_", "log_weights_", "means_", "precisions_")

    centre_: Array  # (d,)
    axes_: Array  # (d, r)
    log_weights_: Array  # (s,)
    means_: Array  # (s, r)
    precisions_: Array  # (s, r, r) Cholesky factors

    def __init__(
        self,
        components: int = 20,
        axes: int | None = 16,
        hard: bool = False,
        representation: str | None = None,
        seed: int = 0,
    ):
        self.components = components
        self.axes = axes
        self.hard = hard
        self.representation = representation
        self.seed = seed

    def _fit(self, evaluation: Evaluation, train: Evaluation | None) -> None:
        X = np.asarray(self.matrix(evaluation), dtype=np.float64)
        n, d = X.shape
        self.centre_ = X.mean(axis=0)
        if self.axes is None or min(self.axes, n) >= d:
            self.axes_ = np.eye(d)
        else:
            self.axes_ = principal_components(X, self.axes, self.seed, solver="randomized").components_.T
        reduced = (X - self.centre_) @ self.axes_
        components = max(1, min(self.components, n // LEAST_ROWS))
        options = EmOptions(floor=1e-6 * max(1e-12, reduced.var()), seed=self.seed)
        mixture, _ = fit_gaussians(reduced, components, options, self.engine)
        clusters = mixture.assign(reduced)
        assert evaluation.losses is not None
        sizes = np.bincount(clusters, minlength=components)
        sums = np.bincount(clusters, weights=evaluation.losses, minlength=components)
        losses = np.where(sizes > 0, sums / np.maximum(sizes, 1), -np.inf)
        order = np.argsort(-losses, kind="stable")
        self.log_weights_ = mixture.log_weights[order]
        self.means_ = mixture.means[order]
        self.precisions_ = mixture.factors[order]
        self.rules_ = tuple(
            {"kind": "component", "representation": self.representation_, "component": j} for j in range(components)
        )

    def membership(self, evaluation: Evaluation) -> Array:
        """(n, s) posteriors of the components, or 1 for the likeliest."""
        X = self.matrix(evaluation)
        check_columns(X, len(self.centre_), "method `gmm`")
        mixture = Gaussians(self.log_weights_, self.means_, self.precisions_)
        posterior = np.empty((len(X), len(self.means_)))
        for rows, block in blocks(X):
            posterior[rows] = mixture.posterior((block - self.centre_) @ self.axes_)
        return likeliest(posterior) if self.hard else posterior
