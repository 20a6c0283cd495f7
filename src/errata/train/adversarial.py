"""Training against an adversary that may change every image within a ball (Madry et al. 2018; Barlow's equation 1).

min over weights of the mean, over rows, of max over |x' - x| <= radius of the loss at x'. The inner maximum is a
projected ascent from a random point of the ball. Lengths are L2 in units of [0, 1] pixels, as in the literature
(.5 or 1 for CIFAR-10, 3 for ImageNet); the network takes pixels through `prepare`.
"""

from __future__ import annotations

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from ..core import InputError, Progress, silent
from ..tensors import Ball, Prepare, ascend, evaluating, on_device
from .checks import Images, check_numbers, check_validation
from .loop import (
    Epoch,
    loss_of,
    naming_images,
    new_optimiser,
    precision,
    predicted_classes,
    rate_share,
    run_epoch,
    scheduled,
)
from .pixels import ArrayRows, Loader, LoaderRows, PixelBatch, open_rows, prepare_of

ATTACKED_ROWS = 1_000  # validation rows attacked after each epoch, which cost as much as training on a few thousand


def fit_robust(
    model: nn.Module,
    images: Images | Loader,
    labels: Images | None = None,
    *,
    radius: float,
    epochs: int,
    lr: float,
    batch: int = 256,
    steps: int = 7,
    step: float | None = None,
    shift: int = 0,
    flip: bool = False,
    prepare: Prepare | None = None,
    device: torch.device | str | None = None,
    seed: int = 0,
    validation: tuple[Images, Images] | Loader | None = None,
    progress: Progress = silent,
    on_epoch: Callable[[Epoch], None] | None = None,
) -> tuple[Epoch, ...]:
    """Train a classifier in place on the worst images within `radius` that an ascent of `steps` steps finds.

    images, labels: bytes (n, h, w, 3), or (n, h, w) for grey ones, and (n,) classes. Or `images` is a loader of batches
    (images, classes), bytes or floats in [0, 1] with channels second; `batch` is then the loader's. step: the length
    of a step. Default: 2.5 radius / steps. A radius of 0 trains the standard twin: the same without attacks. shift,
    flip: before it is attacked, each image is shifted by up to `shift` pixels, and mirrored half the time. prepare:
    from pixels in [0, 1] to what the network takes. Default: `normalise_pixels` for the networks of this package;
    others must say. validation: rows or a loader that each epoch is measured on. An epoch's loss is that of attacked
    images; its `robust_accuracy` is of at most 1,000 validation rows, attacked as in training.
    """
    ball = Ball(radius, steps, step)
    check_numbers(epochs=epochs, batch=batch, lr=lr, shift=shift, seed=seed)
    prepare = prepare_of(model, prepare)
    rows = _training_rows(images, labels, batch)
    watched = None if validation is None else _validation_rows(validation, batch)
    history: list[Epoch] = []
    generator = torch.Generator().manual_seed(seed)
    with on_device(model, device) as where:
        _check_rows(model, prepare, rows, where, shift)
        if watched is not None:
            _check_rows(model, prepare, watched, where)
        rows = rows.on(where)
        adversary = _Adversary(model, ball, seed, shift, flip, prepare)
        optimiser = new_optimiser(model, lr, where)
        for number in range(epochs):
            rates = [lr * rate_share(number * rows.steps + i, epochs * rows.steps) for i in range(rows.steps)]
            batches = scheduled(optimiser, rows.shuffled(where, generator), rates)
            mean = run_epoch(model, optimiser, batches, adversary.loss)
            measured = _measure(model, watched, ball, prepare, batch, seed)
            history.append(Epoch(number, mean, *measured))
            progress("train", (number + 1) / epochs)
            if on_epoch is not None:
                on_epoch(history[-1])
    return tuple(history)


def robust_accuracy(
    model: nn.Module,
    images: Images | Loader,
    labels: Images | None = None,
    radius: float = 0.0,
    *,
    steps: int = 20,
    step: float | None = None,
    restarts: int = 1,
    prepare: Prepare | None = None,
    device: torch.device | str | None = None,
    batch: int = 512,
    seed: int = 0,
) -> float:
    """The share of rows classified correctly, also under every attack within `radius`; a radius of 0 is no attack.

    An upper bound: a stronger attack (more steps, more restarts) may lower it. images, labels, prepare: as for
    `fit_robust`. Of a loader, `radius` is given by its name.
    """
    if isinstance(labels, Real):
        raise InputError(
            f"`labels` must be classes, one for each image; got {labels}; with a loader give the radius by its name, "
            f"`radius={labels}`"
        )
    ball = Ball(radius, steps, step)
    check_numbers(restarts=restarts, batch=batch, seed=seed)
    prepare = prepare_of(model, prepare)
    rows = open_rows(images, labels, batch)
    if not rows.steps:
        raise InputError("an attack needs 1 image; got none")
    correct = 0
    total = 0
    with on_device(model, device) as where, evaluating(model):
        generator = torch.Generator(where).manual_seed(seed)
        _check_rows(model, prepare, rows, where)
        for pixels, targets in rows.in_order(where):
            correct += _count_robust(model, prepare, pixels, targets, ball, restarts, generator)
            total += len(targets)
    return correct / total


def _training_rows(images: Images | Loader, labels: Images | None, batch: int) -> ArrayRows | LoaderRows:
    rows = open_rows(images, labels, batch)
    if isinstance(rows, ArrayRows) and (len(rows) < 2 or batch < 2):
        raise InputError(f"training needs 2 images and batches of 2; got {len(rows)} and {batch}")
    return rows


