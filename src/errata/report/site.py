"""One page at a time, for a server: each from the audit and what people said of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..core import Array, Audit, Slice
from . import compare as compared
from . import data, marks, parts, slices
from . import drawn_slice as drawn
from . import hypotheses as guesses
from . import page as pages
from . import questionnaire as questions
from .home import SCRIPTS, SERVED_SCRIPTS, STYLES, Served, static_text
from .images import Linked
from .overview import where
from .row import row_facts

STATIC = (*STYLES, *SCRIPTS, *SERVED_SCRIPTS)
HERE = {"slice": "", "row": "", "drawn": "", "problem": "", "questionnaire": "Annotate"}  # where it is not the name
QUEUE = 60  # rows of a slice that are asked about
SEED = 0

__all__ = [
    "STATIC",
    "class_names",
    "guess_history",
    "overlap",
    "page",
    "question_items",
    "queue_items",
    "row_facts",
    "static_text",
]

overlap, guess_history = drawn.overlap, guesses.history


def page(
    audit: Audit,
    name: str,
    *,
    standings: Mapping[str, Any],
    others: Sequence[tuple[str, Audit]] = (),
    **asked: Any,
) -> str:
    """The HTML of the page `name`; standings: what was decided of each slice."""
    home = Served()
    axis = marks.error_axis(audit.slices)
    view = slices.Page(audit, Linked(audit.evaluation), axis, home)  # type: ignore[arg-type]  # hands out pictures too
    around = {
        **pages.shared(audit, home, axis),
        "style_names": STYLES,
        "script_names": [name for name in (*SCRIPTS, *SERVED_SCRIPTS) if name != "saved.js"],
        "standings": standings,
        "guesses": audit.evaluation.errors is not None,
        "guess_example": data.example(audit),
        "others": [other for other, _ in others],
        "here": HERE.get(name, name.capitalize()),
    }
    if name == "compare":
        asked = {**asked, "others": dict(others)}
    return (
        pages.templates().get_template(f"page_{name}.html").render({**around, **MADE[name](view, standings, **asked)})
    )


def _overview(view: slices.Page, standings: Mapping[str, Any]) -> dict[str, Any]:
    return {**pages.overview_parts(view, _lines(view, standings)), "picture_notes": []}


def _lines(view: slices.Page, standings: Mapping[str, Any]) -> list[dict[str, Any]]:
    audit = view.audit
    strips = {found.id: parts.strip(audit, found, view.pictures) for found in audit.slices}
    rows = [pages.row(view, found, strips[found.id], j + 1) for j, found in enumerate(audit.slices)]
    return [{**row, **_said(standings.get(row["id"]))} for row in rows]


def _said(standing: Mapping[str, Any] | None) -> dict[str, Any]:
    """A person's name goes before the machine's."""
    if standing is None:
        return {"standing": None, "renamed": False}
    # What was measured of the machine's name says nothing of a person's.
    renamed = {"name": standing["name"], "name_score": ""} if standing["name"] else {}
    return {"standing": standing, "renamed": bool(standing["name"]), **renamed}


def _slice(view: slices.Page, standings: Mapping[str, Any], slice_id: str, edits: Mapping[str, bool]) -> dict[str, Any]:
    found = _found(view.audit, slice_id)
    line = next(row for row in _lines(view, standings) if row["id"] == slice_id)
    return {
        "row": {**line, **pages.slice_parts(view, found)},
        "title": line["name"],
        "edits": edits,
        "mergeable": _others(standings, slice_id),
    }


def _others(standings: Mapping[str, Any], id: str) -> list[tuple[str, str]]:
    """What a slice may be merged into: found or drawn."""
    return [(other, one["title"]) for other, one in standings.items() if other != id]


def _title(found: Slice, standings: Mapping[str, Any]) -> str:
    return str((standings.get(found.id) or {}).get("name") or found.name)


def _found(audit: Audit, id: str) -> Slice:
    return next(found for found in audit.slices if found.id == id)


def _row(view: slices.Page, standings: Mapping[str, Any], slice_id: str, row: int) -> dict[str, Any]:
    facts = row_facts(view.audit, row)
    return {
        "title": f"Row {facts['id']}",
        "slice_id": slice_id,
        "slice_name": standings[slice_id]["title"],
        "item": facts,
        "within": [(found.id, _title(found, standings)) for found in view.audit.slices if found.members[row]],
    }


def _hypothesis(
    view: slices.Page, standings: Mapping[str, Any], asked: str, families: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    told = [{**one, **guesses.history(one["history"])} for one in families]
    return {"title": "Hypothesis", "asked": asked, "families": told, "row": {"id": ""}}


def queue_items(audit: Audit, id: str) -> list[dict[str, Any]]:
    """Rows of a slice to ask people about, in one order for all: neither label nor prediction is told."""
    members = np.flatnonzero(_found(audit, id).members & ~audit.discover)
    chosen = np.random.default_rng(SEED).permutation(members)[:QUEUE]
    facts = [row_facts(audit, int(row)) for row in chosen]
    return [{name: one[name] for name in ("id", "picture", "text", "row")} for one in facts]


def question_items(audit: Audit, id: str) -> tuple[str, ...]:
    """What a questionnaire about a slice asks about."""
    shown = questions.items(audit, _found(audit, id), Linked(audit.evaluation))  # type: ignore[arg-type]  # pictures too
    return tuple(one["about"] for one in shown)


def _questionnaire(
    view: slices.Page, standings: Mapping[str, Any], queue: str, form: Mapping[str, Any]
) -> dict[str, Any]:
    shown = questions.items(view.audit, _found(view.audit, queue), view.pictures)
    return {"title": f"Questionnaire: {queue}", "queue": queue, "form": form, "shown": shown}


def _annotate(
    view: slices.Page, standings: Mapping[str, Any], queue: str, task: str, questions: bool
) -> dict[str, Any]:
    queues = [(found.id, _title(found, standings), int((found.members & ~view.audit.discover).sum()))
              for found in view.audit.slices]  # fmt: skip
    title = f"Annotate: {_title(_found(view.audit, queue), standings)}" if queue else "Annotate"
    return {"title": title, "queue": queue, "task": task, "queues": queues, "classes": class_names(view.audit),
            "questions": questions, "sheets": False,
            "after": dict(pairwise(one[0] for one in queues)).get(queue)}  # fmt: skip


def class_names(audit: Audit) -> tuple[str, ...]:
    """What a row may be called; nothing where there are no classes."""
    evaluation = audit.evaluation
    if evaluation.task != "classification":
        return evaluation.class_names or ()
    return evaluation.class_names or tuple(map(evaluation.class_name, range(evaluation.class_count)))


def _problem(view: slices.Page, standings: Mapping[str, Any], words: str) -> dict[str, Any]:
    return {"title": "Not found", "words": words}


def _curate(view: slices.Page, standings: Mapping[str, Any], drawn: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    by_hand = [{**one, "standing": standings.get(one["slice"])} for one in drawn]
    return {"title": "Curate", "rows": _lines(view, standings), "drawn": by_hand}


def _drawn(
    view: slices.Page, standings: Mapping[str, Any], drawn_slice: Mapping[str, Any], inside: Array
) -> dict[str, Any]:
    id = drawn_slice["slice"]
    told = drawn.whole(view, drawn_slice, inside, standings[id])
    return {"title": told["name"], "row": told, "mergeable": _others(standings, id)}


def _compare(
    view: slices.Page, standings: Mapping[str, Any], chosen: str, others: Mapping[str, Audit]
) -> dict[str, Any]:
    name = chosen if chosen in others else next(iter(others), "")
    found = compared.compare(view.audit, others[name]) if name else None
    titles = {one.id: _title(one, standings) for one in view.audit.slices}
    told = None if found is None else compared.lines(found, titles, view.axis)
    return {"title": "Compare", "chosen": name, "comparison": told, "seen": where(view.audit)}


MADE: dict[str, Callable[..., dict[str, Any]]] = {
    "overview": _overview,
    "slice": _slice,
    "row": _row,
    "hypothesis": _hypothesis,
    "annotate": _annotate,
    "curate": _curate,
    "compare": _compare,
    "drawn": _drawn,
    "questionnaire": _questionnaire,
    "problem": _problem,
}
