"""From what is known of some rows to a Plan: which count more, which to add, which pictures to draw."""

from .prompts import prompts
from .rankings import by_chance, by_confidence
from .rows_plan import select, upweight

__all__ = [
    "by_chance",
    "by_confidence",
    "prompts",
    "select",
    "upweight",
]
