"""A column of metadata, labels or predictions as a few values: what a profile counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core import Array, Evaluation

BINS = 5
MOST_VALUES = 1000  # beyond it a column names rows, it does not describe them
MOST_DISTINCT_SHARE = 0.5  # of rows, for columns with at least FEW_VALUES values
FEW_VALUES = 20


@dataclass(frozen=True, eq=False)
class Column:
    """`values[codes[i]]` is what row i has; None is a missing value."""

    name: str
    kind: str  # "categorical" or "numeric"
    values: tuple[str | None, ...]
    codes: Array  # (n,) int

    def holds(self, value: str | None) -> Array:
        """(n,) bool: rows with this value."""
        rows: Array = self.codes == self.values.index(value)
        return rows


@dataclass(frozen=True)
class Skipped:
    """A column with too many values to profile."""

    name: str
    distinct: int


def encode(name: str, column: Array, searched: Array) -> Column | Skipped:
    """One column; a numeric one is cut where the searched rows' quantiles are."""
    missing = _missing(column)
    distinct = len(np.unique(column[~missing]))
    if column.dtype.kind in "iuf" and distinct > BINS:
        return _numeric(name, column.astype(np.float64), missing, searched)
    n = len(column)
    if distinct > MOST_VALUES or (distinct >= FEW_VALUES and distinct > MOST_DISTINCT_SHARE * n):
        return Skipped(name, distinct)
    values, inverse = np.unique(column[~missing], return_inverse=True)
    return _column(name, "categorical", [_plain(value) for value in values], inverse, missing)


def encode_classes(name: str, evaluation: Evaluation, column: Array, searched: Array) -> Column | Skipped:
    """Labels or predictions by the names of their classes; in bins where they are quantities."""
    if evaluation.task == "regression" or (column != np.round(column)).any():
        return encode(name, column, searched)
    distinct, codes = np.unique(column, return_inverse=True)
    return Column(name, "categorical", tuple(evaluation.class_name(int(value)) for value in distinct), codes)


def class_values(evaluation: Evaluation) -> dict[str, Array]:
    """`label` and `prediction` as a hypothesis reads them: classes by their names where they have any."""
    columns = {}
    for name, array in (("label", evaluation.labels), ("prediction", evaluation.predictions)):
        if array is None:
            continue
        named = evaluation.class_names is not None and evaluation.task != "regression"
        columns[name] = np.array(evaluation.class_names)[array] if named else array
    return columns


def _missing(column: Array) -> Array:
    """(n,) bool. `Evaluation` writes a missing text as ""."""
    if column.dtype.kind in "Mm":
        return np.isnat(column)
    missing: Array = column == column.dtype.type() if column.dtype.kind in "US" else column != column
    return missing


def _column(name: str, kind: str, values: list[str], inverse: Array, missing: Array) -> Column:
    """inverse: the value of each row that has one; the others have the last value, None."""
    codes = np.full(len(missing), len(values), dtype=np.int64)
    codes[~missing] = inverse
    if missing.any():
        return Column(name, kind, (*values, None), codes)
    return Column(name, kind, tuple(values), codes)


def _plain(value: object) -> str:
    if isinstance(value, float | np.floating):
        return number(float(value))
    return str(value)


def number(value: float) -> str:
    """As a person would write it: a whole number stored as 3.0 is a 3, and a minus is a minus sign."""
    if value == np.round(value) and abs(value) < 1e9:
        text = f"{abs(value):.0f}"
    else:
        text = f"{abs(value):.4g}"
    return f"−{text}" if value < 0 else text


def _numeric(name: str, column: Array, missing: Array, searched: Array) -> Column:
    present = column[~missing]
    chosen = column[searched & ~missing] if (searched & ~missing).any() else present
    if np.isfinite(chosen).any():
        finite = chosen[np.isfinite(chosen)]
    else:
        finite = np.zeros(1)
    # "lower" cuts at values that occur, so that a bin's name does not depend on interpolation.
    cuts = np.unique(np.quantile(finite, np.arange(1, BINS) / BINS, method="lower"))
    bins = np.searchsorted(cuts, present, side="left")  # a cut belongs to the bin below it
    used, inverse = np.unique(bins, return_inverse=True)
    return _column(name, "numeric", [_range(present[bins == b]) for b in used], inverse, missing)


def _range(values: Array) -> str:
    low = number(float(values.min()))
    high = number(float(values.max()))
    return low if low == high else f"{low} to {high}"
