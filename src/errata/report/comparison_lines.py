"""Two audits side by side: the slices of the first, under the model of each, on the rows they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..core import Audit, Change, Comparison, InputError
from ..core.compared_slices import known_groups, new_groups
from ..core.comparison import Group, measure
from ..core.judgement import choose
from ..core.known_slices import count_tested, first_other_label, shared_rows
from . import marks, numbers

ALPHA = 0.05
TOTALS = ("overall",)  # groups that are no slices
NARROW = 0.3  # of the axis of changes to both sides, where all fit
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
    choice = choose(first, None)
    known = list(known_groups(first, mine, after, choice.slices))
    new = new_groups(first, second)
    outcomes = (before.errors.astype(float), after.errors.astype(float))
    overall = Group("overall", "All rows", "", np.ones(len(mine), dtype=bool), *outcomes, kind="all")
    tested = 1 + count_tested(first) + bool(new) * count_tested(second)
    changes = [measure(group, before.groups, ALPHA / tested) for group in (*known, *new, overall)]
    facts = {
        "rows": len(mine),
        "of": len(first.evaluation),
        "chosen": choice.sentence,
        "changed": {group.id: group.changed_rows(before.row_ids) for group in (*known, *new, overall)},
    }
    return Comparison(tuple(changes), "error", ALPHA, facts)


def comparison_lines(comparison: Comparison, titles: Mapping[str, str], axis: marks.Axis) -> dict[str, Any]:
    """Slices with the worst change first, then all rows."""
    changes = [change for change in comparison.changes if change.id not in TOTALS]
    totals = [change for change in comparison.changes if change.id in TOTALS]
    order = sorted(changes, key=lambda change: -(change.change or 0.0))
    span = change_span(comparison.changes)
    counts = {kind: sum(change.judgement == kind for change in changes) for kind in WORDS}
    return {
        "title": _title(counts, len(changes)),
        "rows": numbers.out_of(comparison.facts["rows"], comparison.facts["of"]),
        "change_ticks": change_ticks(span),
        "lines": [change_line(change, titles.get(change.id, change.name), axis, span) for change in [*order, *totals]],
    }


def change_span(changes: Sequence[Change]) -> float:
    """How far the axis of changes reaches to both sides."""
    narrow = all(abs(end) <= NARROW for change in changes for end in change.interval)
    return NARROW if narrow else 1.0


def change_ticks(span: float) -> list[tuple[float, str]]:
    """(position, text) of each tick of the axis of changes, in points."""
    return [(50 * (1 + share), _whole(100 * span * share)) for share in (-1, -0.5, 0, 0.5, 1)]


def _whole(points: float) -> str:
    return f"{points:+.0f}".replace("-", "−") if points else "0"


def _title(counts: Mapping[str, int], of: int) -> str:
    if not of:
        return "No confirmed slice to compare."
    if counts["no change shown"] == of:
        where = "the one confirmed slice" if of == 1 else f"any of {of} confirmed slices"
        return f"No change seen on {where}."
    judgements = [f"{counts[kind]} {word.lower()}" for kind, word in WORDS.items() if counts[kind]]
    return f"Of {numbers.counted(of, 'confirmed slice')}: {', '.join(judgements)}."


def change_line(change: Change, title: str, axis: marks.Axis, span: float) -> dict[str, Any]:
    """One group of rows before and after: words, and positions on the axes of rates and of changes."""
    low, high = change.interval
    if change.change is None:
        difference = numbers.NOT_MEASURED
    else:
        difference = _signed(change.change)
    return {
        "id": change.id,
        "href": "",  # a page sets it where it has one for the slice
        "examples": "",  # likewise ids of rows that are newly wrong
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
        "change_at": _around(change.change or 0.0, span),
        "changed_rows": f"{numbers.count(change.fixed)} fixed, {numbers.count(change.broken)} newly wrong",
        "visible": _visible(change),
        "word": WORDS[change.judgement],
        "form": FORMS[change.judgement],
    }


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
