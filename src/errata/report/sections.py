"""The sections of a page and their parts, put together from the registry."""

from __future__ import annotations

from typing import Any

from ..core import Slice
from .contract import Part, View
from .parts import generic


def sections(view: View, slice_: Slice | None) -> list[dict[str, Any]]:
    """The sections of a slice's page, or of the overview (None), in order; those that have nothing to show are out."""
    page = "overview" if slice_ is None else "slice"
    filled: dict[str, list[tuple[Part, Any]]] = {}
    parts = sorted([*view.parts.values(), *generic.parts_for(view, slice_)], key=lambda part: part.order)
    by_id = {part.section.id: part.section for part in parts if part.section.page == page}
    for part in parts:
        if part.section.page == page and (values := part.context(view, slice_)) is not None:
            filled.setdefault(part.section.id, []).append((part, values))
    lines = []
    for section in sorted(by_id.values(), key=lambda section: section.order):
        entries = filled.get(section.id, [])
        if not entries and not section.always:
            continue
        line = {
            "id": section.id,
            "heading": section.heading,
            "note": section.note,
            "template": section.template,
            "parts": [{"template": part.template, "values": values} for part, values in entries],
        }
        if section.context is not None:
            line.update(section.context(view, slice_, [values for _, values in entries]))
        line["short"] = section.short or line["heading"]
        lines.append(line)
    return lines
