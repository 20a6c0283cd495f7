"""One file, one method. The registry below is the only list: CLI, tests, docs and bench iterate over it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any

from ..core import State
from ..core.errors import unknown
from .approximation import Approximation
from .barlow.slicer import Barlow
from .confusion import Confusion
from .contract import BaseSlicer, Slicer, build, knows_outcome
from .directions.slicer import Directions
from .domino.slicer import Domino
from .george import George
from .gmm import Gmm
from .high_loss import HighLoss
from .infembed.rule import InfembedRule
from .infembed.slicer import Infembed
from .multiaccuracy import Multiaccuracy
from .planespot import Planespot
from .spotlight.slicer import Spotlight

METHODS = (
    Spotlight,
    Infembed,
    InfembedRule,
    Directions,
    Domino,
    Planespot,
    George,
    Multiaccuracy,
    Barlow,
    Gmm,
    HighLoss,
    Confusion,
)
SLICERS: dict[str, Any] = {cls.name: cls for cls in METHODS}


def registry() -> dict[str, Any]:
    """Our methods and those that outside packages offer through the entry point `errata.slicers`."""
    outside = {entry.name: entry.load() for entry in entry_points(group="errata.slicers")}
    return {**outside, **SLICERS}


def make(method: str, *, seed: int = 0, options: Mapping[str, Any] | None = None) -> Slicer:
    """A slicer by name: `spotlight`, or `spotlight:as_published` for another preset."""
    name, colon, preset = method.partition(":")
    known = registry()
    if name not in known:
        raise unknown("method", name, known)
    return build(known[name], preset if colon else "recommended", seed, options or {})


def describe() -> list[dict[str, Any]]:
    """Every method with what it needs, its presets and its options: what `errata methods` lists."""
    return [
        {
            "name": name,
            "summary": (inspect.getdoc(cls) or "").partition("\n")[0],
            "needs": sorted(cls.needs),
            "reads": sorted(cls.reads),
            "presets": list(cls.presets),
            "options": cls.options(),
        }
        for name, cls in sorted(registry().items())
    ]


def restore(state: State) -> Any:
    """A fitted slicer, or approximation, from its saved state; audits of version 0.1 call it a stand-in."""
    known = {**registry(), Approximation.name: Approximation, "stand-in": Approximation}
    if state.name not in known:
        raise unknown("method", state.name, known)
    return known[state.name].from_state(state)


__all__ = [
    "SLICERS",
    "Approximation",
    "BaseSlicer",
    "Slicer",
    "describe",
    "knows_outcome",
    "make",
    "registry",
    "restore",
]
