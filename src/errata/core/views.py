"""An Evaluation, an Audit or metrics by group in the user's tools: a frame, a figure, a cell of a notebook.

This room knows none of these tools. The room that does, `notebook`, registers a function for each view when the package
is imported; methods of the same name call it here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

VIEWS: dict[str, Callable[..., Any]] = {}


def view_of(thing: Any, name: str, *arguments: Any) -> Any:
    """What the function registered for the class of `thing` and the name of a view returns.

    Parameters
    ----------
    thing : object
        What is viewed.
    name : str
        Of the view, such as "to_frame".
    *arguments
        Handed on.
    """
    return VIEWS[f"{type(thing).__name__}.{name}"](thing, *arguments)
