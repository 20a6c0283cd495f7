"""Options of a method as data: types from its constructor, limits from one mapping, checked in one place.

A constructor has at most eight options, named alike in every method. What is rarely set, and what exists to repeat a
paper, are fields of one dataclass, `advanced_type`, and reach the constructor as the mapping `advanced`.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from ..core import InputError
from ..core.errors import unknown

ADVANCED = "advanced"
DOTTED = f"{ADVANCED}."  # `advanced.steps` is the key `steps` of the mapping


@dataclass(frozen=True)
class Interval:
    """The finite numbers that an option allows.

    Parameters
    ----------
    low
        The smallest, or the name of the option that sets it.
    high
        The largest; None for no bound.
    excluded
        Bounds that are not allowed themselves.
    """

    low: float | str
    high: float | None = None
    excluded: Literal["none", "low", "high", "both"] = "none"

    def allows(self, value: float, values: Mapping[str, Any]) -> bool:
        """Whether a number lies within; `values` are those of all options."""
        low = values[self.low] if isinstance(self.low, str) else self.low
        if not isinstance(value, int) and not math.isfinite(value):  # a whole number may be too large to ask
            return False
        if value < low or (value == low and self.excluded in ("low", "both")):
            return False
        if self.high is None or value < self.high:
            return True
        return value == self.high and self.excluded not in ("high", "both")

    @property
    def words(self) -> str:
        """ "of at least 1", "above 0 and at most 0.5", "between 1 and 3"."""
        low = f"`{self.low}`" if isinstance(self.low, str) else f"{self.low:.10g}"
        if self.high is None:
            return f"above {low}" if self.excluded == "low" else f"of at least {low}"
        if self.excluded == "none":
            return f"between {low} and {self.high:.10g}"
        above = "above" if self.excluded in ("low", "both") else "of at least"
        below = "below" if self.excluded in ("high", "both") else "at most"
        return f"{above} {low} and {below} {self.high:.10g}"


POSITIVE = Interval(0, excluded="low")
NOT_NEGATIVE = Interval(0)
AT_LEAST_ONE = Interval(1)
SEED = Interval(0, 2**32 - 1)  # what scikit-learn takes
SHARE = Interval(0, 0.5, excluded="low")  # of the rows: a slice that is most of them is no slice


@dataclass(frozen=True)
class Option:
    """One option of a method, as `describe` and the reference list it.

    Parameters
    ----------
    name
        As `--set METHOD.NAME=VALUE` takes it: `slices`, `advanced.steps`.
    default
        The value of the preset `recommended`.
    allowed
        Its values in words.
    about
        What it does.
    """

    name: str
    default: Any
    allowed: str
    about: str

    @property
    def advanced(self) -> bool:
        """Whether it is a key of the mapping `advanced`."""
        return self.name.startswith(DOTTED)

    @property
    def key(self) -> str:
        """Its name in the constructor, or in that mapping."""
        return self.name.removeprefix(DOTTED)


def constructor_options(cls: Any) -> dict[str, Any]:
    """Arguments of a constructor and their defaults."""
    parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]
    named = [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    return {parameter.name: parameter.default for parameter in named}


def advanced_options(cls: Any) -> dict[str, Any]:
    """Keys of the mapping `advanced` and their defaults."""
    settings = getattr(cls, "advanced_type", None)
    if settings is None:
        return {}
    return {item.name: item.default for item in fields(settings)}


def list_options(cls: Any) -> list[Option]:
    """Every option of a method: those of the constructor, then the advanced ones."""
    defaults = {**constructor_options(cls), **{DOTTED + key: value for key, value in advanced_options(cls).items()}}
    defaults.pop(ADVANCED, None)
    hints = _hints(cls)
    about = {**_about(cls), **{DOTTED + key: text for key, text in _about(getattr(cls, "advanced_type", None)).items()}}
    return [
        Option(name, default, _allowed(hints.get(name, Any), _limit(cls, name)), about.get(name, ""))
        for name, default in defaults.items()
    ]


def current_name(cls: Any, name: str) -> str:
    """The name of an option today, for one that was renamed or became an advanced one."""
    renamed: Mapping[str, str] = getattr(cls, "renamed", {})
    if name in renamed:
        return renamed[name]
    if name not in constructor_options(cls) and name in advanced_options(cls):
        return DOTTED + name
    return name


def merge(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Options of several layers (a preset's, then the user's); of a name in several the last holds.

    Keys of `advanced` are merged one by one; `advanced.steps` as a name is the key `steps` of that mapping.
    """
    plain: dict[str, Any] = {}
    advanced: dict[str, Any] = {}
    for layer in layers:
        for name, value in layer.items():
            if name.startswith(DOTTED):
                advanced[name.removeprefix(DOTTED)] = value
            elif name == ADVANCED and isinstance(value, Mapping):
                advanced.update(value)
            else:
                plain[name] = value
    if advanced:
        plain[ADVANCED] = advanced
    return plain


