"""One page at a time, for a server: each from the audit and what people said of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..core import Audit, Slice
from . import compared, data, marks, numbers, parts, slices
from . import page as pages
from .home import SCRIPTS, SERVED_SCRIPTS, STYLES, Served, static_text
from .overview import where
from .pictures import Linked

STATIC = (*STYLES, *SCRIPTS, *SERVED_SCRIPTS)
QUEUE = 60  # rows of a slice that are asked about
SEED = 0

__all__ = ["STATIC", "class_names", "page", "queue_items", "row_facts", "static_text"]


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
        "here": name.capitalize() if name not in ("slice", "row", "problem") else "",
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
    others = [(one.id, _title(one, standings)) for one in view.audit.slices if one.id != slice_id]
    return {
        "row": {**line, **pages.slice_parts(view, found)},
        "title": line["name"],
        "edits": edits,
        "mergeable": others,
    }


def _title(found: Slice, standings: Mapping[str, Any]) -> str:
    return str((standings.get(found.id) or {}).get("name") or found.name)


def _found(audit: Audit, id: str) -> Slice:
    return next(found for found in audit.slices if found.id == id)


def _row(view: slices.Page, standings: Mapping[str, Any], slice_id: str, row: int) -> dict[str, Any]:
    facts = row_facts(view.audit, row)
    return {
        "title": f"Row {facts['id']}",
        "slice_id": slice_id,
        "slice_name": _title(_found(view.audit, slice_id), standings),
        "item": facts,
        "within": [(found.id, _title(found, standings)) for found in view.audit.slices if found.members[row]],
    }


def row_facts(audit: Audit, row: int) -> dict[str, Any]:
    """One row by its place: what it is, what the model said, and what else is known of it."""
    evaluation = audit.evaluation
    media = evaluation.media
    errors, losses = evaluation.errors, evaluation.losses
    probs = None if evaluation.probs is None else evaluation.probs[row]
    order = [] if probs is None else np.argsort(-probs, kind="stable")[:10].tolist()
    return {
        "row": row,
        "id": str(evaluation.row_ids[row]),
        "label": _class(audit, evaluation.labels, row),
        "prediction": _class(audit, evaluation.predictions, row),
        "wrong": None if errors is None else bool(errors[row]),
        "loss": None if losses is None else float(losses[row]),
        "loss_text": None if losses is None else numbers.quantity(float(losses[row])),
        "role": "discover" if audit.discover[row] else "confirm",
        "probabilities": [(evaluation.class_name(j), float(probs[j]), f"{100 * probs[j]:.1f}%") for j in order]
        if probs is not None
        else [],
        "metadata": [(name, str(column[row])) for name, column in evaluation.metadata.items()],
        "picture": Linked(evaluation).symbol(row, px=640),
        "text": media.text(row) if media is not None and media.kind == "text" else None,
    }


def _class(audit: Audit, column: Any, row: int) -> str | None:
    if column is None:
        return None
    value = column[row]
    if np.ndim(value):
        named = [audit.evaluation.class_name(int(j)) for j in np.flatnonzero(value)]
        return ", ".join(named) or "none"
    if audit.evaluation.task == "classification":
        return audit.evaluation.class_name(int(value))
    return numbers.quantity(float(value))


def _hypothesis(
    view: slices.Page, standings: Mapping[str, Any], asked: str, history: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    lines = [
        {**one, "rate": numbers.rate_of(one["errors"], one["n"]), "count": numbers.out_of(one["errors"], one["n"])}
        for one in history
    ]
    return {"title": "Hypothesis", "asked": asked, "history": lines[::-1], "row": {"id": ""}}


def queue_items(audit: Audit, id: str) -> list[dict[str, Any]]:
    """Rows of a slice to ask people about, in one order for all: neither label nor prediction is told."""
    members = np.flatnonzero(_found(audit, id).members & ~audit.discover)
    chosen = np.random.default_rng(SEED).permutation(members)[:QUEUE]
    facts = [row_facts(audit, int(row)) for row in chosen]
    return [{name: one[name] for name in ("id", "picture", "text", "row")} for one in facts]


def _annotate(view: slices.Page, standings: Mapping[str, Any], queue: str, task: str) -> dict[str, Any]:
    queues = [(found.id, _title(found, standings), int((found.members & ~view.audit.discover).sum()))
              for found in view.audit.slices]  # fmt: skip
    title = f"Annotate: {_title(_found(view.audit, queue), standings)}" if queue else "Annotate"
    return {"title": title, "queue": queue, "task": task, "queues": queues, "classes": class_names(view.audit)}


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
    "problem": _problem,
}
