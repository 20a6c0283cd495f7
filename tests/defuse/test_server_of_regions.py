"""Regions to label, asked for as a browser and as a stranger would."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest

from errata.core import InputError, State
from errata.defuse import server
from errata.defuse.pages import to_html
from errata.defuse.regions import Regions
from errata.defuse.server import LiveRun, create_app
from errata.defuse.stages import RunFolder
from errata.defuse.view import load_run
from errata.defuse.votes import read_votes
from errata.people.entries import Annotation
from errata.people.records import Records

Ask = Callable[..., httpx.Response]
PAGE = {"accept": "text/html"}
NASTY = "<img src=x onerror=alert(1)>'\"&"
NAMES = ("cat", "dog", NASTY)
SHOWN = 4


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A run that waits for labels: two regions of four samples each."""
    facts = {"settings": {"epochs": 3}, "class_names": list(NAMES), "model": "m", "data": "d"}
    run = RunFolder.create_or_open(tmp_path / "run", facts, {"correction": {"rho": 0.5}})
    sources, predictions = np.array([[9, 0, 1], [0, 5, 0]]), np.array([[0, 9, 1], [0, 0, 5]])
    regions = Regions(np.zeros((2, 3)), np.stack([np.eye(3)] * 2), np.array([0.7, 0.3]), sources, predictions)
    run.save("regions", regions.to_state())
    said = np.array([[1, 1, 1, 0], [2, 2, 1, 1]])
    pictures = np.arange(2 * SHOWN * 64, dtype=np.uint8).reshape(2, SHOWN, 8, 8, 1)
    names = {"names": regions.names(NAMES)}
    run.save("samples", State("samples", names, {"pictures": pictures, "predictions": said}))
    return tmp_path / "run"


@pytest.fixture
def records(folder: Path) -> Any:
    told = load_run(folder)
    with Records(folder, fingerprint=told.fingerprint, slices=dict(told.names)) as opened:
        yield opened


@pytest.fixture
def ask(folder: Path, records: Records) -> Ask:
    app = create_app(LiveRun(folder, records), records)

    def one(method: str, path: str, **given: Any) -> httpx.Response:
        async def go() -> httpx.Response:
            way = httpx.ASGITransport(app=app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=way, base_url="http://127.0.0.1") as client:
                return await client.request(method, path, **given)

        return asyncio.run(go())

    return one


def answer(ask: Ask, **changed: Any) -> httpx.Response:
    given = {"queue": "r1", "item": "all", "person": "Ann", "task": "region", "answer": {"failure": True, "label": 0}}
    return ask("POST", "/api/annotations", json={**given, **changed})


@pytest.mark.parametrize("path", ["/", "/region/r1", "/annotate", "/annotate/r2", "/result"])
def test_every_page_is_there_and_escapes_what_it_shows(ask: Ask, path: str) -> None:
    got = ask("GET", path, headers=PAGE)
    assert got.status_code == 200
    assert "<img src=x" not in got.text


def test_a_region_that_waits_does_not_say_what_it_was_made_from(ask: Ask) -> None:
    assert "cat taken for dog" not in ask("GET", "/", headers=PAGE).text
    assert answer(ask).status_code == 200
    assert "cat taken for dog" in ask("GET", "/", headers=PAGE).text


def test_the_sheet_s_answer_stands_for_all_samples(ask: Ask, folder: Path, records: Records) -> None:
    answer(ask)
    answer(ask, person="Ben", answer={"failure": False, "label": None})
    votes = read_votes(records, RunFolder(folder))
    assert [vote.label for vote in votes if vote.person == "Ann"] == [0, 0, 0, 0]
    assert [vote.label for vote in votes if vote.person == "Ben"] == [1, 1, 1, 0]  # as the classifier says


