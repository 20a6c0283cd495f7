"""Rows to look at: the image or text of each, and what the model said of it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core import Audit, Slice
from ..explain.examples import Example
from ..explain.exemplars import Exemplars
from . import numbers
from .contract import View

STRIP = 6
STRIP_TEXTS = 3
SHORT = 150  # characters of a text in a list
LONG = 320  # characters of a text on a slice's own page
MARKS = {True: "wrong", False: "right", None: ""}


def strip(view: View, slice_: Slice) -> list[dict[str, Any]]:
    """A few random members: what a slice looks like before anything is said about it."""
    exemplars = slice_.explanation(Exemplars)
    if exemplars is None:
        return []
    at_random = [row for row in exemplars.group("slice").rows if row.picked == "random"]
    most = STRIP if has_images(view.audit) else STRIP_TEXTS
    return [example_item(view, row, SHORT) for row in at_random[:most]]


def has_images(audit: Audit) -> bool:
    """Whether the rows of an audit are images."""
    media = audit.evaluation.media
    return media is not None and media.kind == "image"


def example_item(view: View, row: Example, most: int = LONG) -> dict[str, Any]:
    """A row of an explanation, to look at."""
    return item(view, row.to_json(), most)


def item(view: View, row: Mapping[str, Any], most: int = LONG) -> dict[str, Any]:
    """One row to look at: its image or its text, of at most `most` characters, and what the model said of it."""
    media = view.audit.evaluation.media
    text = None
    if media is not None and media.kind == "text":
        text = media.text(row["row"])
    if text is not None:
        text = clipped(text, most)
    return {
        **row,
        "mark": MARKS[row["wrong"]],
        "picture": view.images.symbol(row["row"]),
        "has_picture": has_images(view.audit),
        "text": text,
        "loss_text": loss_text(row["loss"]),
        "href": "",
    }


def loss_text(loss: float | None) -> str | None:
    """The loss of a row as it is written; None where a row has none."""
    return None if loss is None else numbers.quantity(loss)


def clipped(text: str, most: int) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"
