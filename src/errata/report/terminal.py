"""An audit as a few lines for a terminal: the finding, the slices, what silence means."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.text import Text

from ..core import Audit, Slice
from . import overview, parts, sentences
from . import path as paths

MARKS = {"confirmed": "●", "not confirmed": "○", "too few to tell": "◌"}


def to_terminal(audit: Audit) -> RenderableType:
    """The same words as the page, without its pictures."""
    seen = overview.where(audit)
    lines: list[RenderableType] = [Text(overview.title(audit, seen), style="bold")]
    lines += [Text(f"{task}: {sentence}" if task else sentence) for task, sentence in overview.lede(audit, seen)]
    for found in audit.slices:
        lines += [Text(""), *_slice(audit, found)]
    return Group(*lines, Text(""), *map(Text, _notes(audit)), Text(audit.silence))


def _slice(audit: Audit, found: Slice) -> list[RenderableType]:
    outcome = dict(audit.overall)[found.task].outcome
    name = f"{found.task}, {found.name}" if found.task else found.name
    head = Text.assemble(f"{MARKS[found.verdict]} {found.id} ", (name, "bold"), f": {found.verdict}")
    said = [sentences.verdict(found, outcome), sentences.beyond(found) if found.verdict == "confirmed" else ""]
    said += [paths.in_words(found), parts.nearest_texts(found), parts.hardest_caption(found)]
    return [head, Padding(Text(" ".join(filter(None, said))), (0, 0, 0, 2))]


def _notes(audit: Audit) -> list[str]:
    notes = []
    if any(found.confirm for found in audit.slices):
        notes.append(f"Intervals: {sentences.level(audit.settings)}, over {audit.settings['tested']} slices tested.")
    run = audit.settings["run"]
    if run > 1:
        notes.append(
            f"Look {run} at these confirm rows: stricter than the first, at level {audit.settings['level']:.3g} "
            f"instead of {audit.settings['alpha']:.3g}. Fresh rows cost nothing."
        )
    if audit.settings["trained_on_these_rows"] == "not known":
        notes.append("Whether the model was trained on these rows is not known; if it was, its errors are flattered.")
    return notes
