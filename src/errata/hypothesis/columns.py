"""The columns of an evaluation that a condition can name, each as numbers or as text; and nearest words for errors."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ..core.blocks import Array
from ..core.columns import TypedColumn, type_column
from ..core.errors import InputError
from ..core.evaluation import Evaluation
from ..core.media import Media
from ..core.words import WORD, words_of

OUTCOME = ("label", "prediction")
BUILT_IN = (*OUTCOME, "id")  # not metadata: words are not looked for in them
TEXT = "text"  # the rows' own texts, where they are texts
MAX_COMPARED = 2000  # words, around the mistyped one in alphabetical order, that are compared with it
MAX_LISTED = 8  # columns or values that an error lists


@dataclass(frozen=True, eq=False)
class TextColumn:
    """The texts of the rows, in which `contains` looks for whole words that follow each other.

    Attributes
    ----------
    media : Media
        One text a row.
    """

    name: ClassVar[str] = TEXT
    kind: ClassVar[str] = "words"
    media: Media

    @cached_property
    def present(self) -> Array:
        """(n,) bool: rows that have a word."""
        return np.array([re.search(WORD, text) is not None for text in self.texts()], dtype=bool)

    def distinct(self, rows: Array | None = None) -> list[Any]:
        """Distinct words in order; of some rows ((n,) bool) or of all."""
        chosen = (text for i, text in enumerate(self.texts()) if rows is None or rows[i])
        return sorted({word for text in chosen for word in words_of(text)})

    def matches(self, op: str, phrases: Sequence[float | str]) -> Array:
        """(n,) bool: rows that have one of the phrases, each words in lower case with a space between them."""
        wanted = [str(phrase) for phrase in phrases]
        return np.array([_has_any(text.lower(), wanted) for text in self.texts()], dtype=bool)

    def texts(self) -> Iterator[str]:
        """The text of each row, "" where it has none."""
        return (self.media.text(i) or "" for i in range(len(self.media)))


def _has_any(lower: str, phrases: Sequence[str]) -> bool:
    """Whether a text in lower case has one of the phrases, whatever stands between its words."""
    if not any(phrase.partition(" ")[0] in lower for phrase in phrases):  # much quicker than splitting it into words
        return False
    text = f" {' '.join(words_of(lower))} "
    return any(f" {phrase} " in text for phrase in phrases)


AnyColumn = TypedColumn | TextColumn


def column_names(evaluation: Evaluation) -> list[str]:
    """Every name that a condition may use: `label`, `prediction`, `id` and `text` take precedence over metadata."""
    classes = {"label": evaluation.labels, "prediction": evaluation.predictions}
    outcome = [name for name, array in classes.items() if array is not None and array.ndim == 1]
    texts = [TEXT] if has_texts(evaluation) else []
    return list(dict.fromkeys([*outcome, "id", *texts, *evaluation.metadata]))


def has_texts(evaluation: Evaluation) -> bool:
    """Whether the rows are texts."""
    return evaluation.media is not None and evaluation.media.kind == "text"


def read_column(evaluation: Evaluation, name: str) -> AnyColumn:
    """The column called `name`, as numbers where it can be; an InputError where there is none."""
    if name not in column_names(evaluation):
        raise unknown_column(name, column_names(evaluation))
    if name == TEXT and evaluation.media is not None and has_texts(evaluation):
        return TextColumn(evaluation.media)
    if name == "id":
        return type_column(name, evaluation.row_ids, look_for_numbers=False)
    classes = {"label": evaluation.labels, "prediction": evaluation.predictions}.get(name)
    if classes is None:
        return type_column(name, evaluation.metadata[name])
    if evaluation.class_names is not None and classes.dtype.kind in "iu" and evaluation.task != "regression":
        classes = np.array(evaluation.class_names)[classes]
    return type_column(name, classes)


def to_columns(evaluation: Evaluation) -> dict[str, dict[str, Any]]:
    """Every column as plain JSON, with None where a value is missing: what the page's own grammar reads."""
    columns = {}
    for name in column_names(evaluation):
        column = read_column(evaluation, name)
        if isinstance(column, TextColumn):
            values: list[Any] = list(column.texts())
        else:
            values = column.values.tolist()
        for i in np.flatnonzero(~column.present):
            values[i] = None
        columns[name] = {"kind": column.kind, "values": values}
    return columns


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
