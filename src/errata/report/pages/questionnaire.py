"""What Barlow's questionnaire shows: the features of a path, or a slice as a whole, and nothing of any outcome.

A sub-page of `annotate`, which chooses it by the task in the address: it has no `Page` of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ...core import Slice
from ...explain.examples import PickedGroup
from ...explain.exemplars import Exemplars
from .. import numbers
from ..contract import View
from ..parts.path import path_values
from ..row_items import example_item

TASK: Final = "questionnaire"  # `task` of such an annotation
HIDDEN: dict[str, Any] = {"mark": "", "label": None, "prediction": None, "wrong": None, "loss_text": None}


def context(view: View, slice_id: str, form: Mapping[str, Any]) -> dict[str, Any]:
    """The questionnaire about a slice; form: its limits and choices."""
    return {
        "template": "page_questionnaire.html",
        "title": f"Questionnaire: {slice_id}",
        "queue": slice_id,
        "form": form,
        "items": question_items(view, slice_id),
    }


def question_items(view: View, slice_id: str) -> list[dict[str, Any]]:
    """Each with what the answer is `about`; a slice that is no path is one thing to describe."""
    slice_ = view.slice(slice_id)
    path = path_values(view, slice_)
    if path is None:
        return [_members(view, slice_)]
    return [_feature(slice_, feature, path["within"]) for feature in path["features"]]


def _feature(slice_: Slice, feature: Mapping[str, Any], within: str) -> dict[str, Any]:
    rows = {name: [{**row, **HIDDEN} for row in feature[name]] for name in ("activating", "range", "views")}
    title = feature["name"].capitalize()
    if within:
        title = f"{title}, within {within}"
    return {
        "about": f"{slice_.id} {feature['name']}",
        "title": title,
        "feature": {**feature, **rows, "note": ""},
        "group": None,
        "views": bool(feature["views"]),
    }


def _members(view: View, slice_: Slice) -> dict[str, Any]:
    exemplars = slice_.explanation(Exemplars)
    if exemplars is None:
        members = PickedGroup("slice", 0, ())
    else:
        members = exemplars.group("slice")
    rows = [{**example_item(view, row), **HIDDEN} for row in members.rows if row.picked == "random"]
    note = numbers.out_of(len(rows), members.total)
    return {
        "about": slice_.id,
        "title": f"Slice {slice_.id}",
        "feature": None,
        "group": {"title": "Members at random", "note": note, "rows": rows, "empty": "No member to show."},
        "views": False,
    }
