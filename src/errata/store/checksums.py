"""Checksums of a saved audit: a byte that changed on a disk or on the way is told before it changes a verdict."""

from __future__ import annotations

import hashlib
import json
from functools import partial
from pathlib import Path
from typing import Any

from ..core import InputError
from ..core.json_text import parse_json

FILE = "checksums.json"
PARTS = ("audit.json", "memberships.parquet", "slicers/*", "evaluation/*")  # what an audit is read from
LARGEST = 256 << 20  # bytes: of larger files the size alone is checked, since reading them takes longer than they may


def as_text(folder: Path) -> str:
    """The text of the file of checksums: the size and hash of every file that an audit is read from."""
    paths = [path for part in PARTS for path in sorted(folder.glob(part)) if path.is_file()]
    facts = {path.relative_to(folder).as_posix(): _fact(path) for path in paths if not path.name.startswith(".")}
    return json.dumps(facts, indent=1) + "\n"


def remove(folder: Path) -> None:
    """Before files change: without checksums nothing is checked."""
    (folder / FILE).unlink(missing_ok=True)


def check(folder: Path) -> None:
    """Raise an InputError where a file is not as it was written; audits of versions up to 0.3 have no checksums."""
    text = _read(folder)
    if text is None:
        return
    for name, expected in parse_json(text).items():
        try:
            found = _fact(folder / name)
        except FileNotFoundError as error:
            raise InputError(f"`{folder / name}` is gone; the audit is damaged; run it again") from error
        if found != expected:
            if _read(folder) != text:  # a slice is being added, and all files are whole
                return
            raise InputError(
                f"`{folder / name}` is damaged: it is not as it was written (see {FILE}); copy the folder again, or "
                "run the audit again"
            )


def _read(folder: Path) -> str | None:
    try:
        return (folder / FILE).read_text()
    except FileNotFoundError:
        return None


def _fact(path: Path) -> dict[str, Any]:
    size = path.stat().st_size
    if size > LARGEST:
        return {"bytes": size}
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, partial(hashlib.blake2b, digest_size=16))
    return {"bytes": size, "blake2b": digest.hexdigest()}
