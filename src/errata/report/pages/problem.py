"""Problem: why a request got no page, in one sentence."""

from __future__ import annotations

from typing import Any

from ..contract import Page, Request, View


def context(view: View, request: Request) -> dict[str, Any]:
    """`words`: the sentence."""
    return {"title": "Not found", "words": request["words"]}


PAGE = Page("problem", "page_problem.html", context)
