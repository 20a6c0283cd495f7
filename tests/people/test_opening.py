"""Opening records: made, migrated or refused, whole or not at all."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, inspect, text

from errata.core import InputError
from errata.people import schema
from errata.people.database import Unavailable, connect
from errata.people.entries import Annotation
from errata.people.records import Records
from support.databases import plain

Open = Callable[..., Records]

# Version 1 as it was written, for good: no settling.
V1 = """
CREATE TABLE errata (name VARCHAR(20) NOT NULL, value TEXT NOT NULL, PRIMARY KEY (name));
CREATE TABLE annotations (number {number} NOT NULL, "key" VARCHAR(100) NOT NULL, person VARCHAR(100) NOT NULL,
    at VARCHAR(32) NOT NULL, queue VARCHAR(200) NOT NULL, item VARCHAR(1000) NOT NULL, task VARCHAR(20) NOT NULL,
    answer TEXT NOT NULL, seconds {double}, undoes VARCHAR(100), PRIMARY KEY (number), UNIQUE ("key"), UNIQUE (undoes),
    FOREIGN KEY (undoes) REFERENCES annotations ("key"));
CREATE INDEX annotations_asked ON annotations (queue, person);
CREATE TABLE slices (id VARCHAR(200) NOT NULL, place INTEGER NOT NULL, kind VARCHAR(10) NOT NULL, name TEXT NOT NULL,
    PRIMARY KEY (id), UNIQUE (place));
CREATE TABLE decisions (number {number} NOT NULL, "key" VARCHAR(100) NOT NULL, person VARCHAR(100) NOT NULL,
    at VARCHAR(32) NOT NULL, slice VARCHAR(200) NOT NULL, version INTEGER NOT NULL, decision VARCHAR(20) NOT NULL,
    name VARCHAR(200), note TEXT NOT NULL, "into" VARCHAR(200), PRIMARY KEY (number), UNIQUE (slice, version),
    UNIQUE ("key"), FOREIGN KEY (slice) REFERENCES slices (id), FOREIGN KEY ("into") REFERENCES slices (id));
CREATE TABLE edits (number {number} NOT NULL, "key" VARCHAR(100) NOT NULL, person VARCHAR(100) NOT NULL,
    at VARCHAR(32) NOT NULL, slice VARCHAR(200) NOT NULL, item VARCHAR(1000) NOT NULL, inside BOOLEAN,
    PRIMARY KEY (number), UNIQUE ("key"), FOREIGN KEY (slice) REFERENCES slices (id));
CREATE INDEX edits_of ON edits (slice);
CREATE TABLE drawn (number {number} NOT NULL, "key" VARCHAR(100) NOT NULL, person VARCHAR(100) NOT NULL,
    at VARCHAR(32) NOT NULL, slice VARCHAR(200) NOT NULL, name VARCHAR(200) NOT NULL, items TEXT NOT NULL,
    PRIMARY KEY (number), UNIQUE ("key"), FOREIGN KEY (slice) REFERENCES slices (id));
CREATE TABLE guesses (number {number} NOT NULL, "key" VARCHAR(100) NOT NULL, person VARCHAR(100) NOT NULL,
    at VARCHAR(32) NOT NULL, slice VARCHAR(200), kind VARCHAR(20) NOT NULL, text VARCHAR(1000) NOT NULL,
    n BIGINT NOT NULL, errors BIGINT NOT NULL, rest_n BIGINT NOT NULL, rest_errors BIGINT NOT NULL,
    PRIMARY KEY (number), UNIQUE ("key"), FOREIGN KEY (slice) REFERENCES slices (id));
CREATE INDEX guesses_of ON guesses (slice);
INSERT INTO errata VALUES ('version', '1');
INSERT INTO errata VALUES ('fingerprint', 'f00d');
INSERT INTO annotations (number, "key", person, at, queue, item, task, answer, seconds)
    VALUES (1, 'old', 'ada', '2020-01-01T00:00:00.000000+00:00', 's1', '7', 'class', '3', 0.30000000000000004);
