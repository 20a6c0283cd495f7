"""Rows to look at: the image, text or column values of each, and what the model said of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..core import Audit, Slice
from ..core.words import clipped
from ..explain.examples import Example
from ..explain.exemplars import Exemplars
from ..explain.metadata import Metadata
from ..explain.rule import Rule
from . import numbers
from .contract import View

STRIP = 6
STRIP_TEXTS = 3
SHORT = 150  # characters of a text in a list
LONG = 320  # characters of a text on a slice's own page
FEW_COLUMNS = 4  # whose values stand for a row in a list
MOST_COLUMNS = 8  # on a slice's own page
LONGEST_VALUE = 40  # characters
MARKS = {True: "wrong", False: "right", None: ""}


def strip(view: View, slice_: Slice) -> list[dict[str, Any]]:
    """A few random members: what a slice looks like before anything is said about it."""
    exemplars = slice_.explanation(Exemplars)
    if exemplars is None:
        return []
    at_random = [row for row in exemplars.group("slice").rows if row.picked == "random"]
    most = STRIP if has_images(view.audit) else STRIP_TEXTS
    columns = telling_columns(view, slice_, FEW_COLUMNS)
    return [example_item(view, row, SHORT, columns) for row in at_random[:most]]


def telling_columns(view: View, slice_: Slice | None, most: int) -> tuple[str, ...]:
    """The metadata columns that say most of a slice: those of its rule or description, then those that differ most.

    None where rows are images or texts; the first columns where no slice is named.
    """
    evaluation = view.audit.evaluation
    if evaluation.media is not None:
        return ()
    names: list[str] = []
    if slice_ is not None:
        rule = slice_.explanation(Rule)
        metadata = slice_.explanation(Metadata)
        if rule is not None:
            names += [condition.column for condition in rule.rows[0].parts]
        if metadata is not None:
            names += [profile.column for profile in metadata.columns]
    known = [name for name in dict.fromkeys([*names, *evaluation.metadata]) if name in evaluation.metadata]
    return tuple(known[:most])


def has_images(audit: Audit) -> bool:
    """Whether the rows of an audit are images."""
    media = audit.evaluation.media
    return media is not None and media.kind == "image"


def example_item(view: View, row: Example, most: int = LONG, columns: Sequence[str] | None = None) -> dict[str, Any]:
    """A row of an explanation, to look at."""
    return item(view, row.to_json(), most, columns)


def item(view: View, row: Mapping[str, Any], most: int = LONG, columns: Sequence[str] | None = None) -> dict[str, Any]:
    """One row to look at: its image, its text or the values of some columns, and what the model said of it.

    most: characters of a text. columns: see `telling_columns`; default: the first.
    """
    if columns is None:
        columns = telling_columns(view, None, FEW_COLUMNS)
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
        "columns": [(name, column_value(view.audit.evaluation.metadata[name][row["row"]])) for name in columns],
        "loss_text": loss_text(row["loss"]),
        "href": "",
    }


def column_value(value: Any) -> str:
    """A value of a column, short; "missing" where there is none."""
    if value is None or value != value or value == "":
        return "missing"
    if isinstance(value, float | np.floating):
        return numbers.quantity(float(value))
    return clipped(str(value), LONGEST_VALUE)


def loss_text(loss: float | None) -> str | None:
    """The loss of a row as it is written; None where a row has none."""
    return None if loss is None else numbers.quantity(loss)
