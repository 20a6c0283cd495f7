"""A comparison of two models as one HTML file that needs nothing else, not even a script."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from markupsafe import Markup

from ..core import Change, Comparison
from . import marks, numbers, sentences
from .comparison_lines import change_line, change_span, change_ticks
from .comparison_text import is_shown, name_of
from .gates import Gate
from .rendering import templates
from .static_files import STYLES, file_text, policy

WIDE = 0.6  # rates above it are drawn on an axis of 0 to 100%
SECTIONS = {
    "all": ("All rows", "Rows"),
    "rest": ("All rows", "Rows"),
    "found": ("New weaknesses: slices that nobody named", "Slice"),
    "new": ("New weaknesses: slices that only the audit of the second has", "Slice"),
    "slice": ("Known slices", "Slice"),
    "group": ("Values of columns", "Value"),
}


def comparison_html(comparison: Comparison, gate: Gate, before: str, after: str) -> str:
    """The page of a comparison.

    Parameters
    ----------
    comparison : Comparison
        Its groups of rows are drawn; of slices that a search found, those that got worse.
    gate : Gate
        Its verdict stands at the top, where there is one.
    before, after : str
        What the two models are called.
    """
    changes = [change for change in comparison.changes if is_shown(change)]
    rates = [rate for change in changes for rate in (change.before_rate, change.after_rate) if rate is not None]
    top = 1.0 if max(rates, default=0.0) > WIDE else WIDE
    axis = marks.Axis(top)
    values = {
        "title": gate.title,
        "gate": gate,
        "before": before,
        "after": after,
        "rows": numbers.count(comparison.facts.get("rows", 0)),
        "level": f"{100 * (1 - 2 * comparison.alpha):.0f}%",
        "bad": sentences.bad_outcomes(comparison.outcome),
        "sections": list(_sections(comparison, changes, axis)),
        "nothing_new": comparison.facts.get("tested", 0) > 0 and all(change.kind != "found" for change in changes),
        "axis": axis,
        "change_ticks": change_ticks(change_span(changes)),
        "notes": comparison.facts.get("notes", ()),
        "numbers": numbers,
        "styles": Markup("\n".join(map(file_text, STYLES))),
        "policy": policy([]),
    }
    return templates().get_template("comparison.html").render(values)


def _sections(comparison: Comparison, changes: list[Change], axis: marks.Axis) -> Iterator[dict[str, Any]]:
    """Groups of rows under their headings, in the order of the headings; the worst change first."""
    span = change_span(changes)
    examples = comparison.facts.get("examples", {})
    for heading, what in dict.fromkeys(SECTIONS.values()):
        kinds = [kind for kind, section in SECTIONS.items() if section == (heading, what)]
        own = sorted((change for change in changes if change.kind in kinds), key=lambda change: -(change.fair or 0.0))
        lines = []
        for change in own:
            line = change_line(change, name_of(change), axis, span)
            line["examples"] = ", ".join(map(str, examples.get(change.id, ())))
            lines.append(line)
        if lines:
            yield {"heading": heading, "what": what, "lines": lines}
