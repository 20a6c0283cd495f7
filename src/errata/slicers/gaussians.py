"""A fitted Gaussian mixture as arrays that are saved: what three methods ask of it once scikit-learn has fitted it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import softmax

from ..core import Array


@dataclass(frozen=True)
class Gaussians:
    """Clusters of k-means are equal round components, so that both answer alike."""

    log_weights: Array  # (g,)
    means: Array  # (g, r)
    factors: Array  # (g, r) square roots of precisions by axis, or (g, r, r) their Cholesky factors

    def log_joint(self, Z: Array) -> Array:
        """(n, g) log weight and density, up to what all of them share."""
        joint = np.empty((len(Z), len(self.means)))
        for j, (mean, factor) in enumerate(zip(self.means, self.factors, strict=True)):
            white = (Z - mean) * factor if factor.ndim == 1 else (Z - mean) @ factor
            diagonal = factor if factor.ndim == 1 else np.diag(factor)
            joint[:, j] = self.log_weights[j] + np.log(diagonal).sum() - 0.5 * np.square(white).sum(axis=1)
        return joint

    def assign(self, Z: Array) -> Array:
        """(n,) the likeliest."""
        return np.asarray(self.log_joint(Z).argmax(axis=1))

    def posterior(self, Z: Array) -> Array:
        """(n, g) responsibilities."""
        return np.asarray(np.minimum(softmax(self.log_joint(Z), axis=1), 1.0))


def likeliest(posterior: Array) -> Array:
    """(n, g) 1 for the likeliest, and 0."""
    return np.asarray((posterior.argmax(axis=1)[:, None] == np.arange(posterior.shape[1])).astype(np.float64))
