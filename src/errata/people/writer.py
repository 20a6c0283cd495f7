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
MAX_BATCH = 500  # jobs in one transaction
MAX_FAILURES = 2  # in a row: the database is unreachable, and the other jobs need not wait for it too


@dataclass(frozen=True)
class WriteJob:
    """Work that waits for the writer.

    Attributes
    ----------
    work : callable
        What to do with the connection.
    done : Future
        Its result.
    """

    work: Callable[[Connection], Any]
    done: Future[Any] = field(default_factory=Future)


class Writer:
    """One thread that runs the jobs. A job runs twice when its batch failed: it must do the same then (keys do so).

    Parameters
    ----------
    database : Database
        Where to write.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._waiting: queue.SimpleQueue[WriteJob | None] = queue.SimpleQueue()
        self._lock = threading.Lock()  # no job is added after the end
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="errata-writer", daemon=True)
        self._thread.start()

    def write(self, work: Callable[[Connection], T]) -> T:
        """The work's result, once it is on disk; or its error, and then nothing of it is."""
        job = WriteJob(work)
        with self._lock:
            if self._closed:
                raise ErrataError("these records are closed; open them again")
            self._waiting.put(job)
        result: T = job.done.result()
        return result

    def close(self) -> None:
        """Returns when all that was waiting is written."""
        with self._lock:
            if not self._closed:
                self._waiting.put(None)
            self._closed = True
        self._thread.join()

    def _run(self) -> None:
        last = False
        while not last:
            batch, last = self._batch()
            self._commit(batch)

    def _batch(self) -> tuple[list[WriteJob], bool]:
        """All jobs that wait, at least one; and whether the writer is closed."""
        batch: list[WriteJob] = []
        while len(batch) < MAX_BATCH:
            try:
                job = self._waiting.get(block=not batch)
            except queue.Empty:
                break
            if job is None:
                return batch, True
            batch.append(job)
        return batch, False

    def _commit(self, batch: list[WriteJob]) -> None:
        try:
            results = self._together(batch)
        except Exception:  # one bad job must not take the others along, whatever is wrong with it
            self._singly(batch)
            return
        for job, result in zip(batch, results, strict=True):
            job.done.set_result(result)

    def _together(self, batch: list[WriteJob]) -> list[Any]:
        if not batch:
            return []
        self._database.check_present()
        with self._database.writing.begin() as connection:
            results = [job.work(connection) for job in batch]
        self._database.check_present()
        return results

    def _singly(self, batch: list[WriteJob]) -> None:
        failures = 0
        for job in batch:
            try:
                if failures >= MAX_FAILURES:
                    raise Unavailable(f"`{self._database.location}` does not answer; nothing was saved; try again")
                (result,) = self._together([job])
            except (OperationalError, InterfaceError) as error:
                failures += 1
                job.done.set_exception(self._not_saved(error))
            except SQLAlchemyError as error:
                job.done.set_exception(self._not_saved(error))
            except Exception as error:
                job.done.set_exception(error)
            else:
                failures = 0
                job.done.set_result(result)

    def _not_saved(self, error: SQLAlchemyError) -> Unavailable:
        failure = Unavailable(f"not saved: `{self._database.location}` refused ({reason(error)}); try again")
        failure.__cause__ = error
        return failure
