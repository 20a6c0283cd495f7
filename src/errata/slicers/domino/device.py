"""The E-step of `domino` on a device: the same sums as `mixture.part_sums`, to rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .mixture import LEAST, DominoMixture, Weights

if TYPE_CHECKING:
    import torch

    from ...tensors.mixtures import Densities
    from ...tensors.rows import Tensors, TensorWork


def chunk_sums(device: torch.device, mixture: DominoMixture, weights: Weights) -> TensorWork:
    """`part_sums` of a chunk of rows."""
    from torch.nn.functional import one_hot

    from ...tensors.mixtures import share, weighted_sums, with_squares
    from ...tensors.rows import TensorWork

    d = mixture.means.shape[1]
    k = mixture.labels.shape[1]
    densities = _densities(mixture, weights, device)

    def sums(z: torch.Tensor, labels: torch.Tensor, probs: torch.Tensor) -> Tensors:
        shares, total = share(densities(z, labels, probs))
        mass, moments = weighted_sums(shares, with_squares(z))
        onehot = one_hot(labels.long(), k).double()
        return mass, moments, shares.T @ onehot, shares.T @ probs.double(), total

    return TensorWork(sums, max(len(mixture.means), 2 * d, k))


def _densities(mixture: DominoMixture, weights: Weights, device: torch.device) -> Densities:
    """`DominoMixture.embedding` and `outcome` together."""
    import torch

    from ...tensors.mixtures import diagonal_densities

    of_embedding = diagonal_densities(mixture.log_weights, mixture.means, mixture.variances, device)
    by_label = torch.tensor(weights.label * np.log(np.maximum(mixture.labels, LEAST)).T, device=device)
    shares = torch.tensor(mixture.predictions.T, device=device)
    log_shares = shares.clamp(min=LEAST).log() * weights.prediction

    def densities(z: torch.Tensor, labels: torch.Tensor, probs: torch.Tensor) -> torch.Tensor:
        density = of_embedding(z)
        density += by_label[labels.long()]
        if weights.agreement == "inner":
            density += weights.prediction * (probs.double() @ shares + LEAST).log()
        else:
            density += probs.double() @ log_shares
        return density

    return densities
