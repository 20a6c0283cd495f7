"""Overview: where is the model wrong, and may I believe it?"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core import Audit, SelfTest
from ...core.judgement import ACCEPTED, decision, kept
from .. import numbers, sentences
from ..contract import Page, Request, View
from ..error_type_lines import error_type_lines
from ..judgement_lines import counted_slices, counts_of_decisions, decision_words
from ..sections import sections
from ..slice_lines import ORDERS, in_order, methods_of, order_labels, slice_lines
from ..static_files import Script
from .drawn_slice import loop_sentence

MAX_CONFIRMED = 5  # confirmed slices before the fold
MAX_ERROR_TYPES = 5  # error types before the fold
NAMED_SETTINGS = (
    "version",
    "methods",
    "seed",
    "softness",
    "influence",
    "ownership",
    "groups",
    "notes",
)  # that have a line of their own


@dataclass(frozen=True)
class ErrorShares:
    """Errors of the held-out rows: those that each slice adds, in order, and those outside of all.

    slices: errors that each confirmed slice adds to those before it. outside: errors in none of them.
    covered: share of the rows in any of them. outside_rows: rows in none.
    """

    slices: tuple[int, ...]
    outside: int
    covered: float
    outside_rows: int

    @property
    def inside(self) -> int:
        """Errors in any of the slices."""
        return sum(self.slices)

    @property
    def total(self) -> int:
        """All errors."""
        return self.inside + self.outside

    @property
    def segments(self) -> list[dict[str, float | int]]:
        """Each slice's place on the bar, in per cent."""
        edges = np.concatenate([[0], np.cumsum(self.slices)]) * (100 / self.total)
        return [{"x": float(edges[j]), "width": 100 * k / self.total, "count": k} for j, k in enumerate(self.slices)]


def error_shares(audit: Audit) -> ErrorShares | None:
    """Where the errors are; None where they cannot be counted once each: several tasks, no errors, or a cross-fit."""
    worse = [slice_ for slice_ in counted_slices(audit) if slice_.side == "hard"]
    errors = audit.evaluation.errors
    held_out = ~audit.discover
    crossed = any(slice_.confirmed_on != "confirm" for slice_ in worse)
    if errors is None or crossed or not worse or not (errors & held_out).any():
        return None
    left = held_out.copy()
    counts = []
    for slice_ in worse:
        counts.append(int(np.count_nonzero(errors & left & slice_.members)))
        left &= ~slice_.members
    rows = int(np.count_nonzero(left))
    return ErrorShares(tuple(counts), int(np.count_nonzero(errors & left)), 1 - rows / int(held_out.sum()), rows)


def title(audit: Audit, shares: ErrorShares | None) -> str:
    """The finding in one sentence."""
    sides = [slice_.side for slice_ in counted_slices(audit)]
    share = None if shares is None else shares.inside / shares.total
    errors = sentences.KINDS_OF_ERRORS.get(audit.evaluation.metric, "errors")
    return sentences.title(sides.count("hard"), sides.count("easy"), share, audit.overall[0][1].outcome, errors)


def lede(audit: Audit, shares: ErrorShares | None) -> list[tuple[str, str]]:
    """(task, sentence): the numbers of the whole."""
    lines = [(task, sentences.overall(total)) for task, total in audit.overall]
    if shares is not None and len(lines) == 1:
        outside = (shares.outside, shares.outside_rows)
        inside = sentences.errors_inside(shares.inside, len(shares.slices), shares.covered, outside)
        lines = [(lines[0][0], f"{lines[0][1]} {inside}{_moved_words(audit)}")]
    sought = sentences.sought(audit.evaluation)
    return [("", sought), *lines] if sought else lines


def _moved_words(audit: Audit) -> str:
    """What is counted of slices that people moved rows of; "" where they moved none."""
    judged = [slice_.judged for slice_ in counted_slices(audit) if slice_.judged is not None]
    if not any(one.edited for one in judged):
        return ""
    return " Slices count with the rows that people moved, which were not tested."


def shares_label(shares: ErrorShares) -> str:
    """The bar of errors, for those who do not see it."""
    listed = ", ".join(numbers.count(k) for k in shares.slices)
    return (
        f"{numbers.count(shares.total)} errors: {numbers.count(shares.inside)} in the confirmed slices ({listed}, "
        f"each counted once), {numbers.count(shares.outside)} elsewhere"
    )


def context(view: View, request: Request) -> dict[str, Any]:
    """The finding, the slices by verdict, what could have been missed, and how the audit was made."""
    audit = view.audit
    shares = error_shares(audit)
    label = shares_label(shares) if shares else ""
    standings = view.backend.standings()
    error_types = error_type_lines(view, standings)
    searched = int(audit.discover.sum())
    held_out = len(audit.discover) - searched
    return {
        "title": title(audit, shares),
        "lede": lede(audit, shares),
        "warnings": sentences.warnings(audit.settings),
        "judged": counts_of_decisions(audit),
        "loops": _loops(view),
        "shares": shares,
        "shares_label": label,
        "search": f"Found on {numbers.count(searched)} rows, measured on {numbers.count(held_out)} others.",
        "level": sentences.level(audit.settings),
        "orders": order_labels(audit.overall[0][1].outcome),
        **_lists(view, request.get("order", "")),
        "testable": view.testable,
        "silence": audit.silence.splitlines(),
        **planted_groups(audit.self_test),
        "error_types": error_types[:MAX_ERROR_TYPES],
        "more_error_types": error_types[MAX_ERROR_TYPES:],
        "sections": sections(view, None),
        "made": provenance(audit),
        "settings": other_settings(audit),
    }


