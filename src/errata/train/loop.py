"""The training loop that all training here shares (`run_epoch`), training of a classifier (`fit`), and its outputs.

Images stay bytes (n, px, px, 3), grey ones (n, px, px), until a batch is used; on a GPU they are stored there whole
where they fit, so that a step is an index, a forward and a backward pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from ..core import Array, InputError, Progress, silent
from ..tensors import capture_layer, evaluating, is_out_of_memory, on_device
from .checks import (
    Images,
    as_tensor,
    check_classes,
    check_labelled,
    check_numbers,
    check_validation,
    check_weights,
    with_channel,
)

WARM_UP = 0.1  # share of the steps in which the rate rises
FITS = 0.6  # share of a GPU's free memory that images may take
WEIGHT_DECAY = 1e-4

Batch = TypeVar("Batch")
Disturb = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]  # a normalised batch and its labels -> another batch
Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]  # (b, k) logits, (b,) targets -> (b,)


@dataclass(frozen=True)
class Epoch:
    """One epoch of `fit` or `fit_robust`."""

    number: int
    loss: float  # mean over the epoch's batches, each as it was trained on
    validation_accuracy: float | None  # at the end of the epoch
    robust_accuracy: float | None = None  # the same under attack, of some validation rows; of `fit_robust` only


@dataclass(frozen=True, eq=False)
class _TrainingRows:
    """What a classifier is trained on, and by which loss."""

    pixels: torch.Tensor
    targets: torch.Tensor
    weights: torch.Tensor | None
    loss: Loss
    disturb: Disturb | None

    def batch_loss(self, model: nn.Module, rows: torch.Tensor) -> torch.Tensor:
        """The mean loss of some rows, with its graph."""
        device = self.targets.device
        x = normalise_bytes(self.pixels[rows].to(device, non_blocking=True))
        rows = rows.to(device)
        y = self.targets[rows]
        if self.disturb is not None:
            x = self.disturb(x, y)
        with precision(device):
            logits = model(x)
        losses = self.loss(logits.float(), y)
        if self.weights is not None:
            losses = losses * self.weights[rows]
        return losses.mean()


def run_epoch(
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    batches: Iterable[Batch],
    batch_loss: Callable[[Batch], torch.Tensor],
    *,
    name: str = "the loss",
    cure: str = "use a smaller `lr`",
) -> float:
    """One pass over `batches`, with a step of the optimiser after each; returns the mean of `batch_loss`.

    The loss is read from the device once, at the end. name, cure: what the error for a loss that is not finite says.
    """
    model.train()
    total: torch.Tensor | float = 0.0
    steps = 0
    for batch in batches:
        loss = batch_loss(batch)
        optimiser.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        optimiser.step()
        total = total + loss.detach()
        steps += 1
    mean = float(total) / steps
    if not math.isfinite(mean):
        raise InputError(f"{name} is {mean} after {steps} steps; {cure}")
    return mean


def fit(
    model: nn.Module,
    images: Images,
    labels: Images,
    *,
    epochs: int,
    batch: int,
    lr: float,
    device: torch.device | str | None = None,
    seed: int = 0,
    validation: tuple[Images, Images] | None = None,
    progress: Progress = silent,
    on_epoch: Callable[[Epoch], None] | None = None,
    disturb: Disturb | None = None,
    weights: Array | None = None,
    loss: Loss | None = None,
) -> tuple[Epoch, ...]:
    """Train a classifier in place, on `device` and then back where it was; returns one `Epoch` for each epoch.

    images, labels: (n, px, px, 3) bytes, or grey (n, px, px), and (n,) classes. on_epoch: called with every `Epoch` as
    it ends. disturb: maps a batch to what is trained on instead. weights: (n,) how often each row counts. Default: 1.
    loss: of logits and labels, one number per row. Default: binary cross-entropy for one logit, cross-entropy for more.
    """
    check_numbers(epochs=epochs, batch=batch, lr=lr, seed=seed)
    images, targets = check_labelled(images, labels)
    if len(images) < 2 or batch < 2:
        raise InputError(f"training needs 2 images and batches of 2; got {len(images)} and {batch}")
    check_weights(weights, len(images))
    watched = None if validation is None else check_labelled(*check_validation(validation))
    generator = torch.Generator().manual_seed(seed)
    steps = math.ceil(len(images) / batch)
    history: list[Epoch] = []
    with on_device(model, device) as where:
        pixels = resident(images, where)
        targets = targets.to(where)
        check_labels(model, pixels[:2].to(where), targets)
        row_weights = None if weights is None else torch.as_tensor(weights, dtype=torch.float32).to(where)
        rows = _TrainingRows(pixels, targets, row_weights, loss or row_losses, disturb)
        optimiser = new_optimiser(model, lr, where)
        for number in range(epochs):
            # Batches of nearly one size: a last one of a single row has no variance to normalise by.
            parts = torch.randperm(len(pixels), generator=generator).to(pixels.device).tensor_split(steps)
            rates = [lr * rate_share(number * steps + step, epochs * steps) for step in range(steps)]
            batches = scheduled(optimiser, parts, rates)
            mean = run_epoch(model, optimiser, batches, lambda part: rows.batch_loss(model, part))
            accuracy = None if watched is None else _accuracy(model, *watched, where, batch)
            history.append(Epoch(number, mean, accuracy))
            progress("train", (number + 1) / epochs)
            if on_epoch is not None:
                on_epoch(history[-1])
    return tuple(history)


def outputs(
    model: nn.Module, images: Images, *, device: torch.device | str | None = None, batch: int = 512
) -> tuple[Array, Array]:
    """(n, k) logits and (n, d) penultimate activations, float32, computed in batches."""
    logits: list[Array] = []
    penultimate: list[Array] = []
    with on_device(model, device) as where, evaluating(model), capture_layer(model) as capture:
        for start in range(0, len(images), batch):
            part = as_tensor(images[start : start + batch]).to(where)
            logits.append(model(normalise_bytes(part)).float().cpu().numpy())
            penultimate.append(capture.take(len(part)).numpy())
    return np.concatenate(logits), np.concatenate(penultimate)


def normalise_bytes(images: torch.Tensor) -> torch.Tensor:
    """(b, px, px, c) uint8 -> (b, c, px, px) float32 between -2 and 2, which is channels-last in memory already."""
    pixels = as_tensor(with_channel(images))
    return pixels.permute(0, 3, 1, 2).float().div_(255 * 0.25).sub_(2)


def normalise_pixels(pixels: torch.Tensor) -> torch.Tensor:
    """Pixels in [0, 1] as `normalise_bytes` gives them; distances become four times as long."""
    return 4 * pixels - 2


def row_losses(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """(b,) the default loss of `fit`."""
    return loss_of(logits, targets, reduction="none")


def generalised_cross_entropy(q: float = 0.7) -> Loss:
    """(1 - p^q) / q of the label's probability p: easy rows count more than in cross-entropy (Zhang, Sabuncu 2018).

    A model trained with it relies on what is easiest to learn, and fails where that misleads (Nam et al. 2020).
    """
    if not 0 < q <= 1:
        raise InputError(f"`q` must lie above 0 and be at most 1; got {q}")
    return lambda logits, targets: -torch.expm1(-q * row_losses(logits, targets)) / q


def loss_of(logits: torch.Tensor, targets: torch.Tensor, reduction: str = "mean") -> torch.Tensor:
    """Binary cross-entropy for one logit, cross-entropy for more."""
    if logits.shape[1] == 1:
        return functional.binary_cross_entropy_with_logits(logits[:, 0], targets.float(), reduction=reduction)
    return functional.cross_entropy(logits, targets.long(), reduction=reduction)


def predicted_classes(logits: torch.Tensor) -> torch.Tensor:
    """(b,) the class of each row of logits (b, k), or (b, 1) for two classes."""
    if logits.shape[1] == 1:
        return (logits[:, 0] > 0).long()
    return logits.argmax(dim=1)


def scheduled(optimiser: torch.optim.Optimizer, batches: Iterable[Batch], rates: Iterable[float]) -> Iterator[Batch]:
    """The batches, with the optimiser set to each one's learning rate before it is used."""
    # A loader's last batch of one row is put to the one before, so that there may be one rate too many.
    for batch, rate in zip(batches, rates, strict=False):
        for group in optimiser.param_groups:
            group["lr"] = rate
        yield batch


