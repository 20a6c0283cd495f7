"""An Evaluation, an Audit or metrics by group in the user's tools: a frame, a figure, a cell of a notebook.

This room knows none of these tools. The room that does, `notebook`, lists a function for each view; methods of the same
name call it here. The package says where that list is (`provide_views`), and it is imported with the first view.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Views = Mapping[str, Callable[..., Any]]
_providers: list[Callable[[], Views]] = []


def provide_views(views: Callable[[], Views]) -> None:
    """Say how the views are found: a function that returns them by class and name, such as "Audit.to_frame"."""
    _providers[:] = [views]


def view_of(thing: Any, name: str, *arguments: Any) -> Any:
    """What the function for the class of `thing` and the name of a view returns.

    Parameters
    ----------
    thing : object
        What is viewed.
    name : str
        Of the view, such as "to_frame".
    *arguments
        Handed on.
    """
    (views,) = _providers
    return views()[f"{type(thing).__name__}.{name}"](thing, *arguments)
