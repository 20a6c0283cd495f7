"""A path through a shallow tree: its words, its numbers, and what its features look like."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from ...core import Slice
from ...explain.examples import ValuedExample
from ...explain.features import FeatureImage, Features
from ...explain.path import PathFeature, PathNumbers, TreePath
from .. import numbers
from ..contract import Part, Section, View
from ..image_sources import is_small
from ..row_items import example_item
from .tree import SIDES, tree_lines

SECTION = Section("tree", "Tree", 5, note="Barlow: a path through a shallow tree of features.")
QUANTILES = {0.0: "lowest", 0.5: "median", 1.0: "highest"}
HEADER = 44  # characters of base64 that hold a PNG's size
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
    views = slice_.explanation(Features)
    if path is None:
        return None
    images: dict[int, Sequence[FeatureImage]] = {}
    attack = ""
    if views is not None:
        images = {feature.feature: feature.images for feature in views.features}
        attack = _attack(views)
    return {
        "slice": slice_.id,
        "text": path.text,
        "within": path.within,
        "table": _table(path),
        "tree": tree_lines(view.audit, slice_, path),
        "note": _note(path),
        "attack": attack,
        "features": [_feature(view, feature, images.get(feature.feature, ())) for feature in path.features],
        "groups": _groups(view, path),
    }


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


def _note(path: TreePath) -> str:
    if not path.knows_outcome:
        return "Numbers on search rows are too optimistic: the tree was grown to separate them."
    return (
        "The path reads the outcome, since it was found within a label on the model’s own representation: its error is "
        "high by construction on any rows. The verdict is measured on an approximation that does not read the outcome."
    )


def _attack(views: Features) -> str:
    return (
        f"Heat map: where the feature is. Attack: the image changed so that the feature rises, by at most "
        f"{numbers.quantity(views.radius)} (L2 of pixels in [0, 1]) in {numbers.counted(views.steps, 'step')}."
    )


def _feature(view: View, feature: PathFeature, images: Sequence[FeatureImage]) -> dict[str, Any]:
    cuts = [f"{SIDES[cut.op]} {numbers.quantity(cut.value)}" for cut in feature.cuts]
    activating = [_valued(view, row) for row in feature.activating]
    along = [
        {**_valued(view, row.example), "at": QUANTILES.get(row.quantile, f"{row.quantile:.0%}")}
        for row in feature.range
    ]
    views = [_view(view, image) for image in images]
    return {
        "name": feature.name,
        "note": f"{' and '.join(cuts)} on the path; {numbers.counted(feature.total, 'row')} in its group",
        "activating": activating,
        "range": along,
        "views": [{**row, **drawing} for row, drawing in zip(activating, views, strict=False)],
    }


def _valued(view: View, row: ValuedExample) -> dict[str, Any]:
    return {**example_item(view, row), "value_text": numbers.quantity(row.value)}


def _view(view: View, image: FeatureImage) -> dict[str, Any]:
    """The image, its heat map and its attack, as far as there is room for them on the page."""
    no_heat = "nowhere in it" if image.heat is None else "left out"
    raised = "could not be raised"
    if image.moved:
        raised = f"{numbers.quantity(image.before)} → {numbers.quantity(image.after)}"
    return {
        "own": view.images.inline(image.image),
        "heat": view.images.inline(image.heat),
        "no_heat": no_heat,
        "attacked": view.images.inline(image.attack),
        "raised": raised,
        "hard": is_small(base64.b64decode(image.image.partition(",")[2][:HEADER])),
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
