"""How alike a slice's members are, and which rows outside of it, with the label of a wrong member, are right.

A hypothesis made from members alone is often false: neighbours that are right say what it must leave out. They have the
label of the mistake they stand beside: what tells old faces taken for young ones is old faces that are not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Self

import numpy as np

from ..core import Array
from ..core.blocks import Matrix
from ..core.record import json_key
from .context import Context
from .examples import Example, example, example_fields
from .kinds import SliceExplanation
from .view import MEASURED_ON, SliceView

MAX_PAIRS = 6
NEIGHBOURS = 10
MEMBERS = 200  # whose neighbours are looked for
ROWS = 4_000  # looked at; of more, so many at random


@dataclass(frozen=True)
class NearExample(Example):
    """A row that is right, and the wrong member of the same label that it is shown beside."""

    beside: Example | None = None  # None in audits of versions up to 0.3, which did not compare labels


@dataclass(frozen=True)
class Near(SliceExplanation):
    """Coherence of the members, and rows outside the slice that the model gets right where it errs inside."""

    kind = "near"
    needs = frozenset({"representations"})

    chosen_on: str
    measured_on: str
    representation: str
    coherence: float | None  # None where there are too few members, or no other rows
    total: int = field(metadata=json_key("of"))  # right rows of such labels, as near as members are to each other
    rows: tuple[NearExample, ...]  # the nearest to a wrong member each, no row twice

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
        total, examples = _right_beside_wrong(view, X, rng, _reach(distances, members, rows, inside))
        return cls(view.chosen_on, MEASURED_ON, name, coherence, total, examples)


def _right_beside_wrong(
    view: SliceView, X: Matrix, rng: np.random.Generator, reach: float
) -> tuple[int, tuple[NearExample, ...]]:
    """How many right rows with the label of a wrong member lie within reach of one, and the nearest pairs.

    Rows outside the scope of the slice count too: where that is a prediction, a right row of the label is predicted
    something else.
    """
    errors = view.evaluation.errors
    labels = view.evaluation.labels
    if errors is None or labels is None:
        return 0, ()
    wrong = _some(rng, np.flatnonzero(view.inside & view.measured & errors), MEMBERS)
    same_label = np.isin(labels, labels[wrong])
    right = _some(rng, np.flatnonzero(~view.inside & view.measured & ~errors & same_label), ROWS)
    if not len(wrong) or not len(right):
        return 0, ()
    distances = np.where(labels[wrong][:, None] == labels[right], _distances(X, wrong, right), np.inf)
    total = int(np.count_nonzero(distances.min(axis=0) <= reach))
    examples = []
    for i, j in _nearest_pairs(distances, MAX_PAIRS):
        fields = example_fields(view.evaluation, int(right[j]))
        examples.append(NearExample(**fields, beside=example(view.evaluation, int(wrong[i]))))
    return total, tuple(examples)


def _nearest_pairs(distances: Array, most: int) -> list[tuple[int, int]]:
    """The nearest pairs of a row and a column, no row and no column twice."""
    left = distances.copy()
    pairs: list[tuple[int, int]] = []
    while len(pairs) < most and np.isfinite(left.min()):
        i, j = np.unravel_index(int(left.argmin()), left.shape)
        pairs.append((int(i), int(j)))
        left[i] = np.inf
        left[:, j] = np.inf
    return pairs


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
