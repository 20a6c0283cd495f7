"""The log of what people did: all of it, in its order, and no line that anybody can change."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Engine
from sqlalchemy.exc import DBAPIError

from errata.core import InputError
from errata.people import Annotation, Decision, Drawing, Edit, Hypothesis, Records
from errata.people.database import Unavailable, copy_to_show
from support.databases import Server, plain


def filled(folder: Path | str) -> Records:
    records = Records(folder, fingerprint="f", slices={"s1": "one", "s2": "two"})
    records.annotate(Annotation(queue="s1", item="7", person="ada", task="class", answer=2, key="k1"))
    records.decide(Decision(slice="s1", decision="accepted", person="bob", name="dark", note="seen it"), version=0)
    records.edit(Edit(slice="s1", item="7", inside=False, person="ada"))
    records.draw(Drawing(name="loop", items=("7", "8"), person="bob"))
    records.add_hypothesis(
        Hypothesis(text="age < 5", kind="condition", n=10, errors=4, rest_n=90, rest_errors=9, person="ada")
    )
    records.undo("k1", person="ada")
    return records


def all_lines(engine: Engine, table: str) -> list[Any]:
    with engine.connect() as connection:
        return list(connection.exec_driver_sql(f"SELECT * FROM {table} ORDER BY number"))


def test_it_has_all_that_people_did_in_order(tmp_path: Path) -> None:
    with filled(tmp_path) as records:
        lines = records.journal()
        assert [(line.person, line.action, line.about, line.detail) for line in lines] == [
            ("ada", "answered", "s1, 7", "class: 2"),
            ("bob", "decided", "s1", "accepted as “dark” (seen it)"),
            ("ada", "edited", "s1, 7", "put out"),
            ("bob", "drew", "drawn-1", "“loop”, 2 rows"),
            ("ada", "tested", "all rows", "“age < 5”: 4 of 10 wrong, 9 of 90 of the rest"),
            ("ada", "undid", "s1, 7", "the answer k1"),
        ]
        assert [line.at for line in lines] == sorted(line.at for line in lines)
        assert records.journal("bob") == tuple(line for line in lines if line.person == "bob")
        assert records.journal("nobody") == ()


TABLES = ["annotations", "decisions", "edits", "drawn", "guesses"]
CHANGES = ["UPDATE {} SET person = 'eve'", "UPDATE {} SET person = 'eve' WHERE number = 1", "DELETE FROM {}"]


def test_no_line_is_changed_or_deleted_by_anybody(place: str) -> None:
    """In a file of SQLite and in a real PostgreSQL."""
    filled(place).close()
    changes = [*CHANGES, "TRUNCATE {} CASCADE"] if "://" in place else CHANGES
    with plain(place) as engine:
        for table in TABLES:
            before = all_lines(engine, table)
            assert before
            for change in changes:
                with pytest.raises(DBAPIError, match="a line of a log never changes"), engine.begin() as connection:
                    connection.exec_driver_sql(change.format(table))
            assert all_lines(engine, table) == before


@pytest.mark.parametrize("table", TABLES)
def test_no_line_of_sqlite_is_replaced(table: str, tmp_path: Path) -> None:
    """REPLACE deletes the line that has the same key, or the same number, and no trigger for deletions is asked."""
    filled(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / "records.sqlite")) as connection:
        names = [f'"{row[1]}"' for row in connection.execute(f"PRAGMA table_info({table})") if row[1] != "person"]
        for statement in (
            f"REPLACE INTO {table} (person, {', '.join(names)}) SELECT 'eve', {', '.join(names)} FROM {table} LIMIT 1",
            f"INSERT OR REPLACE INTO {table} SELECT * FROM {table} LIMIT 1",
        ):
            with pytest.raises(sqlite3.DatabaseError, match="a line of a log never changes"):
                connection.execute(statement)
        (eves,) = connection.execute(f"SELECT count(*) FROM {table} WHERE person = 'eve'").fetchone()
        assert eves == 0


# What no two lines of a log may share, and what the other such columns of a new line are then.
UNIQUE = [*((table, rule) for table in TABLES for rule in ("number", "key")),
          ("annotations", "undoes"), ("decisions", "slice, version")]  # fmt: skip
FRESH = {"number": "1000", "key": "'new'", "undoes": "NULL", "version": "version + 1000"}


@pytest.mark.parametrize(("table", "rule"), UNIQUE)
def test_no_line_of_sqlite_is_replaced_by_one_that_shares_a_single_thing(table: str, rule: str, tmp_path: Path) -> None:
    """Each rule alone: a line that shares more with the old one is refused by the others."""
    filled(tmp_path).close()
    shared = rule.split(", ")
    with closing(sqlite3.connect(tmp_path / "records.sqlite")) as connection:
        names = [row[1] for row in connection.execute(f"PRAGMA table_info({table})")]
        values = [FRESH[name] if name in FRESH and name not in shared else f'"{name}"' for name in names]
        source = f"SELECT {', '.join(values)} FROM {table} WHERE {shared[0]} IS NOT NULL LIMIT 1"
        before = list(connection.execute(f"SELECT * FROM {table}"))
        with pytest.raises(sqlite3.DatabaseError, match="a line of a log never changes"):
            connection.execute(f"REPLACE INTO {table} {source}")
        assert list(connection.execute(f"SELECT * FROM {table}")) == before


def test_a_postgresql_of_before_or_with_triggers_off_is_protected_when_it_is_opened(server: Server) -> None:
    place = server.new_place()
    filled(place).close()
    with plain(place) as engine:
        with engine.begin() as connection:
            connection.exec_driver_sql("ALTER TABLE edits DISABLE TRIGGER USER")
            connection.exec_driver_sql("DROP TRIGGER errata_decisions_no_change ON decisions")
        with engine.begin() as connection:
            connection.exec_driver_sql("UPDATE edits SET item = '8'")  # so it was, before it is opened again
        Records(place, fingerprint="f", slices={"s1": "one", "s2": "two"}).close()
        for table in ("edits", "decisions"):
            with pytest.raises(DBAPIError, match="never changes"), engine.begin() as connection:
                connection.exec_driver_sql(f"DELETE FROM {table}")


def test_a_role_that_owns_no_table_can_still_serve(server: Server) -> None:
    place = server.new_place()
    filled(place).close()
    name = place.rpartition("%3D")[2]
    with plain(place) as engine, engine.begin() as connection:
        for table in TABLES:
            connection.exec_driver_sql(f"DROP TRIGGER errata_{table}_no_change ON {table}")
        connection.exec_driver_sql(f"CREATE ROLE clerk_{name} LOGIN")
        connection.exec_driver_sql(f"GRANT USAGE ON SCHEMA {name} TO clerk_{name}")
        connection.exec_driver_sql(f"GRANT SELECT, INSERT ON ALL TABLES IN SCHEMA {name} TO clerk_{name}")
        connection.exec_driver_sql(f"GRANT USAGE ON ALL SEQUENCES IN SCHEMA {name} TO clerk_{name}")
    as_clerk = place.replace("errata@", f"clerk_{name}@")
    with Records(as_clerk, fingerprint="f", slices={"s1": "one", "s2": "two"}) as records:
        records.edit(Edit(slice="s2", item="1", inside=True, person="ada"))
    with plain(as_clerk) as engine, pytest.raises(DBAPIError, match="permission denied"), engine.begin() as connection:
        connection.exec_driver_sql("UPDATE edits SET item = '8'")


KEY_OF_ADA = "ada's"
SAVED_TWICE = {
    "answer": lambda records, person: records.annotate(
        Annotation(queue="s1", item="8", person=person, task="class", answer=2, key=KEY_OF_ADA)
    ),
    "decision": lambda records, person: records.decide(
        Decision(slice="s2", decision="accepted", person=person, key=KEY_OF_ADA), version=0
    ),
    "edit": lambda records, person: records.edit(
        Edit(slice="s1", item="8", inside=True, person=person, key=KEY_OF_ADA)
    ),
    "drawing": lambda records, person: records.draw(Drawing(name="x", items=("8",), person=person, key=KEY_OF_ADA)),
    "hypothesis": lambda records, person: records.add_hypothesis(
        Hypothesis(text="x", kind="words", n=1, errors=1, rest_n=1, rest_errors=0, person=person, key=KEY_OF_ADA)
    ),
}


@pytest.mark.parametrize("name", SAVED_TWICE)
def test_a_key_that_is_anothers_is_refused_and_loses_nothing(name: str, tmp_path: Path) -> None:
    """Who took a colleague's key was answered with what the colleague saved, and 200; theirs was lost."""
    with Records(tmp_path, fingerprint="f", slices={"s1": "one", "s2": "two"}) as records:
        first = SAVED_TWICE[name](records, "ada")
        assert len(records.journal()) == 1
        again = SAVED_TWICE[name](records, "ada")
        if name == "answer":
            assert again == replace(first, repeated=True)
        with pytest.raises(InputError, match="of something that ada saved; nothing was saved"):
            SAVED_TWICE[name](records, "bob")
        assert [line.person for line in records.journal()] == ["ada"]


