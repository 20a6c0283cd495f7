"""A `.parquet` file as an Evaluation."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from ..core import Evaluation
from .files import UNREADABLE, damaged
from .formats import FileFormat
from .names import Reading
from .tables import checked_reading, from_arrow, is_wanted


def read_parquet(path: Path, reading: Reading) -> Evaluation:
    """Only the columns that are wanted are read."""
    try:
        schema = pa.parquet.read_schema(path)
        reading = checked_reading(schema, reading)
        wanted = [name for name in schema.names if is_wanted(name, reading)]
        table = pa.parquet.ParquetFile(path).read(columns=wanted)
    except UNREADABLE as error:
        raise damaged(path, error) from error
    return from_arrow(table, reading)


FORMAT = FileFormat("parquet", (".parquet",), read_parquet)
