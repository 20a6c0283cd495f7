"""What Barlow's questionnaire shows: the features of a path and of its class, or a slice.

Neither label nor prediction nor name is shown, as in the crowd study of the paper (section 8): images, heat maps and
attacks alone. Who knows the class describes it instead of what is seen.

A sub-page of `annotate`, which chooses it by the task in the address: it has no `Page` of its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from ...core import Slice
from ...core.questionnaire import METHOD
from ...explain.examples import PickedGroup
from ...explain.exemplars import Exemplars
from .. import numbers
from ..contract import View
from ..parts.path import path_values, with_images
from ..parts.top_features import activating_items
from ..row_items import example_item

TASK: Final = "questionnaire"  # `task` of such an annotation
HIDDEN: dict[str, Any] = {"mark": "", "label": None, "prediction": None, "wrong": None, "loss_text": None}
METHOD_ITEM: dict[str, Any] = {
    "about": METHOD,
    "title": "The method as a whole",
    "feature": None,
    "group": None,
    "views": False,
}


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
    """Each with what the answer is `about`; a slice that is no path is one thing to describe. Last, the method."""
    slice_ = view.slice(slice_id)
    path = path_values(view, slice_)
    if path is None:
        return [_members(view, slice_), METHOD_ITEM]
    features = [*path["features"], *_others_of_class(view, slice_, path["features"])]
    return [*(_feature(slice_, feature) for feature in features), METHOD_ITEM]


def _others_of_class(view: View, slice_: Slice, asked: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """The features that say most about failure in the class of a slice, without those of its path."""
    group = view.class_of(slice_)
    assert group is not None
    names = {feature["name"] for feature in asked}
    lines = []
    for feature in group.features or ():
        name = view.features.name(group.key, feature.feature).index
        if name not in names:
            rows = activating_items(view, group, feature)
            images = with_images(view, rows, feature.images)
            lines.append({"name": name, "activating": rows, "range": [], "views": images})
    return lines


def _feature(slice_: Slice, feature: Mapping[str, Any]) -> dict[str, Any]:
    """A feature by its number alone: the group it was found in is a label or a prediction of every row below."""
    rows = {name: [{**row, **HIDDEN} for row in feature[name]] for name in ("activating", "range", "views")}
    return {
        "about": f"{slice_.id} {feature['name']}",
        "title": feature["name"].capitalize(),
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
