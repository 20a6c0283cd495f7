"""A beta-VAE (Higgins et al. 2017) with a true evidence lower bound: the network, its training, and its use on images.

log p(x) >= E_q(z|x) log p(x|z) - KL(q(z|x) || N(0, 1)). In training the second term counts beta times, a factor that
rises linearly over the first steps. Sums are over pixels and dimensions, in nats per image.
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

from ..core import Array, InputError, Progress, State, silent
from ..tensors import evaluating, on_device, to_bytes, to_pixels, validate_images
from ..train import run_epoch

KERNEL = 4
STRIDE = 2
SMALLEST = 2  # pixels a side that the decoder starts from, where the size of images allows it
PUBLISHED = {  # the paper's data sets: latent, channels, down, up
    "mnist": (10, 32, 3, 4),
    "svhn": (10, 64, 3, 4),
    "signs": (15, 64, 4, 5),
}

Likelihood = Literal["bernoulli", "gaussian"]


@dataclass(frozen=True)
class Architecture:
    """Convolutions 4x4 of stride 2 down and up, with fully connected layers between them and the code."""

    height: int
    width: int
    colours: int  # channels of an image: 1 or 3
    latent: int = 10  # dimensions of a code
    channels: int = 32  # of every convolution
    hidden: int = 256  # units of every fully connected layer
    down: int = 3  # convolutions of the encoder
    up: int = 4  # and of the decoder
    likelihood: Likelihood = "bernoulli"  # of a pixel
    sigma: float = 0.1  # standard deviation of a Gaussian pixel

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if isinstance(value, int) and value < 1:
                raise InputError(f"`{name}` of the VAE must be at least 1; got {value}")
        if self.likelihood not in ("bernoulli", "gaussian") or not self.sigma > 0:
            raise InputError(
                f"`likelihood` must be bernoulli or gaussian and `sigma` above 0; got {self.likelihood}, {self.sigma}"
            )

    @property
    def padded(self) -> tuple[int, int]:
        """Height and width, rounded up so that every convolution can halve them."""
        step = STRIDE ** max(self.down, self.up)
        return math.ceil(self.height / step) * step, math.ceil(self.width / step) * step

    @property
    def shape(self) -> tuple[int, int, int]:
        """(colours, height, width) of an image as a tensor."""
        return self.colours, self.height, self.width


def published_architecture(name: str, height: int, width: int, colours: int) -> Architecture:
    """The paper's, by its data set (its figures 9 to 14); for MNIST its 10 dimensions, not the 15 of figure 9."""
    if name not in PUBLISHED:
        raise InputError(f"there is no published architecture {name!r}; there are {', '.join(PUBLISHED)}")
    latent, channels, down, up = PUBLISHED[name]
    return Architecture(height, width, colours, latent, channels, 256, down, up)


def fitting_architecture(height: int, width: int, colours: int, latent: int = 10, **options: Any) -> Architecture:
    """For images of any size: halved until few pixels are left. options: further fields of `Architecture`."""
    up = max(1, round(math.log2(min(height, width) / SMALLEST)))
    channels = 32 if colours == 1 else 64
    return Architecture(height, width, colours, latent, channels=channels, down=max(1, up - 1), up=up, **options)


