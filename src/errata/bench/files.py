"""Files of an exam, written whole or not at all: a run that is killed goes on from those that are complete."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..core import Array, InputError


def write(path: Path, data: bytes) -> None:
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_bytes(data)
    os.replace(partial, path)


def write_npz(path: Path, arrays: dict[str, Array]) -> None:
    partial = path.with_name(f".{path.stem}.{os.getpid()}.npz")
    np.savez_compressed(partial, **arrays)  # type: ignore[arg-type]  # its stub takes no mapping of arrays
    os.replace(partial, path)


def hold_one_exam(path: Path, facts: str) -> None:
    """Write what is asked beside the answers, or refuse a folder that holds the answers to something else."""
    if not path.exists():
        write(path, facts.encode())
    elif path.read_text() != facts:
        raise InputError(f"`{path.parent}` holds another exam ({path.read_text()}); name another folder")


def check_json(path: Path | None) -> None:
    """Before hours of work: the rows can be written where they were asked for."""
    if path is not None and (path.is_dir() or not path.parent.is_dir()):
        what = "is a folder" if path.is_dir() else f"cannot be written: there is no folder `{path.parent}`"
        raise InputError(f"`--json {path}` {what}; name a file in a folder that exists")


def write_rows(path: Path | None, rows: Sequence[dict[str, Any]]) -> None:
    if path is not None:
        write(path, (json.dumps({"rows": list(rows)}, indent=1) + "\n").encode())
