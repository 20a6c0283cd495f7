"""A path through a shallow tree: its words, its numbers, and what its features look like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...core import Slice
from ...explain.examples import FeatureImage, ValuedExample
from ...explain.features import Features
from ...explain.path import PathFeature, PathNumbers, TreePath
from .. import numbers
from ..class_trees import ClassTree, group_key
from ..contract import Part, Section, View
from ..feature_answers import result_of
from ..image_sources import is_small_address
from ..row_items import example_item, has_images
from .tree import SIDES, searched_lines, tree_lines

SECTION = Section("tree", "Tree", 5, note="Barlow: a path through a shallow tree of features.")
QUANTILES = {0.0: "lowest", 0.5: "median", 1.0: "highest"}
ROWS = {
    "failures": ("Failures of the path", "at random"),
    "right in the leaf": ("Right, on the path", "rows that meet the same conditions, and that the model gets right"),
    "right beside it": ("Right, off the path", "other rows of the group that the model gets right"),
}


def path_sentence(slice_: Slice) -> str:
    """ "Path: feature 1456 below 0.36." """
    path = slice_.explanation(TreePath)
    return "" if path is None else f"Path: {path.text}."


def path_values(view: View, slice_: Slice) -> dict[str, Any] | None:
    """The path, its tree and its features; None where the slice is no path."""
    path = slice_.explanation(TreePath)
    group = view.class_of(slice_)
    if path is None or group is None:
        return None
    views = slice_.explanation(Features)
    attack = "" if views is None else attack_note(views)
    return {
        "slice": slice_.id,
        "text": view.features.named(slice_.id, path.text),
        "within": path.within,
        "class_page": view.links.class_page(group.id),
        "class_title": group.title,
        "table": _table(path),
        "tree": tree_lines(view, group, path.tree, slice_),
        "searched": searched_lines(view, group, path.tree),
        "note": tree_note(group),
        "attack": attack,
        "strips_above": bool(has_images(view.audit)),
        "features": feature_values(view, slice_),
        "groups": _groups(view, path),
    }


def feature_values(view: View, slice_: Slice) -> list[dict[str, Any]]:
    """The features of a slice's path, each with its rows, its images and what people said; empty of no path."""
    path = slice_.explanation(TreePath)
    key = group_key(slice_)
    if path is None or key is None:
        return []
    views = slice_.explanation(Features)
    images: dict[int, Sequence[FeatureImage]] = {}
    if views is not None:
        images = {feature.feature: feature.images for feature in views.features}
    lines = []
    for feature in path.features:
        line = _feature(view, feature, images.get(feature.feature, ()))
        name = view.features.name(key, feature.feature)
        result = result_of(view.features.of(key, feature.feature))
        lines.append({**line, "title": str(name), "by_people": name.note, "result": result})
    return lines


def _table(path: TreePath) -> list[dict[str, str]]:
    """BER, ER, EC, IV and ALER where the tree was grown, and where nobody searched; never together."""
    named = (("Search rows, where it was found", path.searched), ("Held-out rows", path.confirm))
    return [{"which": which, **_numbers(counts)} for which, counts in named if counts is not None]


def _numbers(counts: PathNumbers) -> dict[str, str]:
    return {
        "rate": numbers.rate_of(counts.failures, counts.n),
        "count": numbers.out_of(counts.failures, counts.n),
        "base": numbers.rate_of(counts.group_failures, counts.group_n),
        "base_count": numbers.out_of(counts.group_failures, counts.group_n),
        "coverage": numbers.rate_of(counts.failures, counts.group_failures),
        "importance": numbers.quantity(counts.importance),
        "aler": numbers.rate(counts.aler),
    }


def tree_note(group: ClassTree) -> str:
    """What the numbers of a tree are worth."""
    if not group.knows_outcome:
        return ""
    return (
        "This tree reads the label beside the model’s own features, and so the outcome: its leaves are wrong by "
        "construction, on held-out rows too. A verdict is measured on an approximation that does not read the outcome; "
        "its line stands below the leaf."
    )


def attack_note(views: Features) -> str:
    """How far the attacks of some features went."""
    return (
        f"Heat map: where the feature is. Attack: the image changed so that the feature rises, by at most "
        f"{numbers.quantity(views.radius)} (L2 of pixels in [0, 1]) in {numbers.counted(views.steps, 'step')}."
    )


def _feature(view: View, feature: PathFeature, images: Sequence[FeatureImage]) -> dict[str, Any]:
    cuts = " and ".join(f"{SIDES[cut.op]} {numbers.quantity(cut.value)}" for cut in feature.cuts)
    activating = [_valued(view, row) for row in feature.activating]
    along = [
        {**_valued(view, row.example), "at": QUANTILES.get(row.quantile, f"{row.quantile:.0%}")}
        for row in feature.range
    ]
    return {
        "name": feature.name,
        "cuts": cuts,
        "note": f"{cuts} on the path; {numbers.counted(feature.total, 'row')} in its group",
        "activating": activating,
        "range": along,
        "views": with_images(view, activating, images),
    }


def with_images(
    view: View, rows: Sequence[dict[str, Any]], images: Sequence[FeatureImage], *, room: int | None = None
) -> list[dict[str, Any]]:
    """Rows with their heat maps and attacks; empty where none were drawn.

    room: of how many rows a saved page may hold them where nothing else on it shows them. Default: of all.
    """
    lines = []
    for i, (row, image) in enumerate(zip(rows, images, strict=False)):
        spare = room is not None and i >= room
        lines.append({**row, **_view(view, row, image, spare)})
    return lines


def _valued(view: View, row: ValuedExample) -> dict[str, Any]:
    return {**example_item(view, row), "value_text": numbers.quantity(row.value)}


def _view(view: View, row: Mapping[str, Any], image: FeatureImage, spare: bool) -> dict[str, Any]:
    """The image, its heat map and its attack, as far as there is room for them on the page."""
    no_heat = "nowhere in it" if image.heat is None else "left out"
    raised = "could not be raised"
    if image.moved:
        raised = f"{numbers.quantity(image.before)} → {numbers.quantity(image.after)}"
    return {
        "own": row["picture"]
        or view.images.inline(image.image, spare=spare),  # an audit need not have the images of its rows
        "heat": view.images.inline(image.heat, spare=spare),
        "no_heat": no_heat,
        "attacked": view.images.inline(image.attack, spare=spare),
        "raised": raised,
        "hard": is_small_address(image.image),
    }


def _groups(view: View, path: TreePath) -> list[dict[str, Any]]:
    rows = "held-out rows" if path.drawn_from == "confirm" else "rows"
    return [
        {
            "title": ROWS[group.which][0],
            "note": f"{numbers.out_of(len(group.rows), group.total)} {rows}; {ROWS[group.which][1]}",
            "rows": [example_item(view, row) for row in group.rows],
        }
        for group in path.groups
        if group.rows
    ]


PATH = Part("path", SECTION, path_values, "part_path.html", includes=("features",))
