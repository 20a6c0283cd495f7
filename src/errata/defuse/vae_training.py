"""Training of a VAE: its loss is -log p(x|z) + beta * KL, the second rising in a straight line over the first steps."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import torch
from torch import nn

from ..core import Array, InputError
from ..tensors import checked_pictures, moved, pixels_of


class Bound(Protocol):
    """What has the two terms of an evidence lower bound."""

    def terms(self, x: torch.Tensor, noise: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]: ...


@dataclass(frozen=True)
class VaeEpoch:
    """Means over the epoch, in nats a picture, while it was learnt."""

    number: int
    reconstruction: float  # -log p(x|z)
    kl: float
    share: float  # of beta that counted at its end


def fit_vae(
    vae: nn.Module,
    images: Array,
    *,
    latent: int,
    epochs: int,
    batch: int = 2048,
    lr: float = 1e-3,
    beta: float = 1.0,
    anneal: int = 500,
    device: torch.device | str | None = None,
    seed: int = 0,
    progress: Callable[[VaeEpoch], None] | None = None,
) -> tuple[VaeEpoch, ...]:
    """Trains in place, then brings the VAE home. anneal: steps until KL counts in full; 0 from the first on."""
    images = checked_pictures(images)
    _check(len(images), epochs, batch, beta, anneal)
    chance, history = torch.Generator().manual_seed(seed), []
    with moved(vae, device) as where:
        pictures = torch.from_numpy(np.ascontiguousarray(images)).to(where)
        optimiser = torch.optim.Adam(vae.parameters(), lr=lr, fused=where.type == "cuda")
        own = torch.Generator(where).manual_seed(seed)
        vae.train()
        steps = math.ceil(len(images) / batch)
        for number in range(epochs):
            parts = torch.randperm(len(images), generator=chance).to(where).tensor_split(steps)
            shares = [_share(number * steps + step, anneal) for step in range(steps)]
            total = torch.zeros(2, device=where)
            for rows, share in zip(parts, shares, strict=True):
                x = pixels_of(pictures[rows])
                noise = torch.randn(len(x), latent, generator=own, device=where)
                total += _step(vae, optimiser, (x, noise), beta * share)
            history.append(_told(number, total / steps, shares[-1]))
            if progress is not None:
                progress(history[-1])
    return tuple(history)


def _step(
    vae: nn.Module, optimiser: torch.optim.Optimizer, given: tuple[torch.Tensor, torch.Tensor], weight: float
) -> torch.Tensor:
    surprise, kl = (term.mean() for term in vae.terms(*given))  # type: ignore[operator]  # a Bound
    optimiser.zero_grad(set_to_none=True)
    torch.autograd.backward(surprise + weight * kl)
    optimiser.step()
    return torch.stack([surprise.detach(), kl.detach()])


def _share(step: int, anneal: int) -> float:
    return min(1.0, (step + 1) / anneal) if anneal else 1.0


def _told(number: int, means: torch.Tensor, share: float) -> VaeEpoch:
    surprise, kl = means.tolist()
    if not math.isfinite(surprise + kl):
        raise InputError(f"the VAE's loss is {surprise + kl} in epoch {number + 1}; use a smaller `lr`")
    return VaeEpoch(number, surprise, kl, share)


def _check(n: int, epochs: int, batch: int, beta: float, anneal: int) -> None:
    if n < 2 or epochs < 1 or batch < 2:
        raise InputError(f"a VAE needs 2 pictures, 1 epoch and batches of 2; got {n}, {epochs}, {batch}")
    if not (math.isfinite(beta) and beta >= 0) or anneal < 0:
        raise InputError(f"`beta` and `anneal` must not be negative; got {beta} and {anneal}")
