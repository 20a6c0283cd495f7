"""Curate: what do we keep? All slices with what people decided of them."""

from __future__ import annotations

from typing import Any

from ..contract import Page, Request, View
from ..slice_lines import slice_lines


def context(view: View, request: Request) -> dict[str, Any]:
    """The slices of the audit, and those that people drew."""
    standings = view.backend.standings()
    drawings = [{**drawing, "standing": standings.get(drawing["slice"])} for drawing in view.backend.drawings()]
    return {"title": "Curate", "rows": slice_lines(view, standings), "drawings": drawings}


PAGE = Page("curate", "page_curate.html", context, ("/curate",), nav="Curate")