def _validation_rows(validation: tuple[Images, Images] | Loader, batch: int) -> ArrayRows | LoaderRows:
    if isinstance(validation, tuple):
        return open_rows(*check_validation(validation), batch)
    return open_rows(validation, None, batch)


def _check_rows(
    model: nn.Module, prepare: Prepare, rows: ArrayRows | LoaderRows, where: torch.device, shift: int = 0
) -> None:
    """An error for images that the model does not take, a label without a logit, a shift that leaves no image."""
    pixels = rows.first(where)
    if shift >= min(pixels.shape[2:]):
        raise InputError(f"`shift` must be less than the width and height of images; got {shift}")
    with evaluating(model), naming_images(pixels):
        logits = model(prepare(pixels))
    rows.check_classes(logits.shape[1])


def _measure(
    model: nn.Module, rows: ArrayRows | LoaderRows | None, ball: Ball, prepare: Prepare, batch: int, seed: int
) -> tuple[float | None, float | None]:
    """Accuracy on validation rows, and that of some of them under attack."""
    if rows is None:
        return None, None
    attack: dict[str, Any] = {"steps": ball.steps, "step": ball.step, "prepare": prepare, "batch": batch, "seed": seed}
    few = _sample_rows(rows, seed)
    attacked = robust_accuracy(model, *few, ball.radius, **attack)
    device = next(model.parameters()).device
    total = 0
    correct = 0
    with evaluating(model):
        for pixels, targets in rows.in_order(device):
            correct += int((predicted_classes(model(prepare(pixels))) == targets).sum())
            total += len(targets)
    return correct / total, attacked


def _count_robust(
    model: nn.Module,
    prepare: Prepare,
    pixels: torch.Tensor,
    targets: torch.Tensor,
    ball: Ball,
    restarts: int,
    generator: torch.Generator,
) -> int:
    """How many rows are correct before and after every attack; those already wrong are not attacked again."""
    correct = predicted_classes(model(prepare(pixels))) == targets
    if ball.radius == 0:
        return int(correct.sum())
    for _ in range(restarts):
        pixels = pixels[correct]
        targets = targets[correct]
        if not len(pixels):
            return 0
        attacked = ascend(_loss_at(model, prepare, targets), pixels, ball, generator)
        correct = predicted_classes(model(prepare(attacked))) == targets
    return int(correct.sum())


def _loss_at(model: nn.Module, prepare: Prepare, targets: torch.Tensor) -> Callable[[torch.Tensor], torch.Tensor]:
    return lambda points: loss_of(model(prepare(points)).float(), targets, reduction="none")


class _Adversary:
    """Changes a batch before it is trained on: shifts, flips, then an attack."""

    def __init__(self, model: nn.Module, ball: Ball, seed: int, shift: int, flip: bool, prepare: Prepare):
        self._model = model
        self._ball = ball
        self._seed = seed
        self._shift = shift
        self._flip = flip
        self._prepare = prepare
        self._generator: torch.Generator | None = None  # made on the device of the first batch

    def loss(self, batch: PixelBatch) -> torch.Tensor:
        """The mean loss of a batch as it is attacked, with its graph."""
        pixels, targets = batch
        attacked = self.attacked(pixels, targets)
        with precision(pixels.device):
            logits = self._model(self._prepare(attacked))
        return loss_of(logits.float(), targets)

    def attacked(self, pixels: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        """(b, c, h, w) what is trained on."""
        if self._generator is None:
            self._generator = torch.Generator(pixels.device).manual_seed(self._seed)
        if self._flip:
            draws = torch.rand((len(pixels), 1, 1, 1), generator=self._generator, device=pixels.device)
            pixels = torch.where(draws < 0.5, pixels.flip(3), pixels)
        if self._shift:
            pixels = shift_randomly(pixels, self._shift, self._generator)
        if self._ball.radius == 0:
            return pixels
        # Attacked as it will be used: in training mode, attacks would also count into the running means.
        with evaluating(self._model), precision(pixels.device):
            loss = _loss_at(self._model, self._prepare, targets)
            return ascend(loss, pixels, self._ball, self._generator)


def shift_randomly(pixels: torch.Tensor, most: int, generator: torch.Generator) -> torch.Tensor:
    """Each image (b, c, h, w) shifted by up to `most` pixels both ways; what comes in is black."""
    b, _, h, w = pixels.shape
    padded = functional.pad(pixels, (most,) * 4)
    down, right = torch.randint(0, 2 * most + 1, (2, b, 1), generator=generator, device=pixels.device)
    rows = (down + torch.arange(h, device=pixels.device))[:, :, None]
    columns = (right + torch.arange(w, device=pixels.device))[:, None, :]
    each = torch.arange(b, device=pixels.device)[:, None, None]
    return padded.permute(0, 2, 3, 1)[each, rows, columns].permute(0, 3, 1, 2)


def _sample_rows(rows: ArrayRows | LoaderRows, seed: int) -> tuple[Images | Loader, Images | None]:
    """At most `ATTACKED_ROWS` rows, at random; of a loader the first batches that have so many."""
    if isinstance(rows, LoaderRows):
        return _first_batches(rows), None
    if len(rows) <= ATTACKED_ROWS:
        return rows.images, rows.labels
    some = np.random.default_rng(seed).choice(len(rows), ATTACKED_ROWS, replace=False)
    return rows.images[some], rows.labels[some]


def _first_batches(rows: LoaderRows) -> list[PixelBatch]:
    batches: list[PixelBatch] = []
    for batch in rows.in_order(torch.device("cpu")):
        batches.append(batch)
        if sum(len(targets) for _, targets in batches) >= ATTACKED_ROWS:
            break
    return batches
