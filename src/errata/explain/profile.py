"""One column of a slice's rows beside the rest: shares of its values, and how the model does on them."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..core import Array
from ..core.record import FLAT, Record, json_key
from .encode import Column
from .view import Outcome, SliceView, ratio

MOST_VALUES = 12  # shown of one column


@dataclass(frozen=True)
class Shares(Record):
    """The share of rows with a value, in the slice and in the rest."""

    slice_share: float
    rest_share: float


@dataclass(frozen=True)
class ValueRow(Record):
    """One value of a column: counts and shares on held-out rows, and what the search rows showed."""

    value: str | None  # None: missing
    slice: tuple[int, int]  # members with the value, of all members
    rest: tuple[int, int]
    slice_share: float | None
    rest_share: float | None
    lift: float | None  # share in the slice over share in the rest; None where the rest has none
    outcome: Outcome = field(metadata=FLAT)  # of all rows with the value
    search: Shares = field(metadata=json_key("found"))
    search_points: float = field(metadata=json_key("found_points"))  # difference of the two, in points


@dataclass(frozen=True)
class ColumnProfile(Record):
    """The values of one column, in the order of their difference on the rows that choose."""

    column: str
    kind: str  # "categorical" or "numeric"
    rows: tuple[ValueRow, ...]
    left_out: int  # values beyond those shown


def profile_column(view: SliceView, column: Column) -> ColumnProfile:
    """One column: its values in the order of their difference on chosen rows, measured on the others."""
    inside = count_values(column, view.inside & view.chosen)
    outside = count_values(column, view.rest & view.chosen)
    share = inside / max(inside.sum(), 1)
    other = outside / max(outside.sum(), 1)
    difference = share - other
    # Of two values that differ as much, what the slice has more of says more than what it lacks.
    order = sorted(range(len(difference)), key=lambda j: (-abs(round(difference[j], 12)), -difference[j], j))
    rows = _value_rows(view, column, share, other)
    present = [rows[j] for j in order if inside[j] + outside[j] + rows[j].outcome.n > 0]
    left_out = max(0, len(present) - MOST_VALUES)
    return ColumnProfile(column.name, column.kind, tuple(present[:MOST_VALUES]), left_out)


def _value_rows(view: SliceView, column: Column, share: Array, other: Array) -> list[ValueRow]:
    """One row a value; share and other: (values,) of members and of the rest, on the rows that choose."""
    members = view.inside & view.measured
    rest = view.rest & view.measured
    inside = count_values(column, members)
    outside = count_values(column, rest)
    n_inside = int(inside.sum())
    n_outside = int(outside.sum())
    outcomes = _outcomes(view, column, members | rest)
    return [
        ValueRow(
            value=value,
            slice=(int(inside[j]), n_inside),
            rest=(int(outside[j]), n_outside),
            slice_share=ratio(inside[j], n_inside),
            rest_share=ratio(outside[j], n_outside),
            lift=_lift(inside[j], n_inside, outside[j], n_outside),
            outcome=outcomes[j],
            search=Shares(float(share[j]), float(other[j])),
            search_points=100 * float(share[j] - other[j]),
        )
        for j, value in enumerate(column.values)
    ]


def _lift(k: int, n: int, rest_k: int, rest_n: int) -> float | None:
    """Share in the slice over share in the rest; None where the rest has none."""
    return None if n == 0 or rest_k == 0 else float((k / n) / (rest_k / rest_n))


def _outcomes(view: SliceView, column: Column, rows: Array) -> list[Outcome]:
    """`measure_outcome` for every value of a column at once."""
    n = count_values(column, rows)
    errors: list[int | None] = [None] * len(n)
    rates: list[float | None] = [None] * len(n)
    means: list[float | None] = [None] * len(n)
    if view.evaluation.errors is not None:
        wrong = count_values(column, rows & view.evaluation.errors)
        errors = [int(k) for k in wrong]
        rates = [ratio(k, of) for k, of in zip(wrong, n, strict=True)]
    if view.evaluation.losses is not None:
        totals = count_values(column, rows, view.evaluation.losses)
        means = [ratio(total, of) for total, of in zip(totals, n, strict=True)]
    return [Outcome(int(n[j]), errors[j], rates[j], means[j]) for j in range(len(n))]


def count_values(column: Column, rows: Array, weights: Array | None = None) -> Array:
    """(values,) how many of `rows` have each value, or the sum of their weights."""
    picked = None if weights is None else weights[rows].astype(np.float64)
    counts: Array = np.bincount(column.codes[rows], weights=picked, minlength=len(column.values))
    return counts


def largest_difference(profile: ColumnProfile) -> float:
    """In points, on the rows that choose."""
    return max((abs(round(row.search_points, 9)) for row in profile.rows), default=0.0)