class Vae(nn.Module):
    """Images (b, c, h, w) in [0, 1] to codes (b, latent) and back."""

    def __init__(self, architecture: Architecture):
        super().__init__()
        self.architecture = architecture
        self.encoder = _encoder(architecture)
        self.decoder = _decoder(architecture)

    def encode(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Mean and log variance of q(z|x), each (b, latent)."""
        shape = self.architecture.shape
        if tuple(x.shape[1:]) != shape:
            raise InputError(f"this VAE takes images of {shape}: channels, height, width; got {tuple(x.shape[1:])}")
        _, height, width = shape
        padded_height, padded_width = self.architecture.padded
        padded = functional.pad(x, (0, padded_width - width, 0, padded_height - height))
        mean, logvar = self.encoder(padded).chunk(2, dim=1)
        return mean, logvar

    def logits(self, z: torch.Tensor) -> torch.Tensor:
        """(b, c, h, w) before the sigmoid."""
        padded: torch.Tensor = self.decoder(z)
        return padded[:, :, : self.architecture.height, : self.architecture.width]

    def decode(self, z: torch.Tensor) -> torch.Tensor:
        """(b, c, h, w) in [0, 1]: the mean of every pixel."""
        return torch.sigmoid(self.logits(z))

    def terms(self, x: torch.Tensor, noise: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """(b,) -log p(x|z) at z = mean + sd * noise, and (b,) KL(q(z|x) || N(0, 1)). ELBO = -(first + second)."""
        mean, logvar = self.encode(x)
        logits = self.logits(mean + (logvar / 2).exp() * noise)
        return self._pixel_losses(x, logits).flatten(1).sum(dim=1), divergence(mean, logvar)

    def _pixel_losses(self, x: torch.Tensor, logits: torch.Tensor) -> torch.Tensor:
        """-log p of every pixel."""
        if self.architecture.likelihood == "bernoulli":
            return functional.binary_cross_entropy_with_logits(logits, x, reduction="none")
        variance = self.architecture.sigma**2
        return ((x - torch.sigmoid(logits)) ** 2 / variance + math.log(2 * math.pi * variance)) / 2

    def to_state(self) -> State:
        """The architecture and the weights, to be saved."""
        weights = {name: value.detach().cpu().numpy() for name, value in self.state_dict().items()}
        return State("vae", asdict(self.architecture), weights)

    @classmethod
    def from_state(cls, state: State) -> Vae:
        """The VAE that `to_state` describes."""
        vae = new_vae(Architecture(**state.facts))
        shapes = {name: tuple(value.shape) for name, value in vae.state_dict().items()}
        if shapes != {name: tuple(value.shape) for name, value in state.arrays.items()}:
            raise InputError("the saved VAE does not have the weights of its architecture; train it again")
        vae.load_state_dict({name: torch.from_numpy(np.array(value)) for name, value in state.arrays.items()})
        return vae


def new_vae(architecture: Architecture, seed: int = 0) -> Vae:
    """With weights drawn from a seed; torch's own generators are left alone."""
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)  # not the GPUs' as well, which are not restored
        return Vae(architecture)


def divergence(mean: torch.Tensor, logvar: torch.Tensor) -> torch.Tensor:
    """(b,) KL(N(mean, exp(logvar)) || N(0, 1))."""
    return 0.5 * (mean**2 + logvar.exp() - 1 - logvar).sum(dim=1)


