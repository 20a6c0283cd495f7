"""New arrays with a value for every row: in memory, or in a file where they are large."""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np

from .blocks import Array

DEFAULT_MEMORY = 2 << 30
SHARE = 32  # of the memory: what one array may take of it
BLOCK_ROWS = 1 << 20


def empty_array(
    shape: tuple[int, ...],
    dtype: Any,
    memory: int = DEFAULT_MEMORY,
    order: Literal["C", "F"] = "C",
    named: bool = False,
) -> Array:
    """An array to fill.

    Parameters
    ----------
    shape, dtype
        As of numpy.
    memory : int
        Bytes for all such arrays together; one that takes more than a thirty-second of it is a memory map.
    order : str
        "C", row by row, or "F", column by column.
    named : bool
        The file of a memory map has a name while the array lives, by which other processes read it.
    """
    dtype = np.dtype(dtype)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    if size <= memory // SHARE:
        return np.empty(shape, dtype=dtype, order=order)
    if named:
        handle, path = tempfile.mkstemp(prefix="errata-")
        os.close(handle)
        array = np.memmap(path, dtype=dtype, mode="w+", shape=shape, order=order)
        weakref.finalize(array, Path(path).unlink, missing_ok=True)
        return array
    with tempfile.TemporaryFile(prefix="errata-") as file:  # the map keeps it until nothing refers to it
        return np.memmap(file, dtype=dtype, mode="w+", shape=shape, order=order)


def fill_rows(function: Callable[..., Array], dtype: Any, *arrays: Array) -> Array:
    """(n,) what a function gives for the rows of some arrays, a block of them at a time.

    Parameters
    ----------
    function : callable
        From (b, …) rows of each array to (b,) values, each of which depends on its own row alone.
    dtype
        Of the result.
    *arrays : array
        Of one length.
    """
    n = len(arrays[0])
    filled = empty_array((n,), dtype)
    for start in range(0, n, BLOCK_ROWS):
        rows = slice(start, start + BLOCK_ROWS)
        filled[rows] = function(*(array[rows] for array in arrays))
    return filled
