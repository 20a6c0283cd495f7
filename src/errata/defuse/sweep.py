"""The strength of a correction: one tuned copy of the classifier for every strength, and which of them to choose."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from ..core import Array, InputError, Progress, silent

if TYPE_CHECKING:
    from torch import nn

STRENGTHS = (1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1, 2, 5, 10, 20, 100, 1000)  # as published

Selection = Literal["no-harm", "validation"]
# A tuned copy at a strength, with its epochs: (strength) -> (model, history of `TuningEpoch`).
Tune = Callable[[float], "tuple[nn.Module, Sequence[Any]]"]


@dataclass(frozen=True)
class Candidate:
    """One strength, and the accuracies by which it is chosen or not."""

    strength: float
    epoch: int  # the best one, whose weights are used
    validation_accuracy: float
    tuning_accuracy: float  # on the regions' samples that it was trained on


@dataclass(frozen=True)
class Validated:
    """The audited model on the rows that choose."""

    accuracy: float
    rows: int

    @property
    def floor(self) -> float:
        """The accuracy minus its standard error; above it, no harm can be shown."""
        return self.accuracy - float(np.sqrt(self.accuracy * (1 - self.accuracy) / self.rows))


@dataclass(frozen=True, eq=False)
class Sweep:
    """Every strength, and the one that was chosen."""

    candidates: tuple[Candidate, ...]
    chosen: int  # the index of a candidate
    model: nn.Module  # tuned at that strength
    selection: Selection


def sweep(
    tune: Tune,
    strengths: Sequence[float],
    before: Validated,
    *,
    selection: Selection = "no-harm",
    progress: Progress = silent,
    stage: str = "correct",
    visit: Callable[[Candidate, nn.Module], None] | None = None,
) -> Sweep:
    """Tune at every strength, each time from the audited weights, and choose one.

    before: the audited model on validation rows. stage: what progress is reported as. visit: called with every tuned
    copy.
    """
    if not len(strengths):
        raise InputError("a correction needs at least one strength; give some, such as 0.1 and 1")
    prefer = preference(before, selection)
    candidates: list[Candidate] = []
    models: dict[int, nn.Module] = {}
    for j, strength in enumerate(strengths):
        model, history = tune(strength)
        best = max(history, key=lambda epoch: (prefer(epoch), epoch.number))
        candidates.append(Candidate(strength, best.number, best.validation_accuracy, best.extra_accuracy))
        models[j] = model
        able = eligible(candidates, before, selection)
        models = {i: tuned for i, tuned in models.items() if able[i]}  # what is not eligible now never is again
        if visit is not None:
            visit(candidates[-1], model)
        progress(stage, (j + 1) / len(strengths))
    chosen = choose(candidates, before, selection)
    return Sweep(tuple(candidates), chosen, models[chosen], selection)


def preference(before: Validated, selection: Selection) -> Callable[[Any], tuple[float, ...]]:
    """The value of an epoch, by the same rule that chooses a strength: higher is better."""
    if selection == "validation":
        return lambda epoch: (epoch.validation_accuracy,)

    def value(epoch: Any) -> tuple[float, ...]:
        if epoch.validation_accuracy < before.floor:
            return (False, 0.0, epoch.validation_accuracy)
        return (True, epoch.extra_accuracy, epoch.validation_accuracy)

    return value


def eligible(candidates: Sequence[Candidate], before: Validated, selection: Selection) -> Array:
    """(c,) bool. "no-harm": not below the audited model by more than a standard error. The most accurate one always
    is; with "validation", as published, no other."""
    accuracy = np.array([candidate.validation_accuracy for candidate in candidates])
    floor = before.floor if selection == "no-harm" else np.inf
    able: Array = accuracy >= min(floor, accuracy.max())
    return able


def choose(candidates: Sequence[Candidate], before: Validated, selection: Selection) -> int:
    """Of the eligible ones the most accurate on the regions' tuning samples; of equal ones the weakest strength."""
    able = eligible(candidates, before, selection)
    scores = [(c.tuning_accuracy, c.validation_accuracy, -c.strength) for c in candidates]
    return max(np.flatnonzero(able).tolist(), key=lambda j: scores[j])
