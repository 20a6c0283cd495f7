"""Files of a benchmark, written whole or not at all: a killed run is resumed from those that are complete."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ..core import Array, InputError


def write(path: Path, data: bytes) -> None:
    """Write a file beside its place, then move it there."""
    partial = path.with_name(f".{path.name}.{os.getpid()}")
    partial.write_bytes(data)
    os.replace(partial, path)


def write_npz(path: Path, arrays: dict[str, Array]) -> None:
    """Write compressed arrays beside their place, then move them there."""
    partial = path.with_name(f".{path.stem}.{os.getpid()}.npz")
    np.savez_compressed(partial, **arrays)  # type: ignore[arg-type]  # its stub takes no mapping of arrays
    os.replace(partial, path)


def check_same_benchmark(path: Path, facts: str) -> None:
    """Write what the benchmark is beside its results, or refuse a folder with the results of another one."""
    if not path.exists():
        write(path, facts.encode())
    elif path.read_text() != facts:
        raise InputError(f"`{path.parent}` holds another benchmark ({path.read_text()}); name another folder")


def check_json(path: Path | None) -> None:
    """Check, before hours of work, that the rows can be written to this path."""
    if path is None:
        return
    if path.is_dir():
        raise InputError(f"`--json {path}` is a folder; name a file in a folder that exists")
    if not path.parent.is_dir():
        raise InputError(
            f"`--json {path}` cannot be written: the folder `{path.parent}` does not exist; "
            "name a file in a folder that exists"
        )


def write_rows(path: Path | None, rows: Sequence[dict[str, Any]]) -> None:
    """Write the rows of a table as JSON, where a path is named."""
    if path is not None:
        write(path, (json.dumps({"rows": list(rows)}, indent=1) + "\n").encode())
