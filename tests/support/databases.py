"""A place for records in each kind of database: a file of SQLite, and a real PostgreSQL where its programs are."""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy import Engine, create_engine

from errata.people.records import Records

SLICES = {"s1": "dark pictures", "s2": "small shapes", "s3": "stars"}
OWNERS = ("postgres", "nobody")  # initdb refuses root


@dataclass
class Server:
    programs: Path
    folder: Path
    owner: dict[str, Any]  # of the process, for subprocess
    process: subprocess.Popen[bytes] | None = None
    made: int = 0

    def command(self, *words: str) -> None:
        done = subprocess.run(words, capture_output=True, text=True, cwd=self.folder, timeout=120, **self.owner)
        assert done.returncode == 0, done.stderr

    def start(self) -> None:
        data = str(self.folder / "data")
        log = open(self.folder / "log", "ab")  # noqa: SIM115 - the server's, as long as it lives
        words = [str(self.programs / "postgres"), "-D", data, "-k", str(self.folder), "-c", "listen_addresses="]
        words += ["-c", "fsync=off"]  # it survives its processes, which is tested; it need not survive the machine
        self.process = subprocess.Popen(words, cwd=self.folder, stdout=log, stderr=log, **self.owner)
        log.close()
        for _ in range(1200):
            try:
                psycopg.connect(f"dbname=postgres user=errata host={self.folder}").close()
                return
            except psycopg.OperationalError:
                time.sleep(0.1)
        raise RuntimeError((self.folder / "log").read_text())

    def stop(self, how: signal.Signals = signal.SIGQUIT) -> None:
        assert self.process is not None
        self.process.send_signal(how)
        self.process.wait(timeout=60)

    def new_place(self) -> str:
        """A schema of its own; a database of its own would be thirty megabytes."""
        self.made += 1
        with psycopg.connect(f"dbname=postgres user=errata host={self.folder}") as connection:
            connection.execute(f"CREATE SCHEMA records{self.made}")
        return f"postgresql://errata@/postgres?host={self.folder}&options=-csearch_path%3Drecords{self.made}"


def _programs() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"), key=lambda path: int(path.parts[-3]))
    beside = shutil.which("initdb")
    return found[-1].parent if found else Path(beside).parent if beside else None


def _owner() -> dict[str, Any] | None:
    if os.geteuid() != 0:
        return {}
    for name in OWNERS:
        try:
            person = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": person.pw_uid, "group": person.pw_gid, "extra_groups": []}
    return None


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    programs, owner = _programs(), _owner()
    if programs is None:
        pytest.skip("PostgreSQL is not installed: there is no initdb in /usr/lib/postgresql nor on the path")
    if owner is None:
        pytest.skip(f"PostgreSQL refuses root, and there is none of the users {', '.join(OWNERS)} to run it")
    folder = Path(tempfile.mkdtemp(prefix="errata-pg-"))
    if owner:
        os.chown(folder, owner["user"], owner["group"])
    started = Server(programs, folder, owner)
    try:
        # A test's server need not survive the machine; what it must survive is tested by killing processes.
        started.command(str(programs / "initdb"), "-D", str(folder / "data"), "-U", "errata", "-A", "trust", "-N")
        started.start()
        yield started
        started.stop()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", "postgresql"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """Where new records can be."""
    if request.param == "sqlite":
        return str(tmp_path / "records.sqlite")
    new: str = request.getfixturevalue("server").new_place()
    return new


@contextmanager
def plain(place: str) -> Iterator[Engine]:
    """The database without any of our rules."""
    url = place.replace("postgresql://", "postgresql+psycopg://") if "://" in place else f"sqlite:///{place}"
    engine = create_engine(url)
    yield engine
    engine.dispose()


Open = Callable[..., Records]


@pytest.fixture
def open_records(place: str) -> Iterator[Open]:
    """Opens the place, as often as one likes; all are closed at the end."""
    opened: list[Records] = []

    def open_again(**options: Any) -> Records:
        opened.append(Records(place, **{"fingerprint": "f00d", "slices": SLICES, **options}))
        return opened[-1]

    yield open_again
    for records in opened:
        records.close()


@pytest.fixture
def records(open_records: Open) -> Records:
    return open_records()
