"""Which methods a benchmark runs, and with which options."""

from __future__ import annotations

from collections.abc import Sequence

from ..core import InputError
from ..slicers import check, registry

AUDIT = "audit"  # not a method: an audit as a user runs it, of the default methods or of those named behind it
DEFAULT = "default"  # where every row is an audit: that of a user who names no method


def expand_audits(methods: Sequence[str]) -> list[str]:
    """As `expand`, for benchmarks of audits: `default` is a name too, and `gmm+domino` is an audit by both.

    methods: names, or lists of names separated by commas.
    """
    names = [name for part in methods for name in part.split(",") if name]
    if "all" in names:
        named = [name for name in names if name != "all"]
        names = [*named, *expand(["all"])]
    if not names:
        raise InputError("`--method` is empty; name at least one, `default` or `all`")
    for name in audited_methods(names):
        check(name)
    return list(dict.fromkeys(names))


def audited_methods(names: Sequence[str]) -> list[str]:
    """The methods that names of `expand_audits` name, each once; none for `default`."""
    parts = [method for name in names if name != DEFAULT for method in name.split("+") if method]
    return list(dict.fromkeys(parts))


def methods_of_audit(name: str) -> list[str] | None:
    """The methods of `audit` (none: its defaults) or `audit:gmm+domino:as_published`; None where it is a method."""
    word, _, methods = name.partition(":")
    if word != AUDIT:
        return None
    return [method for method in methods.split("+") if method]


def expand(methods: Sequence[str], audits: bool = False, beside: Sequence[str] = ()) -> list[str]:
    """Names of methods, with `all` replaced by every method in both presets.

    methods: names, or lists of names separated by commas. audits: whether `audit` may be among them. beside: what `all`
    stands for as well.
    """
    names = [name for part in methods for name in part.split(",") if name]
    if "all" in names:
        every = []
        for name, cls in registry().items():
            every += [f"{name}:{preset}" for preset in ("as_published", "recommended") if preset in cls.presets]
        every += beside
        names = every + [name for name in names if audits and methods_of_audit(name) is not None]
    if not names:
        raise InputError("`--method` is empty; name at least one, or `all`")
    searched = names
    if audits:
        searched = searched_methods(names)
    for name in searched:
        check(name)
    return names


def searched_methods(names: Sequence[str]) -> list[str]:
    """All methods that are searched, alone or in an audit, each once."""
    methods: dict[str, None] = {}
    for name in names:
        in_audit = methods_of_audit(name)
        if in_audit is None:
            in_audit = [name]
        methods |= dict.fromkeys(in_audit)
    return list(methods)
