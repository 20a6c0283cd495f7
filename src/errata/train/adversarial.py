"""Training against an adversary that may move every picture within a ball (Madry et al. 2018; Barlow's equation 1).

min over weights of the mean, over rows, of max over |x' - x| <= radius of the loss at x'. The inner maximum is a
projected ascent from a random point of the ball. Lengths are L2 in units of [0, 1] pixels, as in the literature
(.5 or 1 for CIFAR-10, 3 for ImageNet); the network itself sees `scaled` pixels.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from ..core import InputError
from ..tensors import Ball, ascend, evaluating, moved
from .loop import Epoch, Images, check_images, check_labels, fit, loss_of, precision, said, scaled, tensor_of

WATCHED = 1_000  # validation rows attacked after each epoch: as dear as a few thousand rows of training


def fit_robust(
    model: nn.Module,
    images: Images,
    labels: Images,
    *,
    radius: float,
    epochs: int,
    batch: int,
    lr: float,
    steps: int = 7,
    step: float | None = None,
    shift: int = 0,
    flip: bool = False,
    device: torch.device | str | None = None,
    seed: int = 0,
    validation: tuple[Images, Images] | None = None,
    progress: Callable[[Epoch], None] | None = None,
) -> tuple[Epoch, ...]:
    """`fit` on the worst pictures within `radius` that an ascent of so many steps finds; images are bytes.

    step: its length; left out, 2.5 radius / steps. shift, flip: each picture is moved by up to so many pixels, and
    mirrored half the time, before it is attacked. An epoch's loss is that of attacked pictures; `robust_accuracy` is
    of at most 1,000 validation rows, attacked as in training; `validation_accuracy` is of all, left alone.
    """
    ball = Ball(radius, steps, step)
    check_images(images, labels)
    if not 0 <= shift < min(images.shape[1:3]):
        raise InputError(f"`shift` must be from 0 to less than the pictures are wide and high; got {shift}")
    few = None if validation is None else _some(*validation, seed)
    told: list[Epoch] = []

    def measure(epoch: Epoch) -> None:
        attacked = None if few is None else robust_accuracy(
            model, *few, radius, steps=steps, step=step, batch=batch, seed=seed
        )  # fmt: skip
        told.append(replace(epoch, robust_accuracy=attacked))
        if progress is not None:
            progress(told[-1])

    fit(
        model, images, labels, epochs=epochs, batch=batch, lr=lr, device=device, seed=seed,
        validation=validation, progress=measure, disturb=_Adversary(model, ball, seed, shift, flip),
    )  # fmt: skip
    return tuple(told)


def robust_accuracy(
    model: nn.Module,
    images: Images,
    labels: Images,
    radius: float,
    *,
    steps: int = 20,
    step: float | None = None,
    restarts: int = 1,
    device: torch.device | str | None = None,
    batch: int = 512,
    seed: int = 0,
) -> float:
    """The share of rows that are right, and stay so under every attack within `radius`; 0 is no attack at all.

    An upper bound: a stronger attack (more steps, more restarts) may break more.
    """
    check_images(images, labels)
    if not len(images) or restarts < 1:
        raise InputError(f"an attack needs 1 image and 1 restart; got {len(images)} and {restarts}")
    ball, right = Ball(radius, steps, step), 0
    with moved(model, device) as where, evaluating(model):
        chance = torch.Generator(where).manual_seed(seed)
        check_labels(model, tensor_of(images[:2]).to(where), tensor_of(labels).to(where))
        for start in range(0, len(images), batch):
            pixels = tensor_of(images[start : start + batch]).to(where).permute(0, 3, 1, 2).float() / 255
            targets = tensor_of(labels[start : start + batch]).to(where).long()
            right += _unbroken(model, pixels, targets, ball, restarts, chance)
    return right / len(images)


def _unbroken(
    model: nn.Module, pixels: torch.Tensor, targets: torch.Tensor, ball: Ball, restarts: int, chance: torch.Generator
) -> int:
    """How many rows are right before and after every attack; those already wrong are not attacked again."""
    left = said(model(scaled(pixels))) == targets
    for _ in range(restarts if ball.radius else 0):
        pixels, targets = pixels[left], targets[left]
        if not len(pixels):
            return 0
        found = ascend(_loss_at(model, targets), pixels, ball, chance)
        left = said(model(scaled(found))) == targets
    return int(left.sum())


def _loss_at(model: nn.Module, targets: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda points: loss_of(model(scaled(points)).float(), targets, reduction="none")


class _Adversary:
    """Changes a batch before it is learnt from."""

    def __init__(self, model: nn.Module, ball: Ball, seed: int, shift: int, flip: bool):
        self._model, self._ball, self._seed, self._shift, self._flip = model, ball, seed, shift, flip
        self._chance: torch.Generator | None = None

    def __call__(self, x: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        if self._chance is None:
            self._chance = torch.Generator(x.device).manual_seed(self._seed)
        pixels = self._moved((x + 2) / 4, self._chance).clamp(0, 1)  # rounding may leave [0, 1] by a hair
        # Attacked as it will be used: in training mode, attacks would also count into the running means.
        with evaluating(self._model), precision(x.device):
            found = ascend(_loss_at(self._model, targets), pixels, self._ball, self._chance)
        return scaled(found)

    def _moved(self, pixels: torch.Tensor, chance: torch.Generator) -> torch.Tensor:
        if self._flip:
            mirrored = torch.rand((len(pixels), 1, 1, 1), generator=chance, device=pixels.device) < 0.5
            pixels = torch.where(mirrored, pixels.flip(3), pixels)
        return shifted(pixels, self._shift, chance) if self._shift else pixels


def shifted(pixels: torch.Tensor, most: int, chance: torch.Generator) -> torch.Tensor:
    """Each picture (b, c, h, w) moved by up to `most` pixels both ways; what comes in is black."""
    b, _, h, w = pixels.shape
    padded = functional.pad(pixels, (most,) * 4)
    down, right = torch.randint(0, 2 * most + 1, (2, b, 1), generator=chance, device=pixels.device)
    rows = (down + torch.arange(h, device=pixels.device))[:, :, None]
    columns = (right + torch.arange(w, device=pixels.device))[:, None, :]
    each = torch.arange(b, device=pixels.device)[:, None, None]
    return padded.permute(0, 2, 3, 1)[each, rows, columns].permute(0, 3, 1, 2)


def _some(images: Images, labels: Images, seed: int) -> tuple[Images, Images]:
    """At most so many rows as are watched, at random."""
    if len(images) <= WATCHED:
        return images, labels
    rows = np.random.default_rng(seed).choice(len(images), WATCHED, replace=False)
    return images[rows], labels[rows]
