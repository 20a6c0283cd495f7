"""Barlow's pages as a person uses them: images beside the name, a page for every class, and what people said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from errata.app.questionnaire_routes import Questionnaire
from errata.core import Audit
from errata.core.judgement import as_left
from errata.people import questionnaire
from errata.people.entries import Annotation
from errata.people.judgement import read_judgement
from errata.people.records import Records
from errata.report import to_html

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no page is opened")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
expect: Any = playwright.expect

Open = Callable[..., Any]
Serve = Callable[..., tuple[str, Records]]
ASKED = Questionnaire(questionnaire.form(), questionnaire.checked)
HOSTILE = '"><img/src=x/onerror=document.title="hit">'
OPEN = "for (const fold of document.querySelectorAll('details')) fold.open = true"


def root(audit: Audit) -> str:
    return f"feature {audit.slices[0].rule['of']['conditions'][0]['feature']}"


def describe(records: Records, audit: Audit) -> None:
    for person, words in (("Ada", HOSTILE), ("Bob", HOSTILE), ("Cyd", "night")):
        said = {"description3": words, "ease": 4, "confidence": 3, "necessity": "spurious", "actions": ["collect"]}
        item = f"s1 {root(audit)}"
        records.annotate(Annotation(queue="s1", item=item, person=person, task="questionnaire", answer=said))


def page_of(audit: Audit) -> str:
    return f"t{audit.slices[0].rule['of']['scope']['label'] + 1}"


@pytest.mark.parametrize("where", ["served", "saved"])
def test_from_the_overview_to_a_class_and_its_slice_by_keyboard(
    open_page: Open, serve: Serve, tree_audit: Audit, tmp_path: Path, where: str
) -> None:
    address, records = serve(tree_audit, questionnaire=ASKED)
    describe(records, tree_audit)
    home = address
    if where == "saved":
        file = tmp_path / "report.html"
        file.write_text(to_html(as_left(tree_audit, read_judgement(records))), encoding="utf-8")
        home = file.as_uri()
    page = open_page(home)
    id = page_of(tree_audit)
    link = page.locator(f".class-line a[href$='class/{id}']:visible")
    link.focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**class/{id}")
    expect(page.locator("h1:visible")).to_contain_text("of held-out rows are wrong")
    first = page.locator(".top-features > li:visible").first
    expect(first.locator(".strip .pic")).to_have_count(6)
    expect(first.locator("h3")).to_contain_text(HOSTILE.casefold())
    expect(first.locator("h3")).to_contain_text("by 2 of 3 people, 1 said otherwise")
    assert "hit" not in page.title().partition(" · ")[0]
    page.locator(".plain-list a:visible").focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**slice/s1")
    strips = page.locator(".feature-strips:visible")
    expect(strips).to_be_visible()  # a saved page changes its address first
    name = page.locator("h1:visible").bounding_box()
    beside = strips.bounding_box()
    lede = page.locator(".lede:visible").bounding_box()
    assert beside["x"] > name["x"] + 200, "at its side"
    assert beside["y"] < lede["y"], "before any prose"
    own = page.locator(".tree:visible .row.here").first
    expect(own).to_contain_text("this slice")
    measured = tree_audit.slices[0].confirm
    assert measured is not None
    expect(own.locator(".n").first).to_have_text(str(measured.n))
    assert page.locator("[onerror]").count() == 0


@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (1024, "dark"), (390, "light")])
def test_nothing_is_out_of_reach(
    open_page: Open, serve: Serve, tree_audit: Audit, width: int, scheme: str, tmp_path: Path
) -> None:
    """axe, and no sideways scrolling: without answers, with answers, and of an audit that an earlier version saved."""
    old = replace(tree_audit, explanations=tuple(one for one in tree_audit.explanations if one.kind != "trees"))
    file = tmp_path / "old.html"
    file.write_text(to_html(old), encoding="utf-8")
    address, records = serve(tree_audit, questionnaire=ASKED)
    id = page_of(tree_audit)
    options = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
    wrong = []

    def look(where: str) -> None:
        page = open_page(where, **options)
        page.evaluate(OPEN)
        seen = axe.Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
        wrong.extend(f"{where}: {one['id']} {[node['html'][:120] for node in one['nodes'][:2]]}" for one in seen)
        if page.evaluate("document.documentElement.scrollWidth") > width:
            wrong.append(f"{where} is wider than the screen")
        page.close()

    look(f"{address}/class/{id}")
    describe(records, tree_audit)
    for path in (f"/class/{id}", "/slice/s1", "/"):
        look(address + path)
    look(f"{file.as_uri()}#class/t1")
    assert wrong == []