def _lists(view: View, order: str) -> dict[str, Any]:
    """The slices by verdict, and what people rejected, each list in the order that the address asks for."""
    if order not in ORDERS:
        order = ORDERS[0]
    audit = view.audit
    kept_ids = {slice_.id for slice_ in kept(audit)}
    rejected_ids = {slice_.id for slice_ in audit.slices if decision(slice_) == "rejected"}
    ordered = in_order(slice_lines(view, view.backend.standings()), order)
    lines = [line for line in ordered if line["id"] in kept_ids]
    confirmed = [line for line in lines if line["verdict"] == "confirmed"]
    return {
        "order": order,
        "confirmed": confirmed[:MAX_CONFIRMED],
        "more": confirmed[MAX_CONFIRMED:],
        "not_confirmed": [line for line in lines if line["verdict"] == "not confirmed"],
        "too_few": [line for line in lines if line["verdict"] == "too few to tell"],
        "rejected": [line for line in ordered if line["id"] in rejected_ids],
    }


def _loops(view: View) -> list[dict[str, Any]]:
    """Slices that people drew by hand and accepted. A saved report has no page of them."""
    loops = []
    for loop in view.audit.drawn:
        if loop.judged is None or decision(loop) != ACCEPTED:
            continue
        href = "" if view.links.saved else view.links.slice(loop.id)
        sentence = loop_sentence(view.audit, loop.members)
        decided = decision_words(vars(loop.judged.decided))
        loops.append({"id": loop.id, "name": loop.name, "href": href, "sentence": sentence, "decision": decided})
    return loops


def planted_groups(result: SelfTest | None) -> dict[str, Any]:
    """The table of the self-test: one line for each size, gap and kind; empty where it was not run."""
    if result is None:
        return {"planted": []}
    kinds = {"region": "near rows", "rule": "columns"}
    several = len({cell.kind for cell in result.cells}) > 1
    lines = []
    for cell in result.cells:
        group = f"{100 * cell.share:.0f}%, {numbers.counted(cell.rows, 'row')}"
        if several:
            group += f" ({kinds[cell.kind]})"
        low, high = cell.interval
        held = "–" if cell.held is None else numbers.whole_rate(cell.held)
        lines.append(
            {
                "group": group,
                "gap": f"{100 * cell.gap:.0f} points",
                "found": numbers.out_of(cell.found, cell.trials),
                "interval": f"{100 * low:.0f}% to {100 * high:.0f}%",
                "held": held,
            }
        )
    return {"planted": lines, "planted_outcome": result.outcome, "planted_kinds": several}


def provenance(audit: Audit) -> list[tuple[str, str, bool]]:
    """(what, value, is code): how this page came to be."""
    evaluation = audit.evaluation
    settings = audit.settings
    searched = int(audit.discover.sum())
    held_out = len(audit.discover) - searched
    seed = f", seed {settings['seed']}" if "seed" in settings else ""
    lines = [
        ("Model", evaluation.origin.model or "not recorded", evaluation.origin.model is not None),
        ("Data", f"{numbers.counted(len(audit.discover), 'row')}, {_task(audit)}", False),
        ("Fingerprint", evaluation.fingerprint, True),
        ("Methods", ", ".join(methods_of(audit)) or "none", False),
        ("Split", f"{numbers.count(searched)} search rows, {numbers.count(held_out)} held-out rows{seed}", False),
        ("Errata", str(settings.get("version", "version not recorded")), False),
    ]
    lines += [("Groups", words, False) for words in sentences.groups(settings)]
    lines += [("Representation", words, False) for words in sentences.ownership(settings)]
    lines += [("Note", note, False) for note in settings.get("notes", ())]
    hard = sentences.hard_predictions(settings)
    if hard:
        lines.append(("Predictions", hard, False))
    influence = sentences.influence(settings)
    if influence:
        lines.append(("Influence", influence, False))
    return lines


def other_settings(audit: Audit) -> list[tuple[str, str]]:
    """(name, value) of the settings that have no line of their own."""
    others = [(key, value) for key, value in audit.settings.items() if key not in NAMED_SETTINGS]
    return [(key, json.dumps(value, default=str, ensure_ascii=False)) for key, value in others]


def _task(audit: Audit) -> str:
    """What was predicted, in a word or two."""
    names = audit.evaluation.class_names
    task = str(audit.evaluation.task)
    words = {"multilabel": "multi-label", "loss": "losses only"}.get(task, task)
    if names is None:
        return words
    return f"{words}, {numbers.in_words(len(names))} classes"


PAGE = Page(
    name="overview",
    template="page_overview.html",
    context=context,
    paths=("/",),
    nav="Overview",
    saved=lambda audit: [{}],
    scripts=(Script("rank.js", ("rank.js",)),),
    keys=((f"1 to {len(ORDERS)}", "the order of the slices, as the buttons say"),),
)
