"""Both ends of a failure direction (Jain et al. 2023)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from .context import Context
from .examples import PickedGroup, find_group, highest, picked_group
from .kinds import SliceExplanation
from .view import SliceView

MAX_ROWS = 6  # on each side


@dataclass(frozen=True)
class Extremes(SliceExplanation):
    """The "hardest" and the "easiest" held-out rows of a direction's class."""

    kind = "extremes"

    drawn_from: str
    groups: tuple[PickedGroup, ...]

    @classmethod
    def explain(cls, view: SliceView, context: Context) -> Self | None:
        """Weights fall from hard to easy within the class; None of a slice that is no direction."""
        if view.slice.rule.get("kind") != "direction":
            return None
        pool = np.flatnonzero((view.inside | view.rest) & view.measured)
        groups = []
        for which, values in (("hardest", view.slice.weights), ("easiest", -view.slice.weights)):
            rows = highest(values, pool, MAX_ROWS)
            groups.append(picked_group(which, view.evaluation, rows, ["weight"] * len(rows), len(pool)))
        return cls("confirm", tuple(groups))

    def group(self, which: str) -> PickedGroup:
        """The "hardest" or the "easiest"; an empty group where it was not made."""
        return find_group(self.groups, which)
