"""One training loop for pictures, and one reading of a trained network.

Pictures stay bytes (n, px, px, 3) until a batch is used; on a GPU they lie there whole where they fit, so that a
step is an index, a forward and a backward pass.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from ..core import Array, InputError
from ..tensors import evaluating, moved, tapped

WARM_UP = 0.1  # share of the steps in which the rate rises
FITS = 0.6  # share of a GPU's free memory that pictures may take
WEIGHT_DECAY = 1e-4

Images = Array | torch.Tensor
Disturb = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]  # a prepared batch and its labels -> another batch


@dataclass(frozen=True)
class Epoch:
    """`loss` is the mean over the epoch's batches while they were learnt from; accuracy is of the epoch's end."""

    number: int
    loss: float
    validation_accuracy: float | None
    robust_accuracy: float | None = None  # where `fit_robust` trained, of some validation rows


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
    progress: Callable[[Epoch], None] | None = None,
    disturb: Disturb | None = None,
) -> tuple[Epoch, ...]:
    """Trains in place, then brings the model home: binary cross-entropy for one logit, cross-entropy for more.

    disturb: what is learnt from instead of each batch.
    """
    _check(images, labels, epochs, batch)
    chance = torch.Generator().manual_seed(seed)
    steps = math.ceil(len(images) / batch)
    history: list[Epoch] = []
    with moved(model, device) as where:
        pixels, targets = _resident(images, where), tensor_of(labels).to(where)
        check_labels(model, pixels[:2].to(where), targets)
        optimiser = _optimiser(model, lr, where)
        for number in range(epochs):
            # Batches of nearly one size: a last one of a single row has no variance to normalise by.
            parts = torch.randperm(len(pixels), generator=chance).to(pixels.device).tensor_split(steps)
            rates = [lr * _share(number * steps + step, epochs * steps) for step in range(steps)]
            loss = _epoch(model, optimiser, pixels, targets, list(zip(parts, rates, strict=True)), disturb)
            accuracy = None if validation is None else _accuracy(model, *validation, where, batch)
            history.append(Epoch(number, loss, accuracy))
            if progress is not None:
                progress(history[-1])
    return tuple(history)


def outputs(
    model: nn.Module, images: Images, *, device: torch.device | str | None = None, batch: int = 512
) -> tuple[Array, Array]:
    """(n, k) logits and (n, d) penultimate activations, float32, a batch at a time."""
    logits, penultimate = [], []
    with moved(model, device) as where, evaluating(model), tapped(model) as tap:
        for start in range(0, len(images), batch):
            part = tensor_of(images[start : start + batch]).to(where)
            logits.append(model(prepared(part)).float().cpu().numpy())
            penultimate.append(tap.take(len(part)).numpy())
    return np.concatenate(logits), np.concatenate(penultimate)


def prepared(images: torch.Tensor) -> torch.Tensor:
    """(b, px, px, 3) uint8 -> (b, 3, px, px) float32 between -2 and 2; lies in memory as channels-last already."""
    return images.permute(0, 3, 1, 2).float().div_(255 * 0.25).sub_(2)


def scaled(pixels: torch.Tensor) -> torch.Tensor:
    """Pixels in [0, 1] as `prepared` gives them: lengths become four times as long."""
    return 4 * pixels - 2


def _epoch(
    model: nn.Module,
    optimiser: torch.optim.Optimizer,
    pixels: torch.Tensor,
    targets: torch.Tensor,
    plan: list[tuple[torch.Tensor, float]],
    disturb: Disturb | None,
) -> float:
    """The mean loss of one pass over `plan`, batches of rows with their rates; waits for the device at its end only."""
    model.train()
    total = torch.zeros((), device=targets.device)
    for rows, rate in plan:
        for group in optimiser.param_groups:
            group["lr"] = rate
        x, y = prepared(pixels[rows].to(targets.device, non_blocking=True)), targets[rows.to(targets.device)]
        x = x if disturb is None else disturb(x, y)
        with precision(targets.device):
            logits = model(x)
        loss = loss_of(logits.float(), y)
        optimiser.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        optimiser.step()
        total += loss.detach()
    mean = float(total) / len(plan)
    if not math.isfinite(mean):
        raise InputError(f"the loss is {mean} after {len(plan)} steps; use a smaller `lr`")
    return mean


def loss_of(logits: torch.Tensor, targets: torch.Tensor, reduction: str = "mean") -> torch.Tensor:
    """Binary cross-entropy for one logit, cross-entropy for more."""
    if logits.shape[1] == 1:
        return functional.binary_cross_entropy_with_logits(logits[:, 0], targets.float(), reduction=reduction)
    return functional.cross_entropy(logits, targets.long(), reduction=reduction)


def said(logits: torch.Tensor) -> torch.Tensor:
    """(b,) the class that is predicted."""
    return (logits[:, 0] > 0).long() if logits.shape[1] == 1 else logits.argmax(dim=1)


def _accuracy(model: nn.Module, images: Images, labels: Images, where: torch.device, batch: int) -> float:
    right, truth = 0, tensor_of(labels)
    with evaluating(model):
        for start in range(0, len(images), batch):
            with precision(where):
                logits = model(prepared(tensor_of(images[start : start + batch]).to(where)))
            right += int((said(logits).cpu() == truth[start : start + batch].long()).sum())
    return right / len(truth)


def _share(step: int, total: int) -> float:
    """Of the full rate: a straight rise, then half a cosine down to nothing."""
    at, rise = (step + 1) / total, WARM_UP
    return at / rise if at < rise else 0.5 * (1 + math.cos(math.pi * (at - rise) / (1 - rise + 1 / total)))


def _optimiser(model: nn.Module, lr: float, where: torch.device) -> torch.optim.Optimizer:
    if where.type != "cuda":
        return torch.optim.Adam(model.parameters(), lr=lr, weight_decay=WEIGHT_DECAY)
    model.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # missing from torch's annotations
    return torch.optim.Adam(model.parameters(), lr=lr, weight_decay=WEIGHT_DECAY, fused=True)


def precision(where: torch.device) -> AbstractContextManager[object]:
    """Half of it on a GPU."""
    return torch.autocast("cuda", dtype=torch.bfloat16) if where.type == "cuda" else nullcontext()


def _resident(images: Images, where: torch.device) -> torch.Tensor:
    """On the device where they fit, else where they are."""
    pixels = tensor_of(images)
    if where.type == "cuda" and pixels.nbytes > FITS * torch.cuda.mem_get_info(where)[0]:
        return pixels
    return pixels.to(where)


def tensor_of(values: Images) -> torch.Tensor:
    """The same values, where they are."""
    # torch complains of arrays it may not write to, and asks that none has a negative stride.
    return values if isinstance(values, torch.Tensor) else torch.from_numpy(np.require(values, requirements=["C", "W"]))


def _check(images: Images, labels: Images, epochs: int, batch: int) -> None:
    check_images(images, labels)
    if len(images) < 2 or epochs < 1 or batch < 2:
        raise InputError(f"training needs 2 images, 1 epoch and batches of 2; got {len(images)}, {epochs}, {batch}")


def check_images(images: Images, labels: Images) -> None:
    if len(images) != len(labels):
        raise InputError(f"`labels` has {len(labels)} rows and `images` {len(images)}; give one label an image")
    if images.ndim != 4 or images.shape[-1] != 3 or str(images.dtype).removeprefix("torch.") != "uint8":
        raise InputError(f"`images` must be bytes (n, px, px, 3); got {images.dtype} {tuple(images.shape)}")


def check_labels(model: nn.Module, two: torch.Tensor, targets: torch.Tensor) -> None:
    """A label beyond the logits would train nonsense with one logit, and end a GPU's process with more."""
    with evaluating(model):
        logits = model(prepared(two)).shape[1]
    names = "0 or 1" if logits == 1 else f"0 to {logits - 1}"
    wrong = torch.isin(targets, torch.arange(max(2, logits), device=targets.device), invert=True).nonzero()
    if len(wrong):
        row = int(wrong[0])
        raise InputError(f"`labels` must be {names} for {logits} logits; got {targets[row].item()} in row {row}")
