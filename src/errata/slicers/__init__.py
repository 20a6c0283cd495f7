"""One module or package, one method. The registry below is the only list; everything else iterates over it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any

from ..core import State
from ..core.errors import unknown
from ..core.extensions import load_extensions
from ..core.rules import check_rule
from .absent import AbsentSlicer
from .approximation import Approximation
from .barlow.slicer import Barlow
from .confusion import Confusion
from .consensus.slicer import Consensus
from .contract import BaseSlicer, Slicer, build, checked_options, clone, knows_outcome
from .directions.slicer import Directions
from .domino.slicer import Domino
from .george import George
from .gmm import Gmm
from .high_loss import HighLoss
from .infembed.rule import InfembedRule
from .infembed.slicer import Infembed
from .multiaccuracy import Multiaccuracy
from .options import list_options
from .planespot import Planespot
from .rules.slicer import Rules
from .spotlight.slicer import Spotlight
from .within import Within, search_within

METHODS = (
    Consensus,
    Rules,
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
SLICER_PARTS = ("name", "needs", "presets", "options", "fit", "membership", "from_state")  # of a class from outside
SLICERS: dict[str, Any] = {cls.name: cls for cls in METHODS}


def registry() -> dict[str, Any]:
    """Our methods and those that outside packages offer through the entry point `errata.slicers`."""
    outside = load_extensions(entry_points(group="errata.slicers"), SLICER_PARTS)
    return {**outside, **SLICERS}


def make(method: str, *, seed: int = 0, options: Mapping[str, Any] | None = None) -> Slicer:
    """A slicer by name: `spotlight`, or `spotlight:as_published` for another preset.

    Parameters
    ----------
    method
        NAME or NAME:PRESET; the preset is `recommended` where it is not named.
    seed
        Of the method, where it has one and `options` names none.
    options
        Option -> value; `advanced.KEY` is a key of the mapping `advanced`.
    """
    cls, preset = _find(method)
    return build(cls, preset, seed, options or {})


def check(method: str, *, seed: int = 0, options: Mapping[str, Any] | None = None) -> None:
    """Raise InputError where `make` would, without building anything. Parameters as of `make`."""
    cls, preset = _find(method)
    checked_options(cls, preset, seed, options or {})


def _find(method: str) -> tuple[Any, str]:
    """The class of a method, and the preset that is named."""
    name, colon, preset = method.partition(":")
    known = registry()
    if name not in known:
        raise unknown("method", name, known)
    if not colon:
        preset = "recommended"
    return known[name], preset


def describe() -> list[dict[str, Any]]:
    """Every method with what it needs, its presets and its options: what `errata methods` lists.

    `options` and `advanced` are name -> default; `allowed` and `about` say of each (an advanced one as
    `advanced.KEY`) its values and what it does.
    """
    return [_describe(name, cls) for name, cls in sorted(registry().items())]


def _describe(name: str, cls: Any) -> dict[str, Any]:
    options = list_options(cls)
    return {
        "name": name,
        "summary": (inspect.getdoc(cls) or "").partition("\n")[0],
        "needs": sorted(cls.needs),
        "reads": sorted(make(name).reads),
        "presets": {preset: dict(values) for preset, values in cls.presets.items()},
        "options": {option.name: option.default for option in options if not option.advanced},
        "advanced": {option.key: option.default for option in options if option.advanced},
        "allowed": {option.name: option.allowed for option in options},
        "about": {option.name: option.about for option in options},
    }


def restore(state: State, others: Mapping[str, Any] | None = None) -> Any:
    """A fitted slicer, or approximation, from its saved state; audits of version 0.1 call it a stand-in.

    Parameters
    ----------
    state
        What was saved.
    others
        Name -> class of further methods, such as those of a module that the user named. One that nobody knows is an
        `AbsentSlicer`: the pages of its audit need no code.
    """
    beside = {Approximation.name: Approximation, "stand-in": Approximation, Within.name: Within}
    known = {**registry(), **(others or {}), **beside}
    if state.name not in known:
        slicer: Any = AbsentSlicer(state)
    elif state.name == Within.name:
        slicer = Within.from_state(state, others)
    else:
        slicer = known[state.name].from_state(state)
    for rule in slicer.rules_:
        check_rule(rule)
    return slicer


__all__ = [
    "SLICERS",
    "AbsentSlicer",
    "Approximation",
    "BaseSlicer",
    "Slicer",
    "Within",
    "check",
    "clone",
    "describe",
    "knows_outcome",
    "make",
    "registry",
    "restore",
    "search_within",
]