"""
TYPES = {
    "sqlite": {"number": "INTEGER", "double": "DOUBLE"},
    "postgresql": {"number": "BIGSERIAL", "double": "DOUBLE PRECISION"},
}


def run(place: str, statements: str) -> None:
    with plain(place) as engine, engine.begin() as connection:
        for statement in statements.format(**TYPES[engine.dialect.name]).split(";\n"):
            if statement.strip():
                connection.execute(text(statement))


def value(place: str, statement: str) -> Any:
    with plain(place) as engine, engine.connect() as connection:
        return connection.execute(text(statement)).scalar()


def shape(place: str) -> dict[str, Any]:
    """Tables with their columns, keys and indexes."""
    with plain(place) as engine:
        reader = inspect(engine)
        return {
            name: {
                "columns": {c["name"]: (str(c["type"]), c["nullable"]) for c in reader.get_columns(name)},
                "unique": sorted(u["column_names"] for u in reader.get_unique_constraints(name)),
                "foreign": sorted(
                    (f["constrained_columns"], f["referred_table"]) for f in reader.get_foreign_keys(name)
                ),
                "indexes": sorted(i["column_names"] for i in reader.get_indexes(name)),
                "primary": reader.get_pk_constraint(name)["constrained_columns"],
            }
            for name in reader.get_table_names()
        }


def test_an_old_database_becomes_todays(place: str, open_records: Open) -> None:
    open_records().close()
    new = shape(place)
    with plain(place) as engine, engine.begin() as connection:
        schema.metadata.drop_all(connection)
    run(place, V1)
    assert "settles" not in shape(place)["annotations"]["columns"]
    records = open_records()
    assert shape(place) == new
    assert value(place, "SELECT value FROM errata WHERE name = 'version'") == str(schema.VERSION)
    (old,) = records.log()
    assert (old.key, old.answer, old.seconds, old.settles) == ("old", 3, 0.1 + 0.2, False)
    if "://" in place:  # its counter does not know of the line written above by number
        run(place, "SELECT setval(pg_get_serial_sequence('annotations', 'number'), 1)")
    records.annotate(Annotation(queue="s1", item="7", person="ada", task="class", answer=4, settles=True))
    records.close()
    assert len(open_records().log()) == 2  # and once is enough


def test_a_migration_that_fails_leaves_all_as_it_was(
    place: str, open_records: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    def breaks(connection: Connection) -> None:
        connection.execute(text("CREATE TABLE half (x INTEGER)"))
        connection.execute(text("CREATE TABLE half (x INTEGER)"))

    run(place, V1)
    before = shape(place)
    with monkeypatch.context() as patched:
        patched.setattr(schema, "MIGRATIONS", (*schema.MIGRATIONS, breaks))
        patched.setattr(schema, "VERSION", schema.VERSION + 1)
        with pytest.raises(InputError, match=r"cannot be opened as records \(.*already exists"):
            open_records()
    assert shape(place) == before
    assert value(place, "SELECT value FROM errata WHERE name = 'version'") == "1"
    assert open_records().log()[0].key == "old"


def test_there_is_a_step_to_every_version() -> None:
    assert len(schema.MIGRATIONS) == schema.VERSION - 1


def test_a_newer_database_is_refused(place: str, open_records: Open) -> None:
    open_records().close()
    run(place, "UPDATE errata SET value = '3' WHERE name = 'version'")
    with pytest.raises(InputError, match=r"was written by a newer Errata \(its version is 3, this one reads up to 2\)"):
        open_records()


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("DELETE FROM errata WHERE name = 'version'", "has no valid version (it has None)"),
        ("UPDATE errata SET value = 'x' WHERE name = 'version'", "has no valid version (it has 'x')"),
        ("UPDATE errata SET value = '0' WHERE name = 'version'", "has no valid version (it has '0')"),
        ("ALTER TABLE errata RENAME COLUMN value TO other", "the table `errata` is not Errata's"),
    ],
)
def test_a_damaged_version_is_refused(place: str, open_records: Open, statement: str, words: str) -> None:
    open_records().close()
    run(place, statement)
    with pytest.raises(InputError, match=re.escape(words)):
        open_records()


def test_tables_of_others_are_left_alone(place: str, open_records: Open) -> None:
    run(place, "CREATE TABLE edits (x INTEGER)")
    with pytest.raises(InputError, match="has a table `edits` that is not Errata's; give Errata a database of its own"):
        open_records()
    assert list(shape(place)) == ["edits"]


def test_records_of_another_audit_are_refused(place: str, open_records: Open) -> None:
    open_records().close()
    with pytest.raises(InputError, match=r"holds the records of another audit \('f00d'; this one is 'beef'\)"):
        open_records(fingerprint="beef")
    with pytest.raises(InputError, match="its slice `s1` is “dark pictures”, and yours is “bright ones”"):
        open_records(slices={"s1": "bright ones"})
    assert list(open_records(slices={"s2": "small shapes", "s4": "rings"}).standings()) == ["s1", "s2", "s3", "s4"]


def test_many_may_open_at_once(place: str) -> None:
    """The first makes the tables, the others wait for it."""
    opened: list[int] = []
    start = threading.Barrier(6)

    def opening() -> None:
        start.wait()
        with Records(place, fingerprint="f00d", slices={"s1": "x"}) as records:
            opened.append(len(records.standings()))

    threads = [threading.Thread(target=opening) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert opened == [1] * 6


def test_a_file_that_somebody_begins_to_write_is_waited_for(tmp_path: Path) -> None:
    """While it is not yet in WAL: for that step SQLite does not wait by itself."""
    other = sqlite3.connect(tmp_path / "records.sqlite", isolation_level=None, check_same_thread=False)
    other.executescript("CREATE TABLE x (y); BEGIN IMMEDIATE")
    with pytest.raises(InputError, match=r"cannot be opened as records \(database is locked\)"):
        Records(tmp_path, fingerprint="f00d", patience=0.1)
    threading.Timer(0.3, other.rollback).start()
    with Records(tmp_path, fingerprint="f00d") as records:
        assert records.log() == ()
    other.close()


def test_a_folder_holds_its_own_records(tmp_path: Path) -> None:
    with Records(tmp_path, fingerprint="f00d") as records:
        assert records.location == str(tmp_path / "records.sqlite")
    assert (tmp_path / "records.sqlite").is_file()
    with Records(f"sqlite:///{tmp_path}/records.sqlite", fingerprint="f00d"):
        pass


def test_sqlite_is_told_to_be_safe(tmp_path: Path) -> None:
    with Records(tmp_path, fingerprint="f00d") as records:
        for engine in (records._database.writing, records._database.reading):
            with engine.connect() as connection:
                said = {
                    name: connection.exec_driver_sql(f"PRAGMA {name}").scalar()
                    for name in ("journal_mode", "synchronous", "foreign_keys", "busy_timeout")
                }
            assert said == {"journal_mode": "wal", "synchronous": 2, "foreign_keys": 1, "busy_timeout": 10_000}


def test_readers_cannot_write(place: str, records: Records) -> None:
    del place
    with records._database.reading.connect() as connection, pytest.raises(Exception, match=r"readonly|read-only"):
        connection.execute(text("DELETE FROM errata"))


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("audti", "`audti` is neither a folder nor a file that ends in .sqlite"),
        (
            "no/such/records.sqlite",
            "`no/such/records.sqlite` cannot be opened as records (unable to open database file)",
        ),
        ("sqlite://", "records in memory would be lost"),
        ("sqlite:///:memory:", "records in memory would be lost"),
        ("sqlite:///file:x?mode=memory&uri=true", "records in memory would be lost"),
        ("postgresql://ada:secret@:x/y", "the database's URL cannot be read"),
        ("nosuch://x", "`nosuch` is not a database that SQLAlchemy knows"),
    ],
)
def test_a_place_that_cannot_be_is_refused_in_words(
    where: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError, match=re.escape(words)):
        Records(where, fingerprint="f00d")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_database(tmp_path: Path) -> None:
    (tmp_path / "records.sqlite").write_text("not a database, whatever its name says" * 100)
    with pytest.raises(InputError, match=r"cannot be opened as records \(file is not a database\)"):
        Records(tmp_path, fingerprint="f00d")


def test_a_server_that_is_not_there_is_told_without_its_password(tmp_path: Path) -> None:
    url = f"postgresql://ada:secret@/x?host={tmp_path}"
    with pytest.raises(InputError, match=r"cannot be opened as records") as caught:
        Records(url, fingerprint="f00d")
    assert "secret" not in str(caught.value)
    assert connect(url).location.startswith("postgresql+psycopg://ada:***@")


def test_a_server_that_commits_to_memory_is_told_otherwise(server: Any) -> None:
    url = server.new_place() + "%20-csynchronous_commit%3Doff"
    with Records(url, fingerprint="f00d") as records:
        ask = "SHOW synchronous_commit"
        with records._database.reading.connect() as connection:
            assert connection.exec_driver_sql(ask).scalar() == "off"  # else this would show nothing
        assert records._writer.write(lambda connection: connection.exec_driver_sql(ask).scalar()) == "on"


HIDDEN = """
import sys
sys.modules["{name}"] = None
from errata.core import MissingExtra
try:
    {statement}
