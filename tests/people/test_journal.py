"""The log of what people did: all of it, in its order, and no line that anybody can change."""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from errata.people import Annotation, Decision, Drawing, Edit, Hypothesis, Records
from errata.people.database import Unavailable, copy_to_show


def filled(folder: Path) -> Records:
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


@pytest.mark.parametrize("table", ["annotations", "decisions", "edits", "drawn", "guesses"])
@pytest.mark.parametrize("statement", ["UPDATE {} SET person = 'eve'", "DELETE FROM {}"])
def test_no_line_is_changed_or_deleted_by_anybody(table: str, statement: str, tmp_path: Path) -> None:
    filled(tmp_path).close()
    forbidden = pytest.raises(sqlite3.DatabaseError, match="a line of a log never changes")
    with closing(sqlite3.connect(tmp_path / "records.sqlite")) as connection, forbidden:
        connection.execute(statement.format(table))


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
