"""A path through a shallow tree: its words, its numbers, and what its features look like."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from ..core import Audit, Slice
from . import numbers
from . import tree as trees
from .images import Pictures, is_small
from .parts import LONG, explanation, item

HEADER = 44  # characters of base64 that hold a PNG's size
ROWS = {
    "failures": ("Failures of the path", "at random"),
    "right in the leaf": ("Right, on the path", "rows that meet the same conditions, and that the model gets right"),
    "right beside it": ("Right, off the path", "other rows of the group that the model gets right"),
}


def in_words(found: Slice) -> str:
    """ "Path: feature 1456 below 0.36." """
    data = explanation(found, "path")
    return "" if data is None else f"Path: {data['text']}."


def path(audit: Audit, found: Slice, pictures: Pictures) -> dict[str, Any] | None:
    """None where the slice is no path."""
    data, views = explanation(found, "path"), explanation(found, "features")
    if data is None:
        return None
    taken = {} if views is None else {one["feature"]: one["pictures"] for one in views["features"]}
    return {
        "text": data["text"],
        "within": data["within"],
        "table": _table(data),
        "tree": trees.tree(audit, found, data),
        "note": _note(data),
        "attack": "" if views is None else _attack(views),
        "features": [_feature(audit, one, taken.get(one["feature"]), pictures) for one in data["features"]],
        "groups": _groups(audit, data, pictures),
    }


def _table(data: Mapping[str, Any]) -> list[dict[str, str]]:
    """BER, ER, EC, IV and ALER where the tree was grown, and where nobody searched; never together."""
    named = (("Discover rows, where it was found", "searched"), ("Confirm rows", "confirm"))
    return [{"which": which, **_numbers(data[key])} for which, key in named if data[key] is not None]


def _numbers(told: Mapping[str, Any]) -> dict[str, str]:
    return {
        "rate": numbers.rate_of(told["failures"], told["n"]),
        "count": numbers.out_of(told["failures"], told["n"]),
        "base": numbers.rate_of(told["group_failures"], told["group_n"]),
        "base_count": numbers.out_of(told["group_failures"], told["group_n"]),
        "coverage": numbers.rate_of(told["failures"], told["group_failures"]),
        "importance": numbers.quantity(told["importance"]),
        "aler": numbers.rate(told["aler"]),
    }


def _note(data: Mapping[str, Any]) -> str:
    if not data["knows_outcome"]:
        return "Numbers of discover rows flatter: the tree was grown to separate them."
    return (
        "The path knows the outcome, since it was found within a label on the model’s own representation: its error is "
        "high by construction on any rows. The verdict is about its stand-in."
    )


def _attack(views: Mapping[str, Any]) -> str:
    return (
        f"Heat map: where the feature is. Attack: the picture changed so that the feature rises, by at most "
        f"{numbers.quantity(views['radius'])} (L2 of pixels in [0, 1]) in {numbers.counted(views['steps'], 'step')}."
    )


def _feature(audit: Audit, one: Mapping[str, Any], taken: Any, pictures: Pictures) -> dict[str, Any]:
    cuts = [f"{'below' if cut['op'] == '<=' else 'above'} {numbers.quantity(cut['value'])}" for cut in one["cuts"]]
    activating = [_valued(audit, row, pictures) for row in one["activating"]]
    along = [{**_valued(audit, row, pictures), "at": _place(row["quantile"])} for row in one["range"]]
    views = [_view(row, pictures) for row in taken or []]
    return {
        "name": one["name"],
        "note": f"{' and '.join(cuts)} on the path; {numbers.counted(one['of'], 'row')} in its group",
        "activating": activating,
        "range": along,
        "views": [{**row, **view} for row, view in zip(activating, views, strict=False)],
    }


def _valued(audit: Audit, row: Mapping[str, Any], pictures: Pictures) -> dict[str, Any]:
    return {**item(audit, row, pictures, LONG), "value_text": numbers.quantity(row["value"])}


def _place(quantile: float) -> str:
    named = {0.0: "lowest", 0.5: "median", 1.0: "highest"}
    return named.get(quantile, f"{quantile:.0%}")


def _view(taken: Mapping[str, Any], pictures: Pictures) -> dict[str, Any]:
    """The picture, its heat map and its attack, as far as there is room for them on the page."""
    raised = f"{numbers.quantity(taken['before'])} → {numbers.quantity(taken['after'])}"
    return {
        "own": pictures.inline(taken["picture"]),
        "heat": pictures.inline(taken["heat"]),
        "no_heat": "nowhere in it" if taken["heat"] is None else "left out",
        "attacked": pictures.inline(taken["attack"]),
        "raised": raised if taken["moved"] else "could not be raised",
        "hard": _is_small(taken["picture"]),
    }


def _is_small(address: str) -> bool:
    return is_small(base64.b64decode(address.partition(",")[2][:HEADER]))


def _groups(audit: Audit, data: Mapping[str, Any], pictures: Pictures) -> list[dict[str, Any]]:
    rows = "confirm rows" if data["drawn_from"] == "confirm" else "rows"
    return [
        {
            "title": ROWS[group["which"]][0],
            "note": f"{numbers.out_of(len(group['rows']), group['of'])} {rows}; {ROWS[group['which']][1]}",
            "rows": [item(audit, row, pictures, LONG) for row in group["rows"]],
        }
        for group in data["groups"]
        if group["rows"]
    ]
