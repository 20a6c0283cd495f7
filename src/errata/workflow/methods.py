"""The methods of an audit: their names, presets and options checked, their slicers built."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..core import Evaluation, InputError
from ..core.errors import unknown
from ..core.evaluation import INFLUENCE
from ..core.rules.literals import encode
from ..slicers import Slicer, check, make, registry, search_within
from ..slicers.options import SEED

DEFAULT_METHODS = ("consensus", "rules")  # of representations, and of metadata: what found most in the benchmarks

SLICER_PARTS = ("name", "fit", "membership", "reads", "to_state", "from_state")

Options = Mapping[str, Mapping[str, Any]]  # method -> {option: value}
Method = str | Slicer  # a name, or a slicer that the user built


def default_methods(evaluation: Evaluation, *, required: bool = True) -> tuple[str, ...]:
    """Return the default methods that these rows have something for.

    `consensus` where there are representations, `rules` where there is metadata, both where there are both.

    Parameters
    ----------
    evaluation
        The rows.
    required
        Raise an InputError where there is neither; else return none.
    """
    consensus, rules = DEFAULT_METHODS
    methods = []
    if evaluation.representations:
        methods.append(consensus)
    if any(encode(name, np.asarray(column)) is not None for name, column in evaluation.metadata.items()):
        methods.append(rules)
    if required and not methods:
        ids = " (each is one value, or another in every row)" if evaluation.metadata else ""
        raise InputError(
            f"nothing to search: these rows have neither an embedding nor metadata columns to make rules of{ids}; "
            "add `embedding`, or name columns with `--metadata COLUMN`, or `--metadata all`"
        )
    return tuple(methods)


def check_methods(methods: Sequence[str], options: Options, seed: int = 0, within: str = "auto") -> None:
    """Raise InputError unless all names, presets and options are known: worth knowing before an hour of reading."""
    _check_names(methods, options, seed)
    for method in methods:
        check(method, seed=seed, options=options_of(method, options))
    build_slicers(methods, options, seed, within)


def build_slicers(methods: Sequence[Method], options: Options, seed: int, within: str) -> dict[str, Slicer]:
    """Return a slicer, not fitted yet, for each method; one that the user built is taken as it is."""
    _check_names(methods, options, seed)
    slicers = {}
    for method in methods:
        if isinstance(method, str):
            own = options_of(method, options)
            slicers[method] = search_within(make(method, seed=seed, options=own), within, own)
        else:
            slicers[method.name] = search_within(method, within, {})
    return slicers


def method_names(methods: Sequence[Method]) -> list[str]:
    """Return the name of each method; a slicer that the user built says its own."""
    names = []
    for method in methods:
        if isinstance(method, str):
            names.append(method)
            continue
        _check_slicer(method)
        names.append(method.name)
    return names


def _check_slicer(method: Any) -> None:
    """Refuse what is neither a name nor a slicer."""
    if isinstance(method, type):
        raise InputError(
            f"`methods` takes names and slicers; got the class {method.__name__}; write {method.__name__}()"
        )
    lacking = [name for name in SLICER_PARTS if not hasattr(method, name)]
    if lacking:
        raise InputError(
            f"`methods` takes names and slicers; {type(method).__name__} is no slicer: it has no `{lacking[0]}`; "
            "derive it from errata.slicers.BaseSlicer"
        )


def _check_names(methods: Sequence[Method], options: Options, seed: int) -> None:
    """Refuse a list of methods that is none, options of others, and a seed that no method could take."""
    if isinstance(methods, str):
        raise InputError(f"`methods` must be a list of names; got the text {methods!r}; write [{methods!r}]")
    if not methods:
        raise InputError("`methods` is empty; name at least one, such as `spotlight`")
    names = method_names(methods)
    if len(set(names)) != len(names):
        raise InputError(f"`methods` names a method twice: {', '.join(names)}; name each once")
    named = {name.partition(":")[0] for name in names} | set(names)
    for method in options:
        if method not in named:
            raise _option_of_another(method, names)
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


def reads_influence(slicers: Mapping[str, Slicer]) -> bool:
    """Return whether a method searches influence embeddings, which an audit makes where the rows have none."""
    return any(getattr(slicer, "representation", None) == INFLUENCE for slicer in slicers.values())
