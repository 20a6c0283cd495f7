"""Names of files that the libraries below can open."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import InputError


def check_encodable(path: str | Path) -> None:
    """An InputError where a name has bytes that are no UTF-8, as old archives leave them: arrow opens none of these."""
    try:
        os.fspath(path).encode()
    except UnicodeEncodeError as error:
        shown = os.fsencode(path).decode(errors="replace")
        raise InputError(f"`{shown}` has a name that is not in UTF-8, which cannot be opened; rename it") from error
