"""Every column as a few bars: numbers in their order, the most common texts; each bar is a condition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..core import Array, Evaluation
from ..core.columns import TypedColumn, format_value
from ..core.words import clipped
from ..hypothesis.columns import TEXT, column_names, read_column
from .marks import nice_ticks

MOST_BARS = 12
LONGEST = 40  # characters of a label
TAILS = (0.005, 0.995)  # quantiles between which numbers are cut into equal parts
OTHERS = -1  # code of a row that has no bar of its own
ID_LIKE = 0.5  # distinct texts a row: a column with more tells rows apart, and groups none


@dataclass(frozen=True)
class Bar:
    """One value, or a range of numbers: what stands beside it, and the condition that its rows meet."""

    label: str
    condition: str


@dataclass(frozen=True, eq=False)
class ColumnBars:
    """A column as bars; codes: (n,) the bar of each row, -1 for none."""

    name: str
    bars: tuple[Bar, ...]
    codes: Array
    others: int = 0  # distinct values that have no bar

    def count(self, rows: Array) -> list[int]:
        """Rows of each bar, of some rows ((n,) bool)."""
        codes = self.codes[rows]
        counts: list[int] = np.bincount(codes[codes >= 0], minlength=len(self.bars)).tolist()
        return counts


def all_column_bars(evaluation: Evaluation) -> Iterator[ColumnBars]:
    """The mistakes, then every column that a condition may name and that groups rows."""
    mistakes = _mistakes(evaluation)
    if mistakes is not None:
        yield mistakes
    for name in column_names(evaluation):
        if name in ("id", TEXT):
            continue
        column = read_column(evaluation, name)
        assert isinstance(column, TypedColumn)  # what is not is the texts of the rows
        bars = _number_bars(column) if column.kind == "number" else _text_bars(column)
        if bars is not None and bars.bars:
            yield bars


def quoted(text: str) -> str:
    """A name or a value as a condition must write it."""
    return '"' + text.replace('"', '""') + '"'


def _named(column: TypedColumn) -> str:
    return column.name if column.name.isidentifier() else quoted(column.name)


def _number_bars(column: TypedColumn) -> ColumnBars | None:
    present = column.values[column.present]
    distinct = np.unique(present)
    if len(distinct) <= MOST_BARS:
        bars = [Bar(format_value(v), f"{_named(column)} = {format_value(v)}") for v in distinct.tolist()]
        codes = np.searchsorted(distinct, column.values)
    else:
        edges = _edges(present)
        bars = _ranges(_named(column), edges)
        codes = np.searchsorted(edges, column.values, side="right")
    return _with_missing(column, bars, codes)


def _edges(values: Array) -> Array:
    """Round numbers between the tails, at most one fewer than there may be bars."""
    low, high = np.quantile(values, TAILS).tolist()
    ticks = nice_ticks(max(high - low, 1e-12), MOST_BARS - 2)
    step = ticks[1]
    first = np.ceil(low / step)
    last = np.floor(high / step)
    edges: Array = np.unique(np.arange(first, last + 1) * step)[: MOST_BARS - 1]
    edges = np.array([float(f"{edge:.12g}") for edge in edges])
    return edges if len(edges) else np.array([float(np.median(values))])


def _ranges(name: str, edges: Array) -> list[Bar]:
    texts = [format_value(edge) for edge in edges.tolist()]
    middle = [Bar(f"{low} to {high}", f"{name} >= {low} and {name} < {high}") for low, high in pairwise(texts)]
    return [
        Bar(f"under {texts[0]}", f"{name} < {texts[0]}"),
        *middle,
        Bar(f"from {texts[-1]}", f"{name} >= {texts[-1]}"),
    ]


def _text_bars(column: TypedColumn) -> ColumnBars | None:
    distinct, first, position, counts = np.unique(column.folded, True, True, True)
    known = distinct != ""
    if known.sum() > MOST_BARS and known.sum() > ID_LIKE * len(column.values):
        return None
    order = [i for i in np.argsort(-counts, kind="stable").tolist() if known[i]]
    shown = order[:MOST_BARS]
    code_of = np.full(len(distinct), OTHERS)
    code_of[shown] = np.arange(len(shown))
    values = [str(column.values[first[i]]) for i in shown]
    bars = [Bar(clipped(value, LONGEST), f"{_named(column)} = {quoted(value)}") for value in values]
    return _with_missing(column, bars, code_of[position.ravel()], len(order) - len(shown))


def _with_missing(column: TypedColumn, bars: list[Bar], codes: Array, others: int = 0) -> ColumnBars:
    missing = ~column.present
    codes = np.where(missing, OTHERS, codes)
    if missing.any():
        codes = np.where(missing, len(bars), codes)
        bars = [*bars, Bar("missing", f"{_named(column)} is missing")]
    return ColumnBars(column.name, tuple(bars), codes.astype(np.int16), others)


def _mistakes(evaluation: Evaluation) -> ColumnBars | None:
    """What was taken for what, most common first; None where rows have not one label and one prediction each."""
    errors = evaluation.errors
    if evaluation.task != "classification" or errors is None or evaluation.labels is None:
        return None
    wrong = np.flatnonzero(errors)
    if evaluation.predictions is None or not len(wrong):
        return None
    pairs = np.stack([evaluation.labels[wrong], evaluation.predictions[wrong]], axis=1)
    distinct, position, counts = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(-counts, kind="stable")[:MOST_BARS]
    code_of = np.full(len(distinct), OTHERS)
    code_of[order] = np.arange(len(order))
    codes = np.full(len(evaluation), OTHERS)
    codes[wrong] = code_of[position.ravel()]
    names = [[evaluation.class_name(int(j)) for j in distinct[i]] for i in order]
    bars = [Bar(f"{a} → {b}", f"label = {quoted(a)} and prediction = {quoted(b)}") for a, b in names]
    return ColumnBars("mistake", tuple(bars), codes.astype(np.int16), len(distinct) - len(order))
