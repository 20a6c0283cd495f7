"""A path through a shallow tree: its words, its numbers, and what its features look like."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from ...core import Slice
from .. import numbers
from ..contract import Part, Section, View
from ..explanations import explanation
from ..image_sources import is_small
from ..row_items import item
from .tree import tree_lines

SECTION = Section("tree", "Tree", 5, note="Barlow: a path through a shallow tree of features.")
HEADER = 44  # characters of base64 that hold a PNG's size
ROWS = {
    "failures": ("Failures of the path", "at random"),
    "right in the leaf": ("Right, on the path", "rows that meet the same conditions, and that the model gets right"),
    "right beside it": ("Right, off the path", "other rows of the group that the model gets right"),
}


def path_sentence(slice_: Slice) -> str:
    """ "Path: feature 1456 below 0.36." """
    data = explanation(slice_, "path")
    return "" if data is None else f"Path: {data['text']}."


def path_values(view: View, slice_: Slice) -> dict[str, Any] | None:
    """The path, its tree and its features; None where the slice is no path."""
    data = explanation(slice_, "path")
    views = explanation(slice_, "features")
    if data is None:
        return None
    by_feature = {} if views is None else {entry["feature"]: entry["pictures"] for entry in views["features"]}
    return {
        "slice": slice_.id,
        "text": data["text"],
        "within": data["within"],
        "table": _table(data),
        "tree": tree_lines(view.audit, slice_, data),
        "note": _note(data),
        "attack": "" if views is None else _attack(views),
        "features": [_feature(view, entry, by_feature.get(entry["feature"])) for entry in data["features"]],
        "groups": _groups(view, data),
    }


def _table(data: Mapping[str, Any]) -> list[dict[str, str]]:
    """BER, ER, EC, IV and ALER where the tree was grown, and where nobody searched; never together."""
    named = (("Search rows, where it was found", "searched"), ("Held-out rows", "confirm"))
    return [{"which": which, **_numbers(data[key])} for which, key in named if data[key] is not None]


def _numbers(counts: Mapping[str, Any]) -> dict[str, str]:
    return {
        "rate": numbers.rate_of(counts["failures"], counts["n"]),
        "count": numbers.out_of(counts["failures"], counts["n"]),
        "base": numbers.rate_of(counts["group_failures"], counts["group_n"]),
        "base_count": numbers.out_of(counts["group_failures"], counts["group_n"]),
        "coverage": numbers.rate_of(counts["failures"], counts["group_failures"]),
        "importance": numbers.quantity(counts["importance"]),
        "aler": numbers.rate(counts["aler"]),
    }


def _note(data: Mapping[str, Any]) -> str:
    if not data["knows_outcome"]:
        return "Numbers on search rows are too optimistic: the tree was grown to separate them."
    return (
        "The path reads the outcome, since it was found within a label on the model’s own representation: its error is "
        "high by construction on any rows. The verdict is measured on an approximation that does not read the outcome."
    )


def _attack(views: Mapping[str, Any]) -> str:
    return (
        f"Heat map: where the feature is. Attack: the image changed so that the feature rises, by at most "
        f"{numbers.quantity(views['radius'])} (L2 of pixels in [0, 1]) in {numbers.counted(views['steps'], 'step')}."
    )


def _feature(view: View, feature: Mapping[str, Any], pictures: Any) -> dict[str, Any]:
    cuts = [f"{'below' if cut['op'] == '<=' else 'above'} {numbers.quantity(cut['value'])}" for cut in feature["cuts"]]
    activating = [_valued(view, row) for row in feature["activating"]]
    along = [{**_valued(view, row), "at": _place(row["quantile"])} for row in feature["range"]]
    views = [_view(view, row) for row in pictures or []]
    return {
        "name": feature["name"],
        "note": f"{' and '.join(cuts)} on the path; {numbers.counted(feature['of'], 'row')} in its group",
        "activating": activating,
        "range": along,
        "views": [{**row, **shown} for row, shown in zip(activating, views, strict=False)],
    }


def _valued(view: View, row: Mapping[str, Any]) -> dict[str, Any]:
    return {**item(view, row), "value_text": numbers.quantity(row["value"])}


def _place(quantile: float) -> str:
    named = {0.0: "lowest", 0.5: "median", 1.0: "highest"}
    return named.get(quantile, f"{quantile:.0%}")


def _view(view: View, picture: Mapping[str, Any]) -> dict[str, Any]:
    """The picture, its heat map and its attack, as far as there is room for them on the page."""
    raised = f"{numbers.quantity(picture['before'])} → {numbers.quantity(picture['after'])}"
    return {
        "own": view.images.inline(picture["picture"]),
        "heat": view.images.inline(picture["heat"]),
        "no_heat": "nowhere in it" if picture["heat"] is None else "left out",
        "attacked": view.images.inline(picture["attack"]),
        "raised": raised if picture["moved"] else "could not be raised",
        "hard": _is_small(picture["picture"]),
    }


def _is_small(address: str) -> bool:
    return is_small(base64.b64decode(address.partition(",")[2][:HEADER]))


def _groups(view: View, data: Mapping[str, Any]) -> list[dict[str, Any]]:
    rows = "held-out rows" if data["drawn_from"] == "confirm" else "rows"
    return [
        {
            "title": ROWS[group["which"]][0],
            "note": f"{numbers.out_of(len(group['rows']), group['of'])} {rows}; {ROWS[group['which']][1]}",
            "rows": [item(view, row) for row in group["rows"]],
        }
        for group in data["groups"]
        if group["rows"]
    ]


PATH = Part("path", SECTION, path_values, "part_path.html", includes=("features",))
