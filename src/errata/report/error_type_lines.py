"""An error type as one line of a list: its mistakes, its central errors, and the slice that says who is at risk."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core import ErrorType, Slice
from ..explain.examples import example
from . import sentences
from .contract import View
from .row_items import FEW_COLUMNS, SHORT, STRIP, STRIP_TEXTS, example_item, has_images, telling_columns
from .slice_lines import title_of


def error_type_lines(view: View, standings: Mapping[str, Any], slice_: Slice | None = None) -> list[dict[str, Any]]:
    """All error types of the audit in its own order; of one slice, those that it is the approximation of."""
    slices = {item.id: item for item in view.audit.slices}
    chosen = view.audit.error_types
    if slice_ is not None:
        chosen = tuple(item for item in chosen if item.slice == slice_.id)
    return [_line(view, item, slices.get(item.slice or ""), standings) for item in chosen]


def _line(view: View, error_type: ErrorType, tested: Slice | None, standings: Mapping[str, Any]) -> dict[str, Any]:
    rows = dict(view.audit.evaluation.tasks())[error_type.task]
    outcome = dict(view.audit.overall)[error_type.task].outcome
    most = STRIP if has_images(view.audit) else STRIP_TEXTS
    columns = telling_columns(view, tested, FEW_COLUMNS)
    href = ""
    title = ""
    if tested is not None:
        href = view.links.slice(tested.id)
        title = title_of(tested, standings)
    return {
        "id": error_type.id,
        "name": error_type.name,
        "task": error_type.task,
        "sentence": sentences.error_type(error_type, rows, outcome),
        "found_by": f"Found by {', '.join(error_type.found_by or (error_type.method,))}.",
        "strip": [example_item(view, example(rows, row), SHORT, columns) for row in error_type.central[:most]],
        "slice": error_type.slice,
        "href": href,
        "title": title,
        "risk": sentences.at_risk(tested, outcome),
        "changed": tested is not None and tested.judged is not None and tested.judged.changed,
    }
