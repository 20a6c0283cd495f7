"""The database of people's judgement on one audit. What a call returned is on disk; readers never wait for writers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Self

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from ..core import InputError
from . import agreement, answers, curation, exchange, schema
from .agreement import Agreement, Dispute, Majority
from .answers import Progress
from .curation import Drawn, TestedHypothesis
from .database import PATIENCE, Database, connect, reason
from .entries import Accepted, Annotation, Decision, Drawing, Edit, Entry, Hypothesis, Standing, Task, check_choice
from .exchange import Check, Imported
from .writer import Writer


class Records:
    """People's judgement: annotations, decisions on slices, edits, drawn slices and hypotheses.

    where: the audit's folder (its records.sqlite), a file of SQLite, or a URL such as postgresql://NAME@HOST/DATABASE.
    fingerprint: the audit's; records of another one are refused. slices: ids and machine-made names of the audit's.
    Any number of threads may call; processes too.
    """

    def __init__(
        self,
        where: str | Path,
        *,
        fingerprint: str,
        slices: Mapping[str, str] | None = None,
        patience: float = PATIENCE,
    ) -> None:
        self.fingerprint = fingerprint
        self._database = connect(where, patience)
        try:
            _open(self._database, fingerprint, slices or {})
        except BaseException:
            self._database.close()
            raise
        self._writer = Writer(self._database)

    @property
    def place(self) -> str:
        """Where they are, without a password."""
        return self._database.place

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Returns when everything that waits is written."""
        self._writer.close()
        self._database.close()

    # Annotations

    def annotate(self, annotation: Annotation) -> Entry:
        """Save an answer. A key that is known saves nothing, and what it saved first comes back."""
        return self._writer.write(lambda connection: answers.annotate(connection, annotation))

    def undo(self, key: str, *, person: str) -> Entry:
        """Take back one's own answer; the log keeps both."""
        return self._writer.write(lambda connection: answers.undo(connection, key, person))

    def log(self, queue: str | None = None, person: str | None = None, task: Task | None = None) -> tuple[Entry, ...]:
        """Every line, also those taken back, oldest first."""
        with self._database.read() as connection:
            return answers.log(connection, queue=queue, person=person, task=task)

    def answers(
        self, queue: str | None = None, person: str | None = None, task: Task | None = None
    ) -> tuple[Entry, ...]:
        """What each person now says of each item: the last answer that was not taken back."""
        with self._database.read() as connection:
            return answers.current(connection, queue=queue, person=person, task=task)

    def settled(self, queue: str | None = None, task: Task | None = None) -> tuple[Entry, ...]:
        """Answers that ended a disagreement: the last word on their items."""
        return self._with_settled(queue, task)[1]

    def progress(self, queue: str, person: str, task: Task | None = None) -> Progress:
        with self._database.read() as connection:
            return answers.progress(connection, queue=queue, person=person, task=task)

    def agreement(self, queue: str, task: Task, part: str | None = None) -> Agreement:
        """part: of an answer that has several; "failure" or "label" of a region, any question of a questionnaire."""
        check_choice("task", task, Task)
        return agreement.agreement(self.answers(queue, task=task), part)

    def to_settle(self, queue: str, task: Task | None = None) -> tuple[Dispute, ...]:
        """Items on which people differ, until an annotation with `settles` ends it."""
        return agreement.to_settle(*self._with_settled(queue, task))

    def majority(self, queue: str, task: Task, part: str | None = None) -> tuple[Majority, ...]:
        """What most people say, of each item."""
        check_choice("task", task, Task)
        return agreement.majorities(*self._with_settled(queue, task), part)

    def _with_settled(self, queue: str | None, task: Task | None) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
        with self._database.read() as connection:
            given = answers.current(connection, queue=queue, task=task)
            return given, answers.current(connection, settles=True, queue=queue, task=task)

    # Curation

    def decide(self, decision: Decision, *, seen: int) -> Standing:
        """seen: the version that the person looked at. Where it is not the last, a Conflict, and nothing changes."""
        return self._writer.write(lambda connection: curation.decide(connection, decision, seen))

    def standings(self) -> dict[str, Standing]:
        """Every slice, found and drawn, with the last decision about it."""
        with self._database.read() as connection:
            return curation.standings(connection)

    def history(self, slice: str) -> tuple[Standing, ...]:
        with self._database.read() as connection:
            return curation.history(connection, slice)

    def accepted(self) -> tuple[Accepted, ...]:
        """The list that gates and fixes start from."""
        with self._database.read() as connection:
            return curation.accepted(connection)

    def edit(self, edited: Edit) -> dict[str, bool]:
        """Put a row in or out; all rows of the slice that people moved."""

        def work(connection: Connection) -> dict[str, bool]:
            curation.edit(connection, edited)
            return curation.edited(connection, edited.slice)

        return self._writer.write(work)

    def edits(self, slice: str) -> dict[str, bool]:
        """Row -> in (True) or out, where people moved it."""
        with self._database.read() as connection:
            return curation.edited(connection, slice)

    def draw(self, drawing: Drawing) -> Drawn:
        """Keep a lasso's rows as a slice, marked as drawn."""
        return self._writer.write(lambda connection: curation.draw(connection, drawing))

    def drawn(self) -> tuple[Drawn, ...]:
        with self._database.read() as connection:
            return curation.drawings(connection)

    def add_hypothesis(self, hypothesis: Hypothesis) -> TestedHypothesis:
        """Save a hypothesis that was tested."""
        return self._writer.write(lambda connection: curation.add_hypothesis(connection, hypothesis))

    def hypotheses(self, slice: str | None = None) -> tuple[TestedHypothesis, ...]:
        """Every hypothesis tested on a slice; without one, those about no slice."""
        with self._database.read() as connection:
            return curation.tested_hypotheses(connection, slice)

    # Files

    def export_json(self, target: str | Path | IO[str]) -> None:
        with self._database.read() as connection:
            exchange.export_json(connection, self.fingerprint, target)

    def export_parquet(self, folder: str | Path) -> None:
        with self._database.read() as connection:
            exchange.export_parquet(connection, self.fingerprint, folder)

    def import_annotations(
        self, source: str | Path | IO[str] | Mapping[str, Any], check: Check | None = None
    ) -> Imported:
        """What a page downloaded: all of its answers or none; a second time adds nothing.

        check: an answer -> the same as it is kept; what it refuses is not imported, and nothing else of the file.
        """
        read = exchange.read_annotations(source, self.fingerprint, check)
        return self._writer.write(lambda connection: exchange.add(connection, read))


def _open(database: Database, fingerprint: str, slices: Mapping[str, str]) -> None:
    """Tables, migrations, whose records these are: all in one transaction."""
    try:
        with database.writing.begin() as connection:
            schema.prepare(connection, database.place)
            known = schema.said(connection, "fingerprint")
            if known is None:
                schema.say(connection, "fingerprint", fingerprint)
            elif known != fingerprint:
                raise InputError(
                    f"`{database.place}` holds the records of another audit ({known!r}; this one is {fingerprint!r}); "
                    "give each audit a database of its own"
                )
            curation.know(connection, slices, database.place)
    except SQLAlchemyError as error:
        raise InputError(f"`{database.place}` cannot be opened as records ({reason(error)})") from error
