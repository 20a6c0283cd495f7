"""What people decided and answered, as all other rooms read it: one judgement from the records of an audit."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import suppress
from typing import get_args

from ..core import InputError
from ..core.judged import Decided, Said
from ..core.judgement import DrawnRows, Judgement
from ..core.questionnaire import QuestionnaireAnswer
from .agreement import majorities, measure_agreement
from .entries import Entry, Task
from .records import Records

DESCRIPTIONS = ("description3", "description15")  # answers of a questionnaire in people's own words


def read_judgement(records: Records) -> Judgement:
    """The last decision about every slice, rows that people moved, slices that they drew, what they answered."""
    decisions = {}
    for id, it in records.standings().items():
        if it.version:
            decisions[id] = Decided(it.decision, it.name, it.note, it.into, it.person or "", it.at or "")
    drawn = tuple(DrawnRows(one.slice, one.name, one.items, one.person, one.at) for one in records.drawn())
    return Judgement(decisions, records.moved(), drawn, _said(records.answers(), records.settled()))


def _said(answers: Iterable[Entry], settled: Iterable[Entry]) -> dict[str, tuple[Said, ...]]:
    """Slice -> what was answered about it, one a task."""
    by_queue: dict[tuple[str, Task], tuple[list[Entry], list[Entry]]] = {}
    for place, entries in enumerate((answers, settled)):
        for entry in entries:
            by_queue.setdefault((entry.queue, entry.task), ([], []))[place].append(entry)
    said: dict[str, tuple[Said, ...]] = {}
    for task in get_args(Task):
        for (queue, asked), (own, ends) in by_queue.items():
            if asked == task and own:
                said[queue] = (*said.get(queue, ()), _of_task(task, own, ends))
    return said


def _of_task(task: Task, answers: list[Entry], settled: list[Entry]) -> Said:
    """What was answered to one task. Words of a questionnaire are shown, not compared: no two are equal."""
    compared = answers
    most = {}
    words = []
    filled: dict[int, QuestionnaireAnswer] = {}
    if task in ("class", "member"):
        most = {one.item: one.answer for one in majorities(answers, settled, None) if one.decided}
    elif task == "questionnaire":
        compared = []
        words = [entry.answer.get(name) for entry in answers for name in DESCRIPTIONS]
        filled = dict(_filled(answers))
    agreement = measure_agreement(compared)
    return Said(
        task=task,
        people=len({entry.person for entry in answers}),
        rows=len({entry.item for entry in answers}),
        answers=most,
        both=agreement.items,
        same=agreement.same,
        interval=agreement.interval,
        kappa=agreement.kappa,
        words=tuple(dict.fromkeys(word for word in words if word)),
        filled=tuple(filled.values()),
        filled_as=tuple(filled),
    )


def _filled(answers: Iterable[Entry]) -> Iterator[tuple[int, QuestionnaireAnswer]]:
    """Answers to the questionnaire as it is asked today, by their numbers; what another program wrote may be none."""
    for entry in answers:
        named = {"about": entry.item, "person": entry.person}
        with suppress(InputError):
            yield entry.number, QuestionnaireAnswer.from_json({**entry.answer, **named})
