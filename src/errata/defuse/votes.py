"""People's answers in `errata serve`, as votes on samples. Needs no torch."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..core import InputError, require
from .labels import NONE, Vote
from .stages import RunFolder
from .view import samples_fingerprint


def open_records(folder: str | Path, database: str | None = None) -> Any:
    """The records of people's answers to a run; an error before it has samples, which answers are about."""
    require("sqlalchemy", "app")
    from ..people.records import Records

    run = RunFolder(folder)
    if not run.has("samples") and not run.has("stage"):
        raise InputError(f"`{folder}` has nothing to label yet; let `errata defuse` go on to its samples")
    names = {}
    if run.has("samples") and run.has("regions"):
        names = run.load("samples").facts["names"]
    return Records(database or run.folder, fingerprint=samples_fingerprint(run), slices=dict(names))


def stored_votes(run: RunFolder, database: str | None = None) -> list[Vote]:
    """The votes in a run's records; none where nobody has opened it in the app."""
    if database is None and not (run.folder / "records.sqlite").is_file():
        return []
    with open_records(run.folder, database) as records:
        return read_votes(records, run)


def read_votes(records: Any, run: RunFolder) -> list[Vote]:
    """Votes on every sample, from answers to single samples and to whole regions.

    A person's answer to a sample counts before theirs to its region; a sample that somebody settled has that vote only.
    """
    samples = run.load("samples")
    class_names = list(run.about["class_names"])
    predictions = dict(zip(samples.facts["names"], samples.arrays["predictions"].tolist(), strict=True))
    settled = {(entry.queue, entry.item) for entry in records.settled(task="class")}
    whole = {(entry.queue, entry.item) for entry in records.settled(task="region")}
    votes: list[Vote] = []
    for entry in _current_answers(records, "region"):
        _check_answer(entry, predictions, class_names)
        labels = predictions[entry.queue]
        if entry.answer["failure"]:
            labels = [_class_of(entry.answer["label"], class_names)] * len(labels)
        final = (entry.queue, entry.item) in whole
        for i, label in enumerate(labels):
            if (entry.queue, str(i)) not in settled:
                votes.append(Vote(entry.queue, i, entry.person, label, final))
    for entry in _current_answers(records, "class"):
        _check_answer(entry, predictions, class_names)
        final = (entry.queue, entry.item) in settled
        votes.append(Vote(entry.queue, int(entry.item), entry.person, _class_of(entry.answer, class_names), final))
    return votes


def _current_answers(records: Any, task: str) -> list[Any]:
    """Everybody's answers to each item; where somebody settled it, that answer only."""
    settled = {(entry.queue, entry.item): entry for entry in records.settled(task=task)}
    answers = [entry for entry in records.answers(task=task) if (entry.queue, entry.item) not in settled]
    return [*answers, *settled.values()]


def _check_answer(entry: Any, predictions: Mapping[str, list[int]], class_names: list[str]) -> None:
    """The server takes no other answers, but a file that was imported may have any."""
    count = len(predictions.get(entry.queue, ()))
    if entry.task == "region":
        answer = entry.answer["label"]
        exists = count > 0
    else:
        answer = entry.answer
        exists = entry.item.isdecimal() and int(entry.item) < count
    if not exists:
        raise InputError(f"`{entry.person}` answers {entry.item!r} of `{entry.queue}`, which this run does not show")
    if answer is not None and answer not in class_names and answer not in range(len(class_names)):
        raise InputError(f"`{entry.person}` gives `{entry.queue}` the class {answer!r}, which does not exist")


def _class_of(answer: int | str | None, class_names: list[str]) -> int:
    if answer is None:
        return NONE
    if isinstance(answer, str):
        return class_names.index(answer)
    return answer
