"""Correction of a classifier in regions that people labelled: one tuned copy for every strength, and which to take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..core import Array, InputError

if TYPE_CHECKING:
    from torch import nn

STRENGTHS = (1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 2, 5, 10, 20, 100, 1000)  # as published

Selection = Literal["no-harm", "validation"]
# A tuned copy at a strength, with its epochs: (strength) -> (model, history of `Tuned`).
Tune = Callable[[float], "tuple[nn.Module, Sequence[Any]]"]


@dataclass(frozen=True)
class Candidate:
    """One strength: what was known of it when it was chosen or not."""

    strength: float
    epoch: int
    validation_accuracy: float
    tuning_accuracy: float  # on the regions' samples that were learnt from


@dataclass(frozen=True)
class Validated:
    """The audited model on the rows that choose."""

    accuracy: float
    rows: int

    @property
    def floor(self) -> float:
        """A standard error below: what is not under it does no harm that can be told."""
        return self.accuracy - float(np.sqrt(self.accuracy * (1 - self.accuracy) / self.rows))


@dataclass(frozen=True, eq=False)
class Sweep:
    candidates: tuple[Candidate, ...]
    chosen: int
    model: nn.Module
    selection: Selection


def sweep(
    tune: Tune,
    strengths: Sequence[float],
    before: Validated,
    *,
    selection: Selection = "no-harm",
    progress: Callable[[float], None] | None = None,
    visit: Callable[[Candidate, nn.Module], None] | None = None,
) -> Sweep:
    """Every strength once, each from the audited weights. before: those on the validation rows.

    visit: is shown every tuned copy.
    """
    if not len(strengths):
        raise InputError("a correction needs at least one strength; give some, such as 0.1 and 1")
    prefer = preference(before, selection)
    candidates: list[Candidate] = []
    kept: dict[int, nn.Module] = {}
    for j, strength in enumerate(strengths):
        model, history = tune(strength)
        at = max(history, key=lambda epoch: (prefer(epoch), epoch.number))
        candidates.append(Candidate(strength, at.number, at.validation_accuracy, at.others_accuracy))
        able = eligible(candidates, before, selection)
        kept = {i: one for i, one in {**kept, j: model}.items() if able[i]}  # who falls behind never comes back
        if visit is not None:
            visit(candidates[-1], model)
        if progress is not None:
            progress((j + 1) / len(strengths))
    chosen = choose(candidates, before, selection)
    return Sweep(tuple(candidates), chosen, kept[chosen], selection)


def preference(before: Validated, selection: Selection) -> Callable[[Any], tuple[float, ...]]:
    """What to say of an epoch, so that the best one is kept: the same rule that chooses a strength."""
    if selection == "validation":
        return lambda epoch: (epoch.validation_accuracy,)

    def liked(epoch: Any) -> tuple[float, ...]:
        harmless = epoch.validation_accuracy >= before.floor
        return (harmless, epoch.others_accuracy if harmless else 0.0, epoch.validation_accuracy)

    return liked


def eligible(candidates: Sequence[Candidate], before: Validated, selection: Selection) -> Array:
    """(c,) bool. "no-harm": not below the audited model by more than a standard error. The most accurate one always
    is; with "validation", as published, no other."""
    accuracy = np.array([one.validation_accuracy for one in candidates])
    floor = before.floor if selection == "no-harm" else np.inf
    able: Array = accuracy >= min(floor, accuracy.max())
    return able


def choose(candidates: Sequence[Candidate], before: Validated, selection: Selection) -> int:
    """Of the eligible ones the most accurate on the regions' tuning samples; of equal ones the weakest strength."""
    able = eligible(candidates, before, selection)
    score = [(one.tuning_accuracy, one.validation_accuracy, -one.strength) for one in candidates]
    return max(np.flatnonzero(able).tolist(), key=lambda j: score[j])
