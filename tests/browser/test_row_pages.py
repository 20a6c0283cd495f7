"""All rows as a person uses them, by mouse and by keyboard: list, map and columns are one view, served and saved."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from errata import workflow
from errata.app.server import create_app
from errata.core import Audit, Evaluation
from errata.people.records import Records
from errata.report import to_html
from support.servers import ServerThread
from support.waiting import wait_until

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no page is opened")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
expect: Any = playwright.expect

Open = Callable[..., Any]


@pytest.fixture(scope="module")
def home(audit: Audit, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, Records]]:
    names = {found.id: found.name for found in audit.slices}
    with ExitStack() as stack:
        folder = tmp_path_factory.mktemp("records")
        records = stack.enter_context(Records(folder, fingerprint=audit.evaluation.fingerprint, slices=names))
        yield stack.enter_context(ServerThread(create_app(audit, records))), records


@pytest.fixture(scope="module")
def report(audit: Audit, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(to_html(audit), encoding="utf-8")
    return path.as_uri()


def listed(page: Any) -> int:
    said = page.locator(".rows-said")
    expect(said).to_contain_text(re.compile(r"rows? (listed|match)|No row"))
    found = re.match(r"([\d,]+) rows? listed", said.inner_text())
    return int(found[1].replace(",", "")) if found else 0


def test_members_are_paged_opened_and_walked_by_keys(open_page: Open, home: tuple[str, Records], audit: Audit) -> None:
    page = open_page(home[0] + "/slice/s1")
    members = int(audit.slices[0].members.sum())
    page.get_by_role("link", name=f"See all {members} members").click()
    page.wait_for_url("**/rows?slice=s1")
    assert listed(page) == members
    page.locator("[name=slice]").select_option("")
    expect(page.locator(".cards li")).to_have_count(60)
    first = page.locator(".cards li").first.get_attribute("data-row")
    page.keyboard.press(".")
    expect(page.locator(".pager .q")).to_contain_text("61 to")
    assert page.locator(".cards li").first.get_attribute("data-row") != first
    page.reload()
    expect(page.locator(".pager .q")).to_contain_text("61 to")  # the address has the page too
    page.keyboard.press(",")
    expect(page.locator(".pager .q")).to_contain_text("1 to 60")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    viewer = page.get_by_role("dialog")
    expect(viewer.get_by_role("heading", name=f"Row {first}")).to_be_visible()
    expect(viewer.get_by_text("Nearest rows of its label that are right")).to_be_visible()
    expect(viewer.locator(".near li")).to_have_count(6)
    for _ in range(60):
        page.keyboard.press("ArrowRight")
    expect(page.locator(".pager .q")).to_contain_text("61 to")  # walking leads over the edge of a page
    page.keyboard.press("Escape")
    expect(viewer).to_have_count(0)


def test_rows_that_are_passed_are_not_asked_for(open_page: Open, home: tuple[str, Records]) -> None:
    """Sixty steps by a key that is held were sixty questions, and the last row's answer came after all of them."""
    page = open_page(home[0] + "/rows")
    page.locator(".cards li button").first.click()
    expect(page.get_by_role("dialog").locator(".near li")).to_have_count(6)
    held: list[Any] = []
    page.route("**/api/near/**", lambda route: route.continue_() if held else held.append(route))
    with page.expect_request("**/api/near/**"):
        for _ in range(10):
            page.keyboard.press("ArrowRight")
    last = page.locator(".cards li").nth(10).get_attribute("data-row")
    expect(page.get_by_role("heading", name=f"Row {last}", exact=True)).to_be_visible()
    with page.expect_request(f"**/api/near/{last}"):
        held[0].continue_()
    expect(page.get_by_role("dialog").locator(".near li")).to_have_count(6)
    assert sum("/api/near/" in address for address in page.watch.asked) == 3  # the first, the one held, the last


