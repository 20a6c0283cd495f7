"""Many files that are one table, read a batch at a time: a folder or pattern of parquet or arrow files.

What has one number or text a row is held in memory. Lists of numbers (embeddings, probabilities) may be larger than
that: they are unpacked into one array, which lies in a temporary file where it is large.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..core import Array, Evaluation, InputError
from ..core.scratch import empty_array
from .files import UNREADABLE, damaged
from .names import Reading, build
from .tables import checked_reading, flat_values, from_arrow, is_list, is_wanted

SUFFIXES = {".parquet": "parquet", ".arrow": "ipc", ".feather": "ipc", ".ipc": "ipc"}
BATCH = 1 << 16  # rows


def dataset_files(path: Path) -> list[Path]:
    """The files of a folder, or those that a pattern such as `part-*.parquet` names; none where it is neither."""
    files: Iterable[Path] = ()
    if os.path.isdir(path):
        files = (file for file in path.rglob("*") if not _is_hidden(file.relative_to(path)))
    elif glob.has_magic(str(path)) and not os.path.exists(path):  # a file may be called `part[1].parquet`
        files = (file for file in map(Path, glob.glob(str(path), recursive=True)) if file.name[0] not in "._")
    return sorted(file for file in files if file.suffix.lower() in SUFFIXES)


def _is_hidden(path: Path) -> bool:
    """Whether a program put it there for itself, as Spark, Delta and notebooks do: what they hold are no more rows."""
    return any(part[0] in "._" for part in path.parts)


def read_dataset(files: Sequence[Path], reading: Reading) -> Evaluation:
    """One Evaluation from files with the same columns, rows in the order of the files' names."""
    from pyarrow.dataset import dataset as open_dataset

    kinds = {SUFFIXES[file.suffix.lower()] for file in files}
    if len(kinds) > 1:
        raise InputError(f"{reading.where} has parquet files beside arrow files; keep one kind")
    try:
        dataset = open_dataset(
            [str(file) for file in files],
            format=kinds.pop(),
            partitioning="hive",  # folders such as `site=north` are a column
            partition_base_dir=str(reading.folder),
        )
        _check_alike(dataset, reading)
        return from_dataset(dataset, reading)
    except UNREADABLE as error:
        raise damaged(files[0].parent, error) from error


def _check_alike(dataset: Any, reading: Reading) -> None:
    """A column that only some files have would be left out, or be missing in the rows of others."""
    first: frozenset[str] | None = None
    for fragment in dataset.get_fragments():
        names = frozenset(fragment.physical_schema.names)
        first = first or names
        other = sorted(names ^ first)
        if other:
            raise InputError(
                f"the files of {reading.where} differ: `{Path(fragment.path).name}` and the first have not both "
                f"a column `{other[0]}`; give all files the same columns"
            )


def from_dataset(dataset: Any, reading: Reading) -> Evaluation:
    """An Evaluation from a `pyarrow.dataset.Dataset`, by the names of its columns."""
    schema = dataset.schema
    reading = checked_reading(schema, reading)
    wanted = [name for name in schema.names if is_wanted(name, reading)]
    lists = [name for name in wanted if is_list(schema.field(name).type) and name not in reading.metadata]
    plain = [name for name in wanted if name not in lists]
    matrices = _read_lists(dataset, lists)
    if not plain:
        return build(matrices, reading)
    return from_arrow(dataset.to_table(columns=plain), reading, matrices)


def _read_lists(dataset: Any, names: Sequence[str]) -> dict[str, Array]:
    """Name -> (n, d), filled a batch at a time."""
    if not names:
        return {}
    n = dataset.count_rows()
    filled: dict[str, Array] = {}
    start = 0
    batches = dataset.to_batches(columns=list(names), batch_size=BATCH, batch_readahead=2, fragment_readahead=1)
    for batch in batches:
        if len(batch):
            for name in names:
                _fill(filled, name, batch.column(name), start, n)
        start += len(batch)
    return filled


def _fill(filled: dict[str, Array], name: str, column: pa.Array, start: int, n: int) -> None:
    """Write the lists of a batch to their rows; the first of them says how long all are."""
    lengths = pc.list_value_length(column)
    d = filled[name].shape[1] if name in filled else lengths[0].as_py() or 0
    other = pc.index(pc.fill_null(pc.equal(lengths, d), False), False).as_py()
    if other >= 0 or d == 0:
        at = max(other, 0)
        raise InputError(
            f"`{name}` must have lists of one length; row {start + at} has {lengths[at].as_py()} values where others "
            f"have {d}; give every row the same"
        )
    values = flat_values(name, column, start, d).reshape(-1, d)
    if name not in filled:
        filled[name] = empty_array((n, d), _float_type(values.dtype))
    filled[name][start : start + len(values)] = values


def _float_type(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """What the array is stored as: numbers as they are, and those that are no floats as float32."""
    return dtype if dtype.kind == "f" else np.dtype(np.float32)
