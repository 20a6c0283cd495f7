"""Gaussian mixtures by expectation and maximisation, each step a sum over parts of the rows that an engine runs.

Start, steps and end are those of scikit-learn's `GaussianMixture`, whose fit this is to rounding; that one holds all
rows in one process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from ..core import Array
from ..core.blocks import blocks
from ..engine import Engine, HeldRows, Totals
from .numerics import Gaussians, unconverged

if TYPE_CHECKING:
    import torch

    from ..tensors.rows import TensorWork

TOLERANCE = 1e-3  # gain in mean log-likelihood below which a fit ends
BLOCK_BYTES = 1 << 18  # rows of which a cache holds the offsets from one mean beside the densities of all
LEAST_MASS = 10 * np.finfo(float).eps
LOG_TWO_PI = float(np.log(2 * np.pi))


@dataclass(frozen=True)
class EmOptions:
    """How a mixture is fitted.

    Parameters
    ----------
    covariance
        Of a component: `full` or `diag`.
    floor
        Added to every variance.
    steps
        At most.
    restarts
        Fits of which the likeliest is taken.
    seed
        Of the starts.
    """

    covariance: Literal["full", "diag"] = "full"
    floor: float = 1e-6
    steps: int = 100
    restarts: int = 1
    seed: int = 0


def fit_gaussians(Z: Array, components: int, options: EmOptions, engine: Engine) -> tuple[Gaussians, float]:
    """A mixture, and the mean log-likelihood of the (n, r) rows under it."""
    draws = np.random.RandomState(options.seed)
    best: tuple[float, Gaussians] | None = None
    with engine.hold(Z) as held:
        for _ in range(options.restarts):
            reached, mixture = _climb(held, _start(Z, components, options, draws), len(Z), options)
            if best is None or reached > best[0]:
                best = (reached, mixture)
        assert best is not None
        return best[1], _sums(held, best[1])[-1] / len(Z)


def parameter_count(components: int, columns: int, covariance: str) -> int:
    """Numbers that a mixture has to choose."""
    of_spread = {"full": columns * (columns + 1) // 2, "diag": columns}
    return components * (1 + columns + of_spread[covariance]) - 1


def _climb(held: HeldRows, mixture: Gaussians, n: int, options: EmOptions) -> tuple[float, Gaussians]:
    """The last mean log-likelihood that was seen, and the mixture after the step that saw it."""
    before = -np.inf
    for _ in range(options.steps):
        mass, first, second, total = _sums(held, mixture)
        mixture = maximise(mass, first, second, _origins(mixture), options.floor)
        reached = total / n
        if abs(reached - before) < TOLERANCE:
            break
        before = reached
    return reached, mixture


def _start(Z: Array, components: int, options: EmOptions, draws: np.random.RandomState) -> Gaussians:
    """The mixture of the clusters of k-means."""
    from sklearn.cluster import KMeans

    with unconverged():
        cluster = KMeans(components, n_init=1, random_state=draws).fit(Z).labels_
    mass = np.bincount(cluster, minlength=components).astype(np.float64)
    origins = np.stack([Z[cluster == j].sum(axis=0) for j in range(components)]) / np.maximum(mass, 1)[:, None]
    offsets = [Z[cluster == j] - origin for j, origin in enumerate(origins)]
    second = np.stack([offset.T @ offset for offset in offsets])
    if options.covariance == "diag":
        second = np.diagonal(second, axis1=1, axis2=2)
    return maximise(mass, np.zeros_like(origins), second, origins, options.floor)


def maximise(mass: Array, first: Array, second: Array, origins: Array, floor: float) -> Gaussians:
    """The likeliest mixture for (g,) shares of rows and (g, r) and (g, r[, r]) moments about some origins."""
    weight = mass + LEAST_MASS
    shift = first / weight[:, None]
    if second.ndim == 2:
        variances = np.maximum(second / weight[:, None] - shift**2, 0.0) + floor
        factors = variances**-0.5
    else:
        squares = shift[:, :, None] * shift[:, None, :]
        covariances = second / weight[:, None, None] - squares + floor * np.eye(first.shape[1])
        factors = np.stack([_factor(covariance) for covariance in covariances])
    return Gaussians(np.log(weight / weight.sum()), origins + shift, factors)


def _factor(covariance: Array) -> Array:
    """(r, r) the transposed inverse of the Cholesky factor."""
    from scipy.linalg import solve_triangular

    root = np.linalg.cholesky(covariance)
    return np.asarray(solve_triangular(root, np.eye(len(root)), lower=True).T)


def _origins(mixture: Gaussians) -> Array:
    """What moments are about: its own means, which loses nothing; zero for diagonal ones, which are one product."""
    return mixture.means if mixture.factors.ndim == 3 else np.zeros_like(mixture.means)


def _sums(held: HeldRows, mixture: Gaussians) -> Totals:
    return held.total(part_sums, mixture, on_device=_on_device)


def part_sums(Z: Array, mixture: Gaussians) -> Totals:
    """What some rows add: (g,) shares, (g, r) and (g, r[, r]) moments about the origins, and log-likelihoods."""
    of_block = _full_sums if mixture.factors.ndim == 3 else _diagonal_sums
    totals: Totals = (0.0, 0.0, 0.0, 0.0)
    for _, block in blocks(Z, BLOCK_BYTES):
        more = of_block(block.astype(np.float64, copy=False), mixture)
        totals = tuple(a + b for a, b in zip(totals, more, strict=True))
    return totals


def _full_sums(Z: Array, mixture: Gaussians) -> Totals:
    shares, total = _shares(mixture.log_joint(Z))
    first = np.empty_like(mixture.means)
    second = np.empty_like(mixture.factors)
    for j, mean in enumerate(mixture.means):
        offset = Z - mean
        weighted = offset * shares[:, j, None]
        first[j] = weighted.sum(axis=0)
        second[j] = weighted.T @ offset
    return shares.sum(axis=0), first, second, total - 0.5 * LOG_TWO_PI * Z.size


def _diagonal_sums(Z: Array, mixture: Gaussians) -> Totals:
    r = Z.shape[1]
    both = np.hstack([Z, np.square(Z)])
    precisions = np.square(mixture.factors)
    slopes = np.hstack([mixture.means * precisions, -0.5 * precisions])
    heights = mixture.log_weights + np.log(mixture.factors).sum(axis=1)
    heights -= 0.5 * (np.square(mixture.means) * precisions).sum(axis=1)
    shares, total = _shares(both @ slopes.T + heights)
    moments = shares.T @ both
    return shares.sum(axis=0), moments[:, :r], moments[:, r:], total - 0.5 * LOG_TWO_PI * Z.size


def _shares(joint: Array) -> tuple[Array, float]:
    """(b, g) responsibilities in place of log densities, and the sum of their log sums."""
    peak = joint.max(axis=1, keepdims=True)
    joint -= peak
    np.exp(joint, out=joint)
    total = joint.sum(axis=1, keepdims=True)
    joint /= total
    return joint, float((np.log(total) + peak).sum())


def _on_device(device: torch.device, mixture: Gaussians) -> TensorWork:
    from ..tensors.mixtures import gaussian_sums

    return gaussian_sums(device, mixture.log_weights, mixture.means, mixture.factors)
