"""Answers, queues, agreement and decisions, asked of the app as its pages ask."""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from errata.core import Audit
from errata.people.database import Unavailable
from errata.people.records import Records
from support.asking import Ask, sentence


def answer(ask: Ask, item: str, person: str, said: Any, **more: Any) -> httpx.Response:
    given = {"queue": "s1", "item": item, "person": person, "task": "class", "answer": said, **more}
    return ask("POST", "/api/annotations", json=given)


def queue(ask: Ask, person: str, task: str = "class") -> dict[str, Any]:
    told: dict[str, Any] = ask("GET", "/api/queues/s1", params={"person": person, "task": task}).json()
    return told


def test_a_queue_tells_neither_label_nor_prediction(ask: Ask, audit: Audit) -> None:
    told = queue(ask, "Ada")
    assert set(told["items"][0]) == {"id", "picture", "text", "row"}
    members = audit.evaluation.row_ids[audit.slices[0].members & ~audit.discover]
    assert {one["id"] for one in told["items"]} <= set(members.tolist())
    assert told["of"] == min(60, len(members))
    assert told["items"] == queue(ask, "Bob")["items"]


def test_the_same_key_twice_is_one_answer(ask: Ask, records: Records) -> None:
    first = answer(ask, "row-1", "Ada", 0, key="k1").json()
    again = answer(ask, "row-1", "Ada", 1, key="k1").json()
    assert (first["repeated"], again["repeated"], again["answer"]) == (False, True, 0)
    assert len(records.log()) == 1


def test_undo_takes_back_ones_own_only(ask: Ask, records: Records) -> None:
    item = queue(ask, "Ada")["items"][0]["id"]
    key = answer(ask, item, "Ada", 1).json()["key"]
    assert queue(ask, "Ada")["done"] == 1
    got = ask("POST", f"/api/annotations/{key}/undo", json={"person": "Bob"})
    assert got.status_code == 422
    assert "only they can undo it" in sentence(got)
    assert ask("POST", f"/api/annotations/{key}/undo", json={"person": "Ada"}).json()["undoes"] == key
    assert queue(ask, "Ada")["done"] == 0
    got = ask("POST", "/api/annotations/none/undo", json={"person": "Ada"})
    assert (got.status_code, sentence(got)) == (422, "no answer has the key `none`, so there is nothing to undo")


def test_two_people_their_agreement_and_what_to_settle(ask: Ask) -> None:
    items = [one["id"] for one in queue(ask, "Ada")["items"][:20]]
    for i, item in enumerate(items):
        answer(ask, item, "Ada", i % 2)
        answer(ask, item, "Bob", i % 2 if i >= 3 else 1 - i % 2)
    told = queue(ask, "Ada")
    assert told["done"] == 20
    assert (told["agreement"]["items"], told["agreement"]["same"]) == (20, 17)
    assert told["agreement"]["kappa"] == pytest.approx(0.7, abs=0.02)
    assert {one["item"] for one in told["settle"]} == set(items[:3])
    assert queue(ask, "Cid")["settle"] == [], "who has not answered is not told what others said"
    assert answer(ask, items[0], "Ada", 1, settles=True).status_code == 200
    assert {one["item"] for one in queue(ask, "Ada")["settle"]} == set(items[1:3])


@pytest.mark.parametrize(
    ("change", "status", "words"),
    [
        ({"item": "none"}, 404, "Row 'none' does not exist."),
        ({"answer": 2}, 422, "Class 2 does not exist."),
        ({"answer": "cow"}, 422, "Class 'cow' does not exist."),
        ({"answer": -1}, 422, "a class must be its index"),
        ({"task": "dance"}, 422, "dance"),
        ({"person": " "}, 422, "`person` must be a text that is not empty"),
        ({"person": "x" * 101}, 422, "`person` may have 100 characters"),
        ({"wings": 2}, 422, "This is no annotation"),
        ({"seconds": -1}, 422, "`seconds`"),
        ({"key": "undo:x"}, 422, "`key` must not start with"),
    ],
)
def test_an_answer_that_is_none(ask: Ask, records: Records, change: dict[str, Any], status: int, words: str) -> None:
    got = answer(
        ask,
        **{"item": "row-1", "person": "Ada", "said": 0, **change}
        if "answer" not in change
        else {"item": "row-1", "person": "Ada", "said": change["answer"]},
    )
    assert got.status_code == status
    assert words in sentence(got)
    assert records.log() == ()


def test_none_of_the_above_and_names_are_answers(ask: Ask) -> None:
    for said in (None, 0, 1, "cat"):
        assert answer(ask, "row-1", "Ada", said).json()["answer"] == said


def test_a_queue_of_an_unknown_task(ask: Ask) -> None:
    assert ask("GET", "/api/queues/s1", params={"person": "Ada", "task": "dance"}).status_code == 422
    assert sentence(ask("GET", "/api/queues/s1")) == "This request cannot be read. `person`: Field required."


def test_two_tabs_on_one_slice_neither_overwrites(ask: Ask, records: Records) -> None:
    def decide(seen: int, **given: Any) -> httpx.Response:
        whole = {"slice": "s1", "decision": "undecided", "name": None, "note": "", "into": None, **given}
        return ask("POST", "/api/decisions", json={"given": whole, "seen": seen})

    assert decide(0, person="Ada", name="first").json()["version"] == 1
    got = decide(0, person="Bob", name="second", decision="rejected")
    assert got.status_code == 409
    told = got.json()
    assert (told["mine"]["name"], told["theirs"]["name"], told["theirs"]["version"]) == ("second", "first", 1)
    assert "nothing was overwritten" in told["detail"]
    assert records.standings()["s1"].name == "first"
    assert decide(1, person="Bob", name="second", decision="rejected").json()["version"] == 2
    assert decide(2, person="Bob", decision="merged", into="s2").json()["into"] == "s2"
    assert decide(3, person="Bob", decision="merged", into="s1").status_code == 422
    assert decide(3, person="Bob", decision="accepted", slice="s99").status_code == 422
    assert "Merged into s2" in ask("GET", "/curate").text


def test_accepted_slices_are_the_list_for_later(ask: Ask) -> None:
    given = {"slice": "s1", "person": "Ada", "decision": "accepted", "name": "at night", "note": "fix it", "into": None}
    ask("POST", "/api/decisions", json={"given": given, "seen": 0})
    (one,) = ask("GET", "/api/accepted").json()
    assert (one["slice"], one["name"], one["note"], one["renamed"]) == ("s1", "at night", "fix it", True)


def test_everything_goes_out_as_a_file(ask: Ask) -> None:
    answer(ask, "row-1", "Ada", 1)
    got = ask("GET", "/api/export.json")
    assert got.headers["content-disposition"] == 'attachment; filename="errata-records.json"'
    told = json.loads(got.text)
    assert told["schema"] == "errata.records/1"
    assert [one["person"] for one in told["annotations"]] == ["Ada"]


def test_a_database_that_does_not_answer_is_no_mistake_of_the_asker(
    ask: Ask, records: Records, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page sends an answer again after a 5xx, and drops what was refused."""

    def away(annotation: Any) -> Any:
        raise Unavailable("the database is away; nothing was saved; try again")

    monkeypatch.setattr(records, "annotate", away)
    got = answer(ask, "row-1", "Ada", 1)
    assert (got.status_code, sentence(got)) == (503, "the database is away; nothing was saved; try again")
