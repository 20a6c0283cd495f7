"""What Barlow's questionnaire shows: the features of a path, or a slice as a whole, and nothing of any outcome."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core import Audit, Slice
from . import numbers, parts
from . import path as paths
from .images import Pictures

HIDDEN: dict[str, Any] = {"mark": "", "label": None, "prediction": None, "wrong": None, "loss_text": None}


def items(audit: Audit, found: Slice, pictures: Pictures) -> list[dict[str, Any]]:
    """Each with what the answer is `about`; a slice that is no path is one thing to describe."""
    told = paths.path(audit, found, pictures)
    if told is None:
        return [_whole(audit, found, pictures)]
    return [_feature(found, one, told["within"]) for one in told["features"]]


def _feature(found: Slice, one: Mapping[str, Any], within: str) -> dict[str, Any]:
    rows = {name: [{**row, **HIDDEN} for row in one[name]] for name in ("activating", "range", "views")}
    return {
        "about": f"{found.id} {one['name']}",
        "title": f"{one['name'].capitalize()}{f', within {within}' if within else ''}",
        "feature": {**one, **rows, "note": ""},
        "group": None,
        "views": bool(one["views"]),
    }


def _whole(audit: Audit, found: Slice, pictures: Pictures) -> dict[str, Any]:
    data = parts.explanation(found, "exemplars")
    members: Mapping[str, Any] = {"rows": [], "of": 0} if data is None else parts.group(data, "slice")
    rows = [row for row in members["rows"] if row["picked"] == "random"]
    shown = [{**parts.item(audit, row, pictures, parts.LONG), **HIDDEN} for row in rows]
    note = numbers.out_of(len(shown), members["of"])
    return {
        "about": found.id,
        "title": f"Slice {found.id}",
        "feature": None,
        "group": {"title": "Members at random", "note": note, "rows": shown, "empty": "No member to show."},
        "views": False,
    }
