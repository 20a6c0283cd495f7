"""Training further from where a network stands, on its own rows and on others beside them.

The loss is CE(rows) + strength * CE(others): with every batch of rows goes one of the others, which start over when
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
from ..tensors import Prepare, checked_pictures, evaluating, moved, pixels_of
from .loop import loss_of, said

Labelled = tuple[Array, Array]  # pictures (n, h, w, c) or (n, h, w) as bytes, and classes (n,)


@dataclass(frozen=True)
class Tuned:
    """The end of one epoch; accuracies are of the network as it stands there."""

    number: int
    loss: float
    validation_accuracy: float
    others_accuracy: float  # of the others that were learnt from


@dataclass(frozen=True, eq=False)
class _Set:
    """Labelled pictures on the device."""

    pictures: torch.Tensor
    labels: torch.Tensor

    @classmethod
    def on(cls, where: torch.device, given: Labelled, name: str) -> _Set:
        pictures = checked_pictures(given[0], name)
        if len(pictures) != len(given[1]) or not len(pictures):
            raise InputError(
                f"`{name}` needs one label a picture, and one of them; got {len(given[1])}, {len(pictures)}"
            )
        labels = torch.from_numpy(np.array(given[1], dtype=np.int64))
        return cls(torch.from_numpy(np.ascontiguousarray(pictures)).to(where), labels.to(where))

    def batch(self, rows: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return pixels_of(self.pictures[rows]), self.labels[rows]


def tune_beside(
    model: nn.Module,
    rows: Labelled,
    others: Labelled,
    *,
    strength: float,
    validation: Labelled,
    prepare: Prepare | None = None,
    epochs: int = 3,
    batch: int = 256,
    lr: float = 1e-3,
    patience: int = 2,
    prefer: Callable[[Tuned], Any] | None = None,
    device: torch.device | str | None = None,
    seed: int = 0,
) -> tuple[nn.Module, tuple[Tuned, ...]]:
    """A tuned copy, as it was after its best epoch, and all epochs.

    prefer: what to say of an epoch, the more the better; left out, its validation accuracy. patience: epochs without
    a better one before it stops.
    """
    if epochs < 1 or batch < 2 or not (math.isfinite(strength) and strength >= 0):
        raise InputError(f"tuning needs 1 epoch, batches of 2, strength >= 0; got {epochs}, {batch}, {strength}")
    model = _unfrozen(copy.deepcopy(model))
    history: list[Tuned] = []
    best: dict[str, torch.Tensor] = {}
    with moved(model, device) as where, _training(model, where, seed):
        sets = [
            _Set.on(where, given, name)
            for given, name in ((rows, "rows"), (others, "others"), (validation, "validation"))
        ]
        optimiser = torch.optim.Adam(model.parameters(), lr=lr, fused=where.type == "cuda")
        chance = torch.Generator().manual_seed(seed)
        beside = _endless(len(sets[1].labels), batch, torch.Generator().manual_seed(seed + 1))
        for number in range(epochs):
            mean = _epoch(model, prepare, optimiser, (sets[0], sets[1]), (strength, batch), (chance, beside))
            held, learnt = (_accuracy(model, prepare, one) for one in (sets[2], sets[1]))
            history.append(Tuned(number, mean, held, learnt))
            at = best_epoch(history, prefer)
            if at == number:
                best = {name: value.detach().clone() for name, value in model.state_dict().items()}
            if number - at >= patience:
                break
        model.load_state_dict(best)
    return model, tuple(history)


def _unfrozen(model: nn.Module) -> nn.Module:
    """All of it where all is frozen: so one keeps a network that is only looked at. Where only some is, someone chose
    what may learn, and that stays."""
    if not any(value.requires_grad for value in model.parameters()):
        for value in model.parameters():
            value.requires_grad_(value.is_floating_point())
    if not any(value.requires_grad for value in model.parameters()):
        raise InputError("the network has no weights that can be tuned; give one that has parameters")
    return model


@contextmanager
def _training(model: nn.Module, where: torch.device, seed: int) -> Iterator[None]:
    """What a network drops at random comes from the seed; modes and torch's own chance are put back."""
    modes = [(module, module.training) for module in model.modules()]
    with torch.random.fork_rng(devices=[where] if where.type == "cuda" else []):
        torch.manual_seed(seed)
        yield
    for module, mode in modes:
        module.training = mode


def best_epoch(history: Sequence[Tuned], prefer: Callable[[Tuned], Any] | None = None) -> int:
    """The last of the best."""
    liked = [one.validation_accuracy if prefer is None else prefer(one) for one in history]
    return max(range(len(history)), key=lambda i: (liked[i], i))


def accuracy_of(
    model: nn.Module, given: Labelled, *, prepare: Prepare | None = None, device: torch.device | str | None = None
) -> float:
    """Return the share of labelled images that the model classifies correctly."""
    with moved(model, device) as where:
        return _accuracy(model, prepare, _Set.on(where, given, "pictures"))


def _epoch(
    model: nn.Module,
    prepare: Callable[[torch.Tensor], torch.Tensor] | None,
    optimiser: torch.optim.Optimizer,
    sets: tuple[_Set, _Set],
    plan: tuple[float, int],
    chances: tuple[torch.Generator, Iterator[torch.Tensor]],
) -> float:
    (own, others), (strength, batch), (chance, beside) = sets, plan, chances
    n, where = len(own.labels), own.labels.device
    total, steps = torch.zeros((), device=where), math.ceil(n / batch)
    model.train()
    for rows in torch.randperm(n, generator=chance).to(where).tensor_split(steps):
        (x, y), (also, called) = own.batch(rows), others.batch(next(beside).to(where))
        # One pass over both: a network that normalises by its batch must see them as they will come.
        joined = torch.cat([x, also])
        logits = model(joined if prepare is None else prepare(joined))
        loss = loss_of(logits[: len(x)], y) + strength * loss_of(logits[len(x) :], called)
        optimiser.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        optimiser.step()
        total += loss.detach()
    mean = float(total) / steps
    if not math.isfinite(mean):
        raise InputError(f"the loss is {mean} at strength {strength:g}; use a smaller `lr` or strength")
    return mean


def _endless(n: int, batch: int, chance: torch.Generator) -> Iterator[torch.Tensor]:
    while True:
        yield from torch.randperm(n, generator=chance).tensor_split(math.ceil(n / batch))


def _accuracy(model: nn.Module, prepare: Prepare | None, given: _Set, batch: int = 2048) -> float:
    right = 0
    with evaluating(model):
        for start in range(0, len(given.labels), batch):
            x, y = given.batch(torch.arange(start, min(start + batch, len(given.labels)), device=given.labels.device))
            right += int((said(model(x if prepare is None else prepare(x))) == y).sum())
    return right / len(given.labels)