def test_conditions_bars_and_loops_filter_all_three(open_page: Open, home: tuple[str, Records], audit: Audit) -> None:
    page = open_page(home[0] + "/rows")
    assert listed(page) == len(audit.evaluation)
    page.get_by_role("button", name=re.compile("^night:")).click()
    night = int((np.asarray(audit.evaluation.metadata["light"]) == "night").sum())
    expect(page.locator(".rows-said")).to_contain_text(f"{night} rows listed")
    expect(page.locator("[name=where]")).to_have_value('light = "night"')
    count = "[...document.querySelector('[data-map]').errataChart.lit].map((b) => b.toString(2)).join('')"
    assert page.evaluate(f"() => {count}").count("1") == night
    page.locator("canvas").scroll_into_view_if_needed()
    box = page.locator("canvas").bounding_box()
    page.keyboard.press("l")
    page.mouse.move(box["x"] + 5, box["y"] + 5)
    page.mouse.down()
    for x, y in ((0.5, 0.01), (0.5, 0.99), (0.01, 0.99), (0.01, 0.01)):
        page.mouse.move(box["x"] + box["width"] * x, box["y"] + box["height"] * y, steps=4)
    page.mouse.up()
    expect(page.get_by_role("button", name="Remove: inside your loop")).to_be_visible()
    expect(page.locator(".rows-said")).not_to_contain_text(f"{night} rows listed")
    both = listed(page)
    assert both < night
    page.reload()
    expect(page.locator(".rows-said")).to_contain_text(re.compile(rf"^({both} rows listed|No row matches)"))
    page.get_by_role("button", name="Remove: inside your loop").click()
    expect(page.locator(".rows-said")).to_contain_text(f"{night} rows listed")
    page.locator("[name=where]").fill("sise > 3")
    page.keyboard.press("Enter")
    page.watch.expected += ["422"]
    expect(page.locator(".rows-said.bad")).to_have_text("Unknown column “sise”. Did you mean “size”?")


def test_a_point_shows_its_row_opens_it_and_zoom_keeps_its_place(open_page: Open, home: tuple[str, Records]) -> None:
    page = open_page(home[0] + "/rows")
    expect(page.locator(".map .placing:visible")).to_have_count(0)
    place = """() => { const chart = document.querySelector('[data-map]').errataChart, dpr = devicePixelRatio;
      const edge = chart.canvas.getBoundingClientRect(), [x, y] = chart.toScreen(chart.data.x(5), chart.data.y(5));
      return [edge.left + x / dpr, edge.top + y / dpr]; }"""
    before = page.evaluate(place)
    page.locator("canvas").focus()
    page.mouse.move(*before)
    expect(page.locator(".map-card")).to_be_visible()
    expect(page.locator(".map-card img")).to_have_attribute("src", re.compile("/thumb/"))
    for _ in range(6):
        page.mouse.wheel(0, -100)
    wait_until(page, "() => document.querySelector('[data-map]').errataChart.view.k > 2")
    page.wait_for_timeout(200)
    after = page.evaluate(place)
    assert np.allclose(before, after, atol=1.5)
    page.mouse.click(*after)
    expect(page.get_by_role("dialog")).to_be_visible()
    page.get_by_role("button", name="More like this").click()
    expect(page.get_by_role("button", name=re.compile("Remove: near to row"))).to_be_visible()
    expect(page.locator("[name=order]")).to_have_value("near")


