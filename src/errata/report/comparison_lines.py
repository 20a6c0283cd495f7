"""A comparison of two models as lines of a page: groups of rows under headings, each on two axes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core import Change
from . import marks, numbers
from .comparison_text import name_of

Fill = Callable[[Change, dict[str, Any]], None]
WIDE = 0.6  # rates above it are drawn on an axis of 0 to 100%
SECTIONS = {
    "all": ("All rows", "Rows"),
    "rest": ("All rows", "Rows"),
    "found": ("New weaknesses: slices that nobody named", "Slice"),
    "new": ("New weaknesses: slices that only the audit of the second has", "Slice"),
    "slice": ("Known slices", "Slice"),
    "group": ("Values of columns", "Value"),
}
TOTALS = ("overall",)  # groups that are no slices
SPANS = (0.1, 0.3, 0.5, 1.0)  # how far the axis of changes may reach to both sides: the least that holds all
WORDS = {"better": "Better", "worse": "Worse", "no change shown": "No change seen"}
FORMS = {"better": "better", "worse": "worse", "no change shown": "same"}


def comparison_sections(changes: Sequence[Change], axis: marks.Axis, fill: Fill) -> list[dict[str, Any]]:
    """Groups of rows under their headings, in the order of the headings; the worst change first.

    fill: adds to a line what a page knows of its group, such as an address and images.
    """
    span = change_span(changes)
    sections = []
    for heading, what in dict.fromkeys(SECTIONS.values()):
        kinds = [kind for kind, section in SECTIONS.items() if section == (heading, what)]
        own = sorted((change for change in changes if change.kind in kinds), key=lambda change: -(change.fair or 0.0))
        lines = []
        for change in own:
            line = change_line(change, name_of(change), axis, span)
            fill(change, line)
            lines.append(line)
        if lines:
            sections.append({"heading": heading, "what": what, "lines": lines})
    return sections


def comparison_axis(changes: Sequence[Change]) -> marks.Axis:
    """The axis of rates: 0 to 60%, or 0 to 100% where a rate exceeds that."""
    rates = [rate for change in changes for rate in (change.before_rate, change.after_rate) if rate is not None]
    top = 1.0 if max(rates, default=0.0) > WIDE else WIDE
    return marks.Axis(top)


def change_span(changes: Sequence[Change]) -> float:
    """How far the axis of changes reaches to both sides."""
    widest = max((abs(end) for change in changes for end in change.interval), default=0.0)
    return next((span for span in SPANS if widest <= span), 1.0)


def change_ticks(span: float) -> list[tuple[float, str]]:
    """(position, text) of each tick of the axis of changes, in points."""
    return [(50 * (1 + share), _whole(100 * span * share)) for share in (-1, -0.5, 0, 0.5, 1)]


def _whole(points: float) -> str:
    return f"{points:+.0f}".replace("-", "−") if points else "0"


def change_line(change: Change, title: str, axis: marks.Axis, span: float) -> dict[str, Any]:
    """One group of rows before and after: words, and positions on the axes of rates and of changes."""
    low, high = change.interval
    difference = numbers.NOT_MEASURED if change.fair is None else _signed(change.fair)
    return {
        "id": change.id,
        "href": "",  # a page sets it where it has one for the slice
        "name": title,
        "slice": change.id not in TOTALS,
        "n": numbers.counted(change.n, "row"),
        "before": numbers.rate_of(change.before_errors, change.n),
        "after": numbers.rate_of(change.after_errors, change.n),
        "before_at": axis.at(change.before_rate or 0.0),
        "after_at": axis.at(change.after_rate or 0.0),
        "change": difference,
        "interval": f"{_signed(low)} to {_signed(high)}",
        "low_at": _around(low, span),
        "high_at": _around(high, span),
        "change_at": _around(change.fair or 0.0, span),
        "raw": _raw(change),
        "strip": [],  # likewise what its rows look like
        "fixed": numbers.count(change.fixed),
        "broken": numbers.count(change.broken),
        "fixed_href": "",  # likewise where the rows themselves are
        "broken_href": "",
        "changed_rows": f"{numbers.count(change.fixed)} fixed, {numbers.count(change.broken)} newly wrong",
        "visible": _visible(change),
        "word": WORDS[change.judgement],
        "form": FORMS[change.judgement],
    }


def _raw(change: Change) -> str:
    """The change as counted, where regression to the mean was taken out of the one that is shown."""
    if change.corrected is None or change.change is None or abs(change.corrected - change.change) < 0.0005:
        return ""
    return f"{_signed(change.change)} as counted"


def _visible(change: Change) -> str:
    """The smallest rise that these rows would have shown, where none was."""
    if change.judgement != "no change shown":
        return ""
    if change.visible is None:
        return "No rise would have been seen (80% power)."
    return f"A rise of {numbers.points(change.visible)} points would have been seen (80% power)."


def _signed(value: float) -> str:
    text = numbers.points(value)
    return f"+{text}" if value > 0 and text != "0.0" else text


def _around(change: float, span: float) -> float:
    """Its position on an axis with 0 in the middle."""
    return 100 * min(max((change / span + 1) / 2, 0.0), 1.0)
