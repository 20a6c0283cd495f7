"""How much memory arrays with a value for every row may take, and where they go beyond it."""

from __future__ import annotations

import re
import tempfile
from typing import Any

import numpy as np

from ..core import Array, InputError

DEFAULT_MEMORY = 2 << 30
SHARE = 8  # of the memory that one array may take
UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*", re.IGNORECASE)
LEAST = 64 << 20


def read_memory(memory: int | str | None) -> int:
    """Bytes, from a number or a text such as "2GB" or "500 MB"."""
    if memory is None:
        return DEFAULT_MEMORY
    read = SIZE.fullmatch(str(memory))
    size = int(float(read[1]) * UNITS[read[2].upper()]) if read else 0
    if size < LEAST:
        raise InputError(f"`memory` must be a size of at least 64MB, such as 2GB; got {memory!r}")
    return size


def empty_array(shape: tuple[int, ...], dtype: Any, memory: int) -> Array:
    """An array to fill, stored column by column: in memory, or in a file without a name where it is large."""
    dtype = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if size <= memory // SHARE:
        return np.empty(shape, dtype=dtype, order="F")
    with tempfile.TemporaryFile(prefix="errata-") as file:  # the map keeps it until nothing refers to it
        return np.memmap(file, dtype=dtype, mode="w+", shape=shape, order="F")
