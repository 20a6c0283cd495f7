"""New arrays with a value for every row: in memory, or in a file without a name where they are large."""

from __future__ import annotations

import tempfile
from typing import Any, Literal

import numpy as np

from .blocks import Array

DEFAULT_MEMORY = 2 << 30
SHARE = 8  # of the memory: what one array may take of it


def empty_array(
    shape: tuple[int, ...], dtype: Any, memory: int = DEFAULT_MEMORY, order: Literal["C", "F"] = "C"
) -> Array:
    """An array to fill.

    Parameters
    ----------
    shape, dtype
        As of numpy.
    memory : int
        Bytes for all such arrays together; one that takes more than an eighth of it is a memory map.
    order : str
        "C", row by row, or "F", column by column.
    """
    dtype = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if size <= memory // SHARE:
        return np.empty(shape, dtype=dtype, order=order)
    with tempfile.TemporaryFile(prefix="errata-") as file:  # the map keeps it until nothing refers to it
        return np.memmap(file, dtype=dtype, mode="w+", shape=shape, order=order)