except MissingExtra as error:
    assert "pip install 'errata[{extra}]'" in str(error), error
else:
    raise SystemExit("it did not fail")
"""


@pytest.mark.parametrize(
    ("name", "statement", "extra"),
    [
        ("sqlalchemy", "import errata.people", "app"),
        ("psycopg", "from errata.people import Records; Records('postgresql:///x', fingerprint='')", "postgres"),
    ],
)
def test_a_missing_package_is_named_with_its_cure(name: str, statement: str, extra: str) -> None:
    program = HIDDEN.format(name=name, statement=statement, extra=extra)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr


def test_the_file_needs_nobody_of_ours_to_be_read(tmp_path: Path) -> None:
    with Records(tmp_path, fingerprint="f00d") as records:
        records.annotate(Annotation(queue="s1", item="7", person="ada", task="class", answer=None))
    with sqlite3.connect(tmp_path / "records.sqlite") as connection:
        assert connection.execute("SELECT person, answer FROM annotations").fetchall() == [("ada", "null")]
    connection.close()


@pytest.mark.parametrize("how", ["removed", "replaced", "moved with its folder"])
def test_a_database_that_goes_away_is_noticed(how: str, tmp_path: Path) -> None:
    """What is written to a file without a name is lost when it is closed, and would be answered with 200."""
    folder = tmp_path / "audit"
    folder.mkdir()
    with Records(folder, fingerprint="f", slices={"s1": "one"}) as records:
        records.annotate(Annotation(queue="s1", item="1", person="ada", task="class", answer=1, key="k1"))
        if how == "moved with its folder":
            folder.rename(tmp_path / "elsewhere")
        else:
            (folder / "records.sqlite").unlink()
        if how == "replaced":
            (folder / "records.sqlite").touch()
        again = Annotation(queue="s1", item="2", person="ada", task="class", answer=1, key="k2")
        with pytest.raises(Unavailable, match="was removed or replaced"):
            records.annotate(again)
        with pytest.raises(Unavailable, match="was removed or replaced"):
            records.log()
