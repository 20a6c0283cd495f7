"""What other packages offer through entry points; one that is broken is left out with a warning."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any


class ExtensionWarning(UserWarning):
    """Something that an installed package offers cannot be used."""


def load_extensions(entries: Iterable[Any], parts: Iterable[str] = ()) -> dict[str, Any]:
    """Name -> object of each entry point that can be imported.

    Parameters
    ----------
    entries : iterable of EntryPoint
        What `importlib.metadata.entry_points` gives for a group.
    parts : iterable of str
        Attributes that each object must have.
    """
    extensions = {}
    for entry in entries:
        try:
            extension = entry.load()
            missing = [part for part in parts if not hasattr(extension, part)]
        except (Exception, SystemExit) as error:  # code of others may raise anything, or end the program
            reason = str(error).partition("\n")[0]
            _warn(entry, f"cannot be imported ({type(error).__name__}: {reason})")
            continue
        if missing:
            _warn(entry, f"has no `{missing[0]}`")
            continue
        extensions[entry.name] = extension
    return extensions


def _warn(entry: Any, fault: str) -> None:
    source = f"{entry.group}: {entry.name} = {entry.value}"
    text = f"the entry point `{source}` {fault}; it is left out: update or remove its package"
    warnings.warn(text, ExtensionWarning, stacklevel=3)
