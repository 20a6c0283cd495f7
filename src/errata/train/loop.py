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
Loss = Callable[[torch.Tensor, torch.Tensor], torch.Tensor]  # (b, k) logits, (b,) targets -> (b,)


@dataclass(frozen=True)
class Epoch:
    """`loss` is the mean over the epoch's batches while they were learnt from; accuracy is of the epoch's end."""

    number: int
    loss: float
    validation_accuracy: float | None
    robust_accuracy: float | None = None  # where `fit_robust` trained, of some validation rows


@dataclass(frozen=True, eq=False)
class _Rows:
    """What is learnt from, and how: pictures, labels, a weight for each, the loss, what disturbs a batch."""

    pixels: torch.Tensor
    targets: torch.Tensor
    weights: torch.Tensor | None
    loss: Loss
    disturb: Disturb | None

    def batch(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
        where = self.targets.device
        x, own = prepared(self.pixels[rows].to(where, non_blocking=True)), rows.to(where)
        y = self.targets[own]
        return x if self.disturb is None else self.disturb(x, y), y, None if self.weights is None else self.weights[own]


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
    weights: Array | None = None,
    loss: Loss | None = None,
) -> tuple[Epoch, ...]:
    """Trains in place, then brings the model home.

    disturb: what is learnt from instead of each batch. weights: (n,) how often each row counts; 1 where left out.
    loss: of logits and labels, one number a row; left out, binary cross-entropy for one logit, cross-entropy for more.
    """
    _check(images, labels, epochs, batch)
    check_weights(weights, len(images))
    chance = torch.Generator().manual_seed(seed)
    steps = math.ceil(len(images) / batch)
    history: list[Epoch] = []
    with moved(model, device) as where:
        pixels, targets = _resident(images, where), tensor_of(labels).to(where)
        check_labels(model, pixels[:2].to(where), targets)
        counted = None if weights is None else torch.as_tensor(weights, dtype=torch.float32).to(where)
        data = _Rows(pixels, targets, counted, loss or row_losses, disturb)
        optimiser = _optimiser(model, lr, where)
        for number in range(epochs):
            # Batches of nearly one size: a last one of a single row has no variance to normalise by.
            parts = torch.randperm(len(pixels), generator=chance).to(pixels.device).tensor_split(steps)
            rates = [lr * _share(number * steps + step, epochs * steps) for step in range(steps)]
            mean = _epoch(model, optimiser, data, list(zip(parts, rates, strict=True)))
            accuracy = None if validation is None else _accuracy(model, *validation, where, batch)
            history.append(Epoch(number, mean, accuracy))
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
    model: nn.Module, optimiser: torch.optim.Optimizer, data: _Rows, plan: list[tuple[torch.Tensor, float]]
) -> float:
    """The mean loss of one pass over `plan`, batches of rows with their rates; waits for the device at its end only."""
    model.train()
    total = torch.zeros((), device=data.targets.device)
    for rows, rate in plan:
        for group in optimiser.param_groups:
            group["lr"] = rate
        x, y, weights = data.batch(rows)
        with precision(data.targets.device):
            logits = model(x)
        losses = data.loss(logits.float(), y)
        loss = (losses if weights is None else losses * weights).mean()
        optimiser.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        optimiser.step()
        total += loss.detach()
    mean = float(total) / len(plan)
    if not math.isfinite(mean):
        raise InputError(f"the loss is {mean} after {len(plan)} steps; use a smaller `lr`")
    return mean


def row_losses(logits: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
    """(b,) what `fit` learns from unless told otherwise."""
    return loss_of(logits, targets, reduction="none")


def generalised_cross_entropy(q: float = 0.7) -> Loss:
    """(1 - p^q) / q of the label's probability p: easy rows count more than in cross-entropy (Zhang, Sabuncu 2018).

    A model trained so leans on what is easiest to learn, and fails where that misleads (Nam et al. 2020).
    """
    if not 0 < q <= 1:
        raise InputError(f"`q` must lie above 0 and be at most 1; got {q}")
    return lambda logits, targets: -torch.expm1(-q * row_losses(logits, targets)) / q


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


def check_weights(weights: Array | None, n: int) -> None:
    if weights is None:
        return
    if weights.shape != (n,):
        raise InputError(f"`weights` must have one number for each of {n} rows; got shape {weights.shape}")
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise InputError(f"`weights` must be finite and not negative; got {weights[bad[0]]} in row {bad[0]}")


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
