"""Class: how often is the model wrong on it, which features say so, and which slices lie in it?"""

from __future__ import annotations

from typing import Any

from ...core.gaps import wilson
from ...core.words import FEWEST_FOR_PERCENT
from ...explain.features import Features
from .. import marks, numbers
from ..class_trees import ClassTree, class_trees, saved_groups
from ..contract import Page, PageNotFound, Request, View
from ..feature_answers import pooled_result
from ..parts.path import attack_note, tree_note
from ..parts.top_features import top_features
from ..parts.tree import NOT_RECORDED, fitting_axis, searched_lines, tree_lines
from ..row_items import has_images
from ..slice_lines import slice_line


def context(view: View, request: Request) -> dict[str, Any]:
    """The page of one class, or of another group that a tree was grown in."""
    group = next((group for group in view.class_pages if group.id == request["id"]), None)
    if group is None:
        raise PageNotFound(f"Class {request['id']!r} does not exist.")
    pages = view.class_pages
    at = pages.index(group)
    previous = view.links.class_page(pages[at - 1].id) if at else ""
    following = ""
    if at + 1 < len(pages):
        following = view.links.class_page(pages[at + 1].id)
    standings = view.backend.standings()
    axis = _axis(view, group)
    features = top_features(view, group, axis)
    return {
        "title": _title(group),
        "group": group,
        "number": at + 1,
        "total": len(pages),
        "previous": previous,
        "next": following,
        "lede": _lede(group),
        "class_axis": axis,
        "features": features,
        "features_note": _features_note(group),
        "attack": _attack(view, group),
        "pictured": has_images(view.audit),
        "said": pooled_result(view.features.of_group(group.key)),
        "of_method": view.features.of_method(),
        "asked": not view.links.saved and view.backend.questionnaire() is not None,
        "tree": tree_lines(view, group, group.tree),
        "searched": searched_lines(view, group, group.tree),
        "tree_note": tree_note(group),
        "slices": [slice_line(view, slice_, standings) for slice_ in group.slices],
    }


def _axis(view: View, group: ClassTree) -> marks.Axis:
    """One for the class and for both sides of every feature."""
    counts = [count for line in group.features or () for count in (line.above, line.below)]
    return fitting_axis(view, [*counts, group.confirm])


def _title(group: ClassTree) -> str:
    if not group.confirm.n:
        return f"{group.title}: no held-out rows"
    if group.confirm.n < FEWEST_FOR_PERCENT:
        return f"{group.title}: {numbers.out_of(group.confirm.failures, group.confirm.n)} held-out rows are wrong"
    return f"{group.title}: {numbers.whole_rate(group.confirm.failures / group.confirm.n)} of held-out rows are wrong"


def _lede(group: ClassTree) -> str:
    verb = "lies" if len(group.slices) == 1 else "lie"
    inside = f"{numbers.counted(len(group.slices), 'slice')} of the audit {verb} in it."
    counts = group.confirm
    if not counts.n:
        return inside
    low, high = wilson(counts.failures, counts.n)
    rate = numbers.rate_of(counts.failures, counts.n)
    share = "" if rate == numbers.out_of(counts.failures, counts.n) else f"{rate} "
    wrong = f"{numbers.out_of(counts.failures, counts.n)} held-out rows are wrong: {share}"
    return f"{wrong}(95% interval {numbers.interval(low, high)}). {inside}"


def _features_note(group: ClassTree) -> str:
    if group.features is None:
        return (
            f"The features of most mutual information were {NOT_RECORDED}: this audit was made before version 0.6. "
            "Run it again to have them."
        )
    if not group.features:
        return "No feature says anything about failure here."
    return (
        "Mutual information with failure, in nats, and the cut are of search rows; errors above and below the cut are "
        "of held-out rows."
    )


def _attack(view: View, group: ClassTree) -> str:
    """How far attacks went: the same for all features that were drawn at once."""
    if not any(line.images for line in group.features or ()):
        return ""
    drawn = [images for slice_ in view.audit.slices if (images := slice_.explanation(Features)) is not None]
    return attack_note(drawn[0]) if drawn else ""


PAGE = Page(
    name="class",
    template="page_class.html",
    context=context,
    paths=("/class/{id}",),
    saved=lambda audit: [{"id": group.id} for group in saved_groups(class_trees(audit))],
)
