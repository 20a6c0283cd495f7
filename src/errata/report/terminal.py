"""An audit as a few lines for a terminal: the finding, the slices, what could have been missed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core import Audit, Slice
from ..core.telling import is_outcome_note
from . import sentences
from .pages import overview
from .parts.path import path_sentence
from .parts.training_rows import own_label_words
from .parts.words import direction_strength, hardest_caption, name_fit, nearest_texts

if TYPE_CHECKING:
    from rich.console import RenderableType

MARKS = {"confirmed": "●", "not confirmed": "○", "too few to tell": "◌"}


def to_terminal(audit: Audit) -> RenderableType:
    """The same words as the page, without its images."""
    from rich.console import Group
    from rich.text import Text

    shares = overview.error_shares(audit)
    lines: list[RenderableType] = [Text(overview.title(audit, shares), style="bold")]
    for task, sentence in overview.lede(audit, shares):
        line = f"{task}: {sentence}" if task else sentence
        lines.append(Text(line))
    lines += [Text(f"Warning: {note}", style="bold") for note in sentences.warnings(audit.settings)]
    for slice_ in audit.slices:
        lines += [Text(""), *_slice(audit, slice_)]
    return Group(*lines, Text(""), *map(Text, _notes(audit)), Text(audit.silence))


def _slice(audit: Audit, slice_: Slice) -> list[RenderableType]:
    from rich.padding import Padding
    from rich.text import Text

    outcome = dict(audit.overall)[slice_.task].outcome
    name = f"{slice_.task}, {slice_.name}" if slice_.task else slice_.name
    head = Text.assemble(
        f"{MARKS[slice_.verdict]} {slice_.id} ", (name, "bold"), f": {sentences.verdict_words(slice_)}"
    )
    words = [sentences.verdict(slice_, outcome)]
    if slice_.verdict == "confirmed":
        words.append(sentences.beyond(slice_))
    words += [
        name_fit(slice_),
        path_sentence(slice_),
        nearest_texts(slice_),
        hardest_caption(slice_),
        direction_strength(slice_),
        own_label_words(slice_),
    ]
    return [head, Padding(Text(" ".join(filter(None, words))), (0, 0, 0, 2))]


def _notes(audit: Audit) -> list[str]:
    notes = [line for line in [sentences.error_types(audit)] if line]
    if any(slice_.confirm for slice_ in audit.slices):
        notes.append(f"Intervals: {sentences.level(audit.settings)}, over {audit.settings['tested']} slices tested.")
    run = audit.settings["run"]
    if run > 1:
        notes.append(
            f"Run {run} on these held-out rows: stricter than the first, at level {audit.settings['level']:.3g} "
            f"instead of {audit.settings['alpha']:.3g}. New rows have no such cost."
        )
    notes += sentences.groups(audit.settings)
    notes += sentences.ownership(audit.settings)
    notes += [note for note in audit.settings.get("notes", ()) if not is_outcome_note(note)]
    notes += filter(None, [sentences.hard_predictions(audit.settings), sentences.influence(audit.settings)])
    if audit.settings["trained_on_these_rows"] == "not known":
        notes.append(
            "Whether the model was trained on these rows is not known; if it was, its error rate here is too low."
        )
    return notes
