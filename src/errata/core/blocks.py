"""Arrays of rows, read a block at a time so that large ones are never copied whole."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[Any]

BLOCK_BYTES = 1 << 20  # about the size of a core's cache: a block is read from memory once


class RowView:
    """Some rows of a memory-mapped array, gathered only when they are read.

    It has what readers of blocks need (`shape`, `dtype`, slices of rows) and turns into
    an ordinary array when something asks for all of it.
    """

    def __init__(self, array: Array | RowView, index: Array):
        if isinstance(array, RowView):
            index = array.index[index]
            array = array.array
        self.array: Array = array
        self.index: Array = index
        self.shape: tuple[int, ...] = (len(index), *self.array.shape[1:])
        self.dtype: np.dtype[Any] = self.array.dtype
        self.ndim: int = self.array.ndim

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> Array:
        block: Array = np.asarray(self.array[self.index[rows]])
        return block

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        array = np.asarray(self.array[self.index])
        if dtype is None:
            return array
        return array.astype(dtype, copy=False)


Matrix = Array | RowView


def block_rows(array: Matrix, budget: int = BLOCK_BYTES) -> int:
    """How many rows of `array` make one block."""
    row_bytes = int(np.prod(array.shape[1:], dtype=np.int64)) * array.dtype.itemsize
    return max(1, budget // max(1, row_bytes))


def blocks(array: Matrix, budget: int = BLOCK_BYTES) -> Iterator[tuple[slice, Array]]:
    """Yield (rows, values) over all of `array`, a block at a time."""
    step = block_rows(array, budget)
    for start in range(0, len(array), step):
        rows = slice(start, min(start + step, len(array)))
        yield rows, array[rows]


def take(array: Matrix, index: Array) -> Matrix:
    """Rows of an array: a copy in memory, a view where the array is on disk."""
    if isinstance(array, np.memmap | RowView):
        return RowView(array, np.asarray(index))
    rows: Array = array[index]
    return rows


def unit(rows: Array) -> Array:
    """Rows scaled to length one, in double precision; a row of zeros stays zero."""
    rows = np.asarray(rows, dtype=np.float64)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    scaled: Array = rows / np.where(lengths > 0, lengths, 1.0)
    return scaled


def mean_cosine(rows: Array) -> float:
    """The mean product over pairs of different rows: their mean cosine where rows have length one."""
    m = len(rows)
    total = rows.sum(axis=0)  # its squared length has every pair twice, and each row once
    return float((total @ total - (rows * rows).sum()) / (m * (m - 1)))
