"""JSON as what an annotation says: a value of another type is refused where it is read, not where it is used."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict


def typed(hint: Any, value: Any, name: str) -> Any:
    """The value, with tuples and records where the annotation has them; a ValueError where it is of another type.

    Parameters
    ----------
    hint : type
        int, float, str, bool, None, a Literal, a Mapping, a TypedDict, a class with `from_json`, a tuple or a union of
        these; any other annotation takes all values.
    value : object
        As `json.loads` gives it.
    name : str
        What the value is, for the error.
    """
    origin = get_origin(hint)
    if origin in (Union, UnionType):
        return _first_that_takes(get_args(hint), value, name)
    if origin is tuple:
        return _parts(get_args(hint), value, name)
    if is_typeddict(hint):
        return _keys(hint, value, name)
    if hasattr(hint, "from_json"):
        _check(isinstance(value, Mapping), value, name)
        return hint.from_json(value)
    _check(_is_of(hint, origin, value), value, name)
    return value


def typed_fields(cls: Any, values: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a class, each as the annotation of its field says; others are as they are."""
    hints = get_type_hints(cls)
    return {name: typed(hints.get(name, Any), value, f"{cls.__name__}.{name}") for name, value in values.items()}


def _first_that_takes(hints: tuple[Any, ...], value: Any, name: str) -> Any:
    """By the first annotation of a union that takes the value, or with the error of the last that could be meant."""
    if value is None and NoneType in hints:
        return None
    *others, last = (hint for hint in hints if hint is not NoneType)
    for hint in others:
        try:
            return typed(hint, value, name)
        except ValueError:
            continue
    return typed(last, value, name)


def _parts(hints: tuple[Any, ...], value: Any, name: str) -> tuple[Any, ...]:
    _check(isinstance(value, list | tuple), value, name)
    if hints[-1] is Ellipsis:
        hints = (hints[0],) * len(value)
    _check(len(hints) == len(value), value, name)
    return tuple(typed(hint, part, name) for hint, part in zip(hints, value, strict=True))


def _keys(hint: Any, value: Any, name: str) -> dict[str, Any]:
    """A dictionary of which some keys are known; others are as they are."""
    _check(isinstance(value, Mapping) and hint.__required_keys__ <= value.keys(), value, name)
    hints = get_type_hints(hint)
    return {key: typed(hints.get(key, Any), part, f"{name}.{key}") for key, part in value.items()}


def _is_of(hint: Any, origin: Any, value: Any) -> bool:
    if hint is float:  # JSON writes a whole one without a point, and 1e999 is read as infinite
        return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint in (str, bool):
        return isinstance(value, hint)
    if hint in (None, NoneType):
        return value is None
    if origin is Literal:
        return isinstance(value, str | int) and value in get_args(hint)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(_fits(get_args(hint)[1], part) for part in value.values())
    return True


def _fits(hint: Any, value: Any) -> bool:
    try:
        typed(hint, value, "")
    except ValueError:
        return False
    return True


def _check(holds: bool, value: Any, name: str) -> None:
    if not holds:
        raise ValueError(f"`{name}` is {value!r:.40}, which it cannot be")
