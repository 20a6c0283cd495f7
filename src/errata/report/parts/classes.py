"""The classes that trees were grown in, on the overview: how often each is wrong, and what is found in it."""

from __future__ import annotations

from typing import Any

from ...core.gaps import wilson
from .. import marks
from ..class_trees import ClassTree
from ..contract import Part, Section, View
from ..row_items import has_images
from .top_features import activating_items
from .tree import NOT_RECORDED, count_values, fitting_axis

MOST = 5  # classes before the fold
SECTION = Section(
    "classes",
    "Trees by class",
    1,
    note="Barlow grew a tree in each. A page each: its most telling features, its tree, its slices. Held-out rows.",
    short="Classes",
    page="overview",
)


def class_lines(view: View, slice_: None) -> dict[str, Any] | None:
    """Every group that has a tree, most often wrong first; None where no tree was grown."""
    if not view.classes:
        return None
    ordered = sorted(view.classes, key=_lower_end, reverse=True)
    axis = fitting_axis(view, [group.confirm for group in ordered])
    shown = [_line(view, group, axis, pictured=True) for group in ordered[:MOST]]
    folded = [_line(view, group, axis, pictured=False) for group in ordered[MOST:]]
    return {"lines": shown, "folded": folded, "axis": axis}


def _lower_end(group: ClassTree) -> float:
    """Of the interval of its error rate."""
    return wilson(group.confirm.failures, group.confirm.n)[0]


def _line(view: View, group: ClassTree, axis: marks.Axis, *, pictured: bool) -> dict[str, Any]:
    href = view.links.class_page(group.id) if group in view.class_pages else ""
    first = ""
    images: list[dict[str, Any]] = []
    if group.features:
        first = str(view.features.name(group.key, group.features[0].feature))
        if pictured and has_images(view.audit):
            images = activating_items(view, group, group.features[0])
    elif group.features is None:
        first = f"its features were {NOT_RECORDED}"
    return {
        "title": group.title,
        "href": href,
        "first": first,
        "images": images,
        "slices": [slice_.id for slice_ in group.slices],
        **count_values(group.confirm, axis),
    }


TREES = Part("trees", SECTION, class_lines, "part_classes_list.html")
