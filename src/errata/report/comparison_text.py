"""A comparison as lines for a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core import Change, Comparison
from . import numbers

if TYPE_CHECKING:
    from rich.table import Table

MARKS = {"better": "▼", "worse": "▲", "no change shown": "·"}


def comparison_table(comparison: Comparison) -> Table:
    """Each group of rows before and after; the last column is what may be said of it."""
    from rich import box
    from rich.table import Table

    level = f"{100 * (1 - 2 * comparison.alpha):.0f}%"
    bad = "wrong" if comparison.outcome == "error" else comparison.outcome
    words = f"Change of the rate in points; its intervals ({level}) hold together."
    table = Table(caption=words, caption_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for head in ("rows", "n", f"{bad} before", "after", "change", "interval", ""):
        if head in ("rows", ""):
            table.add_column(head, justify="left", overflow="fold")  # a name is never cut
        else:
            table.add_column(head, justify="right")
    for change in comparison.changes:
        if is_shown(change):
            table.add_row(*_cells(change))
    return table


def is_shown(change: Change) -> bool:
    """Whether a change is worth a line: a slice that a search for worse rows found is not where it is not worse."""
    return change.kind != "found" or change.judgement == "worse"


def nothing_found(comparison: Comparison) -> str:
    """What is said of a search that found no slice where the second model is worse; "" where it found one."""
    found = any(change.kind == "found" and is_shown(change) for change in comparison.changes)
    if found or not comparison.facts.get("tested", 0):
        return ""
    return "None was confirmed: in no slice that the search found did held-out rows show a rise beyond chance."


def name_of(change: Change) -> str:
    """What a group of rows is called."""
    name = change.name if change.kind in ("all", "rest") else f"{change.id} {change.name}".strip()
    return f"{change.task}, {name}" if change.task else name


def judgement_words(change: Change) -> str:
    """ "no change seen" where these rows show none."""
    return change.judgement.replace("no change shown", "no change seen")


def _cells(change: Change) -> list[str]:
    difference = numbers.NOT_MEASURED if change.fair is None else numbers.points(change.fair)
    return [
        name_of(change),
        numbers.count(change.n),
        numbers.rate(change.before_rate),
        numbers.rate(change.after_rate),
        difference,
        numbers.interval(*change.interval),
        f"{MARKS[change.judgement]} {judgement_words(change)}",
    ]
