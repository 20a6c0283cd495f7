"""Records as files: everything out, and a saved page's answers in, once."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from errata.core import InputError
from errata.people.entries import Annotation, Decision, Drawing, Edit, Hypothesis
from errata.people.exchange import ANNOTATIONS, ImportCounts
from errata.people.records import Records

SECONDS = 0.1 + 0.2  # takes all seventeen digits
TABLES = {"annotations", "answers", "slices", "decisions", "edits", "drawn", "guesses"}


def fill(records: Records) -> None:
    for person, answer in (("ada", 3), ("bob", None)):
        records.annotate(
            Annotation(queue="s1", item="ä", person=person, task="class", answer=answer, seconds=SECONDS, key=person)
        )
    records.annotate(Annotation(queue="s1", item="ä", person="ada", task="class", answer="star", key="undone"))
    records.undo("undone", person="ada")
    for person, key in (("bob", "not yet"), ("ada", "end")):
        records.annotate(Annotation(queue="s1", item="ä", person=person, task="class", answer=4, settles=True, key=key))
    drawn = records.draw(Drawing(name="corner", items=("4", "2"), person="eve"))
    records.decide(Decision(slice="s1", decision="rejected", person="ada"), version=0)
    records.decide(Decision(slice="s1", decision="accepted", person="ada", name="night", note="ö"), version=1)
    records.decide(Decision(slice="s2", decision="merged", person="ada", into="s1"), version=0)
    records.edit(Edit(slice=drawn.slice, item="2", inside=None, person="ada"))
    records.add_hypothesis(Hypothesis(text="a", kind="words", n=2**52, errors=1, rest_n=2, rest_errors=2, person="ada"))


def test_all_of_it_as_json(records: Records, tmp_path: Path) -> None:
    fill(records)
    records.export_json(tmp_path / "out.json")
    facts = json.loads((tmp_path / "out.json").read_text())
    assert (facts.pop("schema"), facts.pop("fingerprint")) == ("errata.records/1", "f00d")
    (accepted,) = facts.pop("accepted")
    assert (accepted["slice"], accepted["name"], accepted["note"], accepted["merged"]) == ("s1", "night", "ö", ["s2"])
    assert set(facts) == TABLES
    assert [line["key"] for line in facts["annotations"]] == ["ada", "bob", "undone", "undo:undone", "not yet", "end"]
    assert facts["annotations"][0]["answer"] == 3
    assert facts["annotations"][0]["seconds"] == SECONDS
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT.*\.\d{6}\+00:00", facts["annotations"][0]["at"])
    assert [line["key"] for line in facts["answers"]] == ["ada", "bob", "end"]
    assert [line["settles"] for line in facts["answers"]] == [False, False, True]
    assert [(line["slice"], line["version"], line["into"]) for line in facts["decisions"]] == [
        ("s1", 1, None),
        ("s1", 2, None),
        ("s2", 1, "s1"),
    ]
    assert [line["id"] for line in facts["slices"]] == ["s1", "s2", "s3", "drawn-1"]
    assert facts["drawn"][0]["items"] == ["4", "2"]
    assert facts["edits"][0]["inside"] is None
    assert facts["guesses"][0]["n"] == 2**52


def test_json_goes_to_an_open_file_too(records: Records) -> None:
    file = io.StringIO()
    records.export_json(file)
    assert json.loads(file.getvalue())["annotations"] == []


def test_parquet_says_the_same(records: Records, tmp_path: Path) -> None:
    fill(records)
    file = io.StringIO()
    records.export_json(file)
    facts = json.loads(file.getvalue())
    records.export_parquet(tmp_path / "out")
    assert {path.stem for path in (tmp_path / "out").iterdir()} == TABLES
    for name in TABLES:
        table = pq.read_table(tmp_path / "out" / f"{name}.parquet")
        assert table.schema.metadata == {b"schema": b"errata.records/1", b"fingerprint": b"f00d"}
        lines = table.to_pylist()
        for line in lines if "answer" in table.column_names else []:
            line["answer"] = json.loads(line["answer"])
        assert lines == facts[name]


def test_parquet_of_nothing_has_its_columns(records: Records, tmp_path: Path) -> None:
    records.export_parquet(tmp_path / "out")
    schema = pq.read_schema(tmp_path / "out" / "annotations.parquet")
    assert [str(schema.field(name).type) for name in ("number", "answer", "seconds", "settles")] == [
        "int64",
        "string",
        "double",
        "bool",
    ]
    assert str(pq.read_schema(tmp_path / "out" / "guesses.parquet").field("n").type) == "int64"


def test_nothing_is_overwritten(records: Records, tmp_path: Path) -> None:
    (tmp_path / "out").mkdir()
    for export in (records.export_json, records.export_parquet):
        with pytest.raises(InputError, match="exists already"):
            export(tmp_path / "out")
    assert list((tmp_path / "out").iterdir()) == []


def line(key: str = "a", **more: Any) -> dict[str, Any]:
    return {"key": key, "queue": "s1", "item": "7", "person": "ada", "task": "class", "answer": 3,
            "at": "2030-01-31T14:02:31Z", **more}  # fmt: skip


def download(*lines: Any, **more: Any) -> dict[str, Any]:
    return {"schema": ANNOTATIONS, "fingerprint": "f00d", "annotations": list(lines), **more}


def test_a_download_is_imported_once(records: Records, tmp_path: Path) -> None:
    page = download(line("a", at="2020-01-31T15:02:31+01:00"), line("b", item="8", answer=None, seconds=1.5))
    path = tmp_path / "answers.json"
    path.write_text(json.dumps(page))
    assert records.import_annotations(path) == ImportCounts(new=2, older=0, repeated=0, differing=0)
    for source in (str(path), io.StringIO(json.dumps(page)), page):
        assert records.import_annotations(source) == ImportCounts(new=0, older=0, repeated=2, differing=0)
    first, second = records.log()
    assert (first.key, first.answer, first.at) == ("a", 3, "2020-01-31T14:02:31.000000+00:00")
    assert (second.answer, second.seconds) == (None, 1.5)


def test_a_key_with_another_answer_is_told(records: Records) -> None:
    records.import_annotations(download(line()))
    assert records.import_annotations(download(line(answer=4), line("b", item="8"))) == ImportCounts(1, 0, 0, 1)
    assert [entry.answer for entry in records.answers(person="ada")] == [3, 3]


def test_an_old_download_does_not_overrule_what_was_said_since(records: Records) -> None:
    """Answered in a saved page on Monday, in the app on Tuesday, imported on Wednesday: Tuesday's stands."""
    records.annotate(Annotation(queue="s1", item="7", person="ada", task="class", answer=9, key="tuesday"))
    records.annotate(Annotation(queue="s1", item="7", person="bob", task="class", answer=1, key="bob"))
    old = "2001-01-01T00:00:00Z"
    assert records.import_annotations(download(line("monday", at=old), line("new", item="8", at=old))) == ImportCounts(
        2, 1, 0, 0
    )
    assert {entry.key for entry in records.answers()} == {"tuesday", "bob", "new"}
    assert "monday" in {entry.key for entry in records.log()}
    assert records.import_annotations(download(line("later", at="2999-01-01T00:00:00Z"))).older == 0
    assert {entry.key for entry in records.answers()} == {"later", "bob", "new"}


