"""How columns travel to another process: by the name of their file where there is one, else as the bytes of a part."""

from __future__ import annotations

import copy
import mmap
import os
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache, partial
from typing import Any

import numpy as np

from ..core import Array, Evaluation, RowView

FILES = 32  # that a worker keeps mapped


class NeedsCopy(Exception):
    """A worker has not what it was told to use: its machine does not see a file, or it does not hold a part."""


@dataclass(frozen=True)
class MappedArray:
    """An array in a file. The size and time of the file tell another machine's from it."""

    path: str
    size: int
    modified: int
    dtype: np.dtype[Any]
    offset: int  # of the first number
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def open(self) -> Array:
        """The array, of which nothing is read yet."""
        try:
            stamp = file_stamp(self.path)
        except OSError:
            stamp = None
        if stamp != (self.size, self.modified):
            raise NeedsCopy(self.path)
        return np.ndarray(self.shape, self.dtype, map_file(self.path, *stamp), self.offset, self.strides)


@dataclass(frozen=True)
class MappedRows:
    """Some rows of an array in a file."""

    array: MappedArray
    index: Array


@lru_cache(FILES)
def map_file(path: str, size: int, modified: int) -> Any:
    """All bytes of a file; size and time are part of the key, so that a new file of that name is mapped again."""
    return np.memmap(path, dtype=np.uint8, mode="r")


def file_stamp(path: str) -> tuple[int, int]:
    """Size and time of the last change."""
    facts = os.stat(path)
    return facts.st_size, facts.st_mtime_ns


def pack(value: Any, copied: bool = False) -> Any:
    """What is sent in place of a value. copied: files are not seen where it goes."""
    if type(value) is tuple:
        return tuple(pack(item, copied) for item in value)
    if isinstance(value, Evaluation):
        return value.map_columns(partial(pack, copied=copied))
    if isinstance(value, RowView):
        mapped = None if copied else find_file(value.array)
        return value[:] if mapped is None else MappedRows(mapped, value.index)
    if isinstance(value, np.ndarray):
        mapped = None if copied else find_file(value)
        return _contiguous(value) if mapped is None else mapped
    return value


def unpack(value: Any, own: bool = False) -> Any:
    """The value of what was sent. own: arrays that were sent are copied, so that they outlive the message."""
    if type(value) in (tuple, list):
        return type(value)(unpack(item, own) for item in value)
    if type(value) is dict:
        return {key: unpack(item, own) for key, item in value.items()}
    if isinstance(value, Evaluation):
        return value.map_columns(partial(unpack, own=own))
    if isinstance(value, MappedArray):
        return value.open()
    if isinstance(value, MappedRows):
        return RowView(value.array.open(), unpack(value.index, own))
    if own and is_dataclass(value):
        mine = copy.copy(value)
        for field in fields(value):
            object.__setattr__(mine, field.name, unpack(getattr(value, field.name), own))
        return mine
    if isinstance(value, np.ndarray) and own:
        return value.copy(order="K")
    return value


def narrow(column: Any, rows: slice) -> Any:
    """Some rows of a column; those of a view are not gathered yet."""
    if isinstance(column, Evaluation):
        return column.map_columns(lambda array: narrow(array, rows))
    if isinstance(column, RowView):
        return RowView(column.array, column.index[rows])
    return column[rows]


def sent_bytes(packed: Any) -> int:
    """What the arrays of a packed value take, those in files not counted."""
    if isinstance(packed, tuple):
        return sum(map(sent_bytes, packed))
    if isinstance(packed, Evaluation):
        sizes: list[int] = []
        packed.map_columns(lambda array: sizes.append(sent_bytes(array)))
        return sum(sizes)
    if isinstance(packed, MappedRows):
        return packed.index.nbytes
    return packed.nbytes if isinstance(packed, np.ndarray) else 0


def find_file(array: Array) -> MappedArray | None:
    """Where an array lies in a file; None where it does not, or where the file may say something else."""
    root = _root_map(array)
    if root is None or array.size == 0 or min(array.strides, default=0) < 0 or array.dtype.hasobject:
        return None
    if root.mode not in ("r", "r+", "w+"):  # "c": what was changed is in memory alone
        return None
    path = os.path.abspath(str(root.filename))
    start = array.__array_interface__["data"][0] - root.__array_interface__["data"][0]
    try:
        size, modified = file_stamp(path)
    except OSError:  # deleted: the map keeps it for this process alone
        return None
    return MappedArray(path, size, modified, array.dtype, int(root.offset) + start, array.shape, array.strides)


def write_back(*columns: Any) -> None:
    """Write what this process changed in maps of files, so that other machines see it."""
    for column in columns:
        if isinstance(column, Evaluation):
            column.map_columns(write_back)
        root = _root_map(getattr(column, "array", column))
        if root is not None and root.mode != "r":
            root.flush()


def _contiguous(array: Array) -> Array:
    """The array in the order that its numbers have in memory: sums in another order differ in their last bits."""
    plain = np.asarray(array)
    if plain.flags.forc:
        return plain
    return plain.copy(order="K")


def _root_map(array: Any) -> np.memmap[Any, Any] | None:
    """The map of a file that an array is a view of."""
    root = None
    while isinstance(array, np.ndarray):
        if isinstance(array, np.memmap):
            root = array
        array = array.base
    return root if isinstance(array, mmap.mmap) and root is not None and root.filename is not None else None
