"""A beta-VAE (Higgins et al. 2017) with a true evidence lower bound.

log p(x) >= E_q(z|x) log p(x|z) - KL(q(z|x) || N(0, 1)); the second term counts beta times in training. Sums are over
pixels and dimensions, in nats a picture.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from ..core import Array, InputError, State
from ..tensors import bytes_of, checked_pictures, evaluating, moved, pixels_of

KERNEL, STRIDE = 4, 2
SMALLEST = 2  # pixels a side that the decoder starts from, where a picture allows it

Likelihood = Literal["bernoulli", "gaussian"]


@dataclass(frozen=True)
class Architecture:
    """Convolutions 4x4 of stride 2 down and up, fully connected layers of `hidden` between them and the code."""

    height: int
    width: int
    colours: int  # 1 or 3
    latent: int = 10
    channels: int = 32
    hidden: int = 256
    down: int = 3
    up: int = 4
    likelihood: Likelihood = "bernoulli"
    sigma: float = 0.1  # of a Gaussian pixel

    def __post_init__(self) -> None:
        whole = {name: value for name, value in asdict(self).items() if isinstance(value, int)}
        for name, value in whole.items():
            if value < 1:
                raise InputError(f"`{name}` of the VAE must be at least 1; got {value}")
        if self.likelihood not in ("bernoulli", "gaussian") or not self.sigma > 0:
            raise InputError(f"a pixel is bernoulli or gaussian, with `sigma` > 0; got {self.likelihood}, {self.sigma}")

    @property
    def padded(self) -> tuple[int, int]:
        """Height and width that can be halved as often as is asked."""
        step = STRIDE ** max(self.down, self.up)
        return math.ceil(self.height / step) * step, math.ceil(self.width / step) * step


def published(name: str, height: int, width: int, colours: int) -> Architecture:
    """The paper's, by its data set (its figures 9 to 14); for MNIST its 10 dimensions, not the 15 of figure 9."""
    made = {"mnist": (10, 32, 3, 4), "svhn": (10, 64, 3, 4), "signs": (15, 64, 4, 5)}
    if name not in made:
        raise InputError(f"there is no published architecture {name!r}; there are {', '.join(made)}")
    latent, channels, down, up = made[name]
    return Architecture(height, width, colours, latent, channels, 256, down, up)


def fitting(height: int, width: int, colours: int, latent: int = 10, **more: Any) -> Architecture:
    """For pictures of any size: halved until few pixels are left."""
    up = max(1, round(math.log2(min(height, width) / SMALLEST)))
    return Architecture(
        height, width, colours, latent, channels=32 if colours == 1 else 64, down=max(1, up - 1), up=up, **more
    )


