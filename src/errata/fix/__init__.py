"""From what is known of some rows to a Plan: which count more, which to add, which pictures to draw."""

from .prompts import prompts
from .rankings import by_chance, by_confidence
from .regions import STRENGTHS, Candidate, Sweep, Validated, preference, sweep
from .rows import select, upweight

__all__ = [
    "STRENGTHS",
    "Candidate",
    "Sweep",
    "Validated",
    "by_chance",
    "by_confidence",
    "preference",
    "prompts",
    "select",
    "sweep",
    "upweight",
]
