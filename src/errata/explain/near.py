"""How alike a slice's members are, and which rows just outside of it the model gets right.

A story told from members alone is often false: what lies beside them and is right says what the story must leave out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import Array, Explanation
from ..core.blocks import Matrix
from .exemplars import row_facts
from .view import View

SHOWN = 6
NEIGHBOURS = 10
MEMBERS = 200  # looked from
ROWS = 4_000  # looked at; of more, so many at random


def near(view: View, seed: int) -> Explanation:
    """On rows nobody searched, in the representation that the slice was found in."""
    name = _representation(view)
    X = view.evaluation.representations[name]
    rng = np.random.default_rng([seed, 2])
    within = view.inside | view.rest
    rows = _some(rng, np.flatnonzero(within & view.measured), ROWS)
    members = _some(rng, rows[view.inside[rows]], MEMBERS)
    told: dict[str, Any] = {**view.roles, "representation": name, "coherence": None, "of": 0, "rows": []}
    inside = view.inside[rows]
    if len(members) < 2 or inside.all():
        return Explanation("near", told)
    distances = _distances(X, members, rows)
    told["coherence"] = _coherence(distances, members, rows, inside)
    if view.evaluation.errors is not None:
        right = ~inside & ~view.evaluation.errors[rows]
        reach = _reach(distances, members, rows, inside)
        closest = distances.min(axis=0)
        order = np.flatnonzero(right & (closest <= reach))
        order = order[np.argsort(closest[order], kind="stable")]
        told |= {"of": len(order), "rows": [row_facts(view.evaluation, int(rows[j])) for j in order[:SHOWN]]}
    return Explanation("near", told)


def _representation(view: View) -> str:
    found, names = view.slice.rule.get("representation"), view.evaluation.representations
    return str(found) if found in names else next(iter(names))


def _some(rng: np.random.Generator, rows: Array, most: int) -> Array:
    picked: Array = np.sort(rng.permutation(rows)[:most])
    return picked


def _distances(X: Matrix, members: Array, rows: Array) -> Array:
    """(m, n) squared."""
    a, b = np.asarray(X[members], dtype=np.float32), np.asarray(X[rows], dtype=np.float32)
    centre = b.mean(axis=0)
    a, b = a - centre, b - centre  # lengths that are small beside the distances lose no digits
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
    share, chance = float(inside[nearest].mean()), float((inside.sum() - 1) / (len(rows) - 1))
    return max(0.0, (share - chance) / (1 - chance))


def _reach(distances: Array, members: Array, rows: Array, inside: Array) -> float:
    """As near as a member is to its nearest fellow, in the median."""
    fellows = _others(distances, members, rows)[:, inside]
    return float(np.median(fellows.min(axis=1)))
