"""Training against an adversary that may change every image within a ball (Madry et al. 2018; Barlow's equation 1).

min over weights of the mean, over rows, of max over |x' - x| <= radius of the loss at x'. The inner maximum is a
projected ascent from a random point of the ball. Lengths are L2 in units of [0, 1] pixels, as in the literature
(.5 or 1 for CIFAR-10, 3 for ImageNet); the network takes pixels through `normalise_pixels`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from ..core import InputError, Progress, silent
from ..tensors import Ball, ascend, evaluating, on_device
from .loop import (
    Epoch,
    Images,
    as_tensor,
    check_images,
    check_labels,
    fit,
    loss_of,
    normalise_pixels,
    precision,
    predicted_classes,
)

ATTACKED_ROWS = 1_000  # validation rows attacked after each epoch, which cost as much as training on a few thousand


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
    progress: Progress = silent,
    on_epoch: Callable[[Epoch], None] | None = None,
) -> tuple[Epoch, ...]:
    """`fit` on the worst images within `radius` that an ascent of `steps` steps finds; images are bytes.

    step: the length of a step. Default: 2.5 radius / steps. shift, flip: before it is attacked, each image is shifted
    by up to `shift` pixels, and mirrored half the time. An epoch's loss is that of attacked images; `robust_accuracy`
    is of at most 1,000 validation rows, attacked as in training; `validation_accuracy` is of all of them, unchanged.
    """
    ball = Ball(radius, steps, step)
    check_images(images, labels)
    if not 0 <= shift < min(images.shape[1:3]):
        raise InputError(f"`shift` must be at least 0 and less than the width and height of images; got {shift}")
    history: list[Epoch] = []

    def measure(epoch: Epoch) -> None:
        if validation is not None:
            few = _sample_rows(*validation, seed)
            attacked = robust_accuracy(model, *few, radius, steps=steps, step=step, batch=batch, seed=seed)
            epoch = replace(epoch, robust_accuracy=attacked)
        history.append(epoch)
        if on_epoch is not None:
            on_epoch(epoch)

    fit(
        model,
        images,
        labels,
        epochs=epochs,
        batch=batch,
        lr=lr,
        device=device,
        seed=seed,
        validation=validation,
        progress=progress,
        on_epoch=measure,
        disturb=_Adversary(model, ball, seed, shift, flip),
    )
    return tuple(history)


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
    """The share of rows classified correctly, also under every attack within `radius`; a radius of 0 is no attack.

    An upper bound: a stronger attack (more steps, more restarts) may lower it.
    """
    check_images(images, labels)
    if not len(images) or restarts < 1:
        raise InputError(f"an attack needs 1 image and 1 restart; got {len(images)} and {restarts}")
    ball = Ball(radius, steps, step)
    correct = 0
    with on_device(model, device) as where, evaluating(model):
        generator = torch.Generator(where).manual_seed(seed)
        check_labels(model, as_tensor(images[:2]).to(where), as_tensor(labels).to(where))
        for start in range(0, len(images), batch):
            pixels = as_tensor(images[start : start + batch]).to(where).permute(0, 3, 1, 2).float() / 255
            targets = as_tensor(labels[start : start + batch]).to(where).long()
            correct += _count_robust(model, pixels, targets, ball, restarts, generator)
    return correct / len(images)


def _count_robust(
    model: nn.Module, pixels: torch.Tensor, targets: torch.Tensor, ball: Ball, restarts: int, generator: torch.Generator
) -> int:
    """How many rows are correct before and after every attack; those already wrong are not attacked again."""
    correct = predicted_classes(model(normalise_pixels(pixels))) == targets
    if ball.radius == 0:
        return int(correct.sum())
    for _ in range(restarts):
        pixels = pixels[correct]
        targets = targets[correct]
        if not len(pixels):
            return 0
        attacked = ascend(_loss_at(model, targets), pixels, ball, generator)
        correct = predicted_classes(model(normalise_pixels(attacked))) == targets
    return int(correct.sum())


def _loss_at(model: nn.Module, targets: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda points: loss_of(model(normalise_pixels(points)).float(), targets, reduction="none")


class _Adversary:
    """Changes a batch before it is trained on: shifts, flips, then an attack."""

    def __init__(self, model: nn.Module, ball: Ball, seed: int, shift: int, flip: bool):
        self._model = model
        self._ball = ball
        self._seed = seed
        self._shift = shift
        self._flip = flip
        self._generator: torch.Generator | None = None  # made on the device of the first batch

    def __call__(self, x: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        if self._generator is None:
            self._generator = torch.Generator(x.device).manual_seed(self._seed)
        pixels = (x + 2) / 4
        if self._flip:
            draws = torch.rand((len(pixels), 1, 1, 1), generator=self._generator, device=pixels.device)
            pixels = torch.where(draws < 0.5, pixels.flip(3), pixels)
        if self._shift:
            pixels = shift_randomly(pixels, self._shift, self._generator)
        pixels = pixels.clamp(0, 1)  # rounding may leave [0, 1] by a hair
        # Attacked as it will be used: in training mode, attacks would also count into the running means.
        with evaluating(self._model), precision(x.device):
            attacked = ascend(_loss_at(self._model, targets), pixels, self._ball, self._generator)
        return normalise_pixels(attacked)


def shift_randomly(pixels: torch.Tensor, most: int, generator: torch.Generator) -> torch.Tensor:
    """Each image (b, c, h, w) shifted by up to `most` pixels both ways; what comes in is black."""
    b, _, h, w = pixels.shape
    padded = functional.pad(pixels, (most,) * 4)
    down, right = torch.randint(0, 2 * most + 1, (2, b, 1), generator=generator, device=pixels.device)
    rows = (down + torch.arange(h, device=pixels.device))[:, :, None]
    columns = (right + torch.arange(w, device=pixels.device))[:, None, :]
    each = torch.arange(b, device=pixels.device)[:, None, None]
    return padded.permute(0, 2, 3, 1)[each, rows, columns].permute(0, 3, 1, 2)


def _sample_rows(images: Images, labels: Images, seed: int) -> tuple[Images, Images]:
    """At most `ATTACKED_ROWS` rows, at random."""
    if len(images) <= ATTACKED_ROWS:
        return images, labels
    rows = np.random.default_rng(seed).choice(len(images), ATTACKED_ROWS, replace=False)
    return images[rows], labels[rows]
