"""The log of annotations: lines are added, also to undo one, and none is ever changed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, RowMapping, Select, Table, func, insert, select

from ..core import InputError
from .entries import UNDO, Annotation, Entry, as_json, now
from .schema import annotation_log

QUESTION = ("queue", "item", "task")


@dataclass(frozen=True)
class QueueProgress:
    """How far one person is in one queue.

    Attributes
    ----------
    answered : int
        Items that have their answer, to one task or to any.
    seconds : float
        That they took, as far as it was measured.
    last : Entry, optional
        Their newest answer: what undo takes back.
    """

    answered: int
    seconds: float
    last: Entry | None


def saved_as(connection: Connection, table: Table, key: str, person: str) -> RowMapping | None:
    """The line of a log with this key; None where there is none, an InputError where it is another person's."""
    line = connection.execute(select(table).where(table.c.key == key)).one_or_none()
    if line is None:
        return None
    if line.person != person:
        raise InputError(f"the key {key!r} is of something that {line.person} saved; nothing was saved; use a new one")
    return line._mapping


def append(connection: Connection, table: Table, values: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """Add a line to a log; the line with its key, as saved, and whether it existed before. The first one stays."""
    before = saved_as(connection, table, values["key"], values["person"])
    if before is not None:
        return dict(before), True
    line = {"at": now(), **values}
    number = connection.execute(insert(table).values(**line).returning(table.c.number)).scalar_one()
    return {"number": number, **line}, False


def annotate(connection: Connection, annotation: Annotation, at: str | None = None) -> Entry:
    """Save an answer; `at` is when it was given, now where it is None."""
    values = {**vars(annotation), "answer": as_json(annotation.answer), "undoes": None}
    if at is not None:
        values["at"] = at
    line, repeated = append(connection, annotation_log, values)
    return _entry(line, repeated)


def undo(connection: Connection, key: str, person: str) -> Entry:
    """Undo a person's own answer; the line that does so. A second time changes nothing."""
    answer = connection.execute(select(annotation_log).where(annotation_log.c.key == key)).one_or_none()
    if answer is None or answer.undoes is not None:
        raise InputError(f"no answer has the key `{key}`, so there is nothing to undo")
    if answer.person != person:
        raise InputError(f"this answer is {answer.person}'s; only they can undo it, and {person} cannot")
    same = {name: getattr(answer, name) for name in (*QUESTION, "person", "settles")}
    line, repeated = append(
        connection, annotation_log, {**same, "key": UNDO + key, "undoes": key, "answer": "null", "seconds": None}
    )
    return _entry(line, repeated)


def log(connection: Connection, **question: str | None) -> tuple[Entry, ...]:
    """All lines, oldest first; `question` filters by queue, item, person or task."""
    return _entries(connection.execute(_filtered(select(annotation_log), question).order_by(annotation_log.c.number)))


def current(connection: Connection, settles: bool = False, **question: str | None) -> tuple[Entry, ...]:
    """Of each person the last answer to each question that was not undone, in the order they were given.

    With `settles`, the last answer that settled a question, whoever gave it.
    """
    lines = select(annotation_log).where(annotation_log.c.number.in_(_current(settles, question)))
    return _entries(connection.execute(lines.order_by(annotation_log.c.number)))


def progress(connection: Connection, **question: str | None) -> QueueProgress:
    """How far a person is, counted in the database: pages read it after every answer."""
    line = annotation_log.c
    counts = select(func.count(line.item.distinct()), func.sum(line.seconds), func.max(line.number))
    answered, seconds, last = connection.execute(counts.where(line.number.in_(_current(False, question)))).one()
    newest = _entries(connection.execute(select(annotation_log).where(line.number == last)))
    entry = newest[0] if newest else None
    return QueueProgress(answered, seconds or 0.0, entry)


def _current(settles: bool, question: Mapping[str, str | None]) -> Select[Any]:
    """Numbers of the lines that are not undone or replaced."""
    line = annotation_log.c
    undone = select(line.undoes).where(line.undoes.is_not(None))
    names = QUESTION if settles else (*QUESTION, "person")
    return (
        _filtered(select(func.max(line.number)), question)
        .where(line.undoes.is_(None), line.settles.is_(settles), line.key.not_in(undone))
        .group_by(*(line[name] for name in names))
    )


def _filtered(statement: Select[Any], question: Mapping[str, str | None]) -> Select[Any]:
    return statement.where(*(annotation_log.c[name] == value for name, value in question.items() if value is not None))


def _entries(rows: Iterable[Row[Any]]) -> tuple[Entry, ...]:
    return tuple(_entry(row._mapping, False) for row in rows)


def _entry(line: Mapping[Any, Any], repeated: bool) -> Entry:
    return Entry(**{**line, "answer": json.loads(line["answer"])}, repeated=repeated)