def test_one_by_one_goes_before_the_sheet(ask: Ask, folder: Path, records: Records) -> None:
    answer(ask)
    answer(ask, item="2", task="class", answer=None)
    judged = LiveRun(folder, records)().judged[0]
    assert (judged.labelled, judged.wrong, judged.label, judged.verdict) == (3, 2, 0, "misclassified")


def test_what_others_said_is_shown_after_one_s_own_answer(ask: Ask) -> None:
    answer(ask)
    before = ask("GET", "/api/regions/r1?person=Ben").json()
    assert before["mine"] is None
    assert before["answers"] == [["Ann", None]]
    answer(ask, person="Ben")
    after = ask("GET", "/api/regions/r1?person=Ben").json()
    assert after["answers"][0] == ["Ann", {"failure": True, "label": 0}]
    assert (after["done"], after["of"]) == (1, 2)


def test_a_person_sees_where_they_have_been(ask: Ask) -> None:
    """Items, not answers: one that was answered twice, or to two tasks, is one."""
    for item, said in (("0", 1), ("0", 2), ("3", None)):
        answer(ask, item=item, task="class", answer=said)
    answer(ask, queue="r2")
    answer(ask, person="Ben", item="1", task="class", answer=0)
    assert ask("GET", "/api/answered?person=Ann").json() == {"r1": 2, "r2": 1}
    assert ask("GET", "/api/answered?person=Ben").json() == {"r1": 1}
    assert ask("GET", "/api/answered?person=Cy").json() == {}


def test_samples_are_pictures_and_nothing_else_is(ask: Ask) -> None:
    assert ask("GET", "/sample/r1/3").content.startswith(b"\x89PNG")
    for path in ("/sample/r1/4", "/sample/r1/-1", "/sample/r9/0", "/sample/../defuse.json", "/static/../x"):
        assert ask("GET", path).status_code in (404, 422), path


