"""Rows: every row, or those of a slice, with the map and the columns beside them as one view."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core import Audit
from ...core.audit import of_kind
from ...core.judgement import kept
from ...explain.map import RowMap
from .. import numbers, script_data
from ..column_bars import all_column_bars
from ..contract import Page, Request, View
from ..row_items import has_images
from ..slice_lines import title_of
from ..static_files import Script

PIXELS = (64, 96, 128, 192, 256)  # of an image in the list
ORDERS = (
    ("random", "at random"),
    ("loss", "highest loss"),
    ("confidence", "highest confidence"),
    ("depth", "deepest in the slice"),
)
FILES = ("row_source.js", "saved_rows.js", "row_card.js")


def context(view: View, request: Request) -> dict[str, Any]:
    """What may be chosen; the rows themselves are asked for by the page's script."""
    audit = view.audit
    standings = view.backend.standings()
    held = ~audit.discover if view.links.saved else np.ones(len(audit.discover), dtype=bool)
    slices = [(s.id, title_of(s, standings), int((s.members & held).sum())) for s in audit.slices]
    drawn = [(d["slice"], standings[d["slice"]]["title"], len(d["items"])) for d in view.backend.drawings()]
    data = rows_data(view) if view.links.saved else None
    return {
        "title": "Rows",
        "sliced": bool(request.get("slice")),
        "slices": [*slices, *drawn],
        "orders": [(name, words) for name, words in ORDERS if _can_sort(audit, name)],
        "pixels": PIXELS * has_images(audit),
        "known": audit.evaluation.errors is not None,
        "map_rows": _map_rows(view),
        "columns": list(audit.evaluation.metadata),
        "holds": _holds(view, data),
        "has_table": data is not None,
        "count": numbers.count(len(audit.evaluation)),
    }


def _can_sort(audit: Audit, order: str) -> bool:
    rows = audit.evaluation
    known = {"loss": rows.losses is not None, "depth": bool(audit.slices)}
    known["confidence"] = rows.probs is not None and rows.task == "classification"
    return known.get(order, True)


def _map_rows(view: View) -> str:
    """How many rows the map is of, in words; empty where there is none."""
    n = len(view.audit.evaluation)
    drawn = next(iter(of_kind(view.audit.explanations, RowMap)), None)
    too_large = view.links.saved and n > script_data.MOST_POINTS
    return "" if drawn is None or too_large else numbers.count(n)


def _holds(view: View, data: dict[str, Any] | None) -> str:
    """What a saved page has of the rows; empty on a server, which has all."""
    if not view.links.saved:
        return ""
    if data is None:
        return "This saved page holds no table of its rows; “errata serve” shows them all."
    rows = numbers.counted(data["n"], "held-out row")
    everything = numbers.count(len(view.audit.evaluation))
    images = ""
    if has_images(view.audit):
        images = ", and the images of some of them, which its other pages show"
    counted = "Counts" if view.audit.evaluation.errors is None else "Counts and rates"
    return (
        f"This saved page holds the columns of all {rows}{images}. {counted} are of all that match; “errata serve” "
        f"shows all {everything} rows."
    )


def rows_data(view: View) -> dict[str, Any] | None:
    """What a saved page has of held-out rows beside their columns (`held-out-data`): losses, depths, bars."""
    if view.held_out_data is None:
        return None
    audit = view.audit
    rows = np.flatnonzero(~audit.discover)
    evaluation = audit.evaluation
    losses = None if evaluation.losses is None else evaluation.losses[rows]
    confidence = None
    if evaluation.probs is not None and evaluation.task == "classification":
        confidence = np.asarray(evaluation.probs[rows]).max(axis=1)
    bars = [
        {"name": b.name, "others": b.others, "bars": [vars(bar) for bar in b.bars]} for b in all_column_bars(evaluation)
    ]
    return {
        "n": len(rows),
        "rows": script_data.base64_of(rows.astype("<i4")),
        "loss": _single(losses),
        "confidence": _single(confidence),
        "members": {s.id: script_data.packed(s.members[rows]) for s in audit.slices},
        "depth": {s.id: _levels(s.weights[rows]) for s in audit.slices},
        "verdicts": {s.id: s.verdict for s in kept(audit)},
        "columns": bars,
    }


def _single(values: Any) -> str | None:
    return None if values is None else script_data.base64_of(np.asarray(values, dtype="<f4"))


def _levels(weights: Any) -> str:
    """Weights as one byte each: enough to sort by."""
    return script_data.base64_of(np.round(np.clip(weights, 0, 1) * 255).astype(np.uint8))


def saved_data(view: View) -> dict[str, Any]:
    """What the script of a saved page reads."""
    data = rows_data(view)
    return {} if data is None else {"rows-data": data}


PAGE = Page(
    name="rows",
    template="page_rows.html",
    context=context,
    paths=("/rows",),
    nav="Rows",
    saved=lambda audit: [{}],
    saved_data=saved_data,
    scripts=(
        Script("rows.js", ("person.js", "hypothesis_grammar.js", *FILES, "row_viewer.js", "rows.js")),
        Script("map.js", ("row_source.js", "row_card.js", "map.js")),
    ),
    keys=(
        (", .", "rows: the page before, the next one"),
        ("d", "rows: draw others at random"),
        ("c", "rows: write what is listed as CSV"),
        ("← →", "a row that is open: the one before, the next one"),
    ),
)
