"""The two shapes of a light, and the search for ellipsoids."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ...core import Array, Matrix, RowView
from ...core.blocks import blocks

if TYPE_CHECKING:
    from .reader import Reader
    from .slicer import Schedule

ELLIPSE_PRECISION = 1e-3  # of every axis at the published start
ELLIPSE_STEPS = 60
MOST_STRETCH = 4.0  # of a log precision: beyond it an axis is flat or free, and a slope says nothing


@dataclass(frozen=True, eq=False)
class Sphere:
    """max(0, 1 - |factor (x - centre)|^2): the factor is the square root of the precision."""

    centre: Array  # (d,)
    factor: float

    def weights(self, X: Matrix) -> Array:
        """(n,) in [0, 1]. Each row by itself, so that neither order nor company changes its weight."""
        k = np.empty(len(X))
        for rows, block in blocks(X):
            offset = block - self.centre
            np.einsum("ij,ij->i", offset, offset, out=k[rows])
        k *= -(float(self.factor) ** 2)
        k += 1
        return np.maximum(k, 0, out=k)


@dataclass(frozen=True, eq=False)
class Ellipse:
    """max(0, 1 - |(x - centre) factor|^2)."""

    centre: Array  # (d,)
    factor: Array  # (d, d)

    def weights(self, X: Matrix) -> Array:
        """(n,) in [0, 1]."""
        k = np.empty(len(X))
        for rows, block in blocks(X):
            offset = np.einsum("ij,jk->ik", block - self.centre, self.factor)
            np.einsum("ij,ij->i", offset, offset, out=k[rows])
        return np.maximum(1 - k, 0)


def precision_for(distances: Array, size: float) -> float:
    """The tau with sum(max(0, 1 - tau d)) = size: Newton's method from the left on a convex function.

    No solution exists where `size` rows or more lie at the centre itself; tau is then as large as the
    distances of the others allow.
    """
    total = float(distances.sum())
    tau = (len(distances) - size) / max(total, 1e-300)
    for _ in range(100):
        lit = distances * tau < 1
        count = float(np.count_nonzero(lit))
        spread = float(distances[lit].sum())
        if count <= size or spread <= 0:
            break
        better = (count - size) / spread
        if better <= tau * (1 + 1e-12):
            break
        tau = better
    return min(max(tau, 1e-300), 1e300)


def weighted_mean(distances: Array, losses: Array, tau: float) -> tuple[float, Array]:
    """Mean loss under a light, and the pull of each lit row on it while tau keeps the size as it is."""
    k = 1 - tau * distances
    total = float(k.sum())
    if total <= 0:
        return 0.0, np.zeros(len(k))
    value = float(k @ losses) / total
    pull = (losses - value) / total
    # Without this multiplier the light would shrink or grow as mu moves.
    return value, pull - (pull @ distances) / max(float(distances.sum()), 1e-300)


def recommended_ellipse(reader: Reader, losses: Array, size: float, sphere: Sphere) -> Ellipse:
    """Stretch the best sphere along the principal axes of what it lights; never worse than the sphere."""
    from scipy.optimize import minimize

    standard = (losses - losses.mean()) / (losses.std() or 1.0)
    axes = _axes(reader, sphere)
    centre = sphere.centre - reader.centre

    def downhill(u: Array) -> tuple[float, Array]:
        mu = centre + reader.scale * u[: reader.d]
        stretch = u[reader.d :]
        value, slope_mu, slope_stretch, _ = _ellipse_value(reader, standard, mu, axes * np.exp(stretch / 2), size)
        return -value, -np.concatenate([reader.scale * slope_mu, slope_stretch])

    bounds = [(None, None)] * reader.d + [(-MOST_STRETCH, MOST_STRETCH)] * reader.d
    options = {"maxiter": ELLIPSE_STEPS, "maxfun": 2 * ELLIPSE_STEPS}
    best = minimize(downhill, np.zeros(2 * reader.d), jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    mu = centre + reader.scale * best.x[: reader.d]
    factor = axes * np.exp(best.x[reader.d :] / 2)
    tau = _ellipse_value(reader, standard, mu, factor, size)[3]
    return Ellipse(mu + reader.centre, np.sqrt(tau) * factor)


def _axes(reader: Reader, sphere: Sphere) -> Array:
    """(d, d) principal axes of the rows under a light, weighted by it."""
    k = sphere.weights(reader.X)
    spread = np.zeros((reader.d, reader.d))
    mu = sphere.centre - reader.centre
    for rows, block in reader.blocks(reader.X):
        offset = (block - mu)[k[rows] > 0]
        spread += (offset * k[rows][k[rows] > 0, None]).T @ offset
    return np.linalg.eigh(spread)[1]


def _ellipse_value(
    reader: Reader, losses: Array, mu: Array, factor: Array, size: float
) -> tuple[float, Array, Array, float]:
    """Weighted mean loss at a fixed size, its slopes in mu and in the log precision of each axis, and tau."""
    distances = np.empty(reader.n)
    for rows, block in reader.blocks(reader.X):
        turned = (block - mu) @ factor
        np.einsum("ij,ij->i", turned, turned, out=distances[rows])
    tau = precision_for(distances, size)
    index = np.flatnonzero(tau * distances < 1)
    value, pull = weighted_mean(distances[index], losses[index], tau)
    first = np.zeros(reader.d)
    second = np.zeros(reader.d)
    for rows, block in reader.blocks(RowView(reader.X, index)):
        turned = (block - mu) @ factor
        first += pull[rows] @ turned
        second += pull[rows] @ (turned * turned)
    return value, 2 * tau * (factor @ first), -tau * second, tau


def published_ellipse(reader: Reader, losses: Array, schedule: Schedule) -> Ellipse:
    """Adam on mu, the log precision of each axis, and the axes, made orthogonal again after every step."""
    d = reader.d
    start = np.log(schedule.settings.initial_precision or ELLIPSE_PRECISION)
    mu = -reader.centre
    log_e = np.full(d, start)
    axes = np.eye(d)
    last = Ellipse(mu + reader.centre, axes * np.exp(log_e / 2))
    for i, width in enumerate(schedule.widths):
        total, mean, ones, weighted = _ellipse_moments(reader, losses, mu, log_e, axes)
        if total <= 0:  # as for the sphere: keep the last light that shone
            return last
        last = Ellipse(mu + reader.centre, axes * np.exp(log_e / 2))
        objective, a, b = schedule.slopes(total, mean, float(width))
        move = schedule.step(i, a * weighted + b * ones)
        mu = mu + move[:d]
        log_e = log_e + move[d : 2 * d]
        left, _, right = np.linalg.svd(axes + move[2 * d :].reshape(d, d))
        axes = left @ right
        schedule.watch(objective)
    return Ellipse(mu + reader.centre, axes * np.exp(log_e / 2))


def _ellipse_moments(
    reader: Reader, losses: Array, mu: Array, log_e: Array, axes: Array
) -> tuple[float, float, Array, Array]:
    """sum k, mean loss, and the slope of sum k, plain and loss-weighted, in (mu, log precisions, axes)."""
    d = reader.d
    e = np.exp(log_e)
    total = lit_loss = 0.0
    slopes = [np.zeros(2 * d + d * d), np.zeros(2 * d + d * d)]
    for rows, block in reader.blocks(reader.X):
        offset = block - mu
        turned = offset @ axes
        k = 1 - (turned * turned) @ e
        lit = k > 0
        offset = offset[lit]
        turned = turned[lit]
        k = k[lit]
        lit_losses = losses[rows][lit]
        total += float(k.sum())
        lit_loss += float(k @ lit_losses)
        for slope, w in zip(slopes, (np.ones(len(k)), lit_losses), strict=True):
            slope[:d] += 2 * axes @ (e * (w @ turned))
            slope[d : 2 * d] -= e * (w @ (turned * turned))
            slope[2 * d :] -= 2 * ((offset * w[:, None]).T @ (turned * e)).ravel()
    mean = lit_loss / total if total > 0 else 0.0
    return total, mean, slopes[0], slopes[1]
