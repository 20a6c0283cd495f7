"""Classes as they are served: their pages, what people answer about features, and what becomes of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import errata
from errata.app.questionnaire_routes import Questionnaire
from errata.cli.report import report
from errata.core import Audit
from errata.people import questionnaire
from errata.people.records import Records
from support.asking import PAGE, Ask, opened, sentence

ASKED = Questionnaire(questionnaire.form(), questionnaire.checked)
EVIL = "<script>alert(1)</script>"


@pytest.fixture
def both(tree_audit: Audit, tmp_path: Path) -> Iterator[tuple[Records, Ask]]:
    records, ask = opened(tree_audit, tmp_path, questionnaire=ASKED)
    with records:
        yield records, ask


def root(audit: Audit) -> str:
    return f"feature {audit.slices[0].rule['of']['conditions'][0]['feature']}"


def answer(ask: Ask, item: str, person: str, words: str, **more: Any) -> None:
    given = {"description3": words, "description15": None, "ease": 4, "confidence": 5, "view": None,
             "necessity": "spurious", "actions": ["collect"], **more}  # fmt: skip
    queue = item.partition(" ")[0]
    body = {"queue": queue, "item": item, "person": person, "task": "questionnaire", "answer": given}
    got = ask("POST", "/api/annotations", json=body)
    assert got.status_code == 200, got.text


def test_every_class_has_a_page_and_no_other_has(both: tuple[Records, Ask]) -> None:
    ask = both[1]
    assert "label cat" in ask("GET", "/class/t1", headers=PAGE).text
    got = ask("GET", "/class/t7")
    assert (got.status_code, sentence(got)) == (404, "Class 't7' does not exist.")
    assert 'href="/class/t1"' in ask("GET", "/", headers=PAGE).text
    assert 'href="/class/t' in ask("GET", "/slice/s1", headers=PAGE).text


def test_what_people_call_a_feature_is_its_name_from_then_on(both: tuple[Records, Ask], tree_audit: Audit) -> None:
    ask = both[1]
    name = root(tree_audit)
    page = ask("GET", "/slice/s1", headers=PAGE).text
    assert "“dark ground”" not in page
    for person, words in (("Ada", "dark ground"), ("Bob", "Dark ground"), ("Cyd", "night")):
        answer(ask, f"s1 {name}", person, words)
    page = ask("GET", "/slice/s1", headers=PAGE).text
    assert page.count(f"{name}, “dark ground”") > 4  # beside its strip, in the path, in the nodes of the tree
    assert "by 2 of 3 people, 1 said otherwise" in page
    assert "Agreement 0.33 over 3 pairs of people" in page
    home = ask("GET", "/", headers=PAGE).text
    assert f"{name}, “dark ground”" in home
    asked = ask("GET", "/annotate/s1?task=questionnaire", headers=PAGE).text
    assert "dark ground" not in asked, "who has not answered is not to be swayed"


def test_the_page_of_a_class_counts_the_answers(both: tuple[Records, Ask], tree_audit: Audit) -> None:
    ask = both[1]
    group = tree_audit.slices[0].rule["of"]["scope"]["label"] + 1
    before = ask("GET", f"/class/t{group}", headers=PAGE).text
    assert "Nobody has answered the questionnaire about its features yet." in before
    answer(ask, f"s1 {root(tree_audit)}", "Ada", "dark ground", ease=2)
    answer(ask, f"s1 {root(tree_audit)}", "Bob", EVIL)
    page = ask("GET", f"/class/t{group}", headers=PAGE).text
    assert "2 answers of 2 people about 1 feature." in page
    assert "mean 3.0, n = 2" in page
    assert "0 of 1 features have a mean above 3." in page
    assert EVIL not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_a_report_written_anew_has_the_names_and_leaves_people_out(tree_audit: Audit, tmp_path: Path) -> None:
    folder = errata.save(tree_audit, tmp_path / "audit")
    loaded = errata.load(folder)
    names = {slice_.id: slice_.name for slice_ in loaded.slices}
    with Records(folder, fingerprint=loaded.evaluation.fingerprint, slices=names) as records:
        from errata.people.entries import Annotation

        item = f"s1 {root(tree_audit)}"
        said = {"description3": "dark ground"}
        records.annotate(Annotation(queue="s1", item=item, person="Ada Quist", task="questionnaire", answer=said))
        strange = {"wings": 2}
        records.annotate(Annotation(queue="s1", item=item, person="Bot", task="questionnaire", answer=strange))
    report(folder, people=False)
    html = (folder / "report.html").read_text()
    assert f"{root(tree_audit)}, “dark ground”" in html
    assert "by 1 person" in html
    assert "Quist" not in html
