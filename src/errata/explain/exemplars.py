"""Rows to look at: members of the slice, the highest losses, and some of all rows (Spotlight, figures 2 and 3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from ..core import Array
from .context import Context
from .examples import PickedGroup, find_group, highest, picked_group
from .kinds import SliceExplanation
from .view import SliceView

MAX_ROWS = 12
WORST = 4


@dataclass(frozen=True)
class Exemplars(SliceExplanation):
    """Groups of rows: "slice", "highest loss", "worst members" and "random"."""

    kind = "exemplars"

    drawn_from: str  # "confirm": held-out rows; "all" where the slice has none of those
    seed: int
    groups: tuple[PickedGroup, ...]

    @classmethod
    def explain(cls, view: SliceView, context: Context) -> Self:
        """Groups of held-out rows; of all rows where the slice has no held-out member."""
        held_out = bool((view.inside & view.measured).any())
        pool = view.measured if held_out else np.ones_like(view.measured)
        everything = np.flatnonzero(pool)
        groups = [_members(view, np.flatnonzero(view.inside & pool), context.seed)]
        if view.evaluation.losses is not None:
            top = highest(view.evaluation.losses, everything, MAX_ROWS)
            groups.append(picked_group("highest loss", view.evaluation, top, ["loss"] * len(top), len(everything)))
            groups += _worst_members(view, pool)
        # The same random rows beside every slice, to compare them with.
        rng = np.random.default_rng([context.seed, 0])
        random = rng.permutation(everything)[:MAX_ROWS]
        groups.append(picked_group("random", view.evaluation, random, ["random"] * len(random), len(everything)))
        drawn_from = "confirm" if held_out else "all"
        return cls(drawn_from, context.seed, tuple(groups))

    def group(self, which: str) -> PickedGroup:
        """A group by its name; an empty one where it was not made."""
        return find_group(self.groups, which)


def _worst_members(view: SliceView, pool: Array) -> list[PickedGroup]:
    """Members that are wrong, by loss: the far end of the slice, not its middle."""
    errors = view.evaluation.errors
    losses = view.evaluation.losses
    if errors is None or losses is None:
        return []
    wrong = np.flatnonzero(view.inside & pool & errors)
    top = highest(losses, wrong, WORST)
    return [picked_group("worst members", view.evaluation, top, ["loss"] * len(top), len(wrong))]


def _members(view: SliceView, members: Array, seed: int) -> PickedGroup:
    """Half by weight, half at random, and how each came in; all at random where weights do not differ."""
    rng = np.random.default_rng([seed, 1])
    weights = view.slice.weights
    graded = len(members) > 0 and weights[members].min() < weights[members].max()
    top = highest(weights, members, MAX_ROWS // 2) if graded else members[:0]
    others = rng.permutation(np.setdiff1d(members, top))[: MAX_ROWS // 2]
    picked = ["weight"] * len(top) + ["random"] * len(others)
    return picked_group("slice", view.evaluation, np.concatenate([top, others]), picked, len(members))