def _encoder(shape: Architecture) -> nn.Sequential:
    height, width = shape.padded
    layers: list[nn.Module] = []
    inside = shape.colours
    for _ in range(shape.down):
        layers += [nn.Conv2d(inside, shape.channels, KERNEL, STRIDE, padding=1), nn.ReLU(inplace=True)]
        inside = shape.channels
    cells = inside * (height // STRIDE**shape.down) * (width // STRIDE**shape.down)
    layers += [nn.Flatten(), nn.Linear(cells, shape.hidden), nn.ReLU(inplace=True)]
    layers += [nn.Linear(shape.hidden, shape.hidden), nn.ReLU(inplace=True), nn.Linear(shape.hidden, 2 * shape.latent)]
    return nn.Sequential(*layers)


def _decoder(shape: Architecture) -> nn.Sequential:
    """The third fully connected layer gives the first map, with as many channels as `hidden` values fill."""
    height, width = shape.padded
    rows = height // STRIDE**shape.up
    columns = width // STRIDE**shape.up
    first = max(1, shape.hidden // (rows * columns))
    layers: list[nn.Module] = [nn.Linear(shape.latent, shape.hidden), nn.ReLU(inplace=True)]
    layers += [nn.Linear(shape.hidden, shape.hidden), nn.ReLU(inplace=True)]
    layers += [nn.Linear(shape.hidden, first * rows * columns), nn.ReLU(inplace=True)]
    layers += [nn.Unflatten(1, (first, rows, columns))]
    inside = first
    for _ in range(shape.up - 1):
        layers += [nn.ConvTranspose2d(inside, shape.channels, KERNEL, STRIDE, padding=1), nn.ReLU(inplace=True)]
        inside = shape.channels
    layers += [nn.ConvTranspose2d(inside, shape.colours, KERNEL, STRIDE, padding=1)]
    return nn.Sequential(*layers)


@dataclass(frozen=True)
class VaeEpoch:
    """One epoch of training: means over its batches, each as it was trained on, in nats per image."""

    number: int
    reconstruction: float  # -log p(x|z)
    kl: float
    share: float  # of beta that counted in the last batch


def fit_vae(
    vae: Vae,
    images: Array,
    *,
    epochs: int,
    batch: int = 2048,
    lr: float = 1e-3,
    beta: float = 1.0,
    anneal: int = 500,
    device: torch.device | str | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> tuple[VaeEpoch, ...]:
    """Train a VAE in place, on `device` and then back where it was; returns one `VaeEpoch` for each epoch.

    images: (n, h, w, c) bytes. beta: the weight of KL. anneal: steps until it counts in full; 0 for the first one on.
    """
    images = validate_images(images)
    check_training(len(images), epochs, batch, beta, anneal)
    history: list[VaeEpoch] = []
    with on_device(vae, device) as where:
        loss = _VaeLoss(vae, torch.from_numpy(np.ascontiguousarray(images)).to(where), beta, anneal, seed)
        optimiser = torch.optim.Adam(vae.parameters(), lr=lr, fused=where.type == "cuda")
        generator = torch.Generator().manual_seed(seed)
        for number in range(epochs):
            order = torch.randperm(len(images), generator=generator).to(where)
            parts = order.tensor_split(math.ceil(len(images) / batch))
            run_epoch(vae, optimiser, parts, loss, name=f"the VAE's loss in epoch {number + 1}")
            reconstruction, kl = loss.take_means()
            history.append(VaeEpoch(number, reconstruction, kl, loss.share))
            progress("train the VAE", (number + 1) / epochs)
    return tuple(history)


class _VaeLoss:
    """-log p(x|z) + beta * share * KL of a batch; the share rises with every call until it is 1."""

    def __init__(self, vae: Vae, images: torch.Tensor, beta: float, anneal: int, seed: int):
        self._vae = vae
        self._images = images
        self._beta = beta
        self._anneal = anneal
        self._noise = torch.Generator(images.device).manual_seed(seed)
        self._steps = 0
        self._terms: list[torch.Tensor] = []
        self.share = 0.0

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        self._steps += 1
        self.share = min(1.0, self._steps / self._anneal) if self._anneal else 1.0
        x = to_pixels(self._images[rows])
        noise = torch.randn(len(x), self._vae.architecture.latent, generator=self._noise, device=x.device)
        reconstruction, kl = (term.mean() for term in self._vae.terms(x, noise))
        self._terms.append(torch.stack([reconstruction.detach(), kl.detach()]))
        return reconstruction + self._beta * self.share * kl

    def take_means(self) -> tuple[float, float]:
        """Both terms, averaged over the batches since the last call."""
        total = torch.zeros(2, device=self._images.device)
        for terms in self._terms:
            total += terms
        reconstruction, kl = (total / len(self._terms)).tolist()
        self._terms = []
        return reconstruction, kl


def check_training(n: int, epochs: int, batch: int, beta: float, anneal: int) -> None:
    """Raise where n images cannot train a VAE by these settings."""
    if n < 2 or epochs < 1 or batch < 2:
        raise InputError(f"a VAE needs 2 images, 1 epoch and batches of 2; got {n}, {epochs}, {batch}")
    if not (math.isfinite(beta) and beta >= 0) or anneal < 0:
        raise InputError(f"`beta` and `anneal` must not be negative; got {beta} and {anneal}")


def encode_images(vae: Vae, images: Array, *, device: torch.device | str | None = None, batch: int = 2048) -> Array:
    """(n, latent) float32: the means of q(z|x)."""
    images = validate_images(images)
    parts = [np.empty((0, vae.architecture.latent), np.float32)]
    with on_device(vae, device) as where, evaluating(vae):
        for start in range(0, len(images), batch):
            part = torch.from_numpy(np.ascontiguousarray(images[start : start + batch])).to(where)
            parts.append(vae.encode(to_pixels(part))[0].float().cpu().numpy())
    return np.concatenate(parts)


def decode_codes(vae: Vae, codes: Array, *, device: torch.device | str | None = None, batch: int = 2048) -> Array:
    """(n, h, w, c) bytes: the images of codes (n, latent)."""
    shape = vae.architecture
    parts = [np.empty((0, shape.height, shape.width, shape.colours), np.uint8)]
    with on_device(vae, device) as where, evaluating(vae):
        for start in range(0, len(codes), batch):
            z = torch.from_numpy(np.asarray(codes[start : start + batch], dtype=np.float32)).to(where)
            parts.append(to_bytes(vae.decode(z)))
    return np.concatenate(parts)


def lower_bound(
    vae: Vae, images: Array, *, device: torch.device | str | None = None, seed: int = 0, batch: int = 2048
) -> Mapping[str, float]:
    """Mean ELBO and its two terms over images, in nats per image, with one draw of z each."""
    images = validate_images(images)
    generator = torch.Generator().manual_seed(seed)
    totals = np.zeros(2)
    with on_device(vae, device) as where, evaluating(vae):
        for start in range(0, len(images), batch):
            x = to_pixels(torch.from_numpy(np.ascontiguousarray(images[start : start + batch])).to(where))
            noise = torch.randn(len(x), vae.architecture.latent, generator=generator).to(where)
            totals += [float(term.double().sum()) for term in vae.terms(x, noise)]
    reconstruction, kl = totals / max(len(images), 1)
    return {"elbo": -(reconstruction + kl), "reconstruction": -reconstruction, "kl": kl}
