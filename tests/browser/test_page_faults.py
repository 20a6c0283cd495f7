"""What went wrong once on a page: orders, shifts, a phone, a bar in the middle, answers without an interval."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from errata.app.server import create_app
from errata.core import Audit
from errata.people.records import Records
from errata.report import to_html
from support.servers import ServerThread

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no page is opened")
expect: Any = playwright.expect

Open = Callable[..., Any]
PHONE = {"viewport": {"width": 390, "height": 800}, "has_touch": True}
SHIFT = """new PerformanceObserver((list) => { for (const entry of list.getEntries())
  if (!entry.hadRecentInput) window.shifted = (window.shifted ?? 0) + entry.value; })
  .observe({ type: "layout-shift", buffered: true })"""


@pytest.fixture(scope="module")
def many(audit: Audit) -> Audit:
    """Seven confirmed slices, the largest gap among those that are folded away."""
    first = audit.slices[0]
    assert first.confirm is not None
    slices = []
    for j in range(7):
        low = 0.1 + 0.05 * j
        excess = (50.0 - j, 40.0 - j, 60.0 - j)
        errors = first.confirm.errors - (3 * j) % 7
        counts = {"errors": errors, "rate": errors / first.confirm.n}
        measured = replace(first.confirm, interval=(low, low + 0.2), excess=excess, **counts)
        slices.append(replace(first, id=f"s{j + 1}", name=f"group {j + 1}", confirm=measured, verdict="confirmed"))
    return replace(audit, slices=tuple(slices))


@pytest.fixture(scope="module")
def home(many: Audit, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    names = {found.id: found.name for found in many.slices}
    with ExitStack() as stack:
        folder = tmp_path_factory.mktemp("records")
        records = stack.enter_context(Records(folder, fingerprint=many.evaluation.fingerprint, slices=names))
        yield stack.enter_context(ServerThread(create_app(many, records)))


@pytest.fixture(scope="module")
def report(many: Audit, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(to_html(many), encoding="utf-8")
    return path.as_uri()


def first_names(page: Any) -> list[str]:
    return [text.partition(" ")[2] for text in page.locator("#finds .find h3 a").all_inner_texts()]


@pytest.mark.parametrize("where", ["served", "saved"])
def test_an_order_is_of_all_slices_and_in_the_address(open_page: Open, home: str, report: str, where: str) -> None:
    """After Back, on a link that somebody sent, and without it where the link has none."""
    start = {"served": home + "/", "saved": report}[where]
    by_gap = {"served": "**/?order=gap", "saved": "**#overview?order=gap"}[where]
    largest = [f"group {j}" for j in (7, 6, 5, 4, 3)]
    page = open_page(start)
    page.keyboard.press("2")
    assert first_names(page) == largest
    page.wait_for_url(by_gap)
    page.locator("#finds .find h3 a").first.click()
    page.wait_for_url({"served": "**/slice/s7", "saved": "**#slice/s7"}[where])
    page.go_back()
    page.wait_for_url(by_gap)
    expect(page.locator("input[name=order][value=gap]")).to_be_checked()
    assert first_names(page) == largest
    sent = open_page(page.url)
    expect(sent.locator("input[name=order][value=gap]")).to_be_checked()
    expect(sent.locator("#ordered")).to_have_text("Ordered by largest gap: to the rest, the lower end of its interval.")
    assert first_names(sent) == largest
    sent.keyboard.press("1")
    assert first_names(sent) == [f"group {j}" for j in (1, 2, 3, 4, 5)]
    assert "order" not in sent.url
    assert first_names(open_page(start)) == [f"group {j}" for j in (1, 2, 3, 4, 5)]


def test_most_errors_comes_first_where_that_is_asked_for(open_page: Open, home: str) -> None:
    page = open_page(home)
    page.keyboard.press("6")
    expect(page.get_by_role("radio", name="Most errors")).to_be_checked()
    page.locator("#finds ~ details").first.evaluate("fold => { fold.open = true; }")
    counts = [float(row.get_attribute("data-errors")) for row in page.locator("[data-ranked=confirmed] .find").all()]
    assert counts == sorted(counts, reverse=True)
    assert len(counts) == 7


def test_an_order_in_the_address_needs_no_script(open_page: Open, home: str) -> None:
    page = open_page(home + "/?order=gap", java_script_enabled=False)
    assert first_names(page) == [f"group {j}" for j in (7, 6, 5, 4, 3)]


def test_a_click_on_the_whisker_opens_the_slice(open_page: Open, home: str) -> None:
    page = open_page(home)
    box = page.locator("#finds .find .dwcell").first.bounding_box()
    page.mouse.click(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.wait_for_url("**/slice/s1")


def test_nothing_is_saved_before_there_is_a_name(open_page: Open, home: str) -> None:
    """An answer, a decision: the field of the name says what it is for, and the next try is saved under it."""
    page = open_page(home + "/annotate/s1", person="")
    expect(page.locator(".who")).to_have_text("Write your name first.")
    page.keyboard.press("1")
    expect(page.get_by_role("alert").filter(has_text="Write your name first")).to_be_visible()
    expect(page.locator(".saved")).to_have_text("Nothing saved yet.")
    assert page.evaluate("document.activeElement.id") == "person"
    page.keyboard.type("Ada")
    page.keyboard.press("Enter")
    expect(page.locator(".who")).to_have_text("as Ada")
    page.keyboard.press("1")
    expect(page.locator(".saved")).to_contain_text("Saved: ")
    other = open_page(home + "/slice/s2", person="")
    other.keyboard.press("a")
    expect(other.locator(".decide .what")).to_have_text("Not saved yet: it needs your name.")


# Every answer of the server is late. Four in turn are still in time for a slow machine.
LATE = """const ask = window.fetch; window.fetch = async (...given) => {
  const answer = await ask(...given); await new Promise((done) => setTimeout(done, 400)); return answer; }; 0"""


def decide_at_once(page: Any) -> None:
    """A note, a name and two keys, none of which waits for an answer of the server."""
    page.keyboard.press("o")
    page.keyboard.type("dark")
    page.keyboard.press("Enter")
    page.keyboard.press("e")
    page.keyboard.type("Rooms at night")
    page.keyboard.press("Enter")
    page.keyboard.press("r")
    page.keyboard.press("a")


def test_decisions_faster_than_the_server_are_saved_in_their_order(open_page: Open, home: str) -> None:
    """The second one was refused as "changed in another tab", by the person's own first one."""
    page = open_page(home + "/slice/s4")
    page.evaluate(LATE)
    decide_at_once(page)
    expect(page.locator(".decide .what")).to_contain_text("Accepted by Grace")
    expect(page.locator("h1")).to_have_text("Rooms at night")
    expect(page.locator(".decide .what")).to_contain_text("“dark”")


