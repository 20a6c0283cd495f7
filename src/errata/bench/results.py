"""Files of a benchmark, written whole or not at all: a killed run is resumed from those that are complete."""

from __future__ import annotations

import hashlib
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from ..core import Array, InputError
from ..slicers import registry
from ..store import atomic_file


def write(path: Path, data: bytes) -> None:
    """Write a file beside its place, then move it there."""
    with atomic_file(path, replace=True) as partial:
        partial.write_bytes(data)


def write_npz(path: Path, arrays: dict[str, Array]) -> None:
    """Write compressed arrays beside their place, then move them there."""
    with atomic_file(path, replace=True) as partial:
        np.savez_compressed(partial, **arrays)  # type: ignore[arg-type]  # its stub takes no mapping of arrays


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


def resume_result(folder: Path, key: Mapping[str, Any], make: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Return what was stored for this key by the same code, or compute and store it."""
    name = hashlib.blake2b(json.dumps(key, sort_keys=True).encode(), digest_size=8).hexdigest()
    path = folder / f"results-{code_fingerprint()}" / f"{name}.json"
    if path.exists():
        stored: dict[str, Any] = json.loads(path.read_text())
        return stored
    result = make()
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, json.dumps(result).encode())
    return result


@cache
def code_fingerprint() -> str:
    """A hash of this package and of methods from others: results of a method that has changed are not used again."""
    sources = set(Path(__file__).parents[1].rglob("*.py"))
    sources |= {Path(inspect.getfile(method)) for method in registry().values()}
    digest = hashlib.blake2b(digest_size=6)
    for source in sorted(sources):
        digest.update(source.read_bytes())
    return digest.hexdigest()
