"""Outputs that appear whole or not at all: a file or a folder gets its name only when it is complete."""

from __future__ import annotations

import glob
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..core import InputError

PARTIAL = ".partial-"


def check_output(path: str | Path) -> Path:
    """The file or folder to write: it must not exist, and its parent must be writable or creatable."""
    path = Path(path)
    try:
        if path.exists() or path.is_symlink():
            raise InputError(f"`{path}` exists already; name another output, or remove it first")
        parent = next(p for p in path.absolute().parents if p.exists())
    except OSError as error:
        raise InputError(f"`{path}` cannot be written ({error.strerror}); name another output") from error
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise InputError(f"`{path}` cannot be written: `{parent}` is not a folder one may write to; name another")
    return path


def check_parquet_output(path: str | Path) -> Path:
    """A new `.parquet` file to write."""
    path = Path(path)
    if path.suffix != ".parquet":
        raise InputError(f"`{path}` must end in .parquet; got `{path.suffix or 'nothing'}`; rename the output")
    return check_output(path)


def check_replaceable(path: str | Path) -> Path:
    """A file to write, or to write anew: a report of a build is made again and again."""
    path = Path(path)
    if path.is_dir():
        raise InputError(f"`{path}` is a folder; name a file")
    if path.is_file() and os.access(path.absolute().parent, os.W_OK):
        return path
    return check_output(path)


@contextmanager
def atomic_file(path: Path) -> Iterator[Path]:
    """Write a file whole or not at all: yields another path beside it, which is renamed at the end.

    On any error neither is left, nor new parent folders.
    """
    partial = path.with_name(f".{path.name}{PARTIAL}{os.getpid()}")
    new_parents = [parent for parent in path.absolute().parents if not parent.exists()]
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _remove_abandoned(path)
        yield partial
        os.rename(partial, path)
    except BaseException as error:
        _remove(partial)
        for parent in new_parents:
            with suppress(OSError):  # somebody else has put something there
                parent.rmdir()
        if not isinstance(error, OSError):
            raise
        raise InputError(f"`{path}` cannot be written ({error.strerror or error}); name another output") from error


@contextmanager
def atomic_folder(folder: Path) -> Iterator[Path]:
    """Write a folder whole or not at all: yields an empty one beside it, which is renamed at the end."""
    with atomic_file(folder) as partial:
        partial.mkdir()
        yield partial
        _flush(partial)


def _remove_abandoned(path: Path) -> None:
    """What a killed process left of this same output. One with our own number is not us: containers reuse them."""
    for left in path.parent.glob(f".{glob.escape(path.name)}{PARTIAL}*"):
        process = left.name.rpartition("-")[2]
        if process.isdecimal() and (int(process) == os.getpid() or not _alive(int(process))):
            _remove(left)


def _remove(path: Path) -> None:
    with suppress(OSError):
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _flush(folder: Path) -> None:
    """On disk before the rename is: a machine that stops in between must not leave empty files."""
    for path in [p for p in folder.rglob("*") if p.is_file()]:
        with open(path, "rb") as file:
            os.fsync(file.fileno())
