"""What is known of a row, as columns of numbers or of text that a condition can name, and the nearest of some words."""

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
OWN = (*OUTCOME, "id")  # columns that every evaluation may have; words are not looked for in them
NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
LARGEST_WHOLE = 2**53  # beyond it, whole numbers are not all told apart as floats
MOST_COMPARED = 2000  # words, around where the mistyped one would stand, that are looked at for the nearest
MOST_NAMED = 8  # columns or values that an error lists


@dataclass(frozen=True, eq=False)
class Column:
    """One value a row: numbers (NaN where missing), or trimmed text ("" where missing)."""

    name: str
    kind: Literal["number", "text"]
    values: Array  # (n,) float64 or str

    @cached_property
    def present(self) -> Array:
        """(n,) bool: rows that have a value."""
        held: Array = np.isfinite(self.values) if self.kind == "number" else self.values != ""
        return held

    @cached_property
    def folded(self) -> Array:
        """(n,) what is compared: text without regard to case."""
        lower: Array = np.char.lower(self.values) if self.kind == "text" else self.values
        return lower

    def distinct(self, rows: Array | None = None) -> list[Any]:
        """Values, each once whatever its case, in order; of some rows ((n,) bool) or of all."""
        held = self.present if rows is None else self.present & rows
        values = np.unique(self.values[held]).tolist()
        if self.kind == "number":
            return list(values)
        first: dict[str, str] = {}
        for value in sorted(values, key=lambda text: (text.lower(), text)):
            first.setdefault(value.lower(), value)
        return list(first.values())

    def matches(self, op: str, values: Sequence[float | str]) -> Array:
        """(n,) bool; what it says of rows without a value means nothing."""
        held, value = self.folded, values[0]
        if op in ("in", "=", "!="):
            found: Array = np.isin(held, np.array(values))
            return ~found if op == "!=" else found
        if op == "contains":
            return np.char.find(held, str(value)) >= 0
        compare = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}[op]
        beyond: Array = compare(held, value)
        return beyond


def column_names(evaluation: Evaluation) -> list[str]:
    """All that a condition may name: `label`, `prediction` and `id` come before metadata called the same."""
    classes = {"label": evaluation.labels, "prediction": evaluation.predictions}
    own = [name for name, array in classes.items() if array is not None and array.ndim == 1]
    return list(dict.fromkeys([*own, "id", *evaluation.metadata]))


def read_column(evaluation: Evaluation, name: str) -> Column:
    if name not in column_names(evaluation):
        raise unknown_column(name, column_names(evaluation))
    if name == "id":
        return _column(name, evaluation.row_ids, look_for_numbers=False)
    classes = {"label": evaluation.labels, "prediction": evaluation.predictions}.get(name)
    if classes is None:
        return _column(name, evaluation.metadata[name])
    named = evaluation.class_names is not None and classes.dtype.kind in "iu" and evaluation.task != "regression"
    return _column(name, np.array(evaluation.class_names)[classes] if named else classes)


def to_columns(evaluation: Evaluation) -> dict[str, dict[str, Any]]:
    """Every column as plain JSON, with None where a value is missing: what the page's own grammar reads."""
    plain = {}
    for name in column_names(evaluation):
        column = read_column(evaluation, name)
        values = [v if held else None for v, held in zip(column.values.tolist(), column.present, strict=True)]
        plain[name] = {"kind": column.kind, "values": values}
    return plain


def _column(name: str, array: Array, look_for_numbers: bool = True) -> Column:
    kind = array.dtype.kind
    if kind == "f":
        # The number that is shown, not what it is in double precision: 0.1 in single is 0.100000001.
        wide = array if array.dtype.itemsize == 8 else array.astype(str)
        return Column(name, "number", wide.astype(np.float64))
    if kind in "iu" and (array.size == 0 or np.abs(array.astype(np.float64)).max() < LARGEST_WHOLE):
        return Column(name, "number", array.astype(np.float64))
    text = np.char.strip(_as_text(array))
    if look_for_numbers and (numbers := _as_numbers(text)) is not None:
        return Column(name, "number", numbers)
    return Column(name, "text", text)


