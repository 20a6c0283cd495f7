"""An audit as pages: all of them in one file that needs nothing else, or one at a time."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from ..core import Audit, Slice
from . import causes, data, marks, numbers, overview, parts, sentences, slices
from . import path as paths
from .home import KEYS, SCRIPTS, SERVED_KEYS, STYLES, Home, Saved, policy, static_text
from .images import BUDGET, Pictures

SHOWN = 5  # confirmed slices before the fold
NAMED_SETTINGS = ("version", "methods", "seed")  # that have a line of their own


ORDERS = (
    ("1", "excess", "Excess errors"),
    ("2", "gap", "Gap"),
    ("3", "size", "Size"),
    ("4", "worst", "Worst"),
    ("5", "fixable", "Fixable"),
)


def to_html(audit: Audit) -> str:
    """One self-contained file: no request, light and dark; complete without script."""
    home, pictures = Saved(), Pictures(audit.evaluation.media)
    scripts = [static_text(name) for name in SCRIPTS]
    around = {
        "styles": Markup("\n".join(map(static_text, STYLES))),
        "scripts": [Markup(text) for text in scripts],
        "policy": policy(scripts),
    }
    return templates().get_template("report.html").render({**context(audit, home, pictures), **around})


@cache
def templates(*rooms: str) -> Environment:
    """The templates of this room, and before them those of `rooms`, packages that bring pages of their own."""
    return Environment(
        loader=ChoiceLoader([PackageLoader(room, "templates") for room in (*rooms, "errata.report")]),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def context(audit: Audit, home: Home, pictures: Pictures) -> dict[str, Any]:
    """All that the templates show, as text and positions: the overview, and every slice."""
    axis = marks.error_axis(audit.slices)
    page = slices.Page(audit, pictures, axis, home)
    # Strips before folds: when the budget bites, it must bite what is folded away.
    strips = {found.id: parts.strip(audit, found, pictures) for found in audit.slices}
    rows = [row(page, found, strips[found.id], j + 1) for j, found in enumerate(audit.slices)]
    for line, found in zip(rows, audit.slices, strict=True):
        line |= slice_parts(page, found)
    return {**shared(audit, home, axis), **overview_parts(page, rows), "slices_": rows,
            **_numbers(audit), "pictures": pictures.symbols, "picture_notes": _picture_notes(pictures)}  # fmt: skip


def _numbers(audit: Audit) -> dict[str, Any]:
    """What the scripts of a saved page read."""
    drawn = len(audit.evaluation) <= data.MOST_PLACES
    placed, guessed = data.map_data(audit) if drawn else None, data.guess_data(audit)
    return {
        "map_data": "" if placed is None else data.script(placed),
        "guess_data": "" if guessed is None else data.script(guessed),
        "guesses": guessed is not None,
        "guess_example": data.example(audit),
    }


def slice_parts(page: slices.Page, found: Slice) -> dict[str, Any]:
    """What only the page of a slice has."""
    told = slices.whole(page, found)
    told["causes"] = causes.causes(page.audit, found, page.pictures)
    told["training"] = causes.strongest(found)
    told["path"] = paths.path(page.audit, found, page.pictures)
    told["map"] = _map(page)
    told["contents"] = _contents(page.audit, told)
    return told


def _map(page: slices.Page) -> dict[str, Any] | None:
    """None where no map was drawn, or where a saved page would grow too large with it."""
    found, n = parts.of_audit(page.audit, "map"), len(page.audit.evaluation)
    if not found or (page.home.saved and n > data.MOST_PLACES):
        return None
    return {
        "of": numbers.count(n),
        "note": _drawn(n),
        "representation": found[0]["representation"],
    }


def _drawn(n: int) -> str:
    if n <= data.MOST_PLACES:
        return f"{numbers.counted(n, 'row')}."
    return f"{numbers.count(data.MOST_PLACES)} of {numbers.count(n)} rows drawn. Statistics use all rows."


def shared(audit: Audit, home: Home, axis: marks.Axis) -> dict[str, Any]:
    """What every page has."""
    return {
        "home": home,
        "here": "Overview",
        "axis": axis,
        "audit_name": audit_name(audit) + (" · Saved page" if home.saved else ""),
        "outcome": audit.overall[0][1].outcome,
        "media": audit.evaluation.media.kind if audit.evaluation.media is not None else None,
        "keys": KEYS if home.saved else (*KEYS, *SERVED_KEYS),
        "fingerprint": audit.evaluation.fingerprint,
        "numbers": numbers,
    }


def audit_name(audit: Audit) -> str:
    return f"{audit.evaluation.origin.model or 'A model'} on {numbers.counted(len(audit.evaluation), 'row')}"


def _contents(audit: Audit, told: dict[str, Any]) -> list[tuple[str, str]]:
    pictured = audit.evaluation.media is not None and audit.evaluation.media.kind == "image"
    lines = [("rows", "Pictures" if pictured else "Rows"), ("profile", "Profile"), ("words", "Words and rules")]
    lines += [("map", "Map")] if told["map"] else []
    lines += [("tree", "Tree")] if told["path"] else []
    return lines + ([("why", "Why")] if told["causes"] else [])


def overview_parts(page: slices.Page, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """The overview, from the lines of all slices."""
    audit, seen = page.audit, overview.where(page.audit)
    confirmed = [row for row in rows if row["verdict"] == "confirmed"]
    numbered = {found.id: j + 1 for j, found in enumerate(audit.slices)}
    return {
        "title": overview.title(audit, seen),
        "lede": overview.lede(audit, seen),
        "where": seen,
        "where_label": overview.where_label(seen) if seen else "",
        "search": _search(audit),
        "level": sentences.level(audit.settings),
        "orders": ORDERS,
        "confirmed": confirmed[:SHOWN],
        "more": confirmed[SHOWN:],
        "not_confirmed": [row for row in rows if row["verdict"] == "not confirmed"],
        "too_few": [row for row in rows if row["verdict"] == "too few to tell"],
        "silence": audit.silence,
        "relabel": causes.relabel(audit),
        "plots": [marks.size_plot(data, numbered) for data in parts.of_audit(audit, "sizes")],
        "made": made(audit),
    }


def row(page: slices.Page, found: Slice, strip: list[dict[str, Any]], number: int) -> dict[str, Any]:
    """One slice of the list."""
    audit = page.audit
    seen, outcome = found.confirm, dict(audit.overall)[found.task].outcome
    shown = seen is not None and found.reason != "unconfirmable"  # a number by construction is not shown
    return {
        "id": found.id,
        "number": number,
        "href": page.home.slice(found.id),
        "sort": _sort(found),
        "name": found.name,
        "name_score": parts.name_score(found),
        "task": found.task,
        "verdict": found.verdict,
        "side": found.side,
        "rows": numbers.counted(seen.n, "row") if seen else numbers.NOT_MEASURED,
        "sentence": sentences.verdict(found, outcome),
        "facts": _facts(audit, found),
        "whisker": marks.whisker(found, seen, page.axis) if shown and seen else None,
        "whisker_label": sentences.whisker(found, seen, outcome) if shown and seen else "",
        **(_values(found, outcome) if shown else {"rate": "", "rest": "", "excess": "", "loss": "", "q": ""}),
        "strip": strip,
        "strip_label": _strip_label(strip),
        "classes": parts.class_parts(found),
        "metadata": parts.metadata_parts(found),
        "tokens": parts.token_parts(found),
        "descriptions": parts.description_parts(found),
        "captions": parts.caption_parts(found),
        "extra": [e.kind for e in parts.extra(found)],
    }


def _sort(found: Slice) -> dict[str, float]:
    """What the list may be ordered by: always confirm rows, and lower ends of intervals."""
    seen = found.confirm
    if seen is None:
        return dict.fromkeys(("excess", "gap", "size", "worst", "fixable"), 0.0)
    said = parts.explanation(found, "name")
    precise = said["precise"] if said is not None and "precise" in said else (0, 0)
    return {
        "excess": seen.excess[1],
        "gap": seen.interval[0],
        "size": float(seen.n),
        "worst": seen.rate,
        # What a name describes precisely, more of its like can be found for.
        "fixable": seen.excess[1] * precise[0] / max(precise[1], 1),
    }


def _values(found: Slice, outcome: str) -> dict[str, str]:
    """The numbers at the right edge; excess errors only where there is evidence for them."""
    seen = found.confirm
    assert seen is not None
    by_error = seen.error_rate is not None
    mean = "" if by_error or seen.mean_loss is None else f"mean loss {numbers.quantity(seen.mean_loss)}"
    return {
        "rate": numbers.rate_of(seen.errors, seen.n),
        "rest": sentences.rest_rate(seen),
        "excess": sentences.excess(found, seen, outcome) if found.verdict == "confirmed" else "",
        "loss": mean,
        "q": numbers.q_value(seen.q_value),
    }


def _facts(audit: Audit, found: Slice) -> list[str]:
    """Short lines under a slice's name."""
    lines = [
        sentences.beyond(found) if found.verdict == "confirmed" else "",
        parts.mostly(found),
        paths.in_words(found),
        sentences.scope(found),
        sentences.found_by(found, len(_methods(audit))),
        sentences.stand_in(found),
        sentences.folded(found),
    ]
    return [line for line in lines if line]


