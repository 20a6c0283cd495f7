"""One column of values, as numbers or as text: what conditions, rules and hypotheses compare."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from .blocks import Array

NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
LAST_OF_ASCII = 127
ASCII_SHIFT = ord("a") - ord("A")
SMALLEST_PLAIN = 1e-12  # numbers of single precision whose nine digits are a whole number by an exact power of ten
LARGEST_PLAIN = 1e15
LARGEST_WHOLE = 2**53  # larger whole numbers are not all distinct as floats


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
        return lower_case(self.values)

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
            found = [np.char.find(self.folded, str(value)) >= 0 for value in values]
            return np.asarray(np.any(found, axis=0))
        compare = {"<": np.less, "<=": np.less_equal, ">": np.greater, ">=": np.greater_equal}[op]
        inside: Array = compare(self.folded, values[0])
        return inside


def type_column(name: str, array: Array, look_for_numbers: bool = True) -> TypedColumn:
    """A column as numbers where it can be, else as text; text that is all numbers is numbers unless told otherwise."""
    kind = array.dtype.kind
    if kind == "f":
        return TypedColumn(name, "number", as_printed(array))
    if kind in "iu" and (array.size == 0 or np.abs(array.astype(np.float64)).max() < LARGEST_WHOLE):
        return TypedColumn(name, "number", array.astype(np.float64))
    text = np.char.strip(as_text(array))
    if look_for_numbers and (numbers := _as_numbers(text)) is not None:
        return TypedColumn(name, "number", numbers)
    return TypedColumn(name, "text", text)


def as_printed(array: Array) -> Array:
    """(n,) float64: numbers as they are printed, not their values in double precision: 0.1 in single is 0.100000001.

    The shortest decimal that is read back as the number has at most nine digits in single precision. A whole number of
    so many digits, and a power of ten up to 22, are exact in double precision, so that their quotient is that decimal.
    """
    if array.dtype.itemsize == 8:
        return array
    if array.dtype != np.float32:
        return array.astype(str).astype(np.float64)
    exact: Array = array.astype(np.float64)
    size = np.abs(exact)
    plain = (size > SMALLEST_PLAIN) & (size < LARGEST_PLAIN)
    printed = exact.copy()
    unread = np.flatnonzero(plain)
    for digits in range(6, 10):  # six digits are always read back as they were written
        values = exact[unread]
        places = digits - 1 - np.floor(np.log10(size[unread]))
        up = 10.0 ** np.maximum(places, 0)
        down = 10.0 ** np.maximum(-places, 0)
        decimals = np.rint(values * up / down) / up * down
        printed[unread] = decimals
        unread = unread[decimals.astype(np.float32) != array[unread]]
    others = np.flatnonzero(~plain & np.isfinite(exact) & (exact != 0))
    printed[others] = array[others].astype(str).astype(np.float64)
    return printed


def lower_case(text: Array) -> Array:
    """(n,) text in lower case: letters of ASCII as numbers, all at once, which takes a tenth of the time."""
    letters = np.ascontiguousarray(text).view(np.uint32)
    if not len(letters) or letters.max() > LAST_OF_ASCII:
        lower: Array = np.char.lower(text)
        return lower
    capital = (letters >= ord("A")) & (letters <= ord("Z"))
    return (letters + ASCII_SHIFT * capital).astype(np.uint32).view(text.dtype)


def as_text(array: Array) -> Array:
    """(n,) values as text, "" for a missing one of dates."""
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


def present_values(array: Array) -> Array:
    """(n,) bool: rows that have a value: neither NaN, infinite, no date nor blank text."""
    kind = array.dtype.kind
    if kind == "f":
        return np.isfinite(array)
    if kind in "mM":
        return ~np.isnat(array)
    if kind in "US":
        blank: Array = (array == array.dtype.type()) | np.char.isspace(array)
        return ~blank
    return np.ones(len(array), dtype=bool)
