"""Checkpoints of long work that may be killed: files that grow with what is done, which the next run resumes from."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ..core import Array, InputError
from .outcomes import plain


class RowCheckpoint:
    """Rows of numbers in a file. Half a row that a killed run left is cut off."""

    def __init__(self, path: Path, columns: int, dtype: str = "float32"):
        self._path = path
        self._columns = columns
        self._dtype = np.dtype(dtype).newbyteorder("<")
        path.touch()
        self.cut(path.stat().st_size // (self._dtype.itemsize * columns))

    def cut(self, count: int) -> None:
        """Only the first rows stay."""
        self.count = count
        with open(self._path, "r+b") as file:
            file.truncate(count * self._dtype.itemsize * self._columns)

    def append(self, rows: Array) -> None:
        """Write more rows (b, columns) behind the others."""
        with open(self._path, "ab") as file:
            file.write(np.ascontiguousarray(rows, dtype=self._dtype).tobytes())
        self.count += len(rows)

    def read(self) -> Array:
        """(count, columns), on disk until it is read."""
        if self.count == 0:
            return np.empty((0, self._columns), dtype=self._dtype)
        return np.memmap(self._path, dtype=self._dtype, mode="r", shape=(self.count, self._columns))


class BatchCheckpoint:
    """Rows of float32 computed from a loader's batches, with a fingerprint of each batch to recognise them by."""

    def __init__(self, folder: Path, columns: int):
        self._folder = folder
        self._list = folder / "batches.jsonl"
        self._rows = RowCheckpoint(folder / "rows.f32", columns)
        self._done = _whole_lines(self._list)  # [rows, fingerprint] of each
        while sum(count for count, _ in self._done) > self._rows.count:
            self._done.pop()
        self._rows.cut(sum(count for count, _ in self._done))
        self._list.write_text("".join(json.dumps(line) + "\n" for line in self._done))

    def find(self, i: int, batch: Any) -> Array | None:
        """The rows of the i-th batch, where an earlier run computed them."""
        if i >= len(self._done):
            return None
        if fingerprint(batch) != self._done[i][1]:
            raise self._another_loader()
        start = sum(count for count, _ in self._done[:i])
        return np.array(self._rows.read()[start : start + self._done[i][0]])

    def add(self, batch: Any, rows: Array) -> None:
        """Save the rows of the next batch."""
        self._rows.append(rows)
        with open(self._list, "a") as file:
            file.write(json.dumps([len(rows), fingerprint(batch)]) + "\n")

    def check_end(self, batches: int) -> None:
        """Check, at the loader's end, that it gave no fewer batches than an earlier run read."""
        if batches < len(self._done):
            raise self._another_loader()

    def _another_loader(self) -> InputError:
        return InputError(f"`{self._folder}` holds the rows of another loader; name another folder")


class StepCheckpoint:
    """The steps of a Lanczos iteration, a `lanczos.Checkpoint`: one vector more than there are columns."""

    def __init__(self, folder: Path, columns: int, dtype: str = "float32"):
        self._rows = RowCheckpoint(folder / "basis.bin", columns, dtype)
        self._small = folder / "small.jsonl"
        self._columns = _whole_lines(self._small)[: max(0, self._rows.count - 1)]
        self._rows.cut(min(self._rows.count, len(self._columns) + 1))
        self._small.write_text("".join(json.dumps(column) + "\n" for column in self._columns))

    def vectors(self) -> Array:
        """(j, columns) the basis vectors of an earlier run."""
        return self._rows.read()

    def columns(self) -> list[list[float]]:
        """Columns of the small matrix, one less than there are vectors."""
        return self._columns

    def add_vector(self, vector: Any) -> None:
        """Save the next basis vector, an array or a tensor."""
        if hasattr(vector, "cpu"):
            vector = vector.cpu().numpy()
        self._rows.append(vector[None])

    def add_column(self, column: list[float]) -> None:
        """Save the next column."""
        with open(self._small, "a") as file:
            file.write(json.dumps(column) + "\n")


def fingerprint(nested: Any) -> str:
    """A fingerprint of the tensors, arrays, numbers and texts in a nest of dicts, lists and tuples."""
    digest = hashlib.blake2b(digest_size=16)
    _feed(digest, nested)
    return digest.hexdigest()


def _feed(digest: Any, nested: Any) -> None:
    if isinstance(nested, Mapping):
        nested = [item for pair in nested.items() for item in pair]
    if isinstance(nested, list | tuple):
        digest.update(f"{len(nested)}\0".encode())
        for item in nested:
            _feed(digest, item)
    elif hasattr(nested, "detach") or isinstance(nested, np.ndarray):
        array = np.ascontiguousarray(plain(nested))
        digest.update(f"{array.dtype}\0{array.shape}\0".encode() + array.tobytes())
    else:
        digest.update(f"{nested}\0".encode())


def _whole_lines(path: Path) -> list[Any]:
    """Of a file of JSON lines, those that a killed run finished."""
    if not path.exists():
        return []
    text = path.read_text()
    return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]


def open_folder(folder: str | Path, facts: dict[str, Any]) -> Path:
    """The folder of one piece of work, created where it does not exist; another one's files are never resumed.

    facts: what the work depends on (model, rows, options); it is written beside the files and compared.
    """
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "work.json"
    text = json.dumps(facts, sort_keys=True)
    if path.exists() and path.read_text() != text:
        raise InputError(
            f"`{folder}` holds the files of another run (model, rows or options differ); name another folder"
        )
    path.write_text(text)
    return folder