def _as_text(array: Array) -> Array:
    if array.dtype.kind == "b":
        return np.where(array, "true", "false")
    if array.dtype.kind in "mM":
        return np.where(np.isnat(array), "", array.astype(str))
    return array.astype(str)


def _as_numbers(text: Array) -> Array | None:
    """Text that is numbers throughout, as a column with missing values often arrives; None where it is not."""
    held = np.flatnonzero(text != "")
    if not len(held) or parse_number(str(text[held[0]])) is None:
        return None
    distinct, place = np.unique(text, return_inverse=True)
    numbers = [np.nan if value == "" else parse_number(value) for value in distinct.tolist()]
    return None if None in numbers else np.array(numbers, dtype=np.float64)[place.ravel()]


def parse_number(text: str) -> float | None:
    plain = text.replace("−", "-")
    return float(plain) if NUMBER.fullmatch(plain) else None


def shown(value: float | str) -> str:
    """A value as a sentence writes it: 30, not 30.0."""
    if isinstance(value, str):
        return value
    return str(int(value)) if value == int(value) and abs(value) < LARGEST_WHOLE else repr(value)


def find_column(name: str, known: Sequence[str]) -> str:
    """The column meant: exactly, or else without regard to case and to how many spaces there are."""
    if name in known:
        return name
    alike = [column for column in known if _loosely(column) == _loosely(name)]
    if len(alike) > 1:
        raise InputError(f"“{name}” may be {' or '.join(f'“{column}”' for column in alike)}; write it exactly.")
    if not alike:
        raise unknown_column(name, known)
    return alike[0]


def _loosely(name: str) -> str:
    return " ".join(name.lower().split())


def unknown_column(name: str, known: Sequence[str]) -> InputError:
    near = nearest_word(name, known)
    hint = f"Did you mean “{near}”?" if near is not None else f"Known: {listed(sorted(known))}."
    return InputError(f"Unknown column “{name}”. {hint}")


def listed(values: Sequence[str]) -> str:
    named = ", ".join(f"“{value}”" for value in values[:MOST_NAMED])
    others = len(values) - MOST_NAMED
    return named if others < 1 else f"{named} and {others:,} more"


def nearest_word(got: str, known: Sequence[str]) -> str | None:
    """The word with the fewest slips of a finger between, then by case; None beyond half of the letters."""
    words = sorted(known, key=lambda word: (word.lower(), word))
    if len(words) > MOST_COMPARED:
        middle = bisect_left([word.lower() for word in words], got.lower())
        start = max(0, min(middle - MOST_COMPARED // 2, len(words) - MOST_COMPARED))
        words = words[start : start + MOST_COMPARED]
    able = [word for word in words if 2 * abs(len(word) - len(got)) <= max(len(word), len(got))]
    slips = {word: _slips(got.lower(), word.lower()) for word in able}
    able = [word for word in able if 2 * slips[word] <= max(len(word), len(got))]
    fewest = min((slips[word] for word in able), default=0)
    return min((word for word in able if slips[word] == fewest), key=lambda word: _slips(got, word), default=None)


def _slips(a: str, b: str) -> int:
    """Letters changed, left out, put in, or swapped with the next (optimal string alignment)."""
    before, last, row = [0] * (len(b) + 1), [0] * (len(b) + 1), list(range(len(b) + 1))
    for i, x in enumerate(a, start=1):
        before, last, row = last, row, [i] + [0] * len(b)
        for j, y in enumerate(b, start=1):
            row[j] = min(last[j] + 1, row[j - 1] + 1, last[j - 1] + (x != y))
            if i > 1 and j > 1 and x == b[j - 2] and a[i - 2] == y:
                row[j] = min(row[j], before[j - 2] + 1)
    return row[-1]


def nearest_number(got: float, known: Sequence[float]) -> float | None:
    """The smaller of two that are as near."""
    return min(known, key=lambda value: (abs(value - got), value), default=None)