def test_to_label_does_not_count_all_answers_each_time(ask: Ask, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a person does a thousand times must not take longer with every answer."""

    def counted(*given: Any) -> Any:
        raise AssertionError("all answers were counted")

    monkeypatch.setattr(server, "read_votes", counted)
    assert answer(ask, item="2", task="class", answer=1).status_code == 200
    for path in (
        "/sample/r1/3",
        "/annotate",
        "/annotate/r1",
        "/api/queues/r1?person=Ann",
        "/api/regions/r1?person=Ann",
    ):
        assert ask("GET", path).status_code == 200, path


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"queue": "r9"}, "no region"),
        ({"item": "7", "task": "class", "answer": 0}, "Nothing is asked"),
        ({"item": "1"}, "Nothing is asked"),
        ({"answer": {"failure": True, "label": 3}}, "no class 3"),
        ({"answer": {"failure": True}}, "failure"),
        ({"task": "member", "answer": "in"}, "Nothing is asked"),
        ({"extra": 1}, "no annotation"),
    ],
)
def test_an_answer_to_nothing_is_refused_by_a_sentence(
    ask: Ask, records: Records, changed: dict[str, Any], words: str
) -> None:
    got = answer(ask, **changed)
    assert got.status_code in (404, 422)
    assert words in got.json()["detail"]
    assert records.answers() == ()


def test_a_page_of_another_site_may_not_answer(ask: Ask) -> None:
    given = {"queue": "r1", "item": "all", "person": "A", "task": "region", "answer": {"failure": True, "label": 0}}
    got = ask("POST", "/api/annotations", json=given, headers={"origin": "http://elsewhere"})
    assert got.status_code == 403


def test_answers_of_other_samples_are_refused(folder: Path, records: Records) -> None:
    records.close()
    with pytest.raises(InputError, match="another audit"):
        Records(folder, fingerprint="another", slices={})


def test_a_run_without_regions_has_a_page_that_says_so(tmp_path: Path) -> None:
    run = RunFolder.create_or_open(
        tmp_path / "run", {"settings": {}, "class_names": ["a", "b"]}, {"correction": {"rho": 0.5}}
    )
    older = "none of 10 images changed its class; KL never counted in full"  # one that has no notes of its own
    run.write("stage", {"stage": "no mistakes", "words": older})
    html = to_html(load_run(tmp_path / "run"))
    assert "No mistake was found beyond the data." in html
    assert "<p>None of 10 images changed its class; KL never counted in full.</p>" in html


def test_a_page_says_what_limits_a_run(ask: Ask, folder: Path) -> None:
    run = RunFolder(folder)
    run.write("stage", {"stage": "to label", "words": "2", "notes": ["only 14.3% keep <b>", "KL never `beta`"]})
    for html in (ask("GET", "/", headers=PAGE).text, to_html(load_run(folder))):
        assert html.count('<p class="note">Only 14.3% keep &lt;b&gt;.</p>') == 1
        assert html.count('<p class="note">KL never <code>beta</code>.</p>') == 1
        assert html.index("KL never") < html.index('id="h-list"')


def test_people_are_told_how_many_a_sample_needs(ask: Ask, folder: Path) -> None:
    """Two: one has answered everything, and would wonder why nothing is labelled."""
    words = "A sample counts once two people have labelled it; a final word does alone."
    pages = ("/region/r1", "/annotate", "/annotate/r1")
    assert not any(words in ask("GET", path, headers=PAGE).text for path in pages)
    run = RunFolder(folder)
    run.write("defuse", {**run.about, "correction": {"rho": 0.5, "quorum": 2}})
    run.write("stage", {"stage": "to label", "words": "2 of 2 regions have samples without a label"})
    assert all(words in ask("GET", path, headers=PAGE).text for path in pages)
    assert "2 regions of 2 to label." in ask("GET", "/", headers=PAGE).text
    answer(ask)
    overview = ask("GET", "/", headers=PAGE).text
    assert "1 region of 2 to label; 1 waits for a second person." in overview
    assert "<span>4 samples wait for a second person</span>" in overview
    assert f"{words} Here 4 samples wait for a second person." in ask("GET", "/region/r1", headers=PAGE).text
    answer(ask, queue="r2", item="2", task="class", answer=0)
    assert "2 of 2 regions wait for a second person." in ask("GET", "/", headers=PAGE).text
    answer(ask, person="Ben")
    assert "1 of 2 regions waits for a second person." in ask("GET", "/", headers=PAGE).text
    run.write("defuse", {**run.about, "correction": {"rho": 0.5, "quorum": 5}})
    run.write("stage", {"stage": "to label", "words": "2 of 2 regions have samples without a label"})
    assert "2 of 2 regions wait for more people." in ask("GET", "/", headers=PAGE).text


def test_a_final_word_on_a_sheet_is_the_last_one(ask: Ask, folder: Path, records: Records) -> None:
    answer(ask, settles=True)
    for person in ("Ben", "Cy"):
        answer(ask, person=person, item="0", task="class", answer=2)
    judged = LiveRun(folder, records)().judged[0]
    assert (judged.label, judged.labelled, judged.people, judged.agreement) == (0, 4, 1, ())
    answer(ask, person="Ben", item="0", task="class", answer=2, settles=True)  # of one sample, and later
    assert LiveRun(folder, records)().judged[0].people == 2


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"queue": "r9", "item": "all", "task": "region", "answer": {"failure": True, "label": 0}}, "does not show"),
        ({"queue": "r1", "item": "one", "task": "class", "answer": 0}, "does not show"),
        ({"queue": "r1", "item": "4", "task": "class", "answer": 0}, "does not show"),
        ({"queue": "r1", "item": "0", "task": "class", "answer": "bird"}, "which does not exist"),
    ],
)
def test_imported_answers_about_nothing_are_named(
    folder: Path, records: Records, given: dict[str, Any], words: str
) -> None:
    """The server refuses them; a file may hold anything."""
    records.annotate(Annotation(person="Ann", **given))
    with pytest.raises(InputError, match=words):
        read_votes(records, RunFolder(folder))
