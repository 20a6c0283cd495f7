"""Regions of new pictures labelled by two people in a browser, a server killed in between, and the correction after."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed: nothing is generated")
playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no page is opened")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")

# ruff: noqa: E402 - below what names the cure where a package is missing
from errata.defuse.pages import to_html
from errata.defuse.regions import Regions
from errata.defuse.stages import RunFolder
from errata.defuse.view import load_run
from errata.defuse.votes import read_votes
from errata.people.records import Records
from support import digits
from support.servers import ServerProcess

expect: Any = playwright.expect
Open = Callable[..., Any]


@pytest.fixture(scope="module")
def begun(digits_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return Path(shutil.copytree(digits_run, tmp_path_factory.mktemp("defuse") / "run"))


def truths(folder: Path) -> dict[str, int]:
    """What most pictures that a region came from are: what our people say that it shows."""
    regions = Regions.from_state(RunFolder(folder).load("regions"))
    return dict(zip(regions.ids, regions.sources.argmax(axis=1).tolist(), strict=True))


def label(page: Any, address: str, name: str, answers: dict[str, int]) -> None:
    """All at once, a key a region; every answer leads to the next one."""
    page.goto(f"{address}/region/{next(iter(answers))}")
    page.locator("#person").fill(name)
    page.locator("#person").press("Tab")
    expect(page.locator(".who")).to_have_text(f"as {name}")
    page.locator("h1").click()
    for id, digit in answers.items():
        expect(page.locator("h1")).to_have_text(f"Region {id}")
        expect(page.locator(".count")).to_contain_text("regions have your answer")
        is_last = page.locator("[data-after]").count() == 0
        page.keyboard.press(str(digit))
        if is_last:
            expect(page.locator(".saved")).to_contain_text(f"Saved: {digit}")
        else:
            expect(page.locator("h1")).not_to_have_text(f"Region {id}")
    page.wait_for_load_state("networkidle")


def test_two_people_label_all_regions_and_the_run_goes_on(begun: Path, open_page: Open) -> None:
    """The server is killed in between; nothing that was saved is lost, and the correction starts from it."""
    answers = truths(begun)
    half = dict(list(answers.items())[: len(answers) // 2])
    with ServerProcess(begun) as server:
        address = server.address
        page = open_page(address)
        expect(page.locator("h1")).to_contain_text(f"{len(answers)} regions of {len(answers)} to label")
        label(page, address, "Ann", half)
        server.end()
    with ServerProcess(begun) as server:
        address = server.address
        rest = {id: digit for id, digit in answers.items() if id not in half}
        label(open_page(address), address, "Ann", rest)
        label(open_page(address), address, "Ben", answers)
        told = load_run(begun)
        with Records(begun, fingerprint=told.fingerprint, slices=dict(told.names)) as records:
            votes = read_votes(records, RunFolder(begun))
            found = digits.run_defuse(begun, votes=lambda run: read_votes(records, run))
        assert {vote.person for vote in votes} == {"Ann", "Ben"}
        assert len(votes) == 2 * len(answers) * digits.QUICK["shown"]
        assert found.stage == "corrected"
        assert found.comparison["regions"].judgement == "better"
        page = open_page(f"{address}/result")
        expect(page.get_by_role("heading", name="Before and after")).to_be_visible()
        expect(page.get_by_text("Samples of all misclassified regions")).to_be_visible()
        expect(page.get_by_role("heading", name="How far people agree")).to_be_visible()


def test_one_by_one_undo_and_what_others_said(begun: Path, open_page: Open) -> None:
    with ServerProcess(begun) as server:
        address = server.address
        page = open_page(f"{address}/annotate/r1")
        page.locator("#person").fill("Cy")
        page.locator("#person").press("Tab")
        expect(page.locator(".count")).to_have_text("0 of 6 done")
        page.locator("h1").click()
        page.keyboard.press("3")
        expect(page.locator(".saved")).to_contain_text("Saved: 3")
        page.keyboard.press("n")
        expect(page.locator(".saved")).to_contain_text("Saved: none of the above")
        expect(page.locator(".count")).to_have_text("2 of 6 done")
        page.keyboard.press("u")
        expect(page.locator(".count")).to_have_text("1 of 6 done")
        page.goto(f"{address}/region/r1")
        expect(page.locator(".said-list")).not_to_contain_text("Ann")  # who has not answered is not to be swayed
        last = f"{address}/region/{list(truths(begun))[-1]}"
        page.goto(last)
        page.locator("h1").click()
        page.keyboard.press("r")
        expect(page.locator(".saved")).to_contain_text("Saved: no failure")
        expect(page.get_by_role("button", name="No failure")).to_have_attribute("aria-pressed", "true")
        page.keyboard.press("u")
        expect(page.locator('[data-do="undo"]')).to_be_disabled()


def test_one_region_after_the_other_and_where_people_differ(begun: Path, open_page: Open, tmp_path: Path) -> None:
    """`j` leads on when all samples have an answer, and not before; a dispute leads to the region it is about."""
    folder = shutil.copytree(begun, tmp_path / "run", ignore=shutil.ignore_patterns("records*"))
    with ServerProcess(folder) as server:
        address = server.address
        for name, digit in (("Dee", "3"), ("Eli", "4")):
            page = open_page(f"{address}/annotate/r1")
            page.locator("#person").fill(name)
            page.locator("#person").press("Tab")
            expect(page.locator(".who")).to_have_text(f"as {name}")
            expect(page.locator(".count")).to_have_text("0 of 6 done")
            page.locator("h1").click()
            page.keyboard.press("j")
            for done in range(1, 7):
                page.keyboard.press(digit)
                expect(page.locator(".count")).to_have_text(f"{done} of 6 done")
            expect(page.locator(".saved")).to_contain_text("Saved")
            expect(page.get_by_role("link", name="Next: r2")).to_be_visible()
        page.get_by_role("link", name="open").first.click()
        expect(page.locator("h1")).to_have_text("Region r1")
        page.goto(f"{address}/annotate/r1")
        expect(page.locator(".empty")).to_have_text("All 6 rows have your answer.")
        page.locator("h1").click()
        page.keyboard.press("j")
        expect(page).to_have_url(f"{address}/annotate/r2?task=class")
        expect(page.locator(".count")).to_have_text("0 of 6 done")
        last = list(truths(folder))[-1]
        page.goto(f"{address}/annotate/{last}")
        expect(page.locator("[data-next]")).to_have_count(0)
        page.goto(f"{address}/annotate")
        expect(page.locator('[data-mine="r1"]')).to_have_text(", 6 answers of yours")
        expect(page.locator('[data-mine="r2"]')).to_be_empty()
        page.locator("#person").fill("Gus")
        page.locator("#person").press("Tab")
        expect(page.locator('[data-mine="r1"]')).to_be_empty()
        page.wait_for_load_state("networkidle")


def test_a_key_before_the_rows_have_come_answers_nothing(begun: Path, open_page: Open, tmp_path: Path) -> None:
    """Somebody else takes over while the server is slow: the first key would be about rows that are about to go."""
    folder = shutil.copytree(begun, tmp_path / "run", ignore=shutil.ignore_patterns("records*"))
    with ServerProcess(folder) as server:
        address = server.address
        page = open_page(f"{address}/annotate/r1")
        expect(page.locator(".count")).to_have_text("0 of 6 done")
        held: list[Any] = []
        page.route("**/api/queues/**", lambda route: route.continue_() if held else held.append(route))
        page.locator("#person").fill("Flo")
        with page.expect_request("**/api/queues/**"):
            page.locator("#person").press("Tab")
        page.locator("h1").click()
        expect(page.locator(".empty")).to_have_text("Loading.")
        page.keyboard.press("3")
        held[0].continue_()
        expect(page.locator(".who")).to_have_text("as Flo")
        expect(page.locator(".count")).to_have_text("0 of 6 done")
        expect(page.locator(".saved")).to_have_text("Nothing saved yet.")
        page.keyboard.press("3")
        expect(page.locator(".count")).to_have_text("1 of 6 done")
        expect(page.locator(".saved")).to_contain_text("Saved: 3")
        page.wait_for_load_state("networkidle")


@pytest.mark.parametrize(("scheme", "width"), [("light", 1440), ("dark", 360)])
def test_every_page_passes_an_accessibility_checker(begun: Path, open_page: Open, scheme: str, width: int) -> None:
    with ServerProcess(begun) as server:
        address = server.address
        for path in ("/", "/region/r1", "/annotate", "/annotate/r1", "/result"):
            page = open_page(address + path, color_scheme=scheme, viewport={"width": width, "height": 900})
            page.wait_for_load_state("networkidle")
            found = axe.Axe().run(page)
            assert found.response["violations"] == [], f"{path}: {found.generate_report()}"
            assert page.evaluate("document.documentElement.scrollWidth") <= width, path


def test_the_saved_page_needs_no_server(begun: Path, open_page: Open, tmp_path: Path) -> None:
    saved = tmp_path / "report.html"
    saved.write_text(to_html(load_run(begun)), encoding="utf-8")
    page = open_page(saved.as_uri())
    expect(page.locator("h1")).to_contain_text("regions")
    assert [url for url in page.watch.asked if not url.startswith(("file:", "data:"))] == []
