"""Whoever decides before they gave a name is asked for it once, and what they decided is saved with it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from errata.people.records import Records

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no page is opened")
expect: Any = playwright.expect

Open = Callable[..., Any]
Home = tuple[str, Records]
ASKED = "Write your name and press Enter: then it is saved."


def give_name(page: Any) -> None:
    expect(page.get_by_role("alert").filter(has_text=ASKED)).to_be_visible()
    expect(page.locator("#person")).to_be_focused()
    page.keyboard.type("Ada")
    page.keyboard.press("Enter")


def unnamed(open_page: Open, home: Home) -> Any:
    return open_page(home[0] + "/slice/s1", person="")


@pytest.mark.parametrize(("key", "word"), [("a", "Accepted"), ("r", "Rejected")])
def test_a_decision_by_a_key_is_made_once_there_is_a_name(open_page: Open, home: Home, key: str, word: str) -> None:
    page = unnamed(open_page, home)
    page.keyboard.press(key)
    expect(page.locator(".decide .what")).to_have_text("Not saved yet: it needs your name.")
    give_name(page)
    expect(page.locator(".decide .what")).to_contain_text(f"{word} by Ada, saved")
    assert home[1].standings()["s1"].decision == word.lower()
    page.keyboard.press("r" if key == "a" else "a")  # the keys work again, without a second name
    expect(page.locator(".decide .what")).to_contain_text("by Ada, saved")


def test_a_decision_by_the_mouse_is_made_once_there_is_a_name(open_page: Open, home: Home) -> None:
    page = unnamed(open_page, home)
    page.get_by_role("button", name="Accept").click()
    give_name(page)
    expect(page.locator(".decide .what")).to_contain_text("Accepted by Ada, saved")


def test_who_presses_the_button_again_after_the_name_decides_once(open_page: Open, home: Home) -> None:
    page = unnamed(open_page, home)
    page.get_by_role("button", name="Accept").click()
    page.keyboard.type("Ada")
    page.get_by_role("button", name="Accept").click()
    expect(page.locator(".decide .what")).to_contain_text("Accepted by Ada, saved")
    page.wait_for_timeout(800)
    expect(page.locator(".decide .what")).to_contain_text("Accepted by Ada, saved")
    assert home[1].standings()["s1"].version == 1


@pytest.mark.parametrize(("key", "field"), [("e", "name"), ("o", "note")])
def test_a_name_or_a_note_is_saved_once_there_is_a_name(open_page: Open, home: Home, key: str, field: str) -> None:
    page = unnamed(open_page, home)
    page.keyboard.press(key)
    page.keyboard.type("badly lit")
    page.keyboard.press("Enter")
    give_name(page)
    expect(page.locator(".decide .what")).to_contain_text("by Ada, saved")
    assert getattr(home[1].standings()["s1"], field) == "badly lit"


def test_a_merge_is_made_once_there_is_a_name(open_page: Open, home: Home) -> None:
    page = unnamed(open_page, home)
    page.keyboard.press("m")
    page.get_by_role("button", name="Show overlap").click()
    page.get_by_role("button", name="Merge into").click()
    give_name(page)
    expect(page.locator(".decide .what")).to_contain_text("Merged into s2 by Ada, saved")


def test_a_row_is_moved_once_there_is_a_name(open_page: Open, home: Home) -> None:
    page = unnamed(open_page, home)
    row = page.locator("[data-mixed='s1'] [data-row]").first
    row.locator("a").focus()
    for key, words in (("x", "People put 1 row out."), ("i", "")):
        with page.expect_response("**/api/edits"):
            page.keyboard.press(key)
            if key == "x":
                give_name(page)
        if words:
            expect(page.locator("[data-moved='s1']")).to_contain_text(words)
            expect(row.locator("a")).to_be_focused()
    assert list(home[1].edits("s1").values()) == [True]


def test_a_row_is_moved_by_the_mouse_once_there_is_a_name(open_page: Open, home: Home) -> None:
    page = unnamed(open_page, home)
    page.get_by_role("button", name="Move rows").click()
    page.locator("[data-mixed='s1'] [data-row]").first.click()
    give_name(page)
    expect(page.locator("[data-moved='s1']")).to_contain_text("People put 1 row out.")


def test_a_hypothesis_is_tested_once_there_is_a_name(open_page: Open, home: Home) -> None:
    page = open_page(home[0] + "/hypothesis", person="")
    page.locator("#hypothesis-page").fill("light = night")
    page.keyboard.press("Enter")
    give_name(page)
    expect(page.locator(".answer .said")).to_contain_text("held-out rows match")


def test_who_gives_no_name_has_decided_nothing_and_is_told_so(open_page: Open, home: Home) -> None:
    page = unnamed(open_page, home)
    page.keyboard.press("a")
    page.keyboard.press("Escape")
    expect(page.locator(".decide .what")).to_have_text("Not saved yet: it needs your name.")
    page.locator("#person").fill("Ada")
    page.keyboard.press("Enter")
    page.wait_for_timeout(800)
    assert home[1].standings()["s1"].version == 0  # what was given up is not made up for later
    page.keyboard.press("a")
    expect(page.locator(".decide .what")).to_contain_text("Accepted by Ada, saved")
