"""The columns of an evaluation that a condition can name, each as numbers or as text; and nearest words for errors."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from ..core.blocks import Array
from ..core.errors import InputError
from ..core.evaluation import Evaluation

OUTCOME = ("label", "prediction")
BUILT_IN = (*OUTCOME, "id")  # not metadata: words are not looked for in them
NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
LARGEST_WHOLE = 2**53  # larger whole numbers are not all distinct as floats
MAX_COMPARED = 2000  # words, around the mistyped one in alphabetical order, that are compared with it
MAX_LISTED = 8  # columns or values that an error lists


@dataclass(frozen=True, eq=False)
class TypedColumn:
    """One value a row: numbers (NaN where missing), or trimmed text ("" where missing).

    Attributes
    ----------
    name : str
        As a condition writes it.
    kind : Literal['number', 'text']
        How its values compare.
    values : Array
        (n,) float64 or str.
    """

    name: str
    kind: Literal["number", "text"]
    values: Array

    @cached_property
    def present(self) -> Array:
        """(n,) bool: rows that have a value."""
        if self.kind == "number":
            return np.isfinite(self.values)
        present: Array = self.values != ""
        return present

    @cached_property
    def folded(self) -> Array:
        """(n,) the values that are compared: text in lower case."""
        if self.kind == "number":
            return self.values
        lower: Array = np.char.lower(self.values)
        return lower

    def distinct(self, rows: Array | None = None) -> list[Any]:
        """Distinct values in order, ignoring case; of some rows ((n,) bool) or of all."""
        selected = self.present if rows is None else self.present & rows
        values = np.unique(self.values[selected]).tolist()
        if self.kind == "number":
            return list(values)
        first: dict[str, str] = {}
        for value in sorted(values, key=lambda text: (text.lower(), text)):
            first.setdefault(value.lower(), value)
        return list(first.values())

    def matches(self, op: str, values: Sequence[float | str]) -> Array:
        """(n,) bool: rows for which the comparison is true; undefined for rows without a value."""
        if op in ("in", "="):
            equal: Array = np.isin(self.folded, np.array(values))
            return equal
        if op == "!=":
            return ~self.matches("=", values)
        if op == "contains":
            return np.char.find(self.folded, str(values[0])) >= 0
        compare = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}[op]
        inside: Array = compare(self.folded, values[0])
        return inside


def column_names(evaluation: Evaluation) -> list[str]:
    """Every name that a condition may use: `label`, `prediction` and `id` take precedence over metadata."""
    classes = {"label": evaluation.labels, "prediction": evaluation.predictions}
    outcome = [name for name, array in classes.items() if array is not None and array.ndim == 1]
    return list(dict.fromkeys([*outcome, "id", *evaluation.metadata]))


def read_column(evaluation: Evaluation, name: str) -> TypedColumn:
    """The column called `name`, as numbers where it can be; an InputError where there is none."""
    if name not in column_names(evaluation):
        raise unknown_column(name, column_names(evaluation))
    if name == "id":
        return _column(name, evaluation.row_ids, look_for_numbers=False)
    classes = {"label": evaluation.labels, "prediction": evaluation.predictions}.get(name)
    if classes is None:
        return _column(name, evaluation.metadata[name])
    if evaluation.class_names is not None and classes.dtype.kind in "iu" and evaluation.task != "regression":
        classes = np.array(evaluation.class_names)[classes]
    return _column(name, classes)


def to_columns(evaluation: Evaluation) -> dict[str, dict[str, Any]]:
    """Every column as plain JSON, with None where a value is missing: what the page's own grammar reads."""
    columns = {}
    for name in column_names(evaluation):
        column = read_column(evaluation, name)
        values: list[Any] = column.values.tolist()
        for i in np.flatnonzero(~column.present):
            values[i] = None
        columns[name] = {"kind": column.kind, "values": values}
    return columns


def _column(name: str, array: Array, look_for_numbers: bool = True) -> TypedColumn:
    kind = array.dtype.kind
    if kind == "f":
        if array.dtype.itemsize < 8:
            # The number as it is printed, not its value in double precision: 0.1 in single is 0.100000001.
            array = array.astype(str)
        return TypedColumn(name, "number", array.astype(np.float64))
    if kind in "iu" and (array.size == 0 or np.abs(array.astype(np.float64)).max() < LARGEST_WHOLE):
        return TypedColumn(name, "number", array.astype(np.float64))
    text = np.char.strip(_as_text(array))
    if look_for_numbers and (numbers := _as_numbers(text)) is not None:
        return TypedColumn(name, "number", numbers)
    return TypedColumn(name, "text", text)


