"""Slice: what is this group, why does it fail, do I accept it?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

import numpy as np

from ...core import Array, Audit, Slice
from ...core.audit import UNCONFIRMABLE
from ...core.gaps import wilson
from ...core.judgement import leaves_scope
from ...core.scope import scope_in_words
from ...explain.near import Near
from ...hypothesis import OwnSlices
from .. import marks, numbers, script_data, sentences
from ..contract import Page, Request, View
from ..error_type_lines import error_type_lines
from ..judgement_lines import said_lines
from ..parts.path import feature_values
from ..row_items import has_images
from ..sections import sections
from ..slice_lines import slice_line
from ..static_files import Script
from . import drawn_slice

MOST_OF_CLASS = 0.5  # of a slice: a class that holds so many of its rows is drawn beside it


def context(view: View, request: Request) -> dict[str, Any]:
    """The page of a slice of the audit, or of one that a person drew."""
    id = request["id"]
    standings = view.backend.standings()
    if all(slice_.id != id for slice_ in view.audit.slices):
        return drawn_slice.context(view, id, standings)
    slice_ = view.slice(id)
    values = slice_values(view, slice_, standings)
    queue = "" if view.links.saved else f"/annotate/{quote(id, safe='')}"
    return {
        "row": values,
        "title": values["name"],
        "said": said_lines(slice_, view.task_rows(slice_)),
        "of_method": view.features.of_method(),
        "queue": queue,
        "classified": view.audit.evaluation.task == "classification",
        "edits": view.backend.edits(id),
        "mergeable": other_slices(standings, id),
        "questions": view.backend.questionnaire() is not None,
        "testable": view.testable,
    }


def slice_values(view: View, slice_: Slice, standings: Mapping[str, Any]) -> dict[str, Any]:
    """All that stands on the page of a slice."""
    numbered = list(view.audit.slices)
    at = numbered.index(slice_)
    previous = view.links.slice(numbered[at - 1].id) if at > 0 else ""
    following = ""
    if at + 1 < len(numbered):
        following = view.links.slice(numbered[at + 1].id)
    methods = ""
    if slice_.found_by == (OwnSlices.name,):
        methods = f"{sentences.YOUR_OWN}."
    elif slice_.found_by:
        methods = f"Found by {', '.join(slice_.found_by)}."
    group = view.class_of(slice_)
    class_page = "" if group is None else view.links.class_page(group.id)
    class_title = "" if group is None else group.title
    strips = feature_values(view, slice_) if has_images(view.audit) else []
    merged_into = ""
    if slice_.judged is not None and slice_.judged.decided.into is not None:
        merged_into = slice_.judged.decided.into
    return {
        **slice_line(view, slice_, standings),
        "merged_into": merged_into,
        "total": len(numbered),
        "previous": previous,
        "next": following,
        "marks": two_marks(view.audit, slice_),
        "details": details_of_test(view.audit, slice_),
        "forest": forest(view, slice_),
        "forest_note": f"Share of held-out rows, each with its own 95% interval. {methods}",
        "error_types": error_type_lines(view, standings, slice_),
        "strips": strips,
        "class_page": class_page,
        "class_title": class_title,
        "sections": sections(view, slice_),
    }


def other_slices(standings: Mapping[str, Any], id: str) -> list[tuple[str, str]]:
    """(id, title) of what a slice may be merged into: of the audit or drawn."""
    return [(other, standing["title"]) for other, standing in standings.items() if other != id]


def forest(view: View, slice_: Slice) -> list[dict[str, Any]]:
    """The slice, others of its class, and the rest: one axis. Nothing where no number may be shown."""
    measured = slice_.confirm
    if measured is None or slice_.reason == UNCONFIRMABLE:
        return []
    lines = [("This slice", measured.errors, measured.n, True)]
    if slice_.judged is not None and slice_.judged.changed and slice_.judged.found.confirm is not None:
        found = slice_.judged.found.confirm
        lines.append(("As it was found", found.errors, found.n, False))
    lines += _same_class(view, slice_)
    lines.append((_rest_name(view, slice_), round(measured.rest_rate * measured.rest_n), measured.rest_n, False))
    return [_rate_line(view.axis, slice_, *line) for line in lines if line[2]]


def _rest_name(view: View, slice_: Slice) -> str:
    """What the slice is compared with: within a class, the rest of that class alone."""
    scope = scope_in_words(view.audit.evaluation, slice_.rule.get("scope"))
    return f"The rest of {scope}" if scope and not leaves_scope(slice_) else "All the rest"


def _same_class(view: View, slice_: Slice) -> list[tuple[str, int, int, bool]]:
    """Rows outside the slice that have the label of most of its members."""
    rows = view.task_rows(slice_)
    if rows.errors is None or rows.labels is None or slice_.rule.get("scope"):
        return []  # within a class already: the rest is its class
    held_out: Array = ~view.audit.discover if slice_.confirmed_on == "confirm" else view.audit.discover
    inside = slice_.members & held_out
    values, counts = np.unique(rows.labels[inside], return_counts=True)
    if not len(values) or counts.max() < MOST_OF_CLASS * counts.sum():
        return []
    label = int(values[np.argmax(counts)])
    others = held_out & ~inside & (rows.labels == label)
    name = f"Other rows labelled “{rows.class_name(label)}”"
    return [(name, int(rows.errors[others].sum()), int(others.sum()), False)]


def _rate_line(axis: marks.Axis, slice_: Slice, name: str, errors: int, n: int, own: bool) -> dict[str, Any]:
    low, high = wilson(errors, n)
    return {
        "name": name,
        "own": own,
        "form": marks.form_of(slice_),
        "rate": numbers.rate_of(errors, n),
        "count": numbers.out_of(errors, n),
        "at": axis.at(errors / n),
        "low": axis.at(low),
        "high": axis.at(high),
        "label": f"{name}: {numbers.out_of(errors, n)}, 95% interval {numbers.interval(low, high)}",
    }


def two_marks(audit: Audit, slice_: Slice) -> list[tuple[str, str]]:
    """Evidence, coherence and the strength of a direction are marks of their own, never one score."""
    lines: list[tuple[str, str]] = []
    measured = slice_.confirm
    changed = slice_.judged is not None and slice_.judged.changed  # these rows were not tested
    if measured is not None and slice_.verdict == "confirmed" and not changed:
        outcome = dict(audit.overall)[slice_.task].outcome
        excess, _, between = sentences.excess(slice_, measured, outcome).partition(" (")
        lines.append((excess, f"{between.rstrip(')')}, beyond what the rest’s rate would give"))
    near = slice_.explanation(Near)
    if near is not None and near.coherence is not None:
        lines.append((f"Coherence {near.coherence:.2f}", "how alike the members are; says nothing about the gap"))
    strength = sentences.strength(slice_)
    if strength is not None:
        lines.append(strength)
    return lines


def details_of_test(audit: Audit, slice_: Slice) -> list[tuple[str, str]]:
    """What the test had beside its verdict: nothing where these rows were not tested."""
    measured = slice_.confirm
    changed = slice_.judged is not None and slice_.judged.changed
    if measured is None or slice_.reason == UNCONFIRMABLE or changed:
        return []
    tested = int(audit.settings.get("tested", len(audit.slices)))
    lines = [(numbers.p_value(measured.q_value, "q"), f"over {numbers.counted(tested, 'slice')} tested")]
    lines.append(("Margin", sentences.margin(audit.settings.get("delta"))))
    found = sentences.searches(slice_.rule)
    if found is not None:
        lines.append(found)
    return lines


def saved_data(view: View) -> dict[str, Any]:
    """What the scripts of a saved page read: the map, and the columns of held-out rows."""
    audit = view.audit
    points = None
    if len(audit.evaluation) <= script_data.MOST_POINTS:
        points = script_data.map_data(audit)
    data = {"map-data": points, "held-out-data": view.held_out_data}
    return {id: value for id, value in data.items() if value is not None}


PAGE = Page(
    name="slice",
    template="page_slice.html",
    context=context,
    paths=("/slice/{id}",),
    saved=lambda audit: [{"id": slice_.id} for slice_ in audit.slices],
    saved_data=saved_data,
    scripts=(
        Script("hypothesis.js", ("person.js", "hypothesis_grammar.js", "hypothesis.js")),
        Script("decide.js", ("person.js", "decide.js"), saved=False),
    ),
    keys=(
        ("[ ]", "previous, next slice"),
        ("i x", "the focused row in, out of the slice"),
        ("v", "all members of the slice"),
        ("/", "a hypothesis of your own"),
        ("l + - 0", "on the map: draw a loop, zoom in, out, reset; n saves the loop as a slice"),
    ),
    served_keys=(("a r", "accept, reject the slice"), ("m e o", "merge it, give it another name, a note")),
)
