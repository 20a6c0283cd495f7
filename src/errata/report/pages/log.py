"""Log: who did what, and when? Lines are added, and none ever changes."""

from __future__ import annotations

from typing import Any

from ..contract import Page, Request, View

MOST_LINES = 500


def context(view: View, request: Request) -> dict[str, Any]:
    """The newest lines first; `of`: of one person alone."""
    person = request.get("of", "")
    lines = list(view.backend.journal(person or None))
    shown = lines[::-1][:MOST_LINES]
    return {"title": "Log", "lines": shown, "count": len(lines), "person": person}


PAGE = Page("log", "page_log.html", context, ("/log",))