def rate_share(step: int, total: int) -> float:
    """Share of the full learning rate: a linear rise, then half a cosine down to 0."""
    position = (step + 1) / total
    if position < WARM_UP:
        return position / WARM_UP
    return 0.5 * (1 + math.cos(math.pi * (position - WARM_UP) / (1 - WARM_UP + 1 / total)))


def _accuracy(model: nn.Module, images: Images, labels: torch.Tensor, where: torch.device, batch: int) -> float:
    targets = labels.long()

    def outputs() -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        for start in range(0, len(images), batch):
            with precision(where):
                logits = model(normalise_bytes(as_tensor(images[start : start + batch]).to(where)))
            yield logits, targets[start : start + batch].to(where)

    return share_correct(model, outputs())


def share_correct(model: nn.Module, outputs: Iterable[tuple[torch.Tensor, torch.Tensor]]) -> float:
    """The share of rows that a model classifies correctly; outputs: logits and classes of a batch at a time, computed
    as they are read, with the model in its evaluation mode."""
    correct = 0
    total = 0
    with evaluating(model):
        for logits, classes in outputs:
            correct += int((predicted_classes(logits) == classes).sum())
            total += len(classes)
    return correct / total


def new_optimiser(model: nn.Module, lr: float, where: torch.device) -> torch.optim.Optimizer:
    if where.type != "cuda":
        return torch.optim.Adam(model.parameters(), lr=lr, weight_decay=WEIGHT_DECAY)
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # missing from torch's annotations
    return torch.optim.Adam(model.parameters(), lr=lr, weight_decay=WEIGHT_DECAY, fused=True)


def precision(where: torch.device) -> AbstractContextManager[object]:
    """Half precision on a GPU, full precision elsewhere."""
    if where.type == "cuda":
        return torch.autocast("cuda", dtype=torch.bfloat16)
    return nullcontext()


def resident(images: Images, where: torch.device) -> torch.Tensor:
    """The images on the device where they fit, else where they are."""
    pixels = as_tensor(images)
    if where.type == "cuda" and pixels.nbytes > FITS * torch.cuda.mem_get_info(where)[0]:
        return pixels
    return pixels.to(where)


def check_labels(model: nn.Module, two: torch.Tensor, targets: torch.Tensor) -> None:
    """An error unless every label has a logit: such a label would train nonsense, or end a GPU's process."""
    pixels = normalise_bytes(two)
    with evaluating(model), naming_images(pixels):
        logits = model(pixels)
    check_classes(logits.shape[1], targets)


@contextmanager
def naming_images(pixels: torch.Tensor) -> Iterator[None]:
    """Around the first use of a model: one sentence where it does not take images (b, c, h, w) of this size."""
    try:
        yield
    except RuntimeError as error:
        if is_out_of_memory(error):  # which is not about the images
            raise
        shape = " x ".join(map(str, pixels.shape[1:]))
        words = str(error) or type(error).__name__
        raise InputError(
            f"the model does not take images of {shape} (channels, height, width): {words.splitlines()[0]}; "
            "give a network for them, `network(..., channels=1)` for grey ones"
        ) from error
