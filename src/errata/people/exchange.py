"""Records as files: export of everything as JSON or parquet, import of what people answered in a saved page.

`errata.annotations/1`, which a saved page downloads:
{"schema": "errata.annotations/1", "fingerprint": the audit's, "annotations": [{"key": unique text, "queue", "item",
"person", "task", "answer": as in `Annotation`, "at": ISO time with its zone}]}; "seconds" and "settles" may be added.
`errata.records/1`, which the export writes, has a list a table, lines in their order.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq
from sqlalchemy import Boolean, Column, Connection, Double, Integer, Table, select

from .. import store
from ..core import ErrataError, InputError
from ..core.errors import unknown
from . import answers, curation
from .entries import Annotation, Entry, as_json, iso
from .schema import annotation_log, decisions, drawn, edits, hypotheses, slices

RECORDS = "errata.records/1"
ANNOTATIONS = "errata.annotations/1"
NEEDED = ("key", "queue", "item", "person", "task", "answer", "at")
OPTIONAL = ("seconds", "settles")
LOGS = (annotation_log, slices, decisions, edits, drawn, hypotheses)
INSIDE_JSON = ("answer", "items")  # columns that hold JSON

Lines = list[dict[str, Any]]
Check = Callable[[Annotation], Annotation]


@dataclass(frozen=True)
class ImportCounts:
    """What an import did with the answers of a file.

    Attributes
    ----------
    new : int
        Answers that were added.
    older : int
        Of these: the person has answered since, so that answer stays the current one.
    repeated : int
        Keys that were saved before, with the same answer.
    differing : int
        Keys that were saved before with something else, which stays.
    """

    new: int
    older: int
    repeated: int
    differing: int


def tables(connection: Connection) -> dict[str, Lines]:
    """Every log, and `answers`: those of the annotations that are current."""
    logs = {table.name: _lines(connection, table) for table in LOGS}
    current = [*answers.current(connection), *answers.current(connection, settles=True)]
    numbers = {entry.number for entry in current}
    return {**logs, "answers": [line for line in logs["annotations"] if line["number"] in numbers]}


def _lines(connection: Connection, table: Table) -> Lines:
    order = table.c.place if "place" in table.c else table.c.number
    lines = []
    for row in connection.execute(select(table).order_by(order)):
        line = dict(row._mapping)
        for name in INSIDE_JSON:
            if name in line:
                line[name] = json.loads(line[name])
        lines.append(line)
    return lines


def export_json(connection: Connection, fingerprint: str, target: str | Path | IO[str]) -> None:
    """To an open file, or to a path that does not exist yet."""
    accepted = [asdict(slice_) for slice_ in curation.accepted(connection)]
    facts = {"schema": RECORDS, "fingerprint": fingerprint, "accepted": accepted, **tables(connection)}
    text = json.dumps(facts, indent=1, allow_nan=False) + "\n"
    if not isinstance(target, str | Path):
        target.write(text)
        return
    with store.atomic_file(store.check_output(target)) as partial:
        partial.write_text(text, encoding="utf-8")


def export_parquet(connection: Connection, fingerprint: str, folder: str | Path) -> None:
    """One file a table, in a folder that does not exist yet. Answers are JSON texts: parquet has one type a column."""
    lines = tables(connection)
    kinds = {table.name: table for table in LOGS} | {"answers": annotation_log}
    with store.atomic_folder(store.check_output(folder)) as partial:
        for name, table in kinds.items():
            pq.write_table(_arrow(lines[name], table, fingerprint), partial / f"{name}.parquet")


def _arrow(lines: Lines, table: Table, fingerprint: str) -> pa.Table:
    about = {b"schema": RECORDS.encode(), b"fingerprint": fingerprint.encode()}
    schema = pa.schema([(column.name, _arrow_type(column)) for column in table.c], metadata=about)
    if "answer" in table.c:
        lines = [{**line, "answer": as_json(line["answer"])} for line in lines]
    return pa.Table.from_pylist(lines, schema=schema)


def _arrow_type(column: Column[Any]) -> pa.DataType:
    if column.name == "items":
        return pa.list_(pa.string())
    kinds = {Boolean: pa.bool_(), Double: pa.float64(), Integer: pa.int64()}
    return next((arrow for kind, arrow in kinds.items() if isinstance(column.type, kind)), pa.string())


def read_annotations(
    source: str | Path | IO[str] | Mapping[str, Any], fingerprint: str, check: Check | None = None
) -> tuple[tuple[Annotation, str], ...]:
    """Answers and when they were given, from a download of the same audit; all of them, or an error.

    Parameters
    ----------
    source : path, file or mapping
        What a saved page downloaded.
    fingerprint : str
        The audit's.
    check : callable, optional
        An answer -> the same as it is saved, or an InputError.
    """
    facts = source if isinstance(source, Mapping) else _parsed(source)
    schema = facts.get("schema")
    if schema != ANNOTATIONS:
        raise InputError(f"this file has the schema {schema!r}, not {ANNOTATIONS!r}; give what a saved page downloaded")
    if facts.get("fingerprint") != fingerprint:
        raise InputError(
            f"these answers are about another audit ({facts.get('fingerprint')!r}; this one is {fingerprint!r}); "
            "import them into that one"
        )
    lines = facts.get("annotations")
    if not isinstance(lines, list):
        raise InputError(f"`annotations` must be a list; got {type(lines).__name__}")
    return tuple(_annotation(number, line, check) for number, line in enumerate(lines, start=1))


def _parsed(source: str | Path | IO[str]) -> Mapping[str, Any]:
    try:
        if isinstance(source, str | Path):
            if os.path.exists(source) and not os.path.isfile(source):  # a device may have no end
                raise InputError(f"`{source}` is no file; give what a saved page downloaded")
            text = Path(source).read_text(encoding="utf-8")
        else:
            text = source.read()
        facts = json.loads(text)
    except OSError as error:
        raise InputError(f"`{source}` cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        raise InputError(f"the answers cannot be read: the file is not JSON ({error})") from error
    if not isinstance(facts, dict):
        raise InputError(f"the answers must be a JSON object; got {type(facts).__name__}")
    return facts


def _annotation(number: int, line: Any, check: Check | None) -> tuple[Annotation, str]:
    try:
        if not isinstance(line, dict):
            raise InputError(f"must be a JSON object; got {type(line).__name__}")
        for name in line:
            if name not in NEEDED + OPTIONAL:
                raise unknown("part", name, NEEDED + OPTIONAL)
        for name in NEEDED:
            if name not in line:
                raise InputError(f"`{name}` is missing")
        annotation = Annotation(**{name: value for name, value in line.items() if name != "at"})
        if check is not None:
            annotation = check(annotation)
        return annotation, _time(line["at"])
    except ErrataError as error:
        raise InputError(f"answer {number} of the file: {error}; nothing was imported") from error


def _time(text: Any) -> str:
    try:
        time = datetime.fromisoformat(text)
    except (TypeError, ValueError) as error:
        raise InputError(f"`at` must be an ISO time; got {text!r}") from error
    if time.tzinfo is None:
        raise InputError(f"`at` must have a time zone, as in 2030-01-31T14:02:31Z; got {text!r}")
    return iso(time)


def add_annotations(connection: Connection, annotations: Iterable[tuple[Annotation, str]]) -> ImportCounts:
    """Add answers by the time they were given: one older than the person's current answer is undone at once."""
    new = older = repeated = differing = 0
    current = [entry for settles in (False, True) for entry in answers.current(connection, settles)]
    last = {_question(entry): entry.at for entry in current}
    for annotation, at in sorted(annotations, key=lambda pair: pair[1]):
        entry = answers.annotate(connection, annotation, at)
        if entry.repeated and all(getattr(entry, name) == value for name, value in vars(annotation).items()):
            repeated += 1
        elif entry.repeated:
            differing += 1
        else:
            new += 1
            if last.setdefault(_question(annotation), at) > at:
                answers.undo(connection, annotation.key, annotation.person)
                older += 1
    return ImportCounts(new, older, repeated, differing)


def _question(answer: Annotation | Entry) -> tuple[str, ...]:
    """Answers with the same one replace each other: of one person, or, of those that settle, of anybody."""
    if answer.settles:
        return (answer.queue, answer.item, answer.task)
    return (answer.queue, answer.item, answer.task, answer.person)
