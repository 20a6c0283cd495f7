"""The log of all that people did: who, when, what. It is read from the tables of records, of which no line changes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Table, select

from .schema import annotation_log, decisions, drawn, edits, hypotheses

Line = Mapping[Any, Any]


@dataclass(frozen=True)
class JournalLine:
    """One thing that somebody did.

    Attributes
    ----------
    at, person : str
        When, in UTC, and who.
    action : str
        "answered", "settled", "undid", "decided", "edited", "drew" or "tested".
    about : str
        A slice, or a slice and a row.
    detail : str
        What was answered, decided, written.
    key : str
        Of the line: an export has it too.
    """

    at: str
    person: str
    action: str
    about: str
    detail: str
    key: str


def read(connection: Connection, person: str | None = None) -> tuple[JournalLine, ...]:
    """Every line of every table, oldest first; of one person, where they are named."""
    lines = [line for table, describe in TABLES.items() for line in _lines(connection, table, describe, person)]
    return tuple(sorted(lines, key=lambda line: line.at))


def _lines(
    connection: Connection, table: Table, describe: Callable[[Line], tuple[str, str, str]], person: str | None
) -> list[JournalLine]:
    statement = select(table).order_by(table.c.number)
    if person is not None:
        statement = statement.where(table.c.person == person)
    rows = [dict(row._mapping) for row in connection.execute(statement)]
    return [JournalLine(row["at"], row["person"], *describe(row), row["key"]) for row in rows]


def _answer(row: Line) -> tuple[str, str, str]:
    about = f"{row['queue']}, {row['item']}"
    if row["undoes"] is not None:
        return "undid", about, f"the answer {row['undoes']}"
    action = "settled" if row["settles"] else "answered"
    return action, about, f"{row['task']}: {_plain(row['answer'])}"


def _plain(text: str) -> str:
    value = json.loads(text)
    return value if isinstance(value, str) else text


def _decision(row: Line) -> tuple[str, str, str]:
    words = [row["decision"]]
    if row["into"] is not None:
        words.append(f"into {row['into']}")
    if row["name"] is not None:
        words.append(f"as “{row['name']}”")
    if row["note"]:
        words.append(f"({row['note']})")
    return "decided", row["slice"], " ".join(words)


def _edit(row: Line) -> tuple[str, str, str]:
    places = {True: "put in", False: "put out", None: "as the method had it"}
    return "edited", f"{row['slice']}, {row['item']}", places[row["inside"]]


def _drawing(row: Line) -> tuple[str, str, str]:
    return "drew", row["slice"], f"“{row['name']}”, {len(json.loads(row['items'])):,} rows"


def _hypothesis(row: Line) -> tuple[str, str, str]:
    counts = f"{row['errors']:,} of {row['n']:,} wrong, {row['rest_errors']:,} of {row['rest_n']:,} of the rest"
    return "tested", row["slice"] or "all rows", f"“{row['text']}”: {counts}"


TABLES: dict[Table, Callable[[Line], tuple[str, str, str]]] = {
    annotation_log: _answer,
    decisions: _decision,
    edits: _edit,
    drawn: _drawing,
    hypotheses: _hypothesis,
}
