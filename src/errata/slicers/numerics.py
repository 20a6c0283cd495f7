"""Numerics that several methods share: principal axes, fitted Gaussian mixtures, and what counts as too few rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np
from scipy.special import softmax

from ..core import Array, Matrix
from ..core.blocks import blocks
from ..core.shared_context import SharedContext
from ..engine import Engine, Local

if TYPE_CHECKING:
    from sklearn.decomposition import PCA

LEAST_ROWS = 4  # per component or cluster: a mixture of single rows is not one
FLAT = 1e-10  # share of the largest variance below which a direction is rounding
DIGITS = 9  # of a weight: the last bits of a product depend on which rows stand in one block; sets must not


@contextmanager
def _quiet() -> Iterator[None]:
    from sklearn.exceptions import ConvergenceWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        yield


_unconverged = SharedContext(_quiet)  # filters of warnings are of all threads


def unconverged() -> AbstractContextManager[None]:
    """Fits that need not converge: a cluster that still drifts is a cluster, and fewer distinct rows than clusters
    do no harm."""
    return _unconverged


def principal_components(X: Array, axes: int, seed: int, solver: Literal["auto", "randomized"] = "auto") -> PCA:
    """scikit-learn's PCA to at most `axes` axes; randomized where less than half of them are wanted."""
    # Not shared: `principal_axes` reads blocks of rows that may be on disk and leaves out flat directions, and the map
    # (`explain.layout`) iterates on wide rows on one thread. One function for all would move their last bits.
    from sklearn.decomposition import PCA

    n, d = X.shape
    axes = min(axes, d, n)
    if solver == "auto":
        solver_used = "randomized" if axes < min(n, d) / 2 else "full"
    else:
        solver_used = solver
    with np.errstate(invalid="ignore"):  # rows that are all equal have no variance to explain
        return PCA(axes, svd_solver=solver_used, random_state=seed).fit(X)


def principal_axes(X: Matrix, axes: int | None, rows: int | None, engine: Engine | None = None) -> tuple[Array, Array]:
    """(d,) the mean and (d, r) the principal axes, read in blocks; the first `rows` rows, or all.

    Directions without spread are left out: there a variance would be a rounding error.
    """
    from scipy.linalg import eigh

    few = X if rows is None else X[:rows]
    n, d = few.shape
    with (engine or Local()).hold(few) as held:
        centre = held.total(_sum)[0] / n
        if axes is None:
            return centre, np.eye(d)
        (scatter,) = held.total(_scatter, centre)
    values, vectors = eigh(scatter, subset_by_index=(d - min(axes, d), d - 1))
    wide = values > FLAT * max(values[-1], 0)
    wide[-1] = True
    return centre, np.ascontiguousarray(vectors[:, wide][:, ::-1])


def _sum(X: Matrix) -> tuple[Array]:
    """(d,) the sum of some rows."""
    return (sum((block.sum(axis=0, dtype=np.float64) for _, block in blocks(X)), np.zeros(X.shape[1])),)


def _scatter(X: Matrix, centre: Array) -> tuple[Array]:
    """(d, d) the squares and products of the offsets of some rows, summed."""
    scatter = np.zeros((len(centre), len(centre)))
    for _, block in blocks(X):
        offset = block - centre
        scatter += offset.T @ offset
    return (scatter,)


@dataclass(frozen=True)
class Gaussians:
    """A fitted Gaussian mixture as arrays that can be saved.

    Clusters of k-means are equal round components, so that both answer alike.

    Parameters
    ----------
    log_weights
        (g,) logarithms of the components' shares.
    means
        (g, r) of the components.
    factors
        (g, r) square roots of precisions by axis, or (g, r, r) their Cholesky factors.
    """

    log_weights: Array
    means: Array
    factors: Array

    def log_joint(self, Z: Array) -> Array:
        """(n, g) log weight and density, up to what all of them share."""
        joint = np.empty((len(Z), len(self.means)))
        for j, (mean, factor) in enumerate(zip(self.means, self.factors, strict=True)):
            if factor.ndim == 1:
                white = (Z - mean) * factor
                diagonal = factor
            else:
                white = (Z - mean) @ factor
                diagonal = np.diag(factor)
            joint[:, j] = self.log_weights[j] + np.log(diagonal).sum() - 0.5 * np.square(white).sum(axis=1)
        return joint

    def assign(self, Z: Array) -> Array:
        """(n,) the likeliest component of each row."""
        return np.asarray(self.log_joint(Z).argmax(axis=1))

    def posterior(self, Z: Array) -> Array:
        """(n, g) responsibilities."""
        return np.asarray(np.minimum(softmax(self.log_joint(Z), axis=1), 1.0))


def likeliest(posterior: Array) -> Array:
    """(n, g) 1 for the likeliest component of each row, 0 for the others."""
    return np.asarray((posterior.argmax(axis=1)[:, None] == np.arange(posterior.shape[1])).astype(np.float64))


def pick(n: int, most: int, seed: int) -> Array:
    """Positions of all n rows, or of a sample of them, ascending."""
    if n <= most:
        return np.arange(n)
    return np.sort(np.random.default_rng(seed).choice(n, most, replace=False))
