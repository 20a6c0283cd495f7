"""The methods of an audit: their names, presets and options checked, their slicers built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core import InputError
from ..core.errors import unknown
from ..slicers import Slicer, check, make, registry, search_within
from ..slicers.options import SEED

DEFAULT_METHODS = ("consensus",)  # what found most, with least else, in the benchmarks

Options = Mapping[str, Mapping[str, Any]]  # method -> {option: value}


def check_methods(methods: Sequence[str], options: Options, seed: int = 0, within: str = "auto") -> None:
    """Raise InputError unless all names, presets and options are known: worth knowing before an hour of reading."""
    _check_names(methods, options, seed)
    for method in methods:
        check(method, seed=seed, options=options_of(method, options))
    build_slicers(methods, options, seed, within)


def build_slicers(methods: Sequence[str], options: Options, seed: int, within: str) -> dict[str, Slicer]:
    """Return a slicer, not fitted yet, for each method."""
    _check_names(methods, options, seed)
    slicers = {}
    for method in methods:
        own = options_of(method, options)
        slicers[method] = search_within(make(method, seed=seed, options=own), within, own)
    return slicers


def _check_names(methods: Sequence[str], options: Options, seed: int) -> None:
    """Refuse a list of methods that is none, options of others, and a seed that no method could take."""
    if isinstance(methods, str):
        raise InputError(f"`methods` must be a list of names; got the text {methods!r}; write [{methods!r}]")
    if not methods:
        raise InputError("`methods` is empty; name at least one, such as `spotlight`")
    if len(set(methods)) != len(methods):
        raise InputError(f"`methods` names a method twice: {', '.join(methods)}; name each once")
    named = {method.partition(":")[0] for method in methods} | set(methods)
    for method in options:
        if method not in named:
            raise _option_of_another(method, methods)
    if isinstance(seed, int) and not SEED.allows(seed, {}):
        raise InputError(f"`seed` must be {SEED.words}; got {seed}")


def _option_of_another(method: str, methods: Sequence[str]) -> InputError:
    """Return what to say of an option whose method is not run: it would change nothing, or mean another audit."""
    known = registry()
    if method.partition(":")[0] not in known:
        return unknown("method in an option", method, known)
    return InputError(
        f"an option is for method `{method}`, which is not run (only {', '.join(methods)}); "
        f"name it too, with `--method {method}` or in `methods`, or leave the option out"
    )


def options_of(method: str, options: Options) -> dict[str, Any]:
    """Return the options for a method, overridden by those for this preset of it."""
    return {**options.get(method.partition(":")[0], {}), **options.get(method, {})}
