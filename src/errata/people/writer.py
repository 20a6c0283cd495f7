"""One thread that writes. Whatever waits is committed together, and each caller returns after the commit."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

from sqlalchemy import Connection
from sqlalchemy.exc import InterfaceError, OperationalError, SQLAlchemyError

from ..core import ErrataError
from .database import Database, Unavailable, reason

T = TypeVar("T")
TOGETHER = 500  # jobs in one transaction, at most
GIVE_UP = 2  # jobs in a row that the database did not take: it is away, and the rest need not wait for it too


@dataclass(frozen=True)
class Job:
    work: Callable[[Connection], Any]
    done: Future[Any] = field(default_factory=Future)


class Writer:
    """A job may run twice, when its batch failed: it must do the same then. Keys make it so."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: queue.SimpleQueue[Job | None] = queue.SimpleQueue()
        self._door = threading.Lock()  # nothing comes in after the end was announced
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="errata-writer", daemon=True)
        self._thread.start()

    def write(self, work: Callable[[Connection], T]) -> T:
        """The work's result, once it is on disk; or its error, and then nothing of it is."""
        job = Job(work)
        with self._door:
            if self._closed:
                raise ErrataError("these records are closed; open them again")
            self._waiting.put(job)
        result: T = job.done.result()
        return result

    def close(self) -> None:
        """Returns when all that was waiting is written."""
        with self._door:
            if not self._closed:
                self._waiting.put(None)
            self._closed = True
        self._thread.join()

    def _run(self) -> None:
        last = False
        while not last:
            batch, last = self._batch()
            self._commit(batch)

    def _batch(self) -> tuple[list[Job], bool]:
        """All that waits, at least one; and whether the end was announced."""
        batch: list[Job] = []
        while len(batch) < TOGETHER:
            try:
                job = self._waiting.get(block=not batch)
            except queue.Empty:
                break
            if job is None:
                return batch, True
            batch.append(job)
        return batch, False

    def _commit(self, batch: list[Job]) -> None:
        try:
            results = self._together(batch)
        except Exception:  # one bad job must not take the others along, whatever is wrong with it
            self._singly(batch)
            return
        for job, result in zip(batch, results, strict=True):
            job.done.set_result(result)

    def _together(self, batch: list[Job]) -> list[Any]:
        if not batch:
            return []
        with self._database.writing.begin() as connection:
            return [job.work(connection) for job in batch]

    def _singly(self, batch: list[Job]) -> None:
        away = 0
        for job in batch:
            try:
                if away >= GIVE_UP:
                    raise Unavailable(f"`{self._database.place}` does not answer; nothing was saved; try again")
                (result,) = self._together([job])
            except (OperationalError, InterfaceError) as error:
                away += 1
                job.done.set_exception(self._not_saved(error))
            except SQLAlchemyError as error:
                job.done.set_exception(self._not_saved(error))
            except Exception as error:
                job.done.set_exception(error)
            else:
                away = 0
                job.done.set_result(result)

    def _not_saved(self, error: SQLAlchemyError) -> Unavailable:
        said = Unavailable(f"not saved: `{self._database.place}` refused ({reason(error)}); try again")
        said.__cause__ = error
        return said