def test_a_download_is_read_in_the_order_of_its_times(records: Records) -> None:
    later, sooner = line("later", answer=1), line("sooner", answer=2, at="2030-01-31T14:02:30Z")
    assert records.import_annotations(download(later, sooner)) == ImportCounts(2, 0, 0, 0)
    (only,) = records.answers()
    assert only.answer == 1


def test_another_audits_answers_are_refused(records: Records) -> None:
    words = "these answers are about another audit ('beef'; this one is 'f00d'); import them into that one"
    with pytest.raises(InputError, match=re.escape(words)):
        records.import_annotations(download(line(), fingerprint="beef"))
    assert records.log() == ()


BAD: list[tuple[Any, str]] = [
    ("{", "not JSON"),
    ("[]", "must be a JSON object; got list"),
    (download(schema="errata.annotations/2"), "has the schema 'errata.annotations/2', not 'errata.annotations/1'"),
    (download(annotations={}), "`annotations` must be a list; got dict"),
    (download(line(), 3), "answer 2 of the file: must be a JSON object; got int; nothing was imported"),
    (download(line(), line("b", persn="x")), "answer 2 of the file: unknown part `persn`; did you mean `person`?"),
    (download(line(), {"key": "b"}), "answer 2 of the file: `queue` is missing"),
    (download(line(), line("b", answer=1.5)), "answer 2 of the file: a class must be its index"),
    (download(line(), line("b", at="soon")), "answer 2 of the file: `at` must be an ISO time; got 'soon'"),
    (download(line(), line("b", at=3)), "`at` must be an ISO time; got 3"),
    (download(line(), line("b", at="2030-01-31T14:02:31")), "`at` must have a time zone"),
    (download(line(), line("undo:a")), "must not start with 'undo:'"),
]


@pytest.mark.parametrize(("page", "words"), BAD)
def test_a_bad_download_is_refused_whole(records: Records, page: Any, words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)):
        records.import_annotations(page if isinstance(page, dict) else io.StringIO(page))
    assert records.log() == ()


def test_a_file_that_is_not_there(records: Records, tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"no\.json` cannot be read"):
        records.import_annotations(tmp_path / "no.json")
    (tmp_path / "latin.json").write_bytes(b"\xe4")
    with pytest.raises(InputError, match="not JSON"):
        records.import_annotations(tmp_path / "latin.json")


def test_an_old_answer_that_settles_does_not_overrule_a_newer_one_of_somebody_else(records: Records) -> None:
    for person, answer in (("ada", 3), ("bob", 9)):
        records.annotate(Annotation(queue="s1", item="7", person=person, task="class", answer=answer))
    records.annotate(Annotation(queue="s1", item="7", person="bob", task="class", answer=9, settles=True, key="new"))
    old = line("old", person="eve", settles=True, at="2001-01-01T00:00:00Z")
    assert records.import_annotations(download(old)) == ImportCounts(new=1, older=1, repeated=0, differing=0)
    assert [entry.key for entry in records.settled("s1")] == ["new"]
