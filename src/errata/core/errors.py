"""The errors that Errata raises, as one small tree.

ErrataError
├── InputError       the user's data or options; one sentence: what, got, where, cure. Exit code 2.
│   └── MissingInput  a method or explanation lacks something it needs, by name
└── MissingExtra     an optional dependency is not installed, with the command that installs it
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable
from types import ModuleType

CLASSES_ONLY = ("errors", "probs")  # fields that no regression has


class ErrataError(Exception):
    """Base of every error that Errata raises on purpose.

    Examples
    --------
    >>> import errata
    >>> try:
    ...     errata.Settings(alpha=2)
    ... except errata.ErrataError as error:
    ...     print(error)
    `alpha` must be between 0 and 0.5; got 2
    """


class InputError(ErrataError, ValueError):
    """The user's data or options are wrong; the message is one sentence."""


class MissingInput(InputError):
    """A method or explanation needs something that the input lacks."""


class MissingExtra(ErrataError, ImportError):
    """An optional dependency is not installed."""


def require(module: str, extra: str) -> ModuleType:
    """Import an optional dependency, or raise a MissingExtra that says how to install it.

    Parameters
    ----------
    module : str
        Its name, such as `torch`.
    extra : str
        The extra of Errata that installs it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0]:
            raise
        cure = f"pip install 'errata[{extra}]'"
        raise MissingExtra(f"this needs the package `{module}`, which is not installed; {cure}") from error


def unknown(kind: str, got: str, known: Iterable[str]) -> InputError:
    """The error for a name that is not in a list, with the nearest one that is.

    Parameters
    ----------
    kind : str
        What the name is of, such as "method".
    got : str
        The unknown name.
    known : iterable of str
        The names that exist.
    """
    names = sorted(known)
    near = difflib.get_close_matches(got, names, n=1, cutoff=0.6)
    if not near:  # a short form, such as `probs` of `probabilities`, has fewer letters in common
        same_start = [name for name in names if name[:3] == got[:3]]
        near = difflib.get_close_matches(got, same_start, n=1, cutoff=0.5)
    if near:
        return InputError(f"unknown {kind} `{got}`; did you mean `{near[0]}`?")
    return InputError(f"unknown {kind} `{got}`; known: {', '.join(names) or 'none'}")


def missing(name: str, who: str, task: str | None) -> MissingInput:
    """An error about a field that someone needs and an evaluation of a task lacks."""
    if name in CLASSES_ONLY and task == "regression":
        return MissingInput(f"{who} needs `{name}` of classes; this evaluation is one of regression")
    if name == "errors":
        return MissingInput(f"{who} needs errors, which labels with `predictions` or `probs` tell; add them")
    return MissingInput(f"{who} needs `{name}`, which this evaluation does not have; add it to the input")
