"""A `.csv` file as an Evaluation."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv

from ..core import Evaluation, InputError
from .detections import OF_EPOCHS
from .files import damaged
from .formats import FileFormat
from .names import Reading, has_prefix
from .tables import checked_reading, from_arrow

NEVER_EMPTY = ("labels", "predictions", "groups", "ids")  # an empty cell there is a missing one, not an empty name


def read_csv(path: Path, reading: Reading) -> Evaluation:
    """Lists are written as `[0.1, 0.2]`, `0.1 0.2` or `0.1;0.2`."""
    # What must not be taken for numbers: a text "1", an id "007".
    as_text = dict.fromkeys(("ids", "text", "image_path", "embedding"), pa.string())
    convert = pa.csv.ConvertOptions(column_types=as_text)
    parse = pa.csv.ParseOptions(newlines_in_values=True)
    try:
        table = pa.csv.read_csv(path, parse_options=parse, convert_options=convert)
        names = table.column_names
    except UnicodeDecodeError as error:
        raise InputError(f"the first line of `{path}` is not in UTF-8 ({error.reason}); save it as UTF-8") from error
    except (pa.ArrowException, OSError) as error:
        raise damaged(path, error) from error
    if any(name.strip().startswith(OF_EPOCHS) for name in names):
        raise InputError(
            f"{reading.where} has one row an epoch of a training, not one an example; run `yolo val save_json=True` "
            "and call errata.inputs.read_detections(predictions.json, LABELS)"
        )
    reading = checked_reading(table.schema, reading)
    cells = [_cells(name, table.column(i), reading) for i, name in enumerate(names)]
    return from_arrow(pa.Table.from_arrays(cells, names=names), reading)


FORMAT = FileFormat("csv", (".csv",), read_csv)


def _cells(name: str, column: pa.ChunkedArray, reading: Reading) -> pa.ChunkedArray:
    """A column of a csv with lists where lists are written, and nulls where nothing is."""
    if not pa.types.is_string(column.type):
        return column
    if name == "embedding" or has_prefix(name, ("embedding:",)) or name == "probs":
        return _lists(name, column, reading)
    if name in NEVER_EMPTY:
        column = pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)
    return _whole_numbers(column) if name == "ids" else column


def _lists(name: str, column: pa.ChunkedArray, reading: Reading) -> pa.ChunkedArray:
    """Lists of numbers from cells such as "[0.1, 0.2]", "0.1 0.2" or "0.1;0.2"; an empty cell is missing."""
    bare = pc.utf8_trim_whitespace(pc.replace_substring_regex(column, r"[\[\]()]", ""))
    bare = pc.if_else(pc.equal(bare, ""), pa.scalar(None, pa.string()), bare)
    parts = pc.split_pattern_regex(bare, r"\s*[;,\s]\s*")
    try:
        return parts.cast(pa.list_(pa.float64()))
    except pa.ArrowInvalid as error:
        row = next(i for i, cell in enumerate(parts) if not _parses(cell))
        raise InputError(
            f"`{name}` in {reading.where} has {column[row].as_py()!r} at row {row}; write it as [0.1, 0.2]"
        ) from error


def _parses(cell: pa.ListScalar) -> bool:
    try:
        cell.cast(pa.list_(pa.float64()))
    except pa.ArrowInvalid:
        return False
    return True


def _whole_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Numbers where nothing is lost by it: "7" is one, "007" and "7a" stay text."""
    try:
        numbers = column.cast(pa.int64())
    except pa.ArrowInvalid:
        return column
    return numbers if numbers.cast(pa.string()).equals(column) else column
