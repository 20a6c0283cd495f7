"""Names of 120 letters, with spaces and without, on every page that shows them, at every width."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import errata
from errata.core import Audit, ErrorType
from errata.people.entries import Decision, Drawing
from errata.people.records import Records
from errata.report import comparison_html, to_html
from errata.report.gates import comparison_gate
from support.asking import other_audit
from support.layout import layout_faults

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no page is opened")
expect: Any = playwright.expect

Open = Callable[..., Any]
WIDTHS = (320, 390, 768, 1024, 1440)
WORDS = ("what a person wrote of this slice when they had time to write all that they saw in it " * 2)[:120]
ONE_WORD = "x" * 120
PAGES = ("/", "/slice/s1", "/slice/s2", "/slice/drawn-1", "/rows?slice=s1", "/compare", "/hypothesis", "/annotate",
         "/annotate/s1?task=class", "/curate", "/log", "/slice/s1/row/row-5")  # fmt: skip


def named(audit: Audit) -> Audit:
    """With such names made by machine, and an error type that has one."""
    slices = [replace(found, name=name) for found, name in zip(audit.slices, (ONE_WORD, WORDS), strict=False)]
    first = audit.slices[0]
    kind = ErrorType(
        id="e1", method="domino", name=ONE_WORD, rule={}, weights=first.weights, threshold=first.threshold, slice="s1"
    )
    return replace(audit, slices=(*slices, *audit.slices[2:]), error_types=(kind, replace(kind, id="e2", name=WORDS)))


@pytest.fixture
def crowded(serve: Any, audit: Audit, better: Audit) -> str:
    """An app in which people gave such names and notes, too."""
    home, records = serve(named(audit), others=(other_audit("better", named(better)),))
    give_long_names(records)
    return str(home)


def give_long_names(records: Records) -> None:
    loop = records.draw(Drawing(name=ONE_WORD, items=("row-1", "row-2"), person="Ada"))
    for slice_, words in (("s1", ONE_WORD), ("s2", WORDS), (loop.slice, ONE_WORD)):
        given = Decision(slice=slice_, decision="accepted", name=words, note=words, person="Ada " + ONE_WORD[:50])
        records.decide(given, version=0)


@pytest.mark.parametrize("width", WIDTHS)
def test_no_page_of_the_app_overflows(open_page: Open, crowded: str, width: int) -> None:
    page = open_page(crowded, viewport={"width": width, "height": 800}, has_touch=width < 500)
    faults = {}
    for address in PAGES:
        page.goto(crowded + address)
        page.evaluate("for (const fold of document.querySelectorAll('details')) fold.open = true; 0")
        page.wait_for_load_state("networkidle")
        faults[address] = layout_faults(page)
    assert {address: lines for address, lines in faults.items() if lines} == {}


@pytest.mark.parametrize("width", WIDTHS)
def test_no_view_of_a_saved_page_overflows(
    open_page: Open, audit: Audit, better: Audit, tmp_path: Path, width: int
) -> None:
    report = tmp_path / "report.html"
    report.write_text(to_html(named(audit)), encoding="utf-8")
    compared = tmp_path / "compared.html"
    comparison = errata.compare(named(audit), named(better))
    gate = comparison_gate(comparison, "compare", "worse")
    compared.write_text(comparison_html(comparison, gate, ONE_WORD, WORDS), encoding="utf-8")
    views = [f"{report.as_uri()}#{view}" for view in ("overview", "slice/s1", "slice/s2", "rows")]
    for address in (*views, compared.as_uri()):
        page = open_page(address, viewport={"width": width, "height": 800}, color_scheme="dark")
        assert layout_faults(page) == [], address
        page.close()


def test_a_long_name_while_it_is_decided_on(open_page: Open, crowded: str) -> None:
    for width in WIDTHS:
        page = open_page(crowded + "/slice/s1", viewport={"width": width, "height": 800})
        page.keyboard.press("m")
        page.get_by_role("button", name="Show overlap").click()
        expect(page.locator(".overlap .sentence")).to_contain_text("Nothing is merged yet.")
        assert layout_faults(page) == [], width
        page.close()
