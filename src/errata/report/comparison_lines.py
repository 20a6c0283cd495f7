"""Two audits side by side: the slices of the first, under the model of each, on the rows they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..core import Audit, Change, Comparison, InputError
from ..core.compared_slices import drawn_words, known_groups, new_groups, why_no_loops
from ..core.comparison import Group, measure
from ..core.judgement import DRAWN, choose
from ..core.known_slices import count_tested, first_other_label, shared_rows
from . import marks, numbers

ALPHA = 0.05
TOTALS = ("overall",)  # groups that are no slices
SPANS = (0.1, 0.3, 0.5, 1.0)  # how far the axis of changes may reach to both sides: the least that holds all
WORDS = {"better": "Better", "worse": "Worse", "no change shown": "No change seen"}
FORMS = {"better": "better", "worse": "worse", "no change shown": "same"}


def compare_audits(first: Audit, second: Audit) -> Comparison:
    """Slices of the first, all rows, and slices that only the second has, on the rows that both have.

    The slices are those that people accepted where there are any, else the confirmed ones; merged ones count once.
    """
    mine, theirs = shared_rows(first.evaluation, second.evaluation)
    if not len(mine):
        raise InputError("the two audits do not share their rows; audit both models on the same ones")
    before = first.evaluation.rows(mine)
    after = second.evaluation.rows(theirs)
    if before.errors is None or after.errors is None:
        raise InputError("one of the two audits has no errors to compare; audit both with labels and predictions")
    if first_other_label(before, after) is not None:
        raise InputError("the two audits have different labels for the same rows; audit both with the same labels")
    choice = choose(first, None, no_loops=why_no_loops(first))
    known = list(known_groups(first, mine, after, choice.slices))
    new = new_groups(first, second)
    outcomes = (before.errors.astype(float), after.errors.astype(float))
    overall = Group("overall", "All rows", "", np.ones(len(mine), dtype=bool), *outcomes, kind="all")
    loops = sum(slice_.method == DRAWN for slice_ in choice.slices)
    tested = 1 + count_tested(first) + loops + bool(new) * count_tested(second)
    changes = [measure(group, before.groups, ALPHA / tested) for group in (*known, *new, overall)]
    facts = {
        "rows": len(mine),
        "of": len(first.evaluation),
        "chosen": choice.sentence,
        "loops": [choice.left_out, *drawn_words(choice.slices)],
        "changed": {group.id: group.changed_rows(before.row_ids) for group in (*known, *new, overall)},
    }
    return Comparison(tuple(changes), "error", ALPHA, facts)


def comparison_lines(comparison: Comparison, titles: Mapping[str, str], axis: marks.Axis) -> dict[str, Any]:
    """Known slices with the worst change first and all rows after them; then what only the second audit has."""
    known = [change for change in comparison.changes if change.kind == "slice"]
    new = [change for change in comparison.changes if change.kind == "new"]
    totals = [change for change in comparison.changes if change.kind == "all"]
    span = change_span(comparison.changes)
    counts = {kind: sum(change.judgement == kind for change in known) for kind in WORDS}

    which = "accepted" if comparison.facts["chosen"] else "confirmed"

    def lines(changes: Sequence[Change]) -> list[dict[str, Any]]:
        order = sorted(changes, key=lambda change: -(change.fair or 0.0))
        return [change_line(change, titles.get(change.id, change.name), axis, span) for change in order]

    return {
        "title": _title(counts, len(known), which),
        "rows": numbers.out_of(comparison.facts["rows"], comparison.facts["of"]),
        "change_ticks": change_ticks(span),
        "lines": [*lines(known), *lines(totals)],
        "new": lines(new),
        "chosen": comparison.facts["chosen"].partition(";")[0].rstrip("."),
        "regression": regression_words(known),
        "loops": [words for words in comparison.facts["loops"] if words],
    }


def regression_words(changes: Sequence[Change]) -> str:
    """What was taken out of the changes of slices that these rows confirmed; "" where nothing had to be."""
    taken = [
        change.corrected - change.change
        for change in changes
        if change.corrected is not None and change.change is not None
    ]
    if not taken:
        return ""
    amount = "less than 0.1 points here"
    if max(taken) >= 0.0005:
        amount = f"{numbers.points(min(taken))} to {numbers.points(max(taken))} points"
    return (
        "These rows also confirmed the slices, so a model that is no better looks better on them (regression to the "
        f"mean). That is taken out of the changes shown, {amount}, most from slices that were only just confirmed; the "
        "intervals allow for it too."
    )


def change_span(changes: Sequence[Change]) -> float:
    """How far the axis of changes reaches to both sides."""
    widest = max((abs(end) for change in changes for end in change.interval), default=0.0)
    return next((span for span in SPANS if widest <= span), 1.0)


def change_ticks(span: float) -> list[tuple[float, str]]:
    """(position, text) of each tick of the axis of changes, in points."""
    return [(50 * (1 + share), _whole(100 * span * share)) for share in (-1, -0.5, 0, 0.5, 1)]


def _whole(points: float) -> str:
    return f"{points:+.0f}".replace("-", "−") if points else "0"


def _title(counts: Mapping[str, int], of: int, which: str) -> str:
    if not of:
        return "No confirmed slice to compare."
    if counts["no change shown"] == of:
        where = f"the one {which} slice" if of == 1 else f"any of {of} {which} slices"
        return f"No change seen on {where}."
    judgements = [f"{counts[kind]} {word.lower()}" for kind, word in WORDS.items() if counts[kind]]
    return f"Of {numbers.counted(of, f'{which} slice')}: {', '.join(judgements)}."


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
