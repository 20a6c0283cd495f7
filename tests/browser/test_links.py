"""Deep links: an address shows the page, the part, the filter and the folds that its sender saw, served and saved."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from errata.people.records import Records
from support.waiting import wait_until

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no page is opened")
expect: Any = playwright.expect

Open = Callable[..., Any]
Home = tuple[str, Records]
AT_THE_TOP = "(element) => Math.abs(element.getBoundingClientRect().top) < 140"  # below the bar, or on its way there


@pytest.mark.parametrize(
    ("address", "selector", "words"),
    [
        ("/", "h1", "of this model’s errors"),
        ("/slice/s1", "h1", "night"),
        ("/slice/s1/row/row-5", "h1", "row-5"),
        ("/compare?with=better", "h1", "better"),
        ("/hypothesis?q=light+%3D+night", ".answer .said", "held-out rows match"),
        ("/annotate/s1?task=class", "h1", ""),
        ("/curate", "h1", "What do we keep?"),
    ],
)
def test_every_page_has_an_address(open_page: Open, home: Home, address: str, selector: str, words: str) -> None:
    page = open_page(home[0] + address)
    expect(page.locator(selector).first).to_contain_text(words)
    assert page.url.endswith(address)


@pytest.mark.parametrize("part", ["map", "words", "profile"])
def test_the_address_of_a_part_leads_to_it(open_page: Open, home: Home, report: str, part: str) -> None:
    for address in (
        f"{home[0]}/slice/s2#{part}",
        f"{report}#slice/s2#{part}",
        f"{report}#slice/s2/{part}",
    ):
        page = open_page(address, viewport={"width": 1024, "height": 500})
        section = page.locator(".section:visible", has=page.locator(f"h2[id$='{part}']")).first
        wait_until(page, AT_THE_TOP, section.element_handle())
        expect(page.locator("h1:visible")).to_have_count(1)


GO = """(to) => new Promise((done) => { location.hash = to; addEventListener("hashchange", () =>
  requestAnimationFrame(() => done(document.getElementById(to.replace("#", "/")).getBoundingClientRect().top))); })"""


@pytest.mark.parametrize("place", ["slice/s2/words", "slice/s1#map", "slice/s1/profile"])
def test_a_part_is_reached_at_once(open_page: Open, report: str, place: str) -> None:
    """A smooth scroll that was underway was added to the next one: on a slow machine hundreds of pixels beyond."""
    page = open_page(f"{report}#slice/s2", viewport={"width": 1024, "height": 500})
    assert abs(page.evaluate(GO, place)) < 140


def test_without_scripts_the_address_of_a_part_leads_to_it_too(open_page: Open, home: Home) -> None:
    page = open_page(home[0] + "/slice/s2#words", java_script_enabled=False, person="")
    expect(page.locator("#words")).to_be_in_viewport()


def test_links_of_a_page_to_its_parts_are_addresses_to_share(open_page: Open, home: Home, report: str) -> None:
    for start in (home[0] + "/slice/s1", report + "#slice/s1"):
        page = open_page(start)
        page.locator(".toc:visible a", has_text="Map").click()
        shared = open_page(page.url)
        expect(shared.locator("[data-map=s1]")).to_be_in_viewport()


def test_links_of_older_versions_still_lead_there(open_page: Open, home: Home, report: str) -> None:
    for address in (home[0] + "/slice/s1#s1-map", report + "#s1-map"):
        expect(open_page(address).locator("[data-map=s1]")).to_be_in_viewport()


def test_a_part_that_a_slice_does_not_have_shows_the_slice(open_page: Open, report: str) -> None:
    page = open_page(report + "#slice/s2/no-such-part")
    assert page.locator(".view.shown").get_attribute("id") == "slice/s2"


@pytest.mark.parametrize("where", ["served", "saved"])
def test_the_filter_is_in_the_address(open_page: Open, home: Home, report: str, where: str) -> None:
    page = open_page(home[0] + "/slice/s1" if where == "served" else report + "#slice/s1")
    page.get_by_role("radio", name="Wrong only").check()
    other = open_page(page.url)
    assert other.locator("[data-mixed='s1'] [data-row]:not(.wrong):visible").count() == 0
    expect(other.get_by_role("radio", name="Wrong only")).to_be_checked()
    other.get_by_role("radio", name="Mixed").check()
    assert "show=" not in other.url


@pytest.mark.parametrize("where", ["served", "saved"])
def test_open_folds_are_in_the_address(open_page: Open, home: Home, report: str, where: str) -> None:
    page = open_page(home[0] + "/" if where == "served" else report)
    folds = page.locator("details:visible")
    last = folds.last
    words = last.locator("summary").inner_text()
    last.locator("summary").click()
    page.wait_for_url("**open=*")
    other = open_page(page.url)
    assert [fold.inner_text() for fold in other.locator("details[open] > summary:visible").all()] == [words]
    other.locator("details[open] > summary").first.click()
    wait_until(other, "() => !location.href.includes('open=')")


def test_a_fold_above_a_part_does_not_push_it_out_of_sight(open_page: Open, home: Home) -> None:
    page = open_page(home[0] + "/slice/s1")
    page.locator("#profile details summary").first.click()
    page.wait_for_url("**open=*")
    shared = open_page(page.url + "#map", viewport={"width": 1024, "height": 500})
    expect(shared.locator("#profile details").first).to_have_attribute("open", "")
    wait_until(shared, AT_THE_TOP, shared.locator("#map").element_handle())


def test_views_of_a_saved_page_keep_their_own_folds(open_page: Open, report: str) -> None:
    page = open_page(report + "#slice/s1")
    page.locator("details:visible summary").first.click()
    page.wait_for_url("**open=*")
    page.keyboard.press("]")
    page.wait_for_url("**#slice/s2")
    expect(page.locator("details[open]:visible")).to_have_count(0)  # the address is there before the view
    page.go_back()
    page.wait_for_url("**#slice/s1?open=*")
    expect(page.locator("details[open]:visible")).to_have_count(1)


@pytest.mark.parametrize("where", ["served", "saved"])
def test_an_order_closes_no_fold(open_page: Open, home: Home, report: str, where: str) -> None:
    """The order was written over the folds in the address of a saved page."""
    page = open_page(home[0] + "/" if where == "served" else report)
    page.locator("details:visible summary").last.click()
    page.wait_for_url("**open=*")
    page.get_by_role("radio", name="Largest gap").check()
    page.wait_for_url("**order=gap*")
    other = open_page(page.url)
    expect(other.locator("details[open]:visible")).to_have_count(1)
    expect(other.get_by_role("radio", name="Largest gap")).to_be_checked()
