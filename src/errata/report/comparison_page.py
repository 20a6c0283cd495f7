"""A comparison of two models as one HTML file that needs nothing else; its script adds keys and the theme."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from markupsafe import Markup

from ..core import Change, Comparison, Evaluation
from ..core.id_order import positions_of
from . import marks, numbers, sentences
from .comparison_lines import change_line, change_span, change_ticks
from .comparison_text import is_shown, name_of
from .gates import Gate
from .glossary import GLOSSARY
from .image_sources import EmbeddedImages, image_notes
from .links import SavedLinks
from .rendering import KEYS, templates
from .row_facts import row_content, row_outcome
from .static_files import PAGE, STYLES, file_text, policy, script_text

STRIP = 4  # random rows that show what a group looks like
MOST_LISTED = 24  # rows of a group that were fixed, and that are newly wrong
WIDE = 0.6  # rates above it are drawn on an axis of 0 to 100%
SECTIONS = {
    "all": ("All rows", "Rows"),
    "rest": ("All rows", "Rows"),
    "found": ("New weaknesses: slices that nobody named", "Slice"),
    "new": ("New weaknesses: slices that only the audit of the second has", "Slice"),
    "slice": ("Known slices", "Slice"),
    "group": ("Values of columns", "Value"),
}


def comparison_html(
    comparison: Comparison,
    gate: Gate,
    before: str,
    after: str,
    rows: tuple[Evaluation, Evaluation] | None = None,
) -> str:
    """The page of a comparison.

    Parameters
    ----------
    comparison : Comparison
        Its groups of rows are drawn; of slices that a search found, those that got worse.
    gate : Gate
        Its verdict stands at the top, where there is one.
    before, after : str
        What the two models are called.
    rows : (Evaluation, Evaluation), optional
        Under each model: their images, texts or columns show what each group looks like, and which rows changed.
    """
    changes = [change for change in comparison.changes if is_shown(change)]
    rates = [rate for change in changes for rate in (change.before_rate, change.after_rate) if rate is not None]
    top = 1.0 if max(rates, default=0.0) > WIDE else WIDE
    axis = marks.Axis(top)
    looks = None if rows is None else RowLooks(*rows)
    sections = list(_sections(comparison, changes, axis, looks))
    changed: list[dict[str, Any]] = []
    notes: list[str] = []
    images: dict[str, tuple[str, bool]] = {}
    if looks is not None:
        changed = list(_changed(comparison, changes, looks))
        notes = image_notes(looks.images)
        images = looks.images.symbols
    values = {
        "title": gate.title,
        "gate": gate,
        "before": before,
        "after": after,
        "rows": numbers.count(comparison.facts.get("rows", 0)),
        "level": f"{100 * (1 - 2 * comparison.alpha):.0f}%",
        "bad": sentences.bad_outcomes(comparison.outcome),
        "sections": sections,
        "changed": changed,
        "nothing_new": comparison.facts.get("tested", 0) > 0 and all(change.kind != "found" for change in changes),
        "axis": axis,
        "change_ticks": change_ticks(change_span(changes)),
        "notes": comparison.facts.get("notes", ()),
        "image_notes": notes,
        "images": images,
        "numbers": numbers,
        "links": SavedLinks(pages=(), overview="#main"),
        "audit_name": f"{before} → {after}, on {numbers.count(comparison.facts.get('rows', 0))} rows",
        "keys": [line for line in KEYS if line[0] in ("?", "g")],
        "glossary": GLOSSARY,
        "fingerprint": "",
        "styles": Markup("\n".join(map(file_text, STYLES))),
        "scripts": [Markup(script_text(PAGE))],
        "policy": policy([script_text(PAGE)]),
    }
    return templates().get_template("comparison.html").render(values)


class RowLooks:
    """What rows look like under both models; their images are stored once each, up to a budget."""

    def __init__(self, before: Evaluation, after: Evaluation):
        self.before = before
        self.after = after
        self.images = EmbeddedImages(before.media)

    def items(self, ids: Sequence[Any]) -> list[dict[str, Any]]:
        """Rows by their ids: the image, text or columns of each, and what both models said of it."""
        texts = [str(id) for id in ids]
        mine = positions_of(self.before.row_ids, texts)
        theirs = positions_of(self.after.row_ids, texts)
        return [self._item(mine[text], theirs[text]) for text in texts]

    def _item(self, row: int, other: int) -> dict[str, Any]:
        outcome = row_outcome(self.before, row)
        media = self.before.media
        return {
            **outcome,
            **row_content(self.before, row),
            "before": outcome["prediction"],
            "after": row_outcome(self.after, other)["prediction"],
            "picture": self.images.symbol(row),
            "has_picture": media is not None and media.kind == "image",
            "href": "",
        }


def _sections(
    comparison: Comparison, changes: list[Change], axis: marks.Axis, looks: RowLooks | None
) -> Iterator[dict[str, Any]]:
    """Groups of rows under their headings, in the order of the headings; the worst change first."""
    span = change_span(changes)
    members = comparison.facts.get("members", {})
    for heading, what in dict.fromkeys(SECTIONS.values()):
        kinds = [kind for kind, section in SECTIONS.items() if section == (heading, what)]
        own = sorted((change for change in changes if change.kind in kinds), key=lambda change: -(change.fair or 0.0))
        lines = []
        for change in own:
            line = change_line(change, name_of(change), axis, span)
            if looks is not None:
                listed = comparison.facts.get("changed", {}).get(change.id, {})
                for kind in ("fixed", "broken"):
                    line[f"{kind}_href"] = f"#{kind}-{change.id}" if listed.get(kind) else ""
                if line["slice"]:
                    line["strip"] = looks.items(members.get(change.id, ())[:STRIP])
            lines.append(line)
        if lines:
            yield {"heading": heading, "what": what, "lines": lines}


def _changed(comparison: Comparison, changes: Sequence[Change], looks: RowLooks) -> Iterator[dict[str, Any]]:
    """Rows of each group that changed, as far as they are listed."""
    changed = comparison.facts.get("changed", {})
    for change in changes:
        if change.id not in changed:
            continue
        lists = []
        for kind, words, n in (("broken", "newly wrong", change.broken), ("fixed", "fixed", change.fixed)):
            ids = changed[change.id][kind][:MOST_LISTED]
            if ids:
                items = looks.items(ids)
                lists.append({"anchor": f"{kind}-{change.id}", "words": words, "n": n, "rows": items})
        if lists:
            yield {"name": name_of(change), "lists": lists}
