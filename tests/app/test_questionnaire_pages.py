"""Barlow's questionnaire as it is asked: what is shown, what is refused, and what is kept and goes out again."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from errata import workflow
from errata.app.questionnaire_routes import Questionnaire
from errata.cli.serve import import_annotations
from errata.core import Audit, InputError
from errata.people import questionnaire
from errata.people.questionnaire import QuestionnaireAnswer
from errata.people.records import Records
from support.asking import PAGE, Ask, opened, sentence
from support.small_audits import image_evaluation, quick_audit

ASKED = Questionnaire(questionnaire.form(), questionnaire.checked)
SAID = {"description3": "dark ground", "description15": "a dark ground behind the shape", "ease": 4, "confidence": 5,
        "view": None, "necessity": "spurious", "actions": ["collect", "warn users"], "statements": {}}  # fmt: skip


@pytest.fixture(scope="module")
def audit(tree_audit: Audit) -> Audit:
    return tree_audit


@pytest.fixture
def both(audit: Audit, tmp_path: Path) -> Iterator[tuple[Records, Ask]]:
    records, ask = opened(audit, tmp_path, questionnaire=ASKED)
    with records:
        yield records, ask


def features(audit: Audit, slice: int = 0) -> list[str]:
    told = next(one.to_json() for one in audit.slices[slice].explanations if one.kind == "path")
    return [f"s{slice + 1} {one['name']}" for one in told["features"]]


def answer(ask: Ask, item: str, person: str = "Ada", said: Any = SAID, **more: Any) -> httpx.Response:
    given = {"queue": "s1", "item": item, "person": person, "task": "questionnaire", "answer": said, **more}
    return ask("POST", "/api/annotations", json=given)


def test_the_page_shows_every_feature_of_a_path_and_no_outcome(both: tuple[Records, Ask], audit: Audit) -> None:
    page = both[1]("GET", "/annotate/s1?task=questionnaire", headers=PAGE).text
    for about in features(audit):
        assert f'data-about="{about}"' in page
    assert "Along its range" in page
    for words in ("wrong </span>", "right </span>", "→", "loss "):
        assert words not in page.partition("<form")[0].partition("<main")[2], words
    assert audit.slices[0].name not in page, "a name made by machine would sway"
    path = next(one.to_json() for one in audit.slices[0].explanations if one.kind == "path")
    assert path["within"], "the tree was grown in a class, which is the label or the prediction of every row"
    for words in (path["within"], "within ", "cat", "dog"):
        assert words not in page.partition("<main")[2].partition("</main>")[0], words
    for choice in ("heat map", "spurious", "do not deploy", "In at most 15 words"):
        assert choice in page


def test_a_slice_that_is_no_path_is_described_as_a_whole(tmp_path: Path) -> None:
    plain = quick_audit(image_evaluation(400))
    records, ask = opened(plain, tmp_path, questionnaire=ASKED)
    with records:
        page = ask("GET", "/annotate/s1?task=questionnaire").text
        assert 'data-about="s1"' in page
        assert "Members at random" in page
        assert answer(ask, "s1").status_code == 200


def test_it_is_asked_only_where_it_was_handed_in(audit: Audit, tmp_path: Path) -> None:
    records, ask = opened(audit, tmp_path)
    with records:
        assert "Questionnaire" not in ask("GET", "/annotate").text
        got = ask("GET", "/annotate/s1?task=questionnaire")
        assert (got.status_code, sentence(got)) == (
            404,
            "Task 'questionnaire' does not exist; the tasks are class and member.",
        )
        got = answer(ask, "s1 feature 0")
        assert (got.status_code, sentence(got)) == (422, "This server has no questionnaire.")


def test_the_page_is_linked_and_named_among_the_tasks(both: tuple[Records, Ask]) -> None:
    ask = both[1]
    assert 'href="/annotate/s1?task=questionnaire"' in ask("GET", "/annotate").text
    words = "Task 'dance' does not exist; the tasks are class, member and questionnaire."
    assert sentence(ask("GET", "/annotate/s1?task=dance")) == words


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ({"description3": "one two three four"}, "`description3` may have 3 words; got 4"),
        ({"ease": 6}, "`ease` must be a whole number from 1 to 5"),
        ({"view": "sideways"}, "`view` must be one of heat map"),
        ({"actions": ["dance"]}, "`action` must be one of collect"),
        ({"wings": 2}, "wings"),
        ({"description3": None, "actions": []}, "this answer is empty"),
        ({"about": "s9", "person": "Eve"}, "this answer is empty"),
        ({}, "must map questions"),
        ("fine", "must map questions"),
    ],
)
def test_an_answer_that_is_none_is_refused(both: tuple[Records, Ask], audit: Audit, said: Any, words: str) -> None:
    records, ask = both
    got = answer(ask, features(audit)[0], said=said)
    assert got.status_code == 422
    assert words in sentence(got)
    assert records.log() == ()


def test_what_is_not_shown_is_not_asked_about(both: tuple[Records, Ask], audit: Audit) -> None:
    for item in ("row-1", "s1", "s2 feature 0 and more", "s1 feature 99"):
        got = answer(both[1], item)
        assert (got.status_code, sentence(got)) == (404, f"The questionnaire has no question about {item!r}.")
    got = answer(both[1], features(audit)[0], queue="s99")
    assert (got.status_code, sentence(got)) == (404, "Slice 's99' does not exist.")


def test_answers_of_several_people_are_kept_and_shown_to_who_has_answered(
    both: tuple[Records, Ask], audit: Audit
) -> None:
    records, ask = both
    first, second = features(audit)[:2]
    key = answer(ask, first).json()["key"]
    answer(ask, first, "Bob", {"description3": "night"})
    answer(ask, second, "Bob", {"necessity": "necessary"})

    def told(person: str) -> Any:
        return ask("GET", "/api/questionnaire/s1", params={"person": person}).json()

    assert told("Ada")["done"] == {first: SAID}
    assert [one["person"] for one in told("Ada")["others"][first]] == ["Bob"]
    assert set(told("Ada")["others"]) == {first}, "what she has not answered is not told"
    assert told("Cid") == {"done": {}, "others": {}}
    assert set(told("Bob")["done"]) == {first, second}
    assert records.agreement("s1", "questionnaire", part="necessity").people == {"Ada": 1, "Bob": 1}
    ask("POST", f"/api/annotations/{key}/undo", json={"person": "Ada"})
    assert told("Ada")["done"] == {}


def test_what_goes_out_is_read_again_as_answers(both: tuple[Records, Ask], audit: Audit, tmp_path: Path) -> None:
    records, ask = both
    about = features(audit)[0]
    answer(ask, about)
    answer(ask, about, "Bob", {"description3": "night"})
    out = json.loads(ask("GET", "/api/export.json").text)
    lines = [one for one in out["answers"] if one["task"] == "questionnaire"]
    read = [
        QuestionnaireAnswer.from_json({"about": one["item"], "person": one["person"], **one["answer"]}) for one in lines
    ]
    assert read[0] == QuestionnaireAnswer(about=about, person="Ada", **{**SAID, "actions": ("collect", "warn users")})
    assert questionnaire.description_agreement(read, lambda texts: [[1.0, 0.0] for _ in texts])[about] == pytest.approx(
        1.0
    )
    records.export_parquet(tmp_path / "tables")
    assert (tmp_path / "tables" / "answers.parquet").exists()


def line(audit: Audit, **changes: Any) -> dict[str, Any]:
    return {"key": "k1", "queue": "s1", "item": features(audit)[0], "person": "Ada", "task": "questionnaire",
            "answer": {"ease": 3}, "at": "2030-01-31T14:02:31Z", **changes}  # fmt: skip


def test_an_import_is_checked_too_and_comes_whole_or_not(both: tuple[Records, Ask], audit: Audit) -> None:
    records = both[0]
    bad = [line(audit), line(audit, key="k2", answer={"ease": 9})]
    file = {"schema": "errata.annotations/1", "fingerprint": "f", "annotations": bad}
    with pytest.raises(InputError, match=r"answer 2 of the file: `ease` must be .* nothing was imported"):
        records.import_annotations(file, check=ASKED.checked)
    assert records.log() == ()
    assert records.import_annotations({**file, "annotations": bad[:1]}, check=ASKED.checked).new == 1
    assert records.answers()[0].answer["ease"] == 3


def test_the_command_line_hands_the_questionnaire_in(audit: Audit, tmp_path: Path) -> None:
    workflow.save(audit, tmp_path / "audit")
    file = {"schema": "errata.annotations/1", "fingerprint": audit.evaluation.fingerprint,
            "annotations": [line(audit, answer={"ease": 9})]}  # fmt: skip
    (tmp_path / "answers.json").write_text(json.dumps(file))
    with pytest.raises(InputError, match="`ease` must be a whole number"):
        import_annotations(tmp_path / "audit", tmp_path / "answers.json")