def check_names(cls: Any, options: Mapping[str, Any]) -> None:
    """Refuse an option that does not exist, with the name that was probably meant."""
    known = [name for name in constructor_options(cls) if name != ADVANCED] + [
        DOTTED + key for key in advanced_options(cls)
    ]
    for name in options:
        new = current_name(cls, name)
        if new != name:
            raise InputError(f"`{cls.name}.{name}` is now `{cls.name}.{new}`; use that name")
        if name == ADVANCED and advanced_options(cls):
            check_names(cls, {DOTTED + str(key): None for key in _mapping(options[name])})
        elif name not in known:
            raise unknown(f"option of method `{cls.name}`", name, known)


def check_values(cls: Any, values: Mapping[str, Any]) -> None:
    """Refuse the first value that is not allowed; `values` are those of the constructor, all of them."""
    hints = _hints(cls)
    whole = {**values, **advanced_options(cls), **_mapping(values.get(ADVANCED))}  # what a bound may name
    each = {**values, **{DOTTED + str(key): value for key, value in _mapping(values.get(ADVANCED)).items()}}
    for name, value in each.items():
        limit = _limit(cls, name)
        if not _fits(value, hints.get(name, Any), limit, whole):
            allowed = _allowed(hints[name], limit)
            raise InputError(f"`{cls.name}.{name}` must be {allowed}; got {value!r}")


def _mapping(value: Any) -> Mapping[str, Any]:
    """The advanced options of a user, none where it is no mapping: its type is checked as every other's."""
    return value if isinstance(value, Mapping) else {}


def _hints(cls: Any) -> dict[str, Any]:
    settings = getattr(cls, "advanced_type", None)
    rare = get_type_hints(settings) if settings is not None else {}
    return {**get_type_hints(cls.__init__), **{DOTTED + key: hint for key, hint in rare.items()}}


def _limit(cls: Any, name: str) -> Interval | None:
    key = name.removeprefix(DOTTED)
    for base in inspect.getmro(cls):
        limits: Mapping[str, Interval] = vars(base).get("limits", {})
        if key in limits:
            return limits[key]
    return None


def _about(documented: Any) -> dict[str, str]:
    """Parameter -> its description in the section "Parameters" of a docstring."""
    _, _, section = (inspect.getdoc(documented) or "").partition("Parameters\n----------\n")
    section = section.partition("\n\n")[0]
    texts: dict[str, str] = {}
    name = ""
    for line in section.splitlines():
        if line.startswith(" "):
            texts[name] = f"{texts[name]} {line.strip()}".strip()
        else:
            name = line.strip()
            texts[name] = ""
    return texts


def _fits(value: Any, hint: Any, limit: Interval | None, values: Mapping[str, Any]) -> bool:
    """Whether a value from the outside is of the type that a constructor asks for, and within its limits."""
    if hint is Any:
        return True
    origin = get_origin(hint)
    if origin is Literal:
        return isinstance(value, str) and value in get_args(hint)
    if origin in (Union, UnionType):
        return any(_fits(value, part, limit, values) for part in get_args(hint))
    if origin is Callable or hint is Callable:
        return callable(value)
    if hint in (int, float):
        number = Integral if hint is int else Real
        if not isinstance(value, number) or isinstance(value, bool) or value != value:
            return False
        return limit is None or limit.allows(float(value), values)
    if hint is bool:
        return isinstance(value, bool | np.bool_)
    kind = origin or hint
    return not isinstance(kind, type) or isinstance(value, kind)


NAMES = {
    int: "an integer",
    float: "a number",
    bool: "true or false",
    str: "text",
    NoneType: "null",
    Mapping: "a mapping",
    list: "a list",
}


def _allowed(hint: Any, limit: Interval | None) -> str:
    """The values of an option in words: "an integer of at least 1 or null"."""
    parts = _alternatives(hint, limit)
    if len(parts) == 1:
        return parts[0]
    return f"{', '.join(parts[:-1])} or {parts[-1]}"


def _alternatives(hint: Any, limit: Interval | None) -> list[str]:
    origin = get_origin(hint)
    if origin is Literal:
        return [f"`{value}`" for value in get_args(hint)]
    if origin in (Union, UnionType):
        return [words for part in get_args(hint) for words in _alternatives(part, limit)]
    if hint in (int, float) and limit is not None:
        return [f"{NAMES[hint]} {limit.words}"]
    kind = origin or hint
    if kind in NAMES:
        return [NAMES[kind]]
    if kind is Callable:
        return ["a function"]
    if getattr(hint, "_is_protocol", False):
        methods = [f"`{name}`" for name in vars(hint) if not name.startswith("_")]
        return [f"an object with {' and '.join(methods)}"]
    return ["anything"]
