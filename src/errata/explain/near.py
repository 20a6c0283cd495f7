"""How alike a slice's members are, and which rows just outside of it the model gets right.

A hypothesis made from members alone is often false: neighbours that are right say what it must leave out.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np

from ..core import Array
from ..core.blocks import Matrix
from ..core.record import json_key
from .context import Context
from .examples import Example, example
from .kinds import SliceExplanation
from .view import MEASURED_ON, SliceView

MAX_ROWS = 6
NEIGHBOURS = 10
MEMBERS = 200  # whose neighbours are looked for
ROWS = 4_000  # looked at; of more, so many at random


@dataclass(frozen=True)
class Near(SliceExplanation):
    """Coherence of the members, and neighbours outside the slice that the model gets right."""

    kind = "near"
    needs = frozenset({"representations"})

    chosen_on: str
    measured_on: str
    representation: str
    coherence: float | None  # None where there are too few members, or no other rows
    total: int = field(metadata=json_key("of"))  # neighbours that are right
    rows: tuple[Example, ...]  # the nearest of them

    @classmethod
    def explain(cls, view: SliceView, context: Context) -> Self:
        """On held-out rows, in the representation that the slice was found in."""
        name = _representation(view)
        X = view.evaluation.representations[name]
        rng = np.random.default_rng([context.seed, 2])
        within = view.inside | view.rest
        rows = _some(rng, np.flatnonzero(within & view.measured), ROWS)
        members = _some(rng, rows[view.inside[rows]], MEMBERS)
        inside = view.inside[rows]
        if len(members) < 2 or inside.all():
            return cls(view.chosen_on, MEASURED_ON, name, None, 0, ())
        distances = _distances(X, members, rows)
        coherence = _coherence(distances, members, rows, inside)
        order = np.empty(0, dtype=np.int64)
        if view.evaluation.errors is not None:
            right = ~inside & ~view.evaluation.errors[rows]
            closest = distances.min(axis=0)
            order = np.flatnonzero(right & (closest <= _reach(distances, members, rows, inside)))
            order = order[np.argsort(closest[order], kind="stable")]
        examples = tuple(example(view.evaluation, int(rows[j])) for j in order[:MAX_ROWS])
        return cls(view.chosen_on, MEASURED_ON, name, coherence, len(order), examples)


def _representation(view: SliceView) -> str:
    named = view.slice.rule.get("representation")
    representations = view.evaluation.representations
    if named in representations:
        return str(named)
    return next(iter(representations))


def _some(rng: np.random.Generator, rows: Array, most: int) -> Array:
    picked: Array = np.sort(rng.permutation(rows)[:most])
    return picked


def _distances(X: Matrix, members: Array, rows: Array) -> Array:
    """(m, n) squared."""
    a = np.asarray(X[members], dtype=np.float32)
    b = np.asarray(X[rows], dtype=np.float32)
    centre = b.mean(axis=0)  # lengths that are small beside the distances lose no digits
    a = a - centre
    b = b - centre
    squares: Array = np.square(a).sum(axis=1)[:, None] + np.square(b).sum(axis=1) - 2 * a @ b.T
    return np.maximum(squares, 0)


def _others(distances: Array, members: Array, rows: Array) -> Array:
    """The same with each member infinitely far from itself."""
    far: Array = np.where(members[:, None] == rows, np.inf, distances)
    return far


def _coherence(distances: Array, members: Array, rows: Array, inside: Array) -> float:
    """Of a member's nearest rows, the share that are members too, beyond what chance gives; 1 where all are."""
    count = min(NEIGHBOURS, len(rows) - 1)
    nearest = np.argpartition(_others(distances, members, rows), count - 1, axis=1)[:, :count]
    share = float(inside[nearest].mean())
    chance = float((inside.sum() - 1) / (len(rows) - 1))
    return max(0.0, (share - chance) / (1 - chance))


def _reach(distances: Array, members: Array, rows: Array, inside: Array) -> float:
    """As near as a member is to its nearest fellow, in the median."""
    fellows = _others(distances, members, rows)[:, inside]
    return float(np.median(fellows.min(axis=1)))
