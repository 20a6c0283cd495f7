"""Compare: what got better, what got worse?"""

from __future__ import annotations

from typing import Any

from ..comparison_lines import compare_audits, comparison_lines
from ..contract import Page, PageNotFound, Request, View
from ..slice_lines import title_of


def context(view: View, request: Request) -> dict[str, Any]:
    """This audit beside the one that `with` names, or the first there is."""
    others = view.backend.other_audits()
    chosen = request.get("with", "")
    if chosen and chosen not in others:
        raise PageNotFound(f"Audit {chosen!r} does not exist; it cannot be compared with.")
    name = chosen or next(iter(others), "")
    lines = None
    if name:
        standings = view.backend.standings()
        titles = {slice_.id: title_of(slice_, standings) for slice_ in view.audit.slices}
        lines = comparison_lines(compare_audits(view.audit, others[name]), titles, view.axis)
        for line in lines["lines"]:
            if line["slice"]:
                line["href"] = view.links.slice(line["id"])
    return {"title": "Compare", "chosen": name, "others": list(others), "comparison": lines}


PAGE = Page("compare", "page_compare.html", context, ("/compare",), nav="Compare")