def _as_text(array: Array) -> Array:
    if array.dtype.kind == "b":
        return np.where(array, "true", "false")
    if array.dtype.kind in "mM":
        return np.where(np.isnat(array), "", array.astype(str))
    return array.astype(str)


def _as_numbers(text: Array) -> Array | None:
    """A column of numbers stored as text, as one with missing values often is; None where any value is no number."""
    present = np.flatnonzero(text != "")
    if not len(present) or parse_number(str(text[present[0]])) is None:
        return None
    distinct, position = np.unique(text, return_inverse=True)
    numbers = np.full(len(distinct), np.nan)
    for i, value in enumerate(distinct.tolist()):
        if value == "":
            continue
        number = parse_number(value)
        if number is None:
            return None
        numbers[i] = number
    column: Array = numbers[position.ravel()]
    return column


def parse_number(text: str) -> float | None:
    """A text as a number, also with a typographic minus sign; None where it is none."""
    plain = text.replace("−", "-")
    if NUMBER.fullmatch(plain) is None:
        return None
    return float(plain)


def format_value(value: float | str) -> str:
    """A value as a sentence writes it: 30, not 30.0."""
    if isinstance(value, str):
        return value
    if value == int(value) and abs(value) < LARGEST_WHOLE:
        return str(int(value))
    return repr(value)


def find_column(name: str, known: Sequence[str]) -> str:
    """The column with this name: exactly, or else ignoring case and the number of spaces."""
    if name in known:
        return name
    alike = [column for column in known if column.lower().split() == name.lower().split()]
    if len(alike) > 1:
        raise InputError(f"“{name}” may be {' or '.join(f'“{column}”' for column in alike)}; write it exactly.")
    if not alike:
        raise unknown_column(name, known)
    return alike[0]


def unknown_column(name: str, known: Sequence[str]) -> InputError:
    """The error for a column that does not exist, with the nearest that does."""
    near = nearest_word(name, known)
    if near is not None:
        return InputError(f"Unknown column “{name}”. Did you mean “{near}”?")
    return InputError(f"Unknown column “{name}”. Known: {quoted_list(sorted(known))}.")


def quoted_list(values: Sequence[str]) -> str:
    """The first values in quotation marks, and how many more there are."""
    first = ", ".join(f"“{value}”" for value in values[:MAX_LISTED])
    others = len(values) - MAX_LISTED
    if others < 1:
        return first
    return f"{first} and {others:,} more"


def nearest_word(word: str, known: Sequence[str]) -> str | None:
    """The known word with the smallest edit distance, then by case; None beyond half of the letters."""
    candidates = sorted(known, key=lambda other: (other.lower(), other))
    if len(candidates) > MAX_COMPARED:
        middle = bisect_left([other.lower() for other in candidates], word.lower())
        start = max(0, min(middle - MAX_COMPARED // 2, len(candidates) - MAX_COMPARED))
        candidates = candidates[start : start + MAX_COMPARED]
    candidates = [other for other in candidates if 2 * abs(len(other) - len(word)) <= max(len(other), len(word))]
    distances = {other: _edit_distance(word.lower(), other.lower()) for other in candidates}
    candidates = [other for other in candidates if 2 * distances[other] <= max(len(other), len(word))]
    smallest = min((distances[other] for other in candidates), default=0)
    nearest = (other for other in candidates if distances[other] == smallest)
    return min(nearest, key=lambda other: _edit_distance(word, other), default=None)


def _edit_distance(a: str, b: str) -> int:
    """Letters replaced, deleted, inserted, or swapped with the next (optimal string alignment)."""
    before = [0] * (len(b) + 1)
    last = [0] * (len(b) + 1)
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, start=1):
        before = last
        last = row
        row = [i] + [0] * len(b)
        for j, y in enumerate(b, start=1):
            row[j] = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                row[j] = min(row[j], before[j - 2] + 1)
    return row[-1]


def nearest_number(number: float, known: Sequence[float]) -> float | None:
    """The known number nearest to this one; the smaller of two that are equally near."""
    return min(known, key=lambda value: (abs(value - number), value), default=None)
