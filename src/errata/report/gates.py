"""A gate of a build: what was checked, one check a slice, what failed and why."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ..core import Audit, Change, Comparison, Slice
from ..core.judgement import decision
from . import numbers, sentences
from .comparison_text import is_shown, judgement_words, name_of

LONGEST_NAME = 40  # in a sentence
Status = Literal["passed", "failed", "skipped"]
FAILED_ON = {"confirmed": "is confirmed", "beyond": "is confirmed, and neither class nor confidence explains it"}


@dataclass(frozen=True)
class Check:
    """One slice, or one group of rows, that a gate looks at.

    Attributes
    ----------
    name : str
        The id and the name of the slice.
    status : str
        "passed", "failed", or "skipped" where there are too few rows to tell.
    sentence : str
        What was measured.
    cells : tuple of str
        Its line of the table, in the order of the gate's `columns`.
    id : str
        Of the slice; "" where it is none.
    """

    name: str
    status: Status
    sentence: str
    cells: tuple[str, ...] = ()
    id: str = ""

    @property
    def short_name(self) -> str:
        """The name, or the id alone where the name is long."""
        return self.name if len(self.name) <= LONGEST_NAME or not self.id else self.id


@dataclass(frozen=True)
class Gate:
    """What a command checked.

    Attributes
    ----------
    command : str
        The command, such as "audit".
    title : str
        What came out, in one sentence.
    columns : tuple of str
        Heads of the table, without that of the name.
    checks : tuple of Check
        At least one: readers of JUnit XML refuse a report of nothing.
    rule : str
        What fails it, such as "a slice is confirmed"; "" where nothing does.
    notes : tuple of str
        What is said below the table.
    """

    command: str
    title: str
    columns: tuple[str, ...]
    checks: tuple[Check, ...]
    rule: str = ""
    notes: tuple[str, ...] = ()

    @property
    def failed(self) -> tuple[Check, ...]:
        """The checks that failed."""
        return tuple(check for check in self.checks if check.status == "failed")

    @property
    def sentence(self) -> str:
        """Whether the gate passed, in one sentence; "" where nothing fails it."""
        if not self.rule:
            return ""
        if not self.failed:
            return f"Gate passes: it fails where {self.rule}."
        names = ", ".join(check.short_name for check in self.failed)
        return f"Gate fails, since {self.rule}: {names}."


def audit_gate(audit: Audit, fail_on: str | None) -> Gate:
    """The gate of an audit.

    Parameters
    ----------
    audit : Audit
        Its slices are the checks.
    fail_on : str, optional
        "confirmed", or "beyond" for slices that neither class nor confidence explains. Default: nothing fails.
    """
    checks = [_slice_check(audit, slice_, fail_on) for slice_ in audit.slices]
    confirmed = [slice_ for slice_ in audit.confirmed if slice_.side == "hard"]
    rule = "" if fail_on is None else f"a slice {FAILED_ON[fail_on]}"
    if not checks:
        checks = [Check("slices", "passed", "No slice was found on the search rows.", ("", "", "", "", "none found"))]
    return Gate(
        command="audit",
        title=f"{numbers.counted(len(confirmed), 'confirmed slice')} of {len(audit.slices)} found.",
        columns=("held-out rows", "wrong", "the rest", "gap in points", "verdict"),
        checks=tuple(checks),
        rule=rule,
        notes=tuple(audit.silence.splitlines()),
    )


def _slice_check(audit: Audit, slice_: Slice, fail_on: str | None) -> Check:
    outcome = dict(audit.overall)[slice_.task].outcome
    sentence = sentences.verdict(slice_, outcome)
    status: Status = "passed"
    verdict: str = slice_.verdict
    if slice_.verdict == "too few to tell":
        status = "skipped"
    elif slice_.verdict == "confirmed":
        sentence = f"{sentence} {sentences.beyond(slice_)}"
        if slice_.side == "easy":
            verdict = "confirmed, better than the rest"
        elif slice_.explained_by:
            verdict = f"confirmed; explained by {' and '.join(slice_.explained_by)}"
        if slice_.side == "hard" and (fail_on == "confirmed" or (fail_on == "beyond" and not slice_.explained_by)):
            status = "failed"
    name = _named(slice_.id, slice_.name, slice_.task)
    return Check(name, status, sentence, (*_held_out_cells(slice_), verdict), slice_.id)


def _held_out_cells(slice_: Slice) -> tuple[str, ...]:
    measured = slice_.confirm
    if measured is None:
        return ("", "", "", "")
    return (
        numbers.count(measured.n),
        numbers.rate_of(measured.errors, measured.n),
        sentences.rest_rate(measured),
        f"{numbers.points(measured.gap)} ({numbers.interval(*measured.interval)})",
    )


def comparison_gate(comparison: Comparison, command: str, fail_on: str | None) -> Gate:
    """The gate of a comparison of two models.

    Parameters
    ----------
    comparison : Comparison
        Its groups of rows are the checks.
    command : str
        The command that made it.
    fail_on : str, optional
        "worse". Default: nothing fails.
    """
    changes = [change for change in comparison.changes if is_shown(change)]
    checks = [_change_check(change, comparison.outcome, fail_on) for change in changes]
    worse = sum(change.judgement == "worse" for change in changes)
    better = sum(change.judgement == "better" for change in changes)
    groups = numbers.counted(len(checks), "group")
    rule = "" if fail_on is None else "the second model is worse"
    return Gate(
        command=command,
        title=_changes_title(groups, worse, better),
        columns=("rows", "wrong before", "after", "change in points", "judgement"),
        checks=tuple(checks),
        rule=rule,
        notes=tuple(comparison.facts.get("notes", ())),
    )


def _changes_title(groups: str, worse: int, better: int) -> str:
    if not worse and not better:
        return f"No change seen in {groups} of rows."
    return f"Of {groups} of rows {worse} got worse and {better} better."


def _change_check(change: Change, outcome: str, fail_on: str | None) -> Check:
    name = name_of(change)
    before = numbers.rate_of(change.before_errors, change.n)
    after = numbers.rate_of(change.after_errors, change.n)
    interval = numbers.interval(*change.interval)
    if change.fair is None:
        return Check(name, "skipped", "It has no rows here.", ("0", before, after, "", judgement_words(change)))
    difference = f"{numbers.points(change.fair)} ({interval})"
    judgement = judgement_words(change)
    if change.kind == "found":
        judgement += ", though nobody named it"
    bad = "wrong" if outcome == sentences.ERROR else f"with a {outcome}"
    sentence = (
        f"{before} of {numbers.counted(change.n, 'row')} {bad} before, {after} after: a change of "
        f"{numbers.points(change.fair)} points ({interval}); {judgement}."
    )
    if change.judgement == "no change shown" and change.visible is not None:
        sentence += f" A rise of {numbers.points(change.visible)} points would have been seen (80% power)."
    status: Status = "failed" if fail_on and change.judgement == "worse" else "passed"
    id_of_slice = change.id if change.kind in ("slice", "found") else ""
    cells = (numbers.count(change.n), before, after, difference, judgement)
    return Check(name, status, sentence, cells, id_of_slice)


def shares_gate(slices: Sequence[Slice], shares: Mapping[str, float], n: int, fail_on: float | None) -> Gate:
    """The gate of new rows: how many of them lie in each slice.

    Parameters
    ----------
    slices : sequence of Slice
        Of the audit. Only those fail that are confirmed, or that people accepted.
    shares : mapping
        Id of a slice -> share of the rows; a slice that could not be placed is not in it.
    n : int
        Rows.
    fail_on : float, optional
        The largest share that passes.
    """
    checks = []
    for slice_ in slices:
        name = _named(slice_.id, slice_.name, slice_.task)
        share = shares.get(slice_.id)
        if share is None:
            checks.append(Check(name, "skipped", "Not placed among these rows.", ("not placed", slice_.verdict)))
            continue
        counts = slice_.verdict == "confirmed" or decision(slice_) == "accepted"
        over = fail_on is not None and counts and share > fail_on
        status: Status = "failed" if over else "passed"
        sentence = f"It holds {share:.2%} of {numbers.counted(n, 'row')} ({slice_.verdict})."
        checks.append(Check(name, status, sentence, (f"{share:.2%}", slice_.verdict), slice_.id))
    if not checks:
        checks = [Check("slices", "passed", "The audit has no slices.", ("", "none found"))]
    rule = "" if fail_on is None else f"a confirmed or accepted slice holds more than {fail_on:.2%} of the rows"
    return Gate(
        command="apply",
        title=f"{numbers.counted(n, 'row')}, {numbers.counted(len(slices), 'slice')}.",
        columns=("share of rows", "verdict"),
        checks=tuple(checks),
        rule=rule,
    )


def _named(id: str, name: str, task: str) -> str:
    text = f"{task}, {name}" if task else name
    return f"{id} {text}".strip()
