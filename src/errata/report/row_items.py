"""Rows to look at: the image or text of each, and what the model said of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core import Audit, Slice
from . import numbers
from .contract import View
from .explanations import explanation

STRIP = 6
STRIP_TEXTS = 3
SHORT = 150  # characters of a text in a list
LONG = 320  # characters of a text on a slice's own page
MARKS = {True: "wrong", False: "right", None: ""}


def strip(view: View, slice_: Slice) -> list[dict[str, Any]]:
    """A few random members: what a slice looks like before anything is said about it."""
    data = explanation(slice_, "exemplars")
    if data is None:
        return []
    at_random = [row for row in group(data, "slice")["rows"] if row["picked"] == "random"]
    most = STRIP if has_images(view.audit) else STRIP_TEXTS
    return [item(view, row, SHORT) for row in at_random[:most]]


def has_images(audit: Audit) -> bool:
    """Whether the rows of an audit are images."""
    media = audit.evaluation.media
    return media is not None and media.kind == "image"


def item(view: View, row: Mapping[str, Any], most: int = LONG) -> dict[str, Any]:
    """One row to look at: its image or its text, of at most `most` characters, and what the model said of it."""
    media = view.audit.evaluation.media
    text = media.text(row["row"]) if media is not None and media.kind == "text" else None
    return {
        **row,
        "mark": MARKS[row["wrong"]],
        "picture": view.images.symbol(row["row"]),
        "has_picture": has_images(view.audit),
        "text": None if text is None else clipped(text, most),
        "loss_text": None if row["loss"] is None else numbers.quantity(row["loss"]),
        "href": "",
    }


def clipped(text: str, most: int) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def group(data: Mapping[str, Any], which: str) -> Mapping[str, Any]:
    """A group of example rows; an empty one where there is none of that name."""
    return next((group for group in data["groups"] if group["which"] == which), {"rows": [], "of": 0})
