"""Which methods a benchmark runs, and with which options."""

from __future__ import annotations

from collections.abc import Sequence

from ..core import InputError
from ..slicers import check, registry


def expand(methods: Sequence[str]) -> list[str]:
    """Names of methods, with `all` replaced by every method in both presets.

    methods: names, or lists of names separated by commas.
    """
    names = [name for part in methods for name in part.split(",") if name]
    if "all" in names:
        names = []
        for name, cls in registry().items():
            names += [f"{name}:{preset}" for preset in ("as_published", "recommended") if preset in cls.presets]
    if not names:
        raise InputError("`--method` is empty; name at least one, or `all`")
    for name in names:
        check(name)
    return names