def test_after_a_refusal_nothing_is_saved_that_was_decided_before_it_was_read(open_page: Open, home: str) -> None:
    page = open_page(home + "/slice/s5")
    other = open_page(home + "/slice/s5", person="Ada")
    other.keyboard.press("r")
    expect(other.locator(".decide .what")).to_contain_text("Rejected by Ada")
    page.watch.expected.append("409")
    page.evaluate(LATE)
    decide_at_once(page)
    expect(page.locator(".decide .what")).to_contain_text("Changed in another tab by Ada: rejected.")
    expect(page.locator(".decide .what")).to_contain_text("What you decided after it was not saved either.")
    page.reload()
    expect(page.locator(".decide .what")).to_contain_text("Rejected by Ada")


def test_what_is_on_its_way_arrives_although_the_person_goes_on(open_page: Open, home: str) -> None:
    page = open_page(home + "/slice/s6")
    with page.expect_request("**/api/decisions"):
        page.keyboard.press("a")
        page.keyboard.press("[")
    page.wait_for_url("**/slice/s5")
    page.wait_for_load_state("networkidle")
    page.goto(home + "/slice/s6")
    expect(page.locator(".decide .what")).to_contain_text("Accepted by Grace")


def test_a_loop_of_many_points_is_saved(open_page: Open, home: str) -> None:
    """A request that outlives its page may have 64 KiB; the map keeps 2,000 points."""
    page = open_page(home + "/slice/s2")
    loop = [[0.9 * np.cos(angle), 0.9 * np.sin(angle)] for angle in np.linspace(0, 6.28, 2000)]
    event = "(loop) => new CustomEvent('errata-save-loop', { bubbles: true, detail: { loop } })"
    page.evaluate(f"(loop) => document.querySelector('.map').dispatchEvent(({event})(loop))", loop)
    expect(page.locator(".map .hand")).to_contain_text("Saved as drawn-")


