"""Sums over rows weighted by mixture shares, on any device: what an M-step of a mixture or of k-means reads.

Shares and sums are float64, which the GPUs of data centres multiply as fast as float32 without its loss; the result
is that of the CPU to rounding.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from ..core import Array
from .rows import Tensors, TensorWork

LOG_TWO_PI = float(np.log(2 * np.pi))

Densities = Callable[..., torch.Tensor]  # columns of b rows -> (b, s) log densities


def share(density: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """(b, s) shares of the components, and () the sum of log-likelihoods, from (b, s) log densities."""
    peak, best = density.max(dim=1, keepdim=True)
    shares = torch.softmax(density, dim=1)
    return shares, (peak - shares.gather(1, best).log()).sum()  # log sum exp, without a pass of its own


def weighted_sums(shares: torch.Tensor, features: torch.Tensor) -> Tensors:
    """(s,) the sum of (b, s) shares, and (s, f) that of shares times features."""
    return shares.sum(dim=0), shares.T @ features


def with_squares(z: torch.Tensor) -> torch.Tensor:
    """(b, 2 d) in float64: one product with it gives what a quadratic form needs, and one all moments."""
    z = z.double()
    return torch.cat([z, z.square()], dim=1)


def diagonal_densities(log_weights: Array, means: Array, variances: Array, device: torch.device) -> Densities:
    """(b, d) rows -> (b, s) log weight and density of Gaussians with diagonal covariances."""
    precisions = 1 / variances
    slopes = torch.tensor(np.hstack([means * precisions, -0.5 * precisions]).T, device=device)
    heights = (np.square(means) * precisions + np.log(variances) + LOG_TWO_PI).sum(axis=1)
    heights = torch.tensor(log_weights - 0.5 * heights, device=device)
    return lambda z, *others: torch.addmm(heights, with_squares(z), slopes)


def cluster_sums(device: torch.device, centres: Array, shift: Array | float) -> TensorWork:
    """(s,) how many of (b, d) rows a centre has, and (s, d) their sum: by the largest product less shift."""
    towards = torch.tensor(np.asarray(centres, dtype=np.float64).T, device=device)
    heights = torch.tensor(np.broadcast_to(-np.asarray(shift, dtype=np.float64), len(centres)).copy(), device=device)

    def sums(z: torch.Tensor) -> Tensors:
        z = z.double()
        density = torch.addmm(heights, z, towards)
        best = density.argmax(dim=1, keepdim=True)
        return weighted_sums(density.zero_().scatter_(1, best, 1.0), z)

    return TensorWork(sums, max(centres.shape))


def gaussian_sums(device: torch.device, log_weights: Array, means: Array, factors: Array) -> TensorWork:
    """(s,) shares, (s, d) and (s, d[, d]) moments, and log-likelihoods of a chunk of (b, d) rows.

    Full covariances, with (s, d, d) transposed inverses of Cholesky factors: moments about the means. Diagonal ones,
    with (s, d) roots of precisions: moments about zero.
    """
    s, d = means.shape
    if factors.ndim == 3:
        return TensorWork(_full_sums(device, log_weights, means, factors), s * d)
    densities = diagonal_densities(log_weights, means, factors**-2.0, device)

    def sums(z: torch.Tensor) -> Tensors:
        shares, total = share(densities(z))
        mass, moments = weighted_sums(shares, with_squares(z))
        return mass, moments[:, :d], moments[:, d:], total

    return TensorWork(sums, max(s, 2 * d))


def _full_sums(device: torch.device, log_weights: Array, means: Array, factors: Array) -> Callable[..., Tensors]:
    centres = torch.tensor(means[:, None, :], device=device)
    whitening = torch.tensor(factors, device=device)
    heights = log_weights + np.log(np.diagonal(factors, axis1=1, axis2=2)).sum(axis=1)
    heights = torch.tensor(heights - 0.5 * means.shape[1] * LOG_TWO_PI, device=device)

    def sums(z: torch.Tensor) -> Tensors:
        offset = z.double() - centres  # (s, b, d)
        shares, total = share(heights - 0.5 * (offset @ whitening).square().sum(dim=2).T)
        weighted = offset * shares.T[:, :, None]
        return shares.sum(dim=0), weighted.sum(dim=1), weighted.transpose(1, 2) @ offset, total

    return sums
