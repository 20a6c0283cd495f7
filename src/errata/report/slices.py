"""The page of one slice: its rate beside others', its marks, and the rows to look at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core import Array, Audit, Evaluation, Slice
from ..core.gaps import wilson
from . import marks, numbers, parts, sentences
from .home import Home
from .images import Pictures

MOST_OF_CLASS = 0.5  # of a slice: a class that holds so many of its rows is drawn beside it
OPPONENTS = 4


@dataclass(frozen=True, eq=False)
class Page:
    """What the pages of all slices share."""

    audit: Audit
    pictures: Pictures
    axis: marks.Axis
    home: Home

    def view(self, found: Slice) -> Evaluation:
        return dict(self.audit.evaluation.tasks())[found.task]


def whole(page: Page, found: Slice) -> dict[str, Any]:
    """All that stands on the page of a slice and not in its line of the overview."""
    numbered = list(page.audit.slices)
    at = numbered.index(found)
    around = [numbered[i] if 0 <= i < len(numbered) else None for i in (at - 1, at + 1)]
    groups = mixed(page, found)
    return {
        "total": len(numbered),
        "previous": page.home.slice(around[0].id) if around[0] else "",
        "next": page.home.slice(around[1].id) if around[1] else "",
        "marks": two_marks(page.audit, found),
        "forest": forest(page, found),
        "forest_note": f"Share of confirm rows, each with its own 95% interval. {_found_by(found)}",
        "mixed": groups,
        "groups": parts.exemplar_groups(page.audit, found, page.pictures)
        + parts.easy_end(page.audit, found, page.pictures),
        "shown": _shown(groups),
        "one_sided": _one_sided(found),
        "mistakes": _mistakes(found),
    }


def forest(page: Page, found: Slice) -> list[dict[str, Any]]:
    """The slice, others of its class, and the rest: one axis. Nothing where no number may be shown."""
    seen = found.confirm
    if seen is None or found.reason == "unconfirmable":
        return []
    lines = [("This slice", seen.errors, seen.n, True)]
    lines += _same_class(page, found)
    lines.append(("All the rest", round(seen.rest_rate * seen.rest_n), seen.rest_n, False))
    return [_line(page.axis, found, *line) for line in lines if line[2]]


def _same_class(page: Page, found: Slice) -> list[tuple[str, int, int, bool]]:
    rows = page.view(found)
    if rows.errors is None or rows.labels is None or found.rule.get("scope"):
        return []  # within a class already: the rest is its class
    confirm: Array = ~page.audit.discover if found.confirmed_on == "confirm" else page.audit.discover
    inside = found.members & confirm
    values, counts = np.unique(rows.labels[inside], return_counts=True)
    if not len(values) or counts.max() < MOST_OF_CLASS * counts.sum():
        return []
    label = int(values[np.argmax(counts)])
    others = confirm & ~inside & (rows.labels == label)
    return [(f"Others of {rows.class_name(label)}", int(rows.errors[others].sum()), int(others.sum()), False)]


def _line(axis: marks.Axis, found: Slice, name: str, errors: int, n: int, own: bool) -> dict[str, Any]:
    low, high = wilson(errors, n)
    return {
        "name": name,
        "own": own,
        "form": marks.FORMS[found.verdict],
        "rate": numbers.rate_of(errors, n),
        "count": numbers.out_of(errors, n),
        "at": axis.at(errors / n),
        "low": axis.at(low),
        "high": axis.at(high),
        "label": f"{name}: {numbers.out_of(errors, n)}, 95% interval {numbers.interval(low, high)}",
    }


def two_marks(audit: Audit, found: Slice) -> list[tuple[str, str]]:
    """Evidence and coherence are two marks, never one score."""
    told: list[tuple[str, str]] = []
    seen = found.confirm
    if seen is not None and found.verdict == "confirmed":
        outcome = dict(audit.overall)[found.task].outcome
        excess, _, between = sentences.excess(found, seen, outcome).partition(" (")
        told.append((excess, f"{between.rstrip(')')}, beyond what the rest’s rate would give"))
    alike = parts.explanation(found, "near")
    if alike is not None and alike["coherence"] is not None:
        told.append((f"Coherence {alike['coherence']:.2f}", "how alike the members are; says nothing about the gap"))
    if seen is not None and found.reason != "unconfirmable":
        told.append((numbers.q_value(seen.q_value), f"over {numbers.counted(_tested(audit), 'slice')} tested"))
    return told


def _tested(audit: Audit) -> int:
    return int(audit.settings.get("tested", len(audit.slices)))


def mixed(page: Page, found: Slice) -> list[dict[str, Any]]:
    """Contrast before worst cases: random members, the wrongest, and neighbours that are right."""
    data, beside = parts.explanation(found, "exemplars"), parts.explanation(found, "near")
    groups = [] if data is None else [_at_random(page, found, data)]
    worst: Mapping[str, Any] = {"rows": [], "of": 0} if data is None else parts.group(data, "worst members")
    if worst["rows"]:
        note = f"{numbers.out_of(len(worst['rows']), worst['of'])} wrong members; not typical"
        groups.append(_group(page, found, "Highest loss", note, worst["rows"], share=100.0))
    if beside is not None and page.view(found).errors is not None:
        note = f"{numbers.out_of(len(beside['rows']), beside['of'])}; outside the slice" if beside["of"] else ""
        near = _group(page, found, "Near neighbours it gets right", note, beside["rows"], wide=True, share=0.0)
        groups.append({**near, "empty": "No near neighbour is right: where the slice ends, the model’s errors do not."})
    return [one for one in groups if one["rows"] or one.get("empty")]


def _at_random(page: Page, found: Slice, data: Any) -> dict[str, Any]:
    members = parts.group(data, "slice")
    rows = [row for row in members["rows"] if row["picked"] == "random"]
    seen = found.confirm
    share = 100 * seen.rate if seen is not None and seen.error_rate is not None else None
    if found.reason == "unconfirmable":
        share = None
    note = parts.members_note(found, rows, members["of"])
    return _group(page, found, "Members at random", note, rows, wide=True, share=share)


def _group(
    page: Page, found: Slice, title: str, note: str, rows: Any, *, wide: bool = False, share: float | None = None
) -> dict[str, Any]:
    shown = [parts.item(page.audit, row, page.pictures, parts.LONG) for row in rows]
    linked = [{**one, "href": page.home.row(found.id, one["id"])} for one in shown]
    return {"title": title, "note": note, "rows": linked, "wide": wide, "share": share}


def _shown(groups: list[dict[str, Any]]) -> str:
    rows = sum(len(one["rows"]) for one in groups)
    return f"{numbers.counted(rows, 'row')} from {numbers.in_words(len(groups))} groups; shares are drawn above each."


def _one_sided(found: Slice) -> str:
    seen = found.confirm
    right = "Some" if seen is None else numbers.rate_of(seen.n - seen.errors, seen.n)
    return f"Errors only. {right} of this slice is right; a story told from errors alone is often false."


def _mistakes(found: Slice) -> str:
    data = parts.class_parts(found)
    pairs = [] if data is None else data["confused"][:3]
    if not pairs:
        return ""
    return "Most common mistakes: " + ", ".join(
        f"{pair['label']} → {pair['prediction']} {pair['count']}" for pair in pairs
    ) + "."  # fmt: skip


def _found_by(found: Slice) -> str:
    return f"Found by {', '.join(found.found_by)}." if found.found_by else ""
