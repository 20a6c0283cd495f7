"""The E-step of `domino` on a device: the same sums as `mixture.expect`, to rounding."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .mixture import LEAST, DominoMixture, Expect, MixtureRows, Sums, Weights

if TYPE_CHECKING:
    import torch

    from ...tensors.mixtures import Densities


def expect_on(rows: MixtureRows, components: int, device: torch.device) -> Expect:
    """`mixture.expect` of these rows, which stay on the device."""
    from torch.nn.functional import one_hot

    from ...tensors.mixtures import TensorRows, chunk_for, weighted_sums, with_squares

    d = rows.Z.shape[1]
    k = rows.probs.shape[1]
    held = TensorRows((rows.Z, rows.labels, rows.probs), device, chunk_for(components, 2 * d + 2 * k))

    def features(z: torch.Tensor, labels: torch.Tensor, probs: torch.Tensor) -> torch.Tensor:
        import torch

        return torch.cat([with_squares(z), one_hot(labels.long(), k).double(), probs.double()], dim=1)

    def expect(mixture: DominoMixture, _: MixtureRows, weights: Weights) -> tuple[Sums, float]:
        mass, sums, total = weighted_sums(held, _densities(mixture, weights, device), features)
        return Sums(mass, sums[:, : 2 * d], sums[:, 2 * d : 2 * d + k], sums[:, 2 * d + k :]), total / held.n

    return expect


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