def _strip_label(strip: list[dict[str, Any]]) -> str:
    wrong = sum(item["wrong"] is True for item in strip)
    known = any(item["wrong"] is not None for item in strip)
    return f"{len(strip)} random members" + (f", {wrong} wrong" if known else "")


def _search(audit: Audit) -> str:
    searched, total = int(audit.discover.sum()), len(audit.discover)
    return f"Found on {numbers.count(searched)} rows, measured on {numbers.count(total - searched)} others."


def _methods(audit: Audit) -> list[str]:
    given: Any = audit.settings.get("methods") or sorted({found.method for found in audit.slices})
    return [str(method["name"]) if isinstance(method, Mapping) else str(method) for method in given]


def _picture_notes(pictures: Pictures) -> list[str]:
    notes = [
        sentences.pictures_left_out(len(pictures.left_out) + pictures.inlined[1], pictures.asked, BUDGET / 1e6),
        sentences.pictures_missing(len(pictures.missing), pictures.asked),
    ]
    return [note for note in notes if note]


def made(audit: Audit) -> list[tuple[str, str, bool]]:
    """(what, value, is code): how this page came to be."""
    evaluation, settings = audit.evaluation, audit.settings
    searched, total = int(audit.discover.sum()), len(audit.discover)
    version = settings.get("version")
    seed = f", seed {settings['seed']}" if "seed" in settings else ""
    lines = [
        ("Model", evaluation.origin.model or "nobody said which", evaluation.origin.model is not None),
        ("Data", f"{numbers.counted(total, 'row')}, {_kind(audit)}", False),
        ("Fingerprint", evaluation.fingerprint, True),
        ("Methods", ", ".join(_methods(audit)) or "none", False),
        ("Split", f"{numbers.count(searched)} discover, {numbers.count(total - searched)} confirm{seed}", False),
        ("Errata", "version not recorded" if version is None else str(version), False),
    ]
    others = [(key, value) for key, value in settings.items() if key not in NAMED_SETTINGS]
    return lines + [(key, json.dumps(value, default=str, ensure_ascii=False), True) for key, value in others]


def _kind(audit: Audit) -> str:
    """What was predicted, in a word or two."""
    names, task = audit.evaluation.class_names, str(audit.evaluation.task)
    words = {"multilabel": "multi-label", "loss": "losses only"}.get(task, task)
    return words if names is None else f"{words}, {numbers.in_words(len(names))} classes"
