"""Which methods an exam asks, and with which options."""

from __future__ import annotations

from collections.abc import Sequence

from ..core import InputError
from ..slicers import make, registry


def expand(given: Sequence[str]) -> list[str]:
    """`all` is every method in both presets; else the names as they are."""
    names = [name for part in given for name in part.split(",") if name]
    if "all" in names:
        names = [f"{name}:{preset}" for name, cls in registry().items() for preset in ("as_published", "recommended")
                 if preset in cls.presets]  # fmt: skip
    if not names:
        raise InputError("`--method` is empty; name at least one, or `all`")
    for name in names:
        make(name)
    return names
