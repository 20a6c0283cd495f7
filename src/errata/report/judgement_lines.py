"""What people made of a slice, in words: their decision, what they merged and moved, what they answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

from ..core import Audit, Evaluation, HeldOutMeasure, Slice
from ..core.id_order import positions_of
from ..core.judged import Said
from ..core.judgement import decision, kept
from ..core.words import FEWEST_FOR_PERCENT
from . import numbers

DECISIONS = {"accepted": "Accepted", "rejected": "Rejected", "merged": "Merged", "undecided": ""}
TASKS = {"class": "Name the class", "member": "In or out", "questionnaire": "Questionnaire"}


def standings_of(audit: Audit) -> dict[str, dict[str, Any]]:
    """Slice id -> what was decided of it, of an audit as people left it; empty of one as it was found."""
    standings = {}
    for slice_ in audit.slices:
        if slice_.judged is not None:
            decided = slice_.judged.decided
            standings[slice_.id] = {**vars(decided), "title": slice_.name, "version": 0, "slice": slice_.id}
    return standings


def decision_words(standing: Mapping[str, Any] | None) -> str:
    """Accepted by Ana, 2026-11-16. “A note.”; "" where nobody decided."""
    if standing is None:
        return ""
    words = DECISIONS[standing["decision"]]
    if not words:
        return f"“{standing['note']}”" if standing["note"] else ""
    if standing["into"]:
        words += f" into {standing['into']}"
    if standing["person"]:
        words += f" by {standing['person']}"
    if standing["at"]:
        words += f", {standing['at'][:10]}"
    note = f" “{standing['note']}”" if standing["note"] else ""
    return f"{words}.{note}"


def change_words(slice_: Slice) -> list[str]:
    """How its rows differ from those that were found, and what that does to its numbers."""
    judged = slice_.judged
    if judged is None or not judged.changed:
        return []
    lines = []
    if judged.merged:
        names = ", ".join(f"{other.id} “{other.name}”" for other in judged.merged)
        lines.append(f"Holds {names}, merged into it by people.")
    if judged.edited:
        lines.append(
            f"Edited by people: {numbers.counted(judged.put_in, 'row')} put in, {judged.put_out:,} put out. "
            "Who moves rows may have seen their outcomes, so these numbers are no confirmation."
        )
    return lines


def changed_sentence(slice_: Slice, outcome: str) -> str:
    """The numbers of the rows that it has now, and beside them those of the rows that were tested."""
    judged = slice_.judged
    assert judged is not None
    found = judged.found.confirm
    now = "Its rows as people left them cannot be measured: too few others are left."
    if slice_.confirm is not None:
        now = f"As people left it: {_wrong(slice_.confirm, outcome)}."
    if found is None:
        return now
    return f"{now} As found, and {slice_.verdict}: {_wrong(found, outcome)}."


def _wrong(measured: HeldOutMeasure, outcome: str) -> str:
    what = "wrong" if outcome == "error" else f"with a {outcome}"
    rate = numbers.rate_of(measured.errors, measured.n)
    of = "" if rate == numbers.out_of(measured.errors, measured.n) else f" ({rate})"
    rest = numbers.rate(measured.rest_rate)
    return f"{numbers.out_of(measured.errors, measured.n)} held-out rows {what}{of}, against {rest} of the rest"


def counts_of_decisions(audit: Audit) -> str:
    """Of 5 confirmed slices people accepted 2, rejected 1 and merged 1 into others; "" where nobody decided."""
    slices = [slice_ for slice_ in audit.slices if slice_.verdict == "confirmed"]
    counts = Counter(map(decision, slices))
    words = {"accepted": "accepted {}", "rejected": "rejected {}", "merged": "merged {} into others"}
    parts = [text.format(counts[name]) for name, text in words.items() if counts[name]]
    if not parts:
        return ""
    *first, last = parts
    told = f"{', '.join(first)} and {last}" if first else last
    undecided = f"; {counts['undecided']} undecided" if counts["undecided"] else ""
    return f"Of {numbers.counted(len(slices), 'confirmed slice')} people {told}{undecided}."


def counted_slices(audit: Audit) -> tuple[Slice, ...]:
    """Confirmed slices that count: merged ones once, rejected ones not at all."""
    return tuple(slice_ for slice_ in kept(audit) if slice_.verdict == "confirmed")


def said_lines(slice_: Slice, rows: Evaluation) -> list[dict[str, Any]]:
    """What people answered about the rows of a slice: one line a task, with their agreement."""
    if slice_.judged is None:
        return []
    return [_said_line(said, slice_, rows) for said in slice_.judged.said if said.task in TASKS]


def _said_line(said: Said, slice_: Slice, rows: Evaluation) -> dict[str, Any]:
    what = "row" if said.task != "questionnaire" else "question"
    lead = f"{_people(said.people)} answered {numbers.counted(said.rows, what)}."
    return {
        "task": said.task,
        "title": TASKS[said.task],
        "lead": lead,
        "found": {"class": _classes, "member": _members}.get(said.task, _nothing)(said, rows),
        "agreement": _agreement(said),
        "words": said.words,
    }


def _people(n: int) -> str:
    return "1 person" if n == 1 else f"{numbers.count(n)} people"


def _classes(said: Said, rows: Evaluation) -> str:
    """How often people name another class than the label: a slice may be wrong labels."""
    if rows.labels is None or rows.labels.ndim != 1 or not said.answers:
        return ""
    positions = positions_of(rows.row_ids, said.answers)
    known = {id: answer for id, answer in said.answers.items() if id in positions}
    labels = {id: int(rows.labels[positions[id]]) for id in known}
    other = [id for id, answer in known.items() if answer not in (labels[id], rows.class_name(labels[id]))]
    none = sum(answer is None for answer in known.values())
    words = f"They name another class than the label in {numbers.out_of(len(other), len(known))} rows"
    return f"{words}, {none} of them none of the classes." if none else f"{words}."


def _members(said: Said, rows: Evaluation) -> str:
    inside = sum(answer == "in" for answer in said.answers.values())
    return f"They would keep {numbers.out_of(inside, len(said.answers))} rows in the slice."


def _nothing(said: Said, rows: Evaluation) -> str:
    return ""


def _agreement(said: Said) -> str:
    if not said.both or said.task == "questionnaire":
        return "" if said.task == "questionnaire" else "Agreement is not measured: no row has two answers."
    share = numbers.rate_of(said.same, said.both)
    kappa = "" if said.kappa is None else f" Cohen’s kappa {said.kappa:.2f}."
    return (
        f"{numbers.out_of(said.same, said.both)} answers are the same: {share} (95% interval "
        f"{numbers.interval(*said.interval)}).{kappa}"
    )


def overlap_sentence(first: tuple[str, int], second: tuple[str, int], both: int) -> str:
    """What two slices share, of each and of either."""
    if both == 0:
        rows = " and ".join(f"{numbers.counted(n, 'row')} of “{name}”" for name, n in (first, second))
        return f"No row is in both: {rows}. Jaccard 0.00."
    if both == 1:
        lead = "1 row is in both"
    else:
        lead = f"{numbers.count(both)} rows are in both"
    shares = ", ".join(f"{_share(both, n)} of “{name}”" for name, n in (first, second))
    either = first[1] + second[1] - both
    return f"{lead}: {shares}. Jaccard {both / either:.2f}: {numbers.out_of(both, either)} rows of either."


def _share(k: int, n: int) -> str:
    """98 of 214 (45.8%)."""
    if n >= FEWEST_FOR_PERCENT:
        return f"{numbers.out_of(k, n)} ({numbers.rate(k / n)})"
    return numbers.out_of(k, n)
