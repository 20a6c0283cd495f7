"""A comparison of two models as one HTML file that needs nothing else; its script adds keys and the theme."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from markupsafe import Markup

from ..core import Change, Comparison, Evaluation
from ..core.id_order import positions_of
from . import numbers, sentences
from .comparison_lines import Fill, change_span, change_ticks, comparison_axis, comparison_sections
from .comparison_text import is_shown, name_of, nothing_found
from .gates import Gate
from .glossary import GLOSSARY
from .image_sources import EmbeddedImages, image_notes
from .links import SavedLinks
from .rendering import KEYS, templates
from .row_facts import row_content, row_outcome
from .static_files import PAGE, STYLES, file_text, policy, script_text

STRIP = 4  # random rows that show what a group looks like
MOST_LISTED = 24  # rows of a group that were fixed, and that are newly wrong


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
    axis = comparison_axis(changes)
    looks = None if rows is None else RowLooks(*rows)
    sections = comparison_sections(changes, axis, _fill(comparison, looks))
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
        "outcome": comparison.outcome,
        "bad": sentences.bad_outcomes(comparison.outcome),
        "sections": sections,
        "changed": changed,
        "nothing_found": nothing_found(comparison),
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


def _fill(comparison: Comparison, looks: RowLooks | None) -> Fill:
    """What a line is given: links to rows that are listed below, and what a slice looks like."""
    changed = comparison.facts.get("changed", {})
    members = comparison.facts.get("members", {})

    def fill(change: Change, line: dict[str, Any]) -> None:
        if looks is None:
            return
        listed = changed.get(change.id, {})
        for kind in ("fixed", "broken"):
            line[f"{kind}_href"] = f"#{kind}-{change.id}" if listed.get(kind) else ""
        if line["slice"]:
            line["strip"] = looks.items(members.get(change.id, ())[:STRIP])

    return fill


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
