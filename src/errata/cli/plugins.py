"""Methods of the user's own, by the module that holds them: only one that the user names is imported."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ..core import InputError

Plugins = Annotated[
    list[str], typer.Option("--plugin", metavar="MODULE", help="A Python module with methods of your own; repeat.")
]


def import_methods(modules: Sequence[str]) -> list[Any]:
    """Return the slicers that modules define, as classes; a module is found as `python -m` would find it."""
    return [method for module in modules for method in _methods_of(module)]


def _methods_of(name: str) -> list[Any]:
    here = str(Path.cwd())
    sys.path.append(here)  # after all installed packages: a file here never takes the place of one
    try:
        module = importlib.import_module(name)
    except (Exception, SystemExit) as error:  # a user's own code may do anything, and even end the program
        reason = str(error).partition("\n")[0] or type(error).__name__
        raise InputError(f"`--plugin {name}` cannot be imported ({type(error).__name__}: {reason})") from error
    finally:
        sys.path.remove(here)
    found = [value for value in vars(module).values() if _is_method(value, module.__name__)]
    if not found:
        raise InputError(f"`--plugin {name}` defines no method; derive one from errata.slicers.BaseSlicer")
    return found


def _is_method(value: Any, module: str) -> bool:
    """Whether a value is a slicer's class that a module or package defines itself."""
    if not isinstance(value, type) or not value.__module__.startswith(module):
        return False
    return all(hasattr(value, part) for part in ("name", "fit", "membership", "from_state"))


def build_own(methods: Sequence[str], classes: Sequence[Any], options: Mapping[str, Any], seed: int) -> list[Any]:
    """Return the methods by name, and those that a module defines as slicers with their options."""
    from ..slicers.contract import build

    known = {own.name: own for own in classes}
    built: list[Any] = []
    for method in methods:
        name, _, preset = method.partition(":")
        if name in known:
            built.append(build(known[name], preset or "recommended", seed, options.get(name, {})))
        else:
            built.append(method)
    return built


def without_own(options: Mapping[str, Any], classes: Sequence[Any]) -> dict[str, Any]:
    """Return the options of all other methods."""
    own = {method.name for method in classes}
    return {method: values for method, values in options.items() if method.partition(":")[0] not in own}