def test_keys_that_change_nothing_are_not_told_as_a_move(open_page: Open, home: str) -> None:
    """A member that was put in and then out was told as back where it was."""
    page = open_page(home + "/slice/s3")
    sentence = page.locator("[data-moved=s3]")
    page.locator("[data-mixed=s3] [data-row]:not([data-outside]) a").first.focus()
    page.keyboard.press("i")
    expect(sentence).to_be_hidden()
    page.keyboard.press("x")
    expect(sentence).to_contain_text("People put 1 row out.")
    page.keyboard.press("i")
    expect(sentence).to_be_hidden()
    page.locator("[data-mixed=s3] [data-outside] a").first.focus()
    page.keyboard.press("x")
    expect(sentence).to_be_hidden()
    page.keyboard.press("i")
    expect(sentence).to_contain_text("People put 1 row in.")


def test_no_hypothesis_is_tested_without_a_name(open_page: Open, home: str) -> None:
    page = open_page(home + "/slice/s2", person="")
    page.locator("[data-hypothesis] [name=text]").fill("light = night")
    page.keyboard.press("Enter")
    expect(page.locator("[data-hypothesis] .said")).to_have_text("Not tested yet: it needs your name.")
    assert not any("/api/hypotheses" in address for address in page.watch.asked)


@pytest.mark.parametrize("address", ["", "#slice/s3"])
def test_a_saved_page_does_not_jump_while_it_loads(open_page: Open, report: str, browser: Any, address: str) -> None:
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    context.add_init_script(SHIFT)
    page = open_page(report + address, in_context=context)
    page.wait_for_timeout(500)
    assert page.evaluate("window.shifted ?? 0") < 0.02
    assert page.locator(".view:visible").count() == 1
    context.close()


PATHS = ("/", "/slice/s1", "/rows", "/rows?slice=s1", "/annotate", "/annotate/s1", "/hypothesis", "/curate", "/log")


@pytest.mark.parametrize("width", [390, 1024, 1440])
def test_no_page_of_a_server_jumps_while_it_loads(browser: Any, open_page: Open, home: str, width: int) -> None:
    context = browser.new_context(viewport={"width": width, "height": 800})
    context.add_init_script(SHIFT)
    for path in PATHS:
        page = open_page(home + path, in_context=context)
        page.wait_for_load_state("networkidle")
        page.wait_for_timeout(150)
        assert page.evaluate("window.shifted ?? 0") < 0.02, path
        page.close()
    context.close()


@pytest.mark.parametrize("width", [390, 1024])
def test_the_words_are_one_key_or_one_tap_away(open_page: Open, home: str, report: str, width: int) -> None:
    for address in (*(home + path for path in PATHS), report):
        page = open_page(address, viewport={"width": width, "height": 800})
        page.wait_for_load_state("networkidle")
        assert page.locator(".tools [data-glossary]").bounding_box()["height"] <= 48, "its key is on a line of its own"
        page.locator(".tools [data-glossary]").click()
        expect(page.locator("#glossary")).to_contain_text("Held-out rows".lower())
        page.keyboard.press("Escape")
        page.keyboard.press("g")
        expect(page.locator("#glossary")).to_be_visible()


