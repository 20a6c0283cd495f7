"""Row: one example, what the model said of it, and the slices that hold it."""

from __future__ import annotations

from typing import Any

from ..contract import Page, Request, View
from ..row_facts import row_facts
from ..slice_lines import title_of


def context(view: View, request: Request) -> dict[str, Any]:
    """A row, reached from a slice of the audit or a drawn one."""
    slice_id = request["id"]
    view.backend.members(slice_id)  # the slice exists
    position = view.backend.row(request["row"])
    standings = view.backend.standings()
    facts = row_facts(view.audit, position)
    return {
        "title": f"Row {facts['id']}",
        "slice_id": slice_id,
        "slice_name": standings[slice_id]["title"],
        "item": facts,
        "within": [(s.id, title_of(s, standings)) for s in view.audit.slices if s.members[position]],
    }


PAGE = Page("row", "page_row.html", context, ("/slice/{id}/row/{row:path}",))
