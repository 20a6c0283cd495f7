"""Further training of a network on its own rows, and on extra rows beside them.

The loss is CE(rows) + strength * CE(extra): every batch of rows comes with one of extra rows, which start over when
they end.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from ..core import Array, InputError
from ..tensors import Prepare, on_device, to_pixels, validate_images
from .loop import loss_of, run_epoch, share_correct

Labelled = tuple[Array, Array]  # images (n, h, w, c) or (n, h, w) as bytes, and classes (n,)


@dataclass(frozen=True)
class TuningEpoch:
    """One epoch of `fine_tune`; accuracies are those at its end."""

    number: int
    loss: float
    validation_accuracy: float
    extra_accuracy: float | None  # of the extra rows that are trained on; None where there are none


@dataclass(frozen=True, eq=False)
class _LabelledTensors:
    """Labelled images on the device."""

    images: torch.Tensor
    labels: torch.Tensor

    @classmethod
    def on(cls, where: torch.device, labelled: Labelled, name: str) -> _LabelledTensors:
        """Labelled images, checked and moved to a device."""
        images = validate_images(labelled[0], name)
        classes = labelled[1]
        if len(images) != len(classes) or not len(images):
            raise InputError(f"`{name}` needs one label per image, and one image; got {len(classes)}, {len(images)}")
        labels = torch.from_numpy(np.array(classes, dtype=np.int64))
        return cls(torch.from_numpy(np.ascontiguousarray(images)).to(where), labels.to(where))

    def batch(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Pixels and labels of some rows."""
        return to_pixels(self.images[rows]), self.labels[rows]


def fine_tune(
    model: nn.Module,
    rows: Labelled,
    extra: Labelled | None = None,
    *,
    strength: float = 1.0,
    validation: Labelled,
    prepare: Prepare | None = None,
    epochs: int = 3,
    batch: int = 256,
    lr: float = 1e-3,
    prefer: Callable[[TuningEpoch], Any] | None = None,
    device: torch.device | str | None = None,
    seed: int = 0,
) -> tuple[nn.Module, tuple[TuningEpoch, ...]]:
    """Train a copy of a network further; returns it as it was after its best epoch, and all epochs.

    rows: images and classes that it is trained on. extra: more of them, whose loss counts `strength` times. validation:
    rows that choose the best epoch. prepare: from pixels in [0, 1] to what the network takes. prefer: the value of an
    epoch, higher is better. Default: its validation accuracy.
    """
    if epochs < 1 or batch < 2 or not (math.isfinite(strength) and strength >= 0):
        raise InputError(f"tuning needs 1 epoch, batches of 2, strength >= 0; got {epochs}, {batch}, {strength}")
    model = _trainable(copy.deepcopy(model))
    history: list[TuningEpoch] = []
    best: dict[str, torch.Tensor] = {}
    with on_device(model, device) as where, _training_state(model, where, seed):
        own = _LabelledTensors.on(where, rows, "rows")
        beside = None if extra is None else _LabelledTensors.on(where, extra, "extra")
        chooser = _LabelledTensors.on(where, validation, "validation")
        loss = _JointLoss(model, prepare, own, beside, strength, batch, seed)
        optimiser = torch.optim.Adam(model.parameters(), lr=lr, fused=where.type == "cuda")
        generator = torch.Generator().manual_seed(seed)
        n = len(own.labels)
        for number in range(epochs):
            parts = torch.randperm(n, generator=generator).to(where).tensor_split(math.ceil(n / batch))
            mean = run_epoch(
                model,
                optimiser,
                parts,
                loss,
                name=f"the loss at strength {strength:g}",
                cure="use a smaller `lr` or strength",
            )
            extra_accuracy = None if beside is None else _accuracy(model, prepare, beside)
            history.append(TuningEpoch(number, mean, _accuracy(model, prepare, chooser), extra_accuracy))
            if best_epoch(history, prefer) == number:
                best = {name: value.detach().clone() for name, value in model.state_dict().items()}
        model.load_state_dict(best)
    return model, tuple(history)


class _JointLoss:
    """CE(rows) + strength * CE(extra) of a batch of rows; every call takes the next batch of extra rows."""

    def __init__(
        self,
        model: nn.Module,
        prepare: Prepare | None,
        own: _LabelledTensors,
        extra: _LabelledTensors | None,
        strength: float,
        batch: int,
        seed: int,
    ):
        self._model = model
        self._prepare = prepare
        self._own = own
        self._extra = extra
        self._strength = strength
        count = 0 if extra is None else len(extra.labels)
        self._extra_rows = _endless(count, batch, torch.Generator().manual_seed(seed + 1))

    def __call__(self, rows: torch.Tensor) -> torch.Tensor:
        x, y = self._own.batch(rows)
        if self._extra is None:
            return loss_of(_logits(self._model, self._prepare, x), y)
        extra_x, extra_y = self._extra.batch(next(self._extra_rows).to(y.device))
        # One pass over both: a network that normalises by its batch must see them as they will come.
        logits = _logits(self._model, self._prepare, torch.cat([x, extra_x]))
        return loss_of(logits[: len(x)], y) + self._strength * loss_of(logits[len(x) :], extra_y)


def _endless(n: int, batch: int, generator: torch.Generator) -> Iterator[torch.Tensor]:
    while True:
        yield from torch.randperm(n, generator=generator).tensor_split(math.ceil(n / batch))


def _logits(model: nn.Module, prepare: Prepare | None, pixels: torch.Tensor) -> torch.Tensor:
    if prepare is not None:
        pixels = prepare(pixels)
    logits: torch.Tensor = model(pixels)
    return logits


def _trainable(model: nn.Module) -> nn.Module:
    """With all weights trainable where all are frozen, as in a network that is only evaluated. Where some are frozen,
    someone chose which, and that stays."""
    if not any(value.requires_grad for value in model.parameters()):
        for value in model.parameters():
            value.requires_grad_(value.is_floating_point())
    if not any(value.requires_grad for value in model.parameters()):
        raise InputError("the network has no weights that can be tuned; give one that has parameters")
    return model


@contextmanager
def _training_state(model: nn.Module, where: torch.device, seed: int) -> Iterator[None]:
    """Seeds torch for what a network draws at random; training modes and torch's own generators are restored."""
    modes = [(module, module.training) for module in model.modules()]
    devices = [where] if where.type == "cuda" else []
    with torch.random.fork_rng(devices=devices):
        torch.manual_seed(seed)
        yield
    for module, mode in modes:
        module.training = mode


def best_epoch(history: Sequence[TuningEpoch], prefer: Callable[[TuningEpoch], Any] | None = None) -> int:
    """The index of the epoch with the highest value; of equal ones the last."""
    if prefer is None:
        values: list[Any] = [epoch.validation_accuracy for epoch in history]
    else:
        values = [prefer(epoch) for epoch in history]
    return max(range(len(history)), key=lambda i: (values[i], i))


def measure_accuracy(
    model: nn.Module, labelled: Labelled, *, prepare: Prepare | None = None, device: torch.device | str | None = None
) -> float:
    """The share of labelled images that a network classifies correctly."""
    with on_device(model, device) as where:
        return _accuracy(model, prepare, _LabelledTensors.on(where, labelled, "images"))


def _accuracy(model: nn.Module, prepare: Prepare | None, labelled: _LabelledTensors, batch: int = 2048) -> float:
    rows = torch.arange(len(labelled.labels), device=labelled.labels.device)
    batches = (labelled.batch(rows[start : start + batch]) for start in range(0, len(rows), batch))
    return share_correct(model, ((_logits(model, prepare, x), y) for x, y in batches))
