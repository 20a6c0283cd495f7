"""Rows as files, a few thousand at a time: CSV, parquet, or ids alone."""

from __future__ import annotations

import csv
import io
import re
import tempfile
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import Array, Audit
from ..core.columns import as_text

if TYPE_CHECKING:
    import pyarrow as pa

CHUNK = 5_000  # rows in memory at a time
FORMULAS = ("=", "+", "-", "@", "\t", "\r")  # what a spreadsheet runs begins so
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")
PIECE = 1 << 20  # bytes of a file that are sent at a time


def as_ids(audit: Audit, rows: Array, weights: Array | None, confidence: Array | None) -> Iterator[bytes]:
    """One id a line."""
    for part in _chunks(rows):
        yield "".join(f"{id}\n" for id in audit.evaluation.row_ids[part].tolist()).encode()


def as_csv(audit: Audit, rows: Array, weights: Array | None, confidence: Array | None) -> Iterator[bytes]:
    """A line of names, then one a row; a byte mark first, without which a spreadsheet misreads letters.

    A text that a spreadsheet would run as a formula has an apostrophe before it; parquet and ids have all as it is.
    """
    names = list(_columns(audit, rows[:0], weights, confidence))
    yield b"\xef\xbb\xbf" + _csv_lines([names])
    for part in _chunks(rows):
        columns = _columns(audit, part, weights, confidence).values()
        yield _csv_lines(zip(*(_plain(column) for column in columns), strict=True))


def as_parquet(audit: Audit, rows: Array, weights: Array | None, confidence: Array | None) -> Iterator[bytes]:
    """The same columns in their own types, through a file that is deleted."""
    import pyarrow.parquet as pq

    with tempfile.TemporaryFile() as file:
        schema = _table(audit, rows[:1], weights, confidence).schema
        with pq.ParquetWriter(file, schema) as writer:
            for part in _chunks(rows):
                writer.write_table(_table(audit, part, weights, confidence).cast(schema))
        file.seek(0)
        while piece := file.read(PIECE):
            yield piece


def _table(audit: Audit, rows: Array, weights: Array | None, confidence: Array | None) -> pa.Table:
    import pyarrow as pa

    columns = _columns(audit, rows, weights, confidence)
    return pa.table({name: pa.array(_plain(column), type=_type(column)) for name, column in columns.items()})


def _type(column: Array) -> Any:
    """Of a column by its own type: a chunk may have nothing but missing values."""
    import pyarrow as pa

    kinds = {"b": pa.bool_(), "i": pa.int64(), "u": pa.uint64(), "f": pa.float64()}
    return kinds.get(column.dtype.kind, pa.string())


def _chunks(rows: Array) -> Iterator[Array]:
    for start in range(0, len(rows), CHUNK):
        yield rows[start : start + CHUNK]


def _columns(audit: Audit, rows: Array, weights: Array | None, confidence: Array | None) -> dict[str, Array]:
    """What is known of some rows, by name; a metadata column gives way to a name that is ours."""
    evaluation = audit.evaluation
    known: dict[str, Array | None] = {
        "id": evaluation.row_ids[rows],
        "label": _classes(audit, evaluation.labels, rows),
        "prediction": _classes(audit, evaluation.predictions, rows),
        "wrong": _taken(evaluation.errors, rows),
        "loss": _taken(evaluation.losses, rows),
        "confidence": _taken(confidence, rows),
        "depth": _taken(weights, rows),
        "rows": np.where(audit.discover[rows], "search", "held-out"),
    }
    media = evaluation.media
    if media is not None and media.kind == "text":
        known["text"] = np.array([media.text(int(row)) for row in rows], dtype=object)
    ours = {name: column for name, column in known.items() if column is not None}
    return ours | {name: column[rows] for name, column in evaluation.metadata.items() if name not in ours}


def _taken(column: Array | None, rows: Array) -> Array | None:
    return None if column is None else np.asarray(column[rows])


def _classes(audit: Audit, values: Array | None, rows: Array) -> Array | None:
    """Names of classes, numbers as they are; of several labels a row, nothing."""
    if values is None or values.ndim > 1:
        return None
    if audit.evaluation.task != "classification":
        return np.asarray(values[rows])
    return np.array([audit.evaluation.class_name(int(j)) for j in values[rows]], dtype=object)


def _plain(column: Array) -> list[Any]:
    """Values of Python; None where one is missing."""
    kind = column.dtype.kind
    values: list[Any] = column.tolist()
    if kind in "fO":
        for i, value in enumerate(values):
            if value is None or value != value:
                values[i] = None
            elif kind == "O":
                values[i] = str(value)
        return values
    if kind in "mM":
        return [value or None for value in as_text(column).tolist()]
    return values


def _csv_lines(lines: Any) -> bytes:
    text = io.StringIO()
    # Before Python 3.13 a text is quoted only for the letters of the line's end: with "\n" alone, a text with a "\r"
    # would end its line in a spreadsheet, and a formula could begin the next.
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerows([_without_formula(value) for value in line] for line in lines)
    return text.getvalue().encode()


def _without_formula(value: Any) -> Any:
    """A text that a spreadsheet would run as a formula, after an apostrophe; numbers, also as text, stay."""
    if not isinstance(value, str) or not value.startswith(FORMULAS) or NUMBER.fullmatch(value):
        return value
    return f"'{value}"
