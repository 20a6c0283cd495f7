"""The log of annotations: lines are added, also to take one back, and none is ever changed."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, Select, Table, func, insert, select

from ..core import InputError
from .entries import UNDO, Annotation, Entry, as_json, now
from .schema import annotation_log

QUESTION = ("queue", "item", "task")


@dataclass(frozen=True)
class Progress:
    """How far one person is in one queue."""

    answered: int  # items that have their answer, to the task asked about or to any
    seconds: float  # that they took, as far as it was measured
    last: Entry | None  # their newest answer: what undo takes back


def append(connection: Connection, table: Table, values: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """The line with this key, as saved, and whether it was there before. The first one stays."""
    before = connection.execute(select(table).where(table.c.key == values["key"])).one_or_none()
    if before is not None:
        return dict(before._mapping), True
    line = {"at": now(), **values}
    number = connection.execute(insert(table).values(**line).returning(table.c.number)).scalar_one()
    return {"number": number, **line}, False


def annotate(connection: Connection, annotation: Annotation, at: str | None = None) -> Entry:
    values = {**vars(annotation), "answer": as_json(annotation.answer), "undoes": None}
    line, repeated = append(connection, annotation_log, values if at is None else {**values, "at": at})
    return _entry(line, repeated)


def undo(connection: Connection, key: str, person: str) -> Entry:
    """Take a person's own answer back; the line that does so. A second time changes nothing."""
    found = connection.execute(select(annotation_log).where(annotation_log.c.key == key)).one_or_none()
    if found is None or found.undoes is not None:
        raise InputError(f"no answer has the key `{key}`, so there is nothing to undo")
    if found.person != person:
        raise InputError(f"this answer is {found.person}'s; only they can undo it, and {person} cannot")
    same = {name: getattr(found, name) for name in (*QUESTION, "person", "settles")}
    line, repeated = append(
        connection, annotation_log, {**same, "key": UNDO + key, "undoes": key, "answer": "null", "seconds": None}
    )
    return _entry(line, repeated)


def log(connection: Connection, **asked: str | None) -> tuple[Entry, ...]:
    """All lines, oldest first; `asked` narrows by queue, item, person or task."""
    return _entries(connection.execute(_narrowed(select(annotation_log), asked).order_by(annotation_log.c.number)))


def current(connection: Connection, settles: bool = False, **asked: str | None) -> tuple[Entry, ...]:
    """Of each person the last answer to each question that was not taken back, in the order they were given.

    With `settles`, the last answer that settled a question, whoever gave it.
    """
    lines = select(annotation_log).where(annotation_log.c.number.in_(_standing(settles, asked)))
    return _entries(connection.execute(lines.order_by(annotation_log.c.number)))


def progress(connection: Connection, **asked: str | None) -> Progress:
    """By counting in the database: it is asked for after every answer."""
    line = annotation_log.c
    counts = select(func.count(line.item.distinct()), func.sum(line.seconds), func.max(line.number))
    answered, seconds, last = connection.execute(counts.where(line.number.in_(_standing(False, asked)))).one()
    newest = _entries(connection.execute(select(annotation_log).where(line.number == last)))
    return Progress(answered, seconds or 0.0, newest[0] if newest else None)


def _standing(settles: bool, asked: Mapping[str, str | None]) -> Select[Any]:
    """Numbers of the lines that stand."""
    line = annotation_log.c
    taken_back = select(line.undoes).where(line.undoes.is_not(None))
    one_each = [line[name] for name in (QUESTION if settles else (*QUESTION, "person"))]
    return (
        _narrowed(select(func.max(line.number)), asked)
        .where(line.undoes.is_(None), line.settles.is_(settles), line.key.not_in(taken_back))
        .group_by(*one_each)
    )


def _narrowed(statement: Select[Any], asked: Mapping[str, str | None]) -> Select[Any]:
    return statement.where(*(annotation_log.c[name] == value for name, value in asked.items() if value is not None))


def _entries(rows: Iterable[Row[Any]]) -> tuple[Entry, ...]:
    return tuple(_entry(row._mapping, False) for row in rows)


def _entry(line: Mapping[Any, Any], repeated: bool) -> Entry:
    return Entry(**{**line, "answer": json.loads(line["answer"])}, repeated=repeated)