def test_a_database_of_before_is_protected_when_it_is_opened(tmp_path: Path) -> None:
    filled(tmp_path).close()
    with closing(sqlite3.connect(tmp_path / "records.sqlite")) as connection:
        for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'trigger'").fetchall():
            connection.execute(f"DROP TRIGGER {name}")
    Records(tmp_path, fingerprint="f", slices={"s1": "one", "s2": "two"}).close()
    forbidden = pytest.raises(sqlite3.DatabaseError, match="never changes")
    with closing(sqlite3.connect(tmp_path / "records.sqlite")) as connection, forbidden:
        connection.execute("DELETE FROM annotations")


def test_a_log_file_that_is_removed_is_noticed_and_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    """SQLite's own log, `records.sqlite-wal`: commits went to a file without a name, and were gone with the process."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            records = filled(tmp_path)
            (tmp_path / "records.sqlite-wal").unlink()
            with pytest.raises(Unavailable, match=r"records.sqlite-wal. was removed or replaced"):
                records.annotate(Annotation(queue="s1", item="9", person="ada", task="class", answer=1, key="k9"))
            code = 0
        finally:
            os._exit(code)  # as if it were killed: nothing is closed
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    with Records(tmp_path, fingerprint="f", slices={"s1": "one", "s2": "two"}) as records:
        assert len(records.journal()) == 6


def test_records_are_copied_to_be_shown_with_what_is_only_in_the_log(tmp_path: Path) -> None:
    (tmp_path / "audit").mkdir()
    (tmp_path / "copy").mkdir()
    with filled(tmp_path / "audit") as records:
        with Records(copy_to_show(tmp_path / "audit", tmp_path / "copy"), fingerprint="f") as shown:
            assert shown.journal() == records.journal()
            shown.annotate(Annotation(queue="s1", item="9", person="eve", task="class", answer=1))
        assert len(records.journal()) == 6


def test_a_folder_without_records_is_shown_with_none(tmp_path: Path) -> None:
    (tmp_path / "copy").mkdir()
    with Records(copy_to_show(tmp_path / "audit", tmp_path / "copy"), fingerprint="f") as shown:
        assert shown.journal() == ()
