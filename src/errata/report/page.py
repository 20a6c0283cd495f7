"""An audit as one HTML page that needs nothing else."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from ..core import Audit, Slice
from . import causes, marks, numbers, overview, parts, paths, sentences
from .pictures import BUDGET, Pictures

SHOWN = 5  # confirmed slices before the fold
NAMED_SETTINGS = ("version", "methods", "seed")  # that have a line of their own


def to_html(audit: Audit) -> str:
    """One self-contained page: no request, no script, light and dark."""
    environment = Environment(
        loader=PackageLoader("errata.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html").render(page(audit))


def page(audit: Audit) -> dict[str, Any]:
    """All that the template shows, as text and positions."""
    pictures, axis, seen = Pictures(audit.evaluation.media), marks.error_axis(audit.slices), overview.where(audit)
    numbered = {found.id: j + 1 for j, found in enumerate(audit.slices)}
    # Strips before folds: when the budget bites, it must bite what is folded away.
    strips = {found.id: parts.strip(audit, found, pictures) for found in audit.slices}
    rows = [_row(audit, found, axis, strips[found.id], numbered[found.id]) for found in audit.slices]
    for row, found in zip(rows, audit.slices, strict=True):
        row["groups"] = parts.exemplar_groups(audit, found, pictures) + parts.easy_end(audit, found, pictures)
        row["causes"] = causes.causes(audit, found, pictures)
        row["path"] = paths.path(audit, found, pictures)
    confirmed = [row for row in rows if row["verdict"] == "confirmed"]
    return {
        "title": overview.title(audit, seen),
        "lede": overview.lede(audit, seen),
        "where": seen,
        "where_label": overview.where_label(seen) if seen else "",
        "axis": axis,
        "outcome": audit.overall[0][1].outcome,
        "search": _search(audit),
        "level": sentences.level(audit.settings),
        "confirmed": confirmed[:SHOWN],
        "more": confirmed[SHOWN:],
        "not_confirmed": [row for row in rows if row["verdict"] == "not confirmed"],
        "too_few": [row for row in rows if row["verdict"] == "too few to tell"],
        "silence": audit.silence,
        "relabel": causes.relabel(audit),
        "plots": [marks.size_plot(data, numbered) for data in parts.of_audit(audit, "sizes")],
        "made": made(audit),
        "pictures": pictures.symbols,
        "picture_notes": _picture_notes(pictures),
        "media": audit.evaluation.media.kind if audit.evaluation.media is not None else None,
        "numbers": numbers,
    }


def _row(audit: Audit, found: Slice, axis: marks.Axis, strip: list[dict[str, Any]], number: int) -> dict[str, Any]:
    """One slice of the list."""
    seen, outcome = found.confirm, dict(audit.overall)[found.task].outcome
    shown = seen is not None and found.reason != "unconfirmable"  # a number by construction is not shown
    return {
        "id": found.id,
        "number": number,
        "name": found.name,
        "name_score": parts.name_score(found),
        "task": found.task,
        "verdict": found.verdict,
        "side": found.side,
        "rows": numbers.counted(seen.n, "row") if seen else numbers.NOT_MEASURED,
        "sentence": sentences.verdict(found, outcome),
        "facts": _facts(audit, found),
        "whisker": marks.whisker(found, seen, axis) if shown and seen else None,
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
