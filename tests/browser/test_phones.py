"""Deciding on a phone: a bar that leaves the page to be read, buttons to touch, and a name asked for once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from errata.people.records import Records

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no page is opened")
expect: Any = playwright.expect

Open = Callable[..., Any]
PHONE = {"viewport": {"width": 390, "height": 844}, "has_touch": True, "is_mobile": True}


def names_of_buttons(page: Any) -> list[str]:
    return [button.inner_text().split()[0] for button in page.locator(".decide > div > .btn:visible").all()]


def test_the_bar_keeps_accept_reject_and_note_and_the_others_are_one_tap_away(
    open_page: Open, home: tuple[str, Records]
) -> None:
    page = open_page(home[0] + "/slice/s1", **PHONE)
    assert names_of_buttons(page) == ["Accept", "Reject", "Note", "More"]
    assert page.locator(".decide").bounding_box()["height"] < 110
    page.get_by_role("button", name="More").tap()
    assert names_of_buttons(page) == ["Accept", "Reject", "Note", "Merge", "Rename", "Move", "Less"]
    page.get_by_role("button", name="Rename").tap()
    page.locator(".decide [name=text]").fill("badly lit")
    page.locator(".decide .primary").tap()
    expect(page.locator("h1")).to_have_text("badly lit")
    page.get_by_role("button", name="Less").tap()
    assert names_of_buttons(page) == ["Accept", "Reject", "Note", "More"]


def test_everything_is_in_the_bar_where_there_are_keys(open_page: Open, home: tuple[str, Records]) -> None:
    page = open_page(home[0] + "/slice/s1", viewport={"width": 390, "height": 844})
    assert names_of_buttons(page) == ["Accept", "Reject", "Note", "Merge", "Rename", "Move"]


def test_buttons_of_the_bar_are_large_enough_to_touch(open_page: Open, home: tuple[str, Records]) -> None:
    page = open_page(home[0] + "/slice/s1", **PHONE)
    for button in page.locator(".decide .btn:visible").all():
        box = button.bounding_box()
        assert min(box["width"], box["height"]) >= 44


def test_a_decision_on_a_phone_asks_for_a_name_in_sight_and_is_made(open_page: Open, home: tuple[str, Records]) -> None:
    page = open_page(home[0] + "/slice/s1#map", person="", **PHONE)
    page.get_by_role("button", name="Accept").tap()
    expect(page.get_by_role("alert").filter(has_text="Write your name")).to_be_in_viewport(ratio=1)
    expect(page.locator("#person")).to_be_focused()
    page.keyboard.type("Ada")
    page.keyboard.press("Enter")
    expect(page.locator(".decide .what")).to_contain_text("Accepted by Ada, saved")
