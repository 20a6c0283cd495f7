"""Rows that arrive a batch at a time, in one array in memory or on disk."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import IO, Any

import numpy as np

from ..core import Array, InputError


def open_stream(expected: int | None, out: str | Path | None) -> InMemory | OnDisk:
    """In the .npy file `out` where it is named, else in memory."""
    if out is None:
        return InMemory(expected)
    return OnDisk(out)


class InMemory:
    """Rows in one float32 array, as long as was expected, and longer when more come."""

    def __init__(self, expected: int | None = None):
        self._expected = expected or 0
        self._rows: Array | None = None
        self._n = 0

    def append(self, batch: Array) -> None:
        """Add a batch of shape (b, …), the same in all but its first dimension as those before."""
        if self._rows is None:
            self._rows = np.empty((max(self._expected, len(batch)), *batch.shape[1:]), dtype=np.float32)
        _check_alike(batch, self._rows.shape[1:])
        end = self._n + len(batch)
        if end > len(self._rows):
            longer = np.empty((max(end, 2 * len(self._rows)), *self._rows.shape[1:]), dtype=np.float32)
            longer[: self._n] = self._rows[: self._n]
            self._rows = longer
        self._rows[self._n : end] = batch
        self._n = end

    def finish(self) -> Array:
        """(n, …) all rows."""
        assert self._rows is not None
        return self._rows[: self._n]

    def abandon(self) -> None:
        """Free the memory after an error."""
        self._rows = None


class OnDisk:
    """Rows in a `.npy` file that is written as they come, and is then memory-mapped.

    Numbers of rows need not be known: numpy leaves room in the header for them to grow. The file
    has its name only once it is whole.
    """

    def __init__(self, path: str | Path):
        self._path = Path(path)
        self._part = self._path.with_name(self._path.name + ".part")
        self._file: IO[bytes] | None = None
        self._shape: tuple[int, ...] = ()
        self._n = 0
        if self._path.suffix != ".npy":
            raise InputError(f"`out` must end in .npy; got `{self._path}`")
        if not self._path.parent.is_dir():
            raise InputError(f"`out` lies in the folder `{self._path.parent}`, which does not exist; create it first")

    def append(self, batch: Array) -> None:
        """Write a batch of shape (b, …), the same in all but its first dimension as those before."""
        if self._file is None:
            self._shape = batch.shape[1:]
            self._file = self._part.open("wb")
            self._write_header(self._file)
        _check_alike(batch, self._shape)
        self._file.write(np.ascontiguousarray(batch, dtype=np.float32).data)
        self._n += len(batch)

    def finish(self) -> Array:
        """(n, …) all rows, memory-mapped from the finished file."""
        assert self._file is not None
        self._file.seek(0)
        self._write_header(self._file)
        self._file.close()
        os.replace(self._part, self._path)
        mapped: Array = np.load(self._path, mmap_mode="r", allow_pickle=False)
        return mapped

    def abandon(self) -> None:
        """Leave nothing behind after an error."""
        if self._file is not None:
            self._file.close()
            with contextlib.suppress(FileNotFoundError):
                self._part.unlink()

    def _write_header(self, file: IO[bytes]) -> None:
        header: dict[str, Any] = {
            "descr": np.lib.format.dtype_to_descr(np.dtype(np.float32)),
            "fortran_order": False,
            "shape": (self._n, *self._shape),
        }
        np.lib.format.write_array_header_1_0(file, header)


def _check_alike(batch: Array, shape: tuple[int, ...]) -> None:
    if batch.shape[1:] != shape:
        raise InputError(
            f"rows changed their shape from {shape} to {batch.shape[1:]} between batches; "
            "pad the inputs to one size, or name another layer"
        )
