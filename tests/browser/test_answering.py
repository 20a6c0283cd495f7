"""The questionnaire answered by keyboard, as people would."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from errata.app.questionnaire_routes import Questionnaire
from errata.core import Audit
from errata.explain.features import Features
from errata.people import questionnaire
from errata.people.records import Records
from errata.report.class_trees import class_of, class_trees
from support.small_audits import image_evaluation, quick_audit

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no page is opened")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
expect: Any = playwright.expect

Open = Callable[..., Any]
PNG = ("data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJ"
       "RU5ErkJggg==")  # fmt: skip
ASKED = Questionnaire(questionnaire.form(), questionnaire.checked)


@pytest.fixture(scope="module")
def audit() -> Audit:
    """Paths; of the first feature of the first one, what only a model can show."""
    found = quick_audit(image_evaluation(1000), method="barlow")
    first, *others = found.slices
    shown = next(one.to_json() for one in first.explanations if one.kind == "path")["features"][0]
    views = [{"row": row["row"], "picture": PNG, "heat": PNG, "attack": PNG, "before": 1.0, "after": 2.0, "moved": 1.0}
             for row in shown["activating"]]  # fmt: skip
    taken = {"representation": "features", "radius": 1.0, "step": 0.1, "steps": 10,
             "features": [{"feature": shown["feature"], "name": shown["name"], "pictures": views}]}  # fmt: skip
    pictured_one = replace(first, explanations=(*first.explanations, Features.from_json(taken)))
    return replace(found, slices=(pictured_one, *others))


@pytest.fixture
def home(serve: Any, audit: Audit) -> tuple[str, Records]:
    address, records = serve(audit, questionnaire=ASKED)
    return address + "/annotate/s1?task=questionnaire", records


def abouts(audit: Audit) -> list[str]:
    """The features of the path, then the others that say most about failure in its class, then the method."""
    told = next(one.to_json() for one in audit.slices[0].explanations if one.kind == "path")
    of_path = [one["name"] for one in told["features"]]
    group = class_of(class_trees(audit), audit.slices[0])
    others = [f"feature {one.feature}" for one in group.features]
    assert len(others) > len(of_path)
    return [f"s1 {name}" for name in dict.fromkeys([*of_path, *others])] + ["the method"]


def start(page: Any, name: str) -> None:
    page.locator("#person").fill(name)
    page.locator("#person").press("Tab")
    expect(page.locator(".who")).to_have_text(f"as {name}")
    page.locator("h1").click()


def test_answered_by_keys_alone(open_page: Open, home: tuple[str, Records], audit: Audit) -> None:
    address, records = home
    page = open_page(address)
    start(page, "Ada")
    shown = page.locator("[data-about]:visible")
    asked = abouts(audit)
    expect(shown).to_have_attribute("data-about", asked[0])
    page.keyboard.press("d")
    page.keyboard.type("dark flat ground too")
    expect(page.locator("[data-words=description3]")).to_have_text("4 of 3: too many")
    page.keyboard.press("Enter")  # of the first field: on to the next, and nothing is saved
    expect(page.locator("#q-description15")).to_be_focused()
    with page.expect_response("**/api/annotations"):
        page.keyboard.press("Enter")
    expect(page.locator(".bad")).to_contain_text("`description3` may have 3 words; got 4")
    expect(page.locator("#q-description3")).to_have_value("dark flat ground too")
    assert records.log() == ()
    page.watch.expected.append("422")
    page.locator("#q-description3").focus()
    page.keyboard.press("Control+a")
    page.keyboard.type("dark ground")
    page.keyboard.press("Tab")
    page.keyboard.type("a dark ground behind it")
    page.keyboard.press("Tab")
    for key in ("4", "2", "1", "2", "1", "4"):  # ease, confidence, view, necessity, and two actions
        page.keyboard.press(key)
    with page.expect_response("**/api/annotations") as got:
        page.keyboard.press("Enter")
    assert got.value.ok
    expect(page.locator(".saved")).to_have_text(re.compile(rf"^Saved: {asked[0]}, \d\d:\d\d:\d\d\.$"))
    (entry,) = records.answers("s1", "Ada", "questionnaire")
    assert entry.answer == {
        "description3": "dark ground", "description15": "a dark ground behind it", "ease": 4, "confidence": 2,
        "view": "heat map", "necessity": "spurious", "actions": ["collect", "warn users"], "statements": {},
    }  # fmt: skip
    assert entry.seconds is not None
    expect(shown).to_have_attribute("data-about", asked[1])
    expect(page.locator("[data-question=view]")).to_be_hidden()
    expect(page.locator("#q-description3")).to_be_focused()
    expect(page.locator("#q-description3")).to_have_value("")
    expect(page.locator(".said-list")).to_contain_text("“dark ground”, “a dark ground behind it”, ease 4")


def test_skip_undo_and_coming_back(open_page: Open, home: tuple[str, Records], audit: Audit) -> None:
    address, records = home
    page = open_page(address)
    asked = abouts(audit)
    start(page, "Ada")
    shown = page.locator("[data-about]:visible")
    page.keyboard.press("s")
    expect(shown).to_have_attribute("data-about", asked[1])
    page.keyboard.press("d")
    page.keyboard.type("low")
    page.keyboard.press("Enter")
    with page.expect_response("**/api/annotations"):
        page.keyboard.press("Enter")
    expect(page.locator(".count")).to_have_text(f"1 of {len(asked)} done")
    page.keyboard.press("Escape")
    with page.expect_response("**/undo"):
        page.keyboard.press("u")
    expect(page.locator(".saved")).to_have_text(f"Taken back: {asked[1]}.")
    expect(page.locator("#q-description3")).to_have_value("low")
    assert records.answers() == ()
    with page.expect_response("**/api/annotations"):
        page.locator("#q-description15").press("Enter")
    expect(page.locator(".saved")).to_contain_text("Saved: ")  # before the page knows it, it asks whether to leave
    page.reload()
    expect(page.locator(".count")).to_have_text(f"1 of {len(asked)} done")
    expect(shown).to_have_attribute("data-about", asked[0])
    expect(page.locator(".said-list")).to_contain_text("“low”")


def test_nobody_is_named_while_answers_are_on_their_way(open_page: Open, home: tuple[str, Records]) -> None:
    """A key would skip or answer for rows that are about to go."""
    page = open_page(home[0])
    start(page, "Ada")
    page.route("**/api/questionnaire/**", lambda route: None)
    page.locator("#person").fill("Bob")
    page.locator("#person").press("Tab")
    expect(page.locator(".who")).to_have_text("")


def test_all_answered_by_two_people(open_page: Open, home: tuple[str, Records], audit: Audit) -> None:
    address = home[0]
    asked = abouts(audit)
    scores = {"Ada": "1", "Bob": "4"}
    for name, word in (("Ada", "one"), ("Bob", "two")):
        page = open_page(address)
        start(page, name)
        expect(page.locator(".said-list")).to_have_text("Nothing yet.")
        expect(page.locator("[data-question='statement new']")).to_be_hidden()
        for _ in asked[:-1]:
            page.locator("#q-description3").fill(word)
            with page.expect_response("**/api/annotations"):
                page.locator("#q-description15").press("Enter")
            expect(page.locator("#q-description3")).to_have_value("")
        expect(page.locator("#q-description3")).to_be_hidden()
        for key in ("5", "4", "1", "2", "3", scores[name]):  # of the six statements, in their order
            page.keyboard.press(key)
        with page.expect_response("**/api/annotations"):
            page.keyboard.press("Enter")
        expect(page.locator(".empty")).to_have_text(f"All {len(asked)} have your answer.")
        expect(page.locator("form.side-col")).to_be_hidden()
    expect(page.locator(".said-list")).to_contain_text(f"{asked[0]}, Bob: “two”")
    expect(page.locator(".said-list")).to_contain_text(f"{asked[0]}, Ada: “one”")
    expect(page.locator(".said-list")).to_contain_text("the method, Bob: easy to use 5, easy to understand 4, new 1")
    given = {answer.person: answer.answer["statements"] for answer in home[1].answers("s1") if answer.item == asked[-1]}
    assert [(one["easy to use"], one["again"], one["valuable"]) for one in given.values()] == [(5, 3, 1), (5, 3, 4)]
    for path in ("/slice/s1", "/class/t1"):
        page.goto(address.partition("/annotate")[0] + path)
        page.get_by_text("Of the method as a whole").click()
        valuable = page.locator(".answers", has_text="It can show where and why a model fails.")
        expect(valuable).to_contain_text("mean 2.5, n = 2")


def test_an_answer_without_a_server_waits_and_is_a_file(
    open_page: Open, home: tuple[str, Records], audit: Audit, tmp_path: Path
) -> None:
    page = open_page(home[0])
    start(page, "Ada")
    page.route("**/api/annotations", lambda route: route.abort())
    page.locator("#q-description3").fill("dark")
    page.locator("#q-description15").press("Enter")
    expect(page.locator(".unsaved")).to_contain_text("1 answer is not saved.")
    expect(page.locator("[data-about]:visible")).to_have_attribute("data-about", abouts(audit)[1])
    with page.expect_download() as got:
        page.get_by_role("button", name="Download them").click()
    got.value.save_as(tmp_path / "answers.json")
    assert home[1].import_annotations(tmp_path / "answers.json", check=ASKED.checked).new == 1
    page.unroute("**/api/annotations")
    expect(page.locator(".saved")).to_contain_text("Saved: ")
    assert len(home[1].log()) == 1
    page.watch.expected += ["api/annotations", "ERR_FAILED"]


def test_numbers_rest_where_single_keys_are_off(open_page: Open, home: tuple[str, Records]) -> None:
    page = open_page(home[0])
    start(page, "Ada")
    page.locator("#help").click()
    page.locator("#single-keys").uncheck()
    page.keyboard.press("Escape")
    page.locator("[data-question=ease] input").first.focus()
    page.keyboard.press("3")
    assert page.locator("[data-question=ease] input:checked").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 360])
def test_nothing_in_the_way_of_anybody(open_page: Open, home: tuple[str, Records], scheme: str, width: int) -> None:
    """The questionnaire, and the page of the path with its whole tree."""
    page = open_page(home[0], viewport={"width": width, "height": 800}, color_scheme=scheme)
    expect(page.locator(".who")).to_have_text("as Grace")
    for address in (home[0], home[0].partition("/annotate")[0] + "/slice/s1"):
        page.goto(address)
        page.wait_for_load_state("load")
        found = axe.Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
        assert [(one["id"], [node["html"][:150] for node in one["nodes"]]) for one in found] == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator(".tree [role=row]").count() > 4
