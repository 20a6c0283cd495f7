"""Hypothesis: is my own hypothesis true? Tested on rows nobody searched, with its history."""

from __future__ import annotations

from typing import Any

from ..contract import Page, Request, View
from ..hypothesis_history import history
from ..static_files import Script


def context(view: View, request: Request) -> dict[str, Any]:
    """The form, and every hypothesis that was tested, by the slice it is about."""
    families = [{**family, **history(family["history"])} for family in view.backend.hypotheses()]
    return {
        "title": "Hypothesis",
        "text": request.get("q", ""),
        "families": families,
        "testable": view.testable,
    }


PAGE = Page(
    name="hypothesis",
    template="page_hypothesis.html",
    context=context,
    paths=("/hypothesis",),
    nav="Hypothesis",
    scripts=(Script("hypothesis.js", ("person.js", "hypothesis_grammar.js", "hypothesis.js")),),
)
