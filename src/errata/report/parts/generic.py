"""Explanations that no registered part shows: their fields as a plain table, instead of nothing."""

from __future__ import annotations

import json
from functools import partial
from typing import Any

from ...core import Explanation, Slice
from ...core.words import clipped
from ..contract import Part, Section, View

IN_HEAD = ("name",)  # kinds that stand beside the name of the slice
LONGEST = 300  # characters of a field
NOTE = "Explanations that this page has no part for, as they are in audit.json."


def parts_for(view: View, slice_: Slice | None) -> list[Part]:
    """A part for each explanation of the slice, or of the audit (None), that has no registered one."""
    owner = view.audit if slice_ is None else slice_
    page = "overview" if slice_ is None else "slice"
    section = Section("more", "More explanations", 100, note=NOTE, page=page)
    known = {kind for part in view.parts.values() for kind in (part.kind, *part.includes)}
    return [
        Part(explanation.kind, section, partial(field_table, explanation=explanation), "part_fields.html")
        for explanation in owner.explanations
        if explanation.kind not in known and explanation.kind not in IN_HEAD
    ]


def field_table(view: View, slice_: Slice | None, explanation: Explanation) -> dict[str, Any]:
    """(field, value): text as it is, everything else as JSON."""
    fields = []
    for name, value in explanation.to_json().items():
        if isinstance(value, str):
            text = value
        else:
            text = json.dumps(value, ensure_ascii=False, default=str)
        fields.append((name, clipped(text, LONGEST)))
    return {"kind": explanation.kind, "fields": fields}
