"""The database of what people enter about one audit. A call returns when it is on disk; readers never wait."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Self

from sqlalchemy import Connection
from sqlalchemy.exc import SQLAlchemyError

from ..core import InputError
from . import agreement, answers, curation, exchange, journal, schema
from .agreement import Agreement, Disagreement, Majority
from .answers import QueueProgress
from .curation import DrawnSlice, TestedHypothesis
from .database import PATIENCE, Database, connect, reason
from .entries import AcceptedSlice, Annotation, Decision, Drawing, Edit, Entry, Hypothesis, Standing, Task, check_choice
from .exchange import Check, ImportCounts
from .journal import JournalLine
from .writer import Writer


class Records:
    """What people enter: annotations, decisions on slices, edits, drawn slices and hypotheses.

    Any number of threads may call; processes too.

    Parameters
    ----------
    where : path or str
        The audit's folder (its records.sqlite), a file of SQLite, or a URL such as postgresql://NAME@HOST/DATABASE.
    fingerprint : str
        The audit's; records of another one are refused.
    slices : mapping of str to str, optional
        Ids and machine-made names of the audit's slices.
    patience : float
        Seconds to wait for another process that is writing.
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
    def location(self) -> str:
        """Where they are, without a password."""
        return self._database.location

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
        """Save an answer. A key that is known saves nothing, and returns what it saved first."""
        return self._writer.write(lambda connection: answers.annotate(connection, annotation))

    def undo(self, key: str, *, person: str) -> Entry:
        """Undo one's own answer; the log keeps both lines."""
        return self._writer.write(lambda connection: answers.undo(connection, key, person))

    def log(self, queue: str | None = None, person: str | None = None, task: Task | None = None) -> tuple[Entry, ...]:
        """Every line, also those undone, oldest first."""
        with self._database.read() as connection:
            return answers.log(connection, queue=queue, person=person, task=task)

    def answers(
        self, queue: str | None = None, person: str | None = None, task: Task | None = None
    ) -> tuple[Entry, ...]:
        """Each person's current answer to each item: the last that was not undone."""
        with self._database.read() as connection:
            return answers.current(connection, queue=queue, person=person, task=task)

    def settled(self, queue: str | None = None, task: Task | None = None) -> tuple[Entry, ...]:
        """Answers that ended a disagreement: they decide over the votes."""
        return self._with_settled(queue, task)[1]

    def progress(self, queue: str, person: str, task: Task | None = None) -> QueueProgress:
        """How far a person is in a queue."""
        with self._database.read() as connection:
            return answers.progress(connection, queue=queue, person=person, task=task)

    def agreement(self, queue: str, task: Task, part: str | None = None) -> Agreement:
        """How often people agree on a queue.

        part: of an answer that has several; "failure" or "label" of a region, any question of a questionnaire.
        """
        check_choice("task", task, Task)
        return agreement.measure_agreement(self.answers(queue, task=task), part)

    def disagreements(self, queue: str, task: Task | None = None) -> tuple[Disagreement, ...]:
        """Items on which people differ, until an annotation with `settles` ends it."""
        return agreement.disagreements(*self._with_settled(queue, task))

    def majority(self, queue: str, task: Task, part: str | None = None) -> tuple[Majority, ...]:
        """What most people answer, of each item."""
        check_choice("task", task, Task)
        return agreement.majorities(*self._with_settled(queue, task), part)

    def _with_settled(self, queue: str | None, task: Task | None) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
        with self._database.read() as connection:
            current = answers.current(connection, queue=queue, task=task)
            return current, answers.current(connection, settles=True, queue=queue, task=task)

    # Curation

    def decide(self, decision: Decision, *, version: int) -> Standing:
        """Save a decision about a slice.

        version: the one that the person looked at. Where it is not the last, a Conflict, and nothing changes.
        """
        return self._writer.write(lambda connection: curation.decide(connection, decision, version))

    def standings(self) -> dict[str, Standing]:
        """Every slice, found and drawn, with the last decision about it."""
        with self._database.read() as connection:
            return curation.standings(connection)

    def history(self, slice: str) -> tuple[Standing, ...]:
        """All decisions about a slice, oldest first."""
        with self._database.read() as connection:
            return curation.history(connection, slice)

    def accepted(self) -> tuple[AcceptedSlice, ...]:
        """The accepted slices: what gates and fixes start from."""
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

    def moved(self) -> dict[str, dict[str, bool]]:
        """Slice -> row -> in (True) or out, of every slice that people moved rows of."""
        with self._database.read() as connection:
            return curation.all_edited(connection)

    def draw(self, drawing: Drawing) -> DrawnSlice:
        """Save the rows of a loop as a slice, marked as drawn."""
        return self._writer.write(lambda connection: curation.draw(connection, drawing))

    def drawn(self) -> tuple[DrawnSlice, ...]:
        """All drawn slices, oldest first."""
        with self._database.read() as connection:
            return curation.drawings(connection)

    def add_hypothesis(self, hypothesis: Hypothesis) -> TestedHypothesis:
        """Save a hypothesis that was tested."""
        return self._writer.write(lambda connection: curation.add_hypothesis(connection, hypothesis))

    def hypotheses(self, slice: str | None = None) -> tuple[TestedHypothesis, ...]:
        """Every hypothesis tested on a slice; without one, those about no slice."""
        with self._database.read() as connection:
            return curation.tested_hypotheses(connection, slice)

    def hypothesis_texts(self) -> frozenset[str]:
        """The different texts of all hypotheses, about a slice or about none."""
        with self._database.read() as connection:
            return curation.hypothesis_texts(connection)

    def add_slices(self, names: Mapping[str, str]) -> None:
        """Add slices that the audit has since it was opened, by id and name; those that are known stay."""
        location = self._database.location
        self._writer.write(lambda connection: curation.register_slices(connection, names, location))

    # Files

    def journal(self, person: str | None = None) -> tuple[JournalLine, ...]:
        """All that people did, oldest first: who, when, what; of one person, where they are named."""
        with self._database.read() as connection:
            return journal.read(connection, person)

    def export_json(self, target: str | Path | IO[str]) -> None:
        """Write everything as JSON, to an open file or to a path that does not exist yet."""
        with self._database.read() as connection:
            exchange.export_json(connection, self.fingerprint, target)

    def export_parquet(self, folder: str | Path) -> None:
        """Write everything as parquet, one file a table, in a folder that does not exist yet."""
        with self._database.read() as connection:
            exchange.export_parquet(connection, self.fingerprint, folder)

    def import_annotations(
        self, source: str | Path | IO[str] | Mapping[str, Any], check: Check | None = None
    ) -> ImportCounts:
        """Import what a page downloaded: all of its answers or none; a second time adds nothing.

        check: an answer -> the same as it is saved; where it refuses one, nothing of the file is imported.
        """
        annotations = exchange.read_annotations(source, self.fingerprint, check)
        return self._writer.write(lambda connection: exchange.add_annotations(connection, annotations))


def _open(database: Database, fingerprint: str, slices: Mapping[str, str]) -> None:
    """Tables, migrations, whose records these are: all in one transaction."""
    try:
        with database.writing.begin() as connection:
            schema.prepare(connection, database.location)
            schema.forbid_changes(connection)
            known = schema.read_fact(connection, "fingerprint")
            if known is None:
                schema.write_fact(connection, "fingerprint", fingerprint)
            elif known != fingerprint:
                raise InputError(
                    f"`{database.location}` holds the records of another audit "
                    f"({known!r}; this one is {fingerprint!r}); "
                    "give each audit a database of its own"
                )
            curation.register_slices(connection, slices, database.location)
        if database.file is not None:
            database.file.remember()
    except SQLAlchemyError as error:
        cure = "; to look without saving, `errata serve --read-only`" if database.is_locked_away else ""
        raise InputError(f"`{database.location}` cannot be opened as records ({reason(error)}){cure}") from error