def test_a_condition_on_the_outcome_is_answered_in_a_sentence(open_page: Open, home: str, report: str) -> None:
    for address in (home + "/slice/s1", report + "#slice/s1"):
        page = open_page(address)
        form = page.locator("form[data-hypothesis]:visible")
        form.locator("[name=text]").fill("label = cat and prediction = dog")
        form.get_by_role("button", name="Test").click()
        expect(form.locator(".said")).to_contain_text("so a high error is by construction.")
        expect(form.locator("svg")).to_have_attribute("aria-label", re.compile("not measured|at least 20"))


def test_a_map_that_has_not_started_is_not_called_broken(open_page: Open, home: str) -> None:
    page = open_page(home + "/slice/s1")
    assert page.locator(".map .fallback:visible").count() == 0
    broken = open_page("about:blank")
    broken.watch.expected += ["api/map", "503"]
    broken.route("**/api/map", lambda route: route.fulfill(status=503, body="{}"))
    broken.goto(home + "/slice/s1#s1-map")
    broken.locator(".map").scroll_into_view_if_needed()
    expect(broken.locator(".map .fallback")).to_contain_text("The map did not start.")
    expect(broken.locator(".map .placing:visible")).to_have_count(0)


def test_a_slice_is_kept_or_a_sentence_says_why_not(open_page: Open, home: str) -> None:
    page = open_page("about:blank")
    page.watch.expected += ["api/slices", "Failed to load"]
    shown = {"n": 100, "errors": 50, "rest_n": 100, "rest_errors": 5, "interval": [0.4, 0.6], "hypotheses": 1}
    answer = {**shown, "sentence": "Half.", "can_keep": True, "text": "size > 3", "shown": []}
    page.route("**/api/hypotheses", lambda route: route.fulfill(json=answer))
    page.route("**/api/slices", lambda route: route.abort())
    page.goto(home + "/hypothesis")
    page.locator("[name=text]").fill("size > 3")
    page.keyboard.press("Enter")
    button = page.get_by_role("button", name="Keep as a slice")
    button.click()
    expect(page.locator(".more")).to_contain_text("Not kept: the server did not answer. Try again.")
    expect(button).to_be_enabled()


def test_a_phone_scrolls_past_the_map_and_can_rename(open_page: Open, home: str) -> None:
    page = open_page(home + "/slice/s1", **PHONE)
    canvas = page.locator("canvas")
    assert canvas.evaluate("(e) => getComputedStyle(e).touchAction") == "pan-y"
    page.get_by_role("button", name="More").tap()
    for name in ("Rename", "Merge", "Note"):
        expect(page.get_by_role("button", name=name)).to_be_visible()
    page.locator(".map").scroll_into_view_if_needed()
    expect(page.locator(".map .placing:visible")).to_have_count(0)
    page.locator("[data-do=lasso]").click()
    assert canvas.evaluate("(e) => getComputedStyle(e).touchAction") == "none"


@pytest.mark.parametrize("width", [390, 1024])
def test_ticks_do_not_lie_on_each_other(open_page: Open, home: str, width: int) -> None:
    for path in ("/", "/slice/s1"):
        page = open_page(home + path, viewport={"width": width, "height": 800})
        boxes = page.evaluate(
            """() => [...document.querySelectorAll("svg.ticks")].map((svg) => [...svg.querySelectorAll("text")]
              .filter((text) => text.getClientRects().length).map((text) => text.getBoundingClientRect())
              .map((box) => [box.left, box.right]))"""
        )
        assert any(len(ticks) > 1 for ticks in boxes)
        for ticks in boxes:
            assert all(a[1] < b[0] for a, b in pairwise(ticks)), (path, ticks)


def test_the_decision_bar_stands_at_the_bottom_of_a_short_page(open_page: Open, home: str) -> None:
    page = open_page(home + "/slice/s1", viewport={"width": 1440, "height": 6000})
    box = page.locator(".decide").bounding_box()
    assert box["y"] + box["height"] == pytest.approx(6000, abs=1)