def test_a_cursor_and_a_loop_move_above_points_that_stay_drawn(open_page: Open, home: tuple[str, Records]) -> None:
    """Twenty thousand points at every move of the mouse took two seconds each."""
    page = open_page(home[0] + "/rows")
    expect(page.locator(".map .placing:visible")).to_have_count(0)
    listed(page)  # what is listed is drawn once more, and so is a canvas of another size
    page.locator("canvas").scroll_into_view_if_needed()
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(300)
    count = """() => { const chart = document.querySelector('[data-map]').errataChart, draw = chart.drawPoints;
      chart.drawn = 0; chart.drawPoints = (...sizes) => { chart.drawn += 1; draw.apply(chart, sizes); }; }"""
    page.evaluate(count)
    box = page.locator("canvas").bounding_box()
    middle = (box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.move(*middle)
    page.mouse.move(middle[0] + 60, middle[1] + 30, steps=20)
    page.keyboard.press("l")
    page.mouse.down()
    page.mouse.move(middle[0] - 60, middle[1] - 30, steps=20)
    page.wait_for_timeout(100)
    drawn = "() => document.querySelector('[data-map]').errataChart.drawn > 0"
    assert not page.evaluate(drawn)
    page.mouse.up()
    page.keyboard.press("+")
    wait_until(page, drawn)


def test_sizes_others_and_files(open_page: Open, home: tuple[str, Records], audit: Audit) -> None:
    page = open_page(home[0] + "/rows?slice=s1&outcome=wrong")
    n = listed(page)
    page.get_by_text("More filters").click()
    widths = []
    for px in (64, 128, 256):
        page.locator("[name=px]").select_option(str(px))
        widths.append(page.locator(".cards img").first.bounding_box()["width"])
    assert widths[0] >= 60
    assert widths == sorted(widths)
    assert widths[-1] >= 250
    first = page.locator(".cards li").first.get_attribute("data-row")
    page.keyboard.press("Escape")
    page.keyboard.press("d")
    expect(page.locator(".cards li").first).not_to_have_attribute("data-row", first)
    with page.expect_download() as got:
        page.get_by_role("link", name="CSV").click()
    table = pd.read_csv(got.value.path())
    assert len(table) == n
    assert table["wrong"].all()


def test_a_saved_page_lists_what_it_holds_and_says_so(open_page: Open, report: str, audit: Audit) -> None:
    page = open_page(report + "#slice/s1")
    page.get_by_role("link", name=re.compile("See all .* members")).locator("visible=true").click()
    page.wait_for_url("**#rows?slice=s1")
    held = ~audit.discover
    expect(page.locator("#rows .lede")).to_contain_text(f"holds the columns of all {int(held.sum())} held-out rows")
    said = page.locator(".rows-said")
    measured = audit.slices[0].confirm
    assert measured is not None
    rate = f"{measured.errors} of {measured.n}: {100 * measured.rate:.1f}%"
    expect(said).to_contain_text(f"{measured.n} held-out rows match. Wrong: {rate}; of the {measured.rest_n} others, ")
    pictured = int(re.search(r"Listed: the (\d+) whose image this page holds", said.inner_text())[1])
    expect(said).to_contain_text("not at random, so no rate of them is given")
    expect(page.locator("#rows .pager .q")).to_have_text(re.compile(f"of {pictured}$"))
    expect(page.locator("[name=slice] option[value=s1]")).to_have_text(re.compile(rf"\({measured.n}\)$"))
    page.get_by_text("More filters").locator("visible=true").click()
    page.get_by_label("only rows whose image this page holds").uncheck()
    expect(page.locator("#rows .pager .q")).to_have_text(re.compile(f"of {measured.n}$"))
    expect(said).to_contain_text(f"Wrong: {rate}")
    expect(said).not_to_contain_text("Listed")
    assert 0 < pictured < measured.n
    wrong = audit.evaluation.errors
    assert wrong is not None
    page.locator("[name=outcome]").select_option("wrong")
    expect(said).to_contain_text(f"{measured.errors} held-out rows match")
    page.locator("[name=slice]").select_option("")
    page.locator("[name=where]").fill("light = night and size < 4")
    page.keyboard.press("Enter")
    rows = audit.evaluation.metadata
    expected = int((held & wrong & (np.asarray(rows["light"]) == "night") & (np.asarray(rows["size"]) < 4)).sum())
    expect(said).to_contain_text(f"{expected} held-out row")
    page.locator(".cards button").first.click()
    expect(page.get_by_role("dialog")).to_contain_text("Near rows take the data")
    page.keyboard.press("Escape")
    with page.expect_download() as got:
        page.get_by_role("button", name="CSV").click()
    assert len(pd.read_csv(got.value.path())) == expected


@pytest.mark.parametrize("width", [1440, 390])
def test_nothing_in_the_way_of_anybody(open_page: Open, home: tuple[str, Records], report: str, width: int) -> None:
    for scheme, address in (("light", home[0] + "/rows?slice=s1"), ("dark", report + "#rows?slice=s1")):
        page = open_page(address, color_scheme=scheme, viewport={"width": width, "height": 800})
        listed(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        assert axe.Axe().run(page).response["violations"] == []
        page.locator(".cards button").first.click()
        expect(page.get_by_role("dialog")).to_be_visible()
        assert axe.Axe().run(page).response["violations"] == []


def test_rows_of_a_saved_regression_are_listed(open_page: Open, tmp_path: Path) -> None:
    """They were behind a link that led to no row."""
    rng = np.random.default_rng(0)
    strength = rng.uniform(8, 14, 600)
    predictions = rng.normal(0, np.where(strength > 12.5, 3.0, 0.6))
    rows = Evaluation(
        labels=np.zeros(600), predictions=predictions, task="regression", metadata={"strength": strength.round(2)}
    )
    regression = workflow.audit(rows, methods=["rules"])
    path = tmp_path / "report.html"
    path.write_text(to_html(regression), encoding="utf-8")
    page = open_page(path.as_uri() + "#slice/s1")
    page.keyboard.press("v")
    page.wait_for_url("**#rows?slice=s1")
    n = regression.slices[0].confirm.n
    expect(page.locator(".rows-said")).to_have_text(f"{n} held-out rows match.")
    expect(page.locator("#rows .pager .q")).to_have_text(re.compile(f"of {n}$"))
    assert page.locator("#rows .cards li").count() == min(n, 60)
    expect(page.locator("#rows .cards li").first).to_contain_text("strength")
    assert not page.locator("#rows .cards li").get_by_text(re.compile(r"predicted -?\d+\.\d{7,}")).count()
    page.locator("#rows .cards button").first.click()
    expect(page.get_by_role("dialog")).not_to_contain_text("right")
