"""An audit as a few lines for a terminal: the finding, the slices, what silence means."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from ..core import Audit, Slice
from . import numbers, overview, sentences

MARKS = {"confirmed": "●", "not confirmed": "○", "too few to tell": "◌"}


def to_terminal(audit: Audit) -> RenderableType:
    """The same words as the page, without its pictures."""
    seen = overview.where(audit)
    lines: list[RenderableType] = [Text(overview.title(audit, seen), style="bold")]
    lines += [Text(f"{task}: {sentence}" if task else sentence) for task, sentence in overview.lede(audit, seen)]
    if audit.slices:
        lines += [Text(""), _table(audit)]
    lines += [Text(""), *map(Text, _notes(audit)), Text(audit.silence)]
    return Group(*lines)


def _table(audit: Audit) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("", "slice", "verdict", "confirm rows", "error", "the rest", "gap in points", "beyond"):
        table.add_column(name, justify="right" if name in ("confirm rows", "error", "the rest") else "left")
    for found in audit.slices:
        table.add_row(*map(Text, _cells(found)))
    return table


def _cells(found: Slice) -> tuple[str, ...]:
    name = f"{found.task}: {found.name}" if found.task else found.name
    head = found.id, name, f"{MARKS[found.verdict]} {found.verdict}"
    seen = found.confirm
    if seen is None or found.reason == "unconfirmable":
        return (*head, numbers.count(seen.n) if seen else "–", "–", "–", "the method reads the outcome", "")
    gap = f"{numbers.points(seen.gap)} ({numbers.interval(*seen.interval)})"
    return (
        *head,
        numbers.count(seen.n),
        numbers.rate_of(seen.errors, seen.n),
        sentences.rest_rate(seen),
        gap,
        ", ".join(found.beyond) or ("nothing" if found.verdict == "confirmed" else ""),
    )


def _notes(audit: Audit) -> list[str]:
    notes = []
    if any(found.confirm for found in audit.slices):
        notes.append(f"Intervals: {sentences.level(audit.settings)}, over {audit.settings['tested']} slices tested.")
    run = audit.settings["run"]
    if run > 1:
        notes.append(
            f"Look {run} at these confirm rows: the level is {audit.settings['level']:.3g} "
            "instead of the first look's. Fresh rows cost nothing."
        )
    return notes
