"""The features of most mutual information with the failures of a class, as a page shows them."""

from __future__ import annotations

from typing import Any

from ...explain.examples import ValuedExample, example_fields
from ...explain.group_trees import TopFeature
from .. import marks, numbers
from ..class_trees import ClassTree
from ..contract import View
from ..feature_answers import result_of
from ..row_items import example_item
from .path import with_images
from .tree import count_values


def top_features(view: View, group: ClassTree, axis: marks.Axis) -> list[dict[str, Any]]:
    """Most information first: the strip of each, its error on either side of its cut, and what people said."""
    return [_line(view, group, feature, axis) for feature in group.features or ()]


def _line(view: View, group: ClassTree, feature: TopFeature, axis: marks.Axis) -> dict[str, Any]:
    name = view.features.name(group.key, feature.feature)
    rows = activating_items(view, group, feature)
    cut = numbers.quantity(feature.cut)
    # All classes share the room of a saved page: of many, each feature has the images of one row.
    room = max(1, len(rows) // len(view.class_pages))
    sides = (("above", feature.above), ("below", feature.below))
    return {
        "name": name.index,
        "title": str(name),
        "by_people": name.note,
        "information": numbers.quantity(feature.information),
        "sides": [{"words": f"{side} {cut}", **count_values(count, axis)} for side, count in sides],
        "activating": rows,
        "views": with_images(view, rows, feature.images, room=room),
        "result": result_of(view.features.of(group.key, feature.feature)),
    }


def activating_items(view: View, group: ClassTree, feature: TopFeature) -> list[dict[str, Any]]:
    """The rows of the class that raise a feature most, to look at."""
    task = group.key[0]
    evaluation = dict(view.audit.evaluation.tasks())[task]
    examples = [
        ValuedExample(**example_fields(evaluation, row), value=value)
        for row, value in zip(feature.rows, feature.values, strict=True)
    ]
    return [{**example_item(view, row), "value_text": numbers.quantity(row.value)} for row in examples]
