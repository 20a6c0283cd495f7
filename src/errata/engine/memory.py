"""How much memory arrays with a value for every row may take, as users write it."""

from __future__ import annotations

import re

from ..core import InputError
from ..core.scratch import DEFAULT_MEMORY
from ..core.words import clipped

UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(?:i?B)?\s*", re.IGNORECASE)
LEAST = 64 << 20
MOST = 1 << 50
LONGEST = 40  # characters of a wrong size that an error repeats


def read_memory(memory: int | str | None) -> int:
    """Bytes, from a number or a text such as "2GB" or "500 MB"."""
    if memory is None:
        return DEFAULT_MEMORY
    read = SIZE.fullmatch(str(memory))
    size = float(read[1]) * UNITS[read[2].upper()] if read else 0.0
    if not LEAST <= size <= MOST:
        got = repr(clipped(str(memory), LONGEST))
        raise InputError(f"`memory` must be a size from 64MB to 1024TB, such as 2GB; got {got}")
    return int(size)
