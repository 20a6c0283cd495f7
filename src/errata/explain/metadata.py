"""Metadata of a slice beside the rest (Spotlight, figure 8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

from ..core.record import Record
from .context import Context
from .encode import Column, Skipped
from .kinds import SliceExplanation
from .profile import ColumnProfile, largest_difference, profile_column
from .view import MEASURED_ON, SliceView


@dataclass(frozen=True)
class SkippedColumn(Record):
    """A column with too many values to profile."""

    column: str
    distinct: int


@dataclass(frozen=True)
class Metadata(SliceExplanation):
    """Every column of the metadata, the one that differs most first."""

    kind = "metadata"
    needs = frozenset({"columns"})

    chosen_on: str
    measured_on: str
    columns: tuple[ColumnProfile, ...]
    skipped: tuple[SkippedColumn, ...]

    @classmethod
    def explain(cls, view: SliceView, context: Context) -> Self:
        """Every column against the rest."""
        profiles = [profile_column(view, column) for column in context.columns if isinstance(column, Column)]
        profiles.sort(key=largest_difference, reverse=True)
        skipped = [SkippedColumn(c.name, c.distinct) for c in context.columns if isinstance(c, Skipped)]
        return cls(view.chosen_on, MEASURED_ON, tuple(profiles), tuple(skipped))
