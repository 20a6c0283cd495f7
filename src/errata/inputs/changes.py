"""Inputs stay on disk, and are read while an audit runs: whether somebody wrote them meanwhile."""

from __future__ import annotations

import os
from pathlib import Path
from types import TracebackType

from ..core import InputError
from .registry import input_files


class WatchedFiles:
    """Files that a command reads, as they were when it began.

    As a context, it checks them at the end, also where the work in it failed: changed rows fail in odd ways.

    Parameters
    ----------
    *sources : Path or None
        What `read` is given, before it is read; None is passed over.
    """

    def __init__(self, *sources: Path | None) -> None:
        files = [file for source in sources if source is not None for file in input_files(source)]
        self._states = {file: _file_state(file) for file in files}

    def check(self) -> None:
        """Raise an InputError where a file is not the one that it was, or was written."""
        for file, state in self._states.items():
            if _file_state(file) != state:
                raise InputError(
                    f"`{file}` was changed or removed while it was audited; nothing was written; run the audit again, "
                    "on a copy where another program still writes the file"
                )

    def __enter__(self) -> WatchedFiles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if error is None or isinstance(error, Exception):  # whoever interrupts is told nothing else
            self.check()


def _file_state(path: Path) -> tuple[int, ...] | None:
    """None where there is no such file."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):  # of a name that no file can have
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns
