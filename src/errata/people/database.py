"""Two engines on one database: one that writes, through a single connection, and one that only reads."""

from __future__ import annotations

import os
import shutil
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from ..core import ErrataError, InputError, require

FILE = "records.sqlite"
PATIENCE = 10.0  # seconds to wait for another process that is writing
LOCK = 7_304_117_226  # any number: the one lock of those who write to a PostgreSQL


class Unavailable(ErrataError):
    """The database did not answer, or refused: nothing was saved."""


class DatabaseFile:
    """The files of a database, which somebody may remove while it is open: what is written then is lost.

    Parameters
    ----------
    path : Path
        The file; SQLite's log of what is not in it yet lies beside it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._log = path.with_name(path.name + "-wal")
        self._known: dict[Path, tuple[int, int]] = {}

    def remember(self) -> None:
        """Take the files that are there now for those that are open."""
        found = {path: _identity(path) for path in (self._path, self._log)}
        self._known = {path: identity for path, identity in found.items() if identity is not None}

    def check(self) -> None:
        """Raise Unavailable where a name no longer leads to the file that is open."""
        for path, known in self._known.items():
            if _identity(path) != known:
                raise Unavailable(
                    f"`{path}` was removed or replaced while it was in use; nothing was saved; put it back, and "
                    "start again"
                )

    @property
    def lost_its_log(self) -> bool:
        """Whether only the log is gone: what it held can still be written to the file."""
        return self._known.get(self._path) == _identity(self._path)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


@dataclass(frozen=True)
class Database:
    """Where records are.

    Attributes
    ----------
    location : str
        The file, or the URL without its password.
    writing, reading : Engine
        The one that writes, and the one that only reads.
    file : DatabaseFile, optional
        Of SQLite.
    """

    location: str
    writing: Engine
    reading: Engine
    file: DatabaseFile | None = None

    @property
    def is_locked_away(self) -> bool:
        """Whether it is a file in a folder that nobody may write."""
        return self.file is not None and not os.access(Path(self.location).absolute().parent, os.W_OK)

    def check_present(self) -> None:
        """Raise Unavailable where the database was removed while it was in use; save what can still be saved."""
        if self.file is None:
            return
        try:
            self.file.check()
        except Unavailable:
            if self.file.lost_its_log:
                self._empty_log()
            raise

    def _empty_log(self) -> None:
        """Write what the log holds to the file: it has no name any more, and would be gone with this process."""
        with suppress(SQLAlchemyError, sqlite3.Error):
            connection = self.writing.raw_connection()
            try:
                connection.driver_connection.execute("PRAGMA wal_checkpoint(FULL)")  # type: ignore[union-attr]
            finally:
                connection.close()

    @contextmanager
    def read(self) -> Iterator[Connection]:
        """One state of the whole database, whatever is being written meanwhile."""
        self.check_present()
        try:
            with self.reading.connect() as connection:
                yield connection
        except SQLAlchemyError as error:
            raise Unavailable(f"`{self.location}` cannot be read ({reason(error)})") from error

    def close(self) -> None:
        """Close all connections."""
        self.writing.dispose()
        self.reading.dispose()


def connect(where: str | Path, patience: float = PATIENCE) -> Database:
    """Open a database.

    Parameters
    ----------
    where : path or str
        A folder, whose file is records.sqlite, a file of SQLite, or a URL of SQLAlchemy's.
    patience : float
        Seconds to wait for another process that is writing.
    """
    url = _url(where)
    try:
        if url.get_backend_name() == "sqlite":
            return _sqlite(url, patience)
        return _server(url, patience)
    except ModuleNotFoundError as error:
        raise InputError(
            f"`{url.drivername}` needs the package `{error.name}`, which is not installed; install it, or try "
            "`postgresql://…`"
        ) from error
    except NoSuchModuleError as error:
        raise InputError(f"`{url.drivername}` is not a database that SQLAlchemy knows; try `postgresql://…`") from error


def copy_to_show(folder: Path, target: Path) -> Path:
    """Copy the records of a folder that may be read-only to one that is not; one that has none gets none.

    SQLite itself copies what is being written meanwhile, where it may; else the files are copied as they are.
    """
    source = folder / FILE
    if source.is_file():
        copy = target / FILE
        try:
            with (
                closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as before,
                closing(sqlite3.connect(copy)) as after,
            ):
                before.backup(after)
        except sqlite3.Error:
            copy.unlink(missing_ok=True)
            for path in (source, source.with_name(FILE + "-wal")):
                if path.is_file():
                    shutil.copyfile(path, target / path.name)
    return target


def reason(error: SQLAlchemyError) -> str:
    """What the database itself said, in one line."""
    return (str(getattr(error, "orig", None) or error).strip() or type(error).__name__).partition("\n")[0]


def _url(where: str | Path) -> URL:
    if isinstance(where, str) and "://" in where:
        try:
            url = make_url(where)
        except (ArgumentError, ValueError) as error:  # the latter of a port that is no number
            raise InputError(
                "the database's URL cannot be read; it looks like postgresql://NAME@HOST/DATABASE"
            ) from error
        # SQLAlchemy's own choice of driver for the bare name differs between its versions.
        if url.drivername in ("postgresql", "postgres"):
            url = url.set(drivername="postgresql+psycopg")
        return url
    path = Path(where)
    if path.is_dir():
        path = path / FILE
    elif path.suffix not in (".sqlite", ".db"):
        raise InputError(f"`{path}` is neither a folder nor a file that ends in .sqlite; give an audit's folder")
    return URL.create("sqlite", database=str(path))


def _sqlite(url: URL, patience: float) -> Database:
    if not url.database or url.database == ":memory:" or "mode=memory" in str(url):
        raise InputError("records in memory would be lost; give a file")
    connected: dict[str, Any] = {"connect_args": {"timeout": patience, "check_same_thread": False}}
    writing = create_engine(url, pool_size=1, max_overflow=0, **connected)
    reading = create_engine(url, pool_size=8, max_overflow=56, **connected)
    for engine, begin in ((writing, "BEGIN IMMEDIATE"), (reading, "BEGIN")):
        event.listen(engine, "connect", _safe(patience))
        event.listen(engine, "begin", _beginning(begin))
    event.listen(reading, "connect", _only_reading)
    return Database(url.database, writing, reading, DatabaseFile(Path(url.database)))


def _safe(patience: float) -> Any:
    def set_up(connection: Any, _record: Any) -> None:
        _set_write_ahead(connection, patience)
        connection.execute("PRAGMA synchronous=FULL")  # a commit is on the disk before it returns
        connection.execute("PRAGMA foreign_keys=ON")

    return set_up


def _set_write_ahead(connection: Any, patience: float) -> None:
    """Write-ahead logging. For this one step SQLite does not wait for others, whatever its timeout."""
    end = time.monotonic() + patience
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            return
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > end:
                raise
        time.sleep(0.02)


def _only_reading(connection: Any, _record: Any) -> None:
    connection.execute("PRAGMA query_only=ON")


def _server(url: URL, patience: float) -> Database:
    if url.drivername == "postgresql+psycopg":
        require("psycopg", "postgres")
    postgres = url.get_backend_name() == "postgresql"
    connected: dict[str, Any] = {"pool_pre_ping": True}
    reading_options = {}
    if postgres:
        connected["connect_args"] = {"connect_timeout": max(2, round(patience))}
        reading_options = {"postgresql_readonly": True}
    writing = create_engine(url, pool_size=1, max_overflow=0, **connected)
    reading = create_engine(
        url,
        pool_size=8,
        max_overflow=24,
        isolation_level="REPEATABLE READ",
        execution_options=reading_options,
        **connected,
    )
    if postgres:
        event.listen(writing, "connect", _durable(patience))
        # Writers of several processes come one after the other, as SQLite's do.
        event.listen(writing, "begin", _beginning(f"SELECT pg_advisory_xact_lock({LOCK})"))
    return Database(url.render_as_string(hide_password=True), writing, reading)


def _durable(patience: float) -> Any:
    def set_up(connection: Any, _record: Any) -> None:
        cursor = connection.cursor()
        cursor.execute(f"SET lock_timeout = {round(1000 * patience)}")
        cursor.execute(
            "SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'"
        )
        cursor.close()
        connection.commit()

    return set_up


def _beginning(statement: str) -> Any:
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql(statement)

    return begin
