"""Answers: saved once, taken back without a trace lost, counted by person and by queue."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import Any

import pytest

from errata.core import InputError
from errata.people.entries import Annotation, Entry
from errata.people.records import Records

ISO = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}\+00:00"
REGION = {"failure": True, "label": None}


def said(item: str = "7", answer: Any = 3, person: str = "ada", **more: Any) -> Annotation:
    return Annotation(**{"queue": "s1", "item": item, "person": person, "task": "class", "answer": answer, **more})


def facts(entries: tuple[Entry, ...]) -> list[tuple[str, str, Any]]:
    return [(entry.person, entry.item, entry.answer) for entry in entries]


def test_an_answer_comes_back_as_it_was_given(records: Records, open_records: Callable[..., Records]) -> None:
    given = said(seconds=2.718281828459045, settles=True, key="k" * 95)
    entry = records.annotate(given)
    assert not entry.repeated
    assert re.fullmatch(ISO, entry.at)
    records.close()
    (kept,) = open_records().log()
    assert kept == entry
    assert {**asdict(kept), **vars(given)} == asdict(kept)


ANSWERS = [
    ("class", 0),
    ("class", "Dreieck „ä“ 🔺"),
    ("class", "\\u0000 <script>"),
    ("class", None),
    ("member", "in"),
    ("member", "out"),
    ("region", REGION),
    ("region", {"failure": False, "label": "8"}),
    ("questionnaire", {"ease": 4, "words": ["a", "\0"]}),
]


@pytest.mark.parametrize(("task", "answer"), ANSWERS)
def test_every_task_has_its_answers(records: Records, task: str, answer: Any) -> None:
    records.annotate(said(task=task, answer=answer))
    (entry,) = records.answers("s1", "ada", task)  # type: ignore[arg-type] - a parametrised text
    assert (entry.task, entry.answer) == (task, answer)


BAD: list[tuple[dict[str, Any], str]] = [
    ({"task": "clas"}, "unknown task `clas`; did you mean `class`?"),
    ({"answer": True}, "a class must be its index, its name, or None for none of the above; got True"),
    ({"answer": -1}, "got -1"),
    ({"answer": 1.5}, "got 1.5"),
    ({"answer": ""}, "`name` must be a text that is not empty"),
    ({"answer": [1]}, "a class must be its index"),
    ({"task": "member", "answer": None}, '"in" or "out"; got None'),
    ({"task": "region", "answer": 3}, "`failure` and `label`"),
    ({"task": "region", "answer": {"failure": 1, "label": 2}}, "`failure` must be true or false; got 1"),
    ({"task": "region", "answer": {"failure": True, "label": 2.0}}, "got 2.0"),
    ({"task": "questionnaire", "answer": {}}, "must map questions"),
    ({"task": "questionnaire", "answer": {"ease": float("nan")}}, "plain JSON"),
    ({"task": "questionnaire", "answer": {"x": object()}}, "plain JSON"),
    ({"task": "questionnaire", "answer": {"x": "y" * 20_000}}, "20000 characters"),
    ({"task": "questionnaire", "answer": {"x": 1}, "settles": True}, "nothing to settle"),
    ({"seconds": -1}, "`seconds` must be a number of at least 0"),
    ({"seconds": float("nan")}, "`seconds` must be"),
    ({"seconds": True}, "`seconds` must be"),
    ({"settles": 1}, "`settles` must be true or false; got 1"),
    ({"person": "  "}, "`person` must be a text that is not empty"),
    ({"item": 7}, "`item` must be a text that is not empty; got 7"),
    ({"item": "a\0b"}, "`item` has a character that cannot be saved"),
    ({"queue": "\ud800"}, "`queue` has a character that cannot be saved"),
    ({"queue": "q" * 201}, "`queue` may have 200 characters; got 201"),
    ({"key": ""}, "`key` must be"),
    ({"key": "undo:x"}, "must not start with 'undo:'"),
]  # fmt: skip


@pytest.mark.parametrize(("wrong", "words"), BAD)
def test_a_bad_answer_is_refused_in_words(wrong: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=re.escape(words)):
        said(**wrong)


def test_nested_beyond_measure_is_refused() -> None:
    deep: Any = 1
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(InputError, match="plain JSON"):
        said(task="questionnaire", answer={"x": deep})


def test_a_key_saves_once_and_the_first_stays(records: Records) -> None:
    first = records.annotate(said(key="same"))
    again = records.annotate(said(key="same", answer=9, item="8"))
    assert again == replace(first, repeated=True)
    assert len(records.log()) == 1


def test_the_last_answer_stands_and_undo_brings_back_the_one_before(records: Records) -> None:
    first, second = records.annotate(said(answer=1)), records.annotate(said(answer=2))
    assert facts(records.answers()) == [("ada", "7", 2)]
    undone = records.undo(second.key, person="ada")
    assert (undone.undoes, undone.answer, undone.item) == (second.key, None, "7")
    assert facts(records.answers()) == [("ada", "7", 1)]
    records.undo(first.key, person="ada")
    assert records.answers() == ()
    assert [line.undoes for line in records.log()] == [None, None, second.key, first.key]  # nothing is deleted
    records.annotate(said(answer=5))
    assert facts(records.answers()) == [("ada", "7", 5)]


def test_undoing_twice_is_undoing_once(records: Records) -> None:
    entry = records.annotate(said(key="k" * 95))
    first, again = (records.undo(entry.key, person="ada") for _ in range(2))
    assert (first.repeated, again.repeated) == (False, True)
    assert first.number == again.number
    assert len(records.log()) == 2


def test_undo_is_of_ones_own_answers(records: Records) -> None:
    entry = records.annotate(said())
    with pytest.raises(InputError, match="this answer is ada's; only they can undo it, and bob cannot"):
        records.undo(entry.key, person="bob")
    undone = records.undo(entry.key, person="ada")
    for key in ("unheard of", undone.key):
        with pytest.raises(InputError, match="nothing to undo"):
            records.undo(key, person="ada")


def test_people_queues_items_and_tasks_are_apart(records: Records) -> None:
    for queue, item, person, (task, answer) in itertools.product(
        ("s1", "s2"), ("1", "2"), ("ada", "bob"), (("class", 0), ("member", "in"))
    ):
        records.annotate(Annotation(queue=queue, item=item, person=person, task=task, answer=answer))  # type: ignore[arg-type] - texts
    assert len(records.answers()) == 16
    assert len(records.answers("s1")) == 8
    assert facts(records.answers("s1", "ada", "class")) == [("ada", "1", 0), ("ada", "2", 0)]
    assert len(records.log("s2", person="bob", task="member")) == 2


def test_progress_counts_items_not_answers(records: Records) -> None:
    assert (records.progress("s1", "ada").answered, records.progress("s1", "ada").last) == (0, None)
    records.annotate(said("1", seconds=1.5))
    records.annotate(said("1", answer=4, seconds=2))
    records.annotate(said("1", task="member", answer="in", seconds=4))
    last = records.annotate(said("2"))
    records.annotate(said("3", person="bob"))
    records.annotate(said("9", settles=True))  # a last word, not an answer of the queue
    records.annotate(said("1", queue="s2"))
    assert records.progress("s1", "ada").answered == 2
    assert records.progress("s1", "ada").seconds == 6
    assert records.progress("s1", "ada", "member").answered == 1
    assert records.progress("s1", "ada").last == last
    records.undo(last.key, person="ada")
    assert records.progress("s1", "ada").answered == 1