class Vae(nn.Module):
    """Pictures (b, c, h, w) in [0, 1] to codes (b, latent) and back."""

    def __init__(self, architecture: Architecture):
        super().__init__()
        self.architecture = made = architecture
        high, wide = made.padded
        self.encoder = _encoder(made, high, wide)
        self.decoder = _decoder(made, high, wide)

    def encode(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and log variance of q(z|x), each (b, latent)."""
        made = self.architecture
        if tuple(x.shape[1:]) != (made.colours, made.height, made.width):
            raise InputError(f"this VAE takes pictures of {_size(made)}; got {tuple(x.shape[1:])}")
        high, wide = made.padded
        mean, logvar = self.encoder(functional.pad(x, (0, wide - made.width, 0, high - made.height))).chunk(2, dim=1)
        return mean, logvar

    def logits(self, z: torch.Tensor) -> torch.Tensor:
        """(b, c, h, w) before the sigmoid."""
        drawn: torch.Tensor = self.decoder(z)
        return drawn[:, :, : self.architecture.height, : self.architecture.width]

    def decode(self, z: torch.Tensor) -> torch.Tensor:
        """(b, c, h, w) in [0, 1]: the mean of every pixel."""
        return torch.sigmoid(self.logits(z))

    def terms(self, x: torch.Tensor, noise: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(b,) -log p(x|z) at z = mean + sd * noise, and (b,) KL(q(z|x) || N(0, 1)). ELBO = -(first + second)."""
        mean, logvar = self.encode(x)
        logits = self.logits(mean + (logvar / 2).exp() * noise)
        return self._surprise(x, logits).flatten(1).sum(dim=1), divergence(mean, logvar)

    def _surprise(self, x: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        if self.architecture.likelihood == "bernoulli":
            return functional.binary_cross_entropy_with_logits(logits, x, reduction="none")
        variance = self.architecture.sigma**2
        return ((x - torch.sigmoid(logits)) ** 2 / variance + math.log(2 * math.pi * variance)) / 2

    def to_state(self) -> State:
        weights = {name: value.detach().cpu().numpy() for name, value in self.state_dict().items()}
        return State("vae", asdict(self.architecture), weights)

    @classmethod
    def from_state(cls, state: State) -> Vae:
        vae = new_vae(Architecture(**state.facts))
        wanted = vae.state_dict()
        if {name: value.shape for name, value in wanted.items()} != {
            name: torch.Size(value.shape) for name, value in state.arrays.items()
        }:
            raise InputError("the saved VAE does not have the weights of its architecture; train it again")
        vae.load_state_dict({name: torch.from_numpy(np.array(value)) for name, value in state.arrays.items()})
        return vae


def new_vae(architecture: Architecture, seed: int = 0) -> Vae:
    """With weights drawn from a seed; torch's own state of chance is left alone."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # not the GPUs' as well, which are not put back
        return Vae(architecture)


def divergence(mean: torch.Tensor, logvar: torch.Tensor) -> torch.Tensor:
    """(b,) KL(N(mean, exp(logvar)) || N(0, 1))."""
    return 0.5 * (mean**2 + logvar.exp() - 1 - logvar).sum(dim=1)


def encoded(vae: Vae, images: Array, *, device: torch.device | str | None = None, batch: int = 2048) -> Array:
    """(n, latent) float32 means of q(z|x)."""
    images, parts = checked_pictures(images), []
    with moved(vae, device) as where, evaluating(vae):
        for start in range(0, len(images), batch):
            part = torch.from_numpy(np.ascontiguousarray(images[start : start + batch])).to(where)
            parts.append(vae.encode(pixels_of(part))[0].float().cpu().numpy())
    return np.concatenate(parts) if parts else np.empty((0, vae.architecture.latent), np.float32)


def drawn(vae: Vae, codes: Array, *, device: torch.device | str | None = None, batch: int = 2048) -> Array:
    """(n, h, w, c) bytes of codes (n, latent)."""
    made, parts = vae.architecture, []
    with moved(vae, device) as where, evaluating(vae):
        for start in range(0, len(codes), batch):
            z = torch.from_numpy(np.asarray(codes[start : start + batch], dtype=np.float32)).to(where)
            parts.append(bytes_of(vae.decode(z)))
    return np.concatenate(parts) if parts else np.empty((0, made.height, made.width, made.colours), np.uint8)


def lower_bound(
    vae: Vae, images: Array, *, device: torch.device | str | None = None, seed: int = 0, batch: int = 2048
) -> Mapping[str, float]:
    """Mean ELBO and its two terms over pictures, in nats a picture, with one draw of z each."""
    images, chance = checked_pictures(images), torch.Generator().manual_seed(seed)
    totals = np.zeros(2)
    with moved(vae, device) as where, evaluating(vae):
        for start in range(0, len(images), batch):
            x = pixels_of(torch.from_numpy(np.ascontiguousarray(images[start : start + batch])).to(where))
            noise = torch.randn(len(x), vae.architecture.latent, generator=chance).to(where)
            totals += [float(term.double().sum()) for term in vae.terms(x, noise)]
    surprise, kl = totals / max(len(images), 1)
    return {"elbo": -(surprise + kl), "reconstruction": -surprise, "kl": kl}


def _encoder(made: Architecture, high: int, wide: int) -> nn.Sequential:
    layers: list[nn.Module] = []
    inside = made.colours
    for _ in range(made.down):
        layers += [nn.Conv2d(inside, made.channels, KERNEL, STRIDE, padding=1), nn.ReLU(inplace=True)]
        inside = made.channels
    cells = inside * (high // STRIDE**made.down) * (wide // STRIDE**made.down)
    layers += [nn.Flatten(), nn.Linear(cells, made.hidden), nn.ReLU(inplace=True)]
    layers += [nn.Linear(made.hidden, made.hidden), nn.ReLU(inplace=True), nn.Linear(made.hidden, 2 * made.latent)]
    return nn.Sequential(*layers)


def _decoder(made: Architecture, high: int, wide: int) -> nn.Sequential:
    """The third fully connected layer is the first map: of `hidden` values where they fill it."""
    rows, columns = high // STRIDE**made.up, wide // STRIDE**made.up
    first = max(1, made.hidden // (rows * columns))
    layers: list[nn.Module] = [nn.Linear(made.latent, made.hidden), nn.ReLU(inplace=True)]
    layers += [nn.Linear(made.hidden, made.hidden), nn.ReLU(inplace=True)]
    layers += [nn.Linear(made.hidden, first * rows * columns), nn.ReLU(inplace=True)]
    layers += [nn.Unflatten(1, (first, rows, columns))]
    inside = first
    for step in range(made.up):
        last = step == made.up - 1
        outside = made.colours if last else made.channels
        layers += [nn.ConvTranspose2d(inside, outside, KERNEL, STRIDE, padding=1)]
        layers += [] if last else [nn.ReLU(inplace=True)]
        inside = outside
    return nn.Sequential(*layers)


def _size(made: Architecture) -> str:
    return f"({made.colours}, {made.height}, {made.width}): channels, height, width"
