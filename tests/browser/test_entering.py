"""The token typed into a browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from errata.app.access import Access
from errata.core import Audit
from errata.people import tokens
from errata.people.tokens import PeopleFile

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no page is opened")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
expect: Any = playwright.expect

Open = Callable[..., Any]
TOKEN = "a-token-of-some-length"


@pytest.fixture
def address(serve: Any, audit: Audit) -> str:
    found: str = serve(audit, access=Access(None, TOKEN))[0]
    return found


def test_typed_wrong_then_right(open_page: Open, address: str) -> None:
    page = open_page(address + "/slice/s1?theme=dark")
    page.watch.expected.append("401")
    expect(page.locator("#token")).to_be_focused()
    page.keyboard.type("not-the-token")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_contain_text("That is not the token.")
    expect(page.locator("#token")).to_have_value("")
    page.locator("#token").fill(TOKEN)
    page.get_by_role("button", name="Open").click()
    page.wait_for_url(address + "/slice/s1?theme=dark")
    expect(page.locator("h1")).to_contain_text("night")
    assert not any(TOKEN in asked for asked in page.watch.asked), "no address holds it"
    (cookie,) = page.context.cookies()
    assert (cookie["httpOnly"], cookie["sameSite"]) == (True, "Strict")
    assert TOKEN not in cookie["value"], "the cookie is not the token"
    with page.expect_response("**/api/decisions") as got:
        page.keyboard.press("a")
    assert got.value.ok, "and writing works"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 360])
def test_nothing_in_the_way_of_anybody(open_page: Open, address: str, scheme: str, width: int) -> None:
    page = open_page(address, viewport={"width": width, "height": 800}, color_scheme=scheme)
    page.watch.expected.append("401")
    for _ in range(2):
        found = axe.Axe().run(page, options={"resultTypes": ["violations"]})
        wrong = [(one["id"], [node["html"][:150] for node in one["nodes"]]) for one in found.response["violations"]]
        assert wrong == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.locator("#token").fill("not-the-token")
        page.keyboard.press("Enter")
        expect(page.get_by_role("alert")).to_be_visible()


def test_who_signs_in_with_a_token_of_their_own_has_their_name(
    open_page: Open, serve: Any, audit: Any, tmp_path: Any
) -> None:
    token = tokens.add_person(tmp_path / "people.json", "Ada Ö.")
    address, records = serve(audit, access=Access(people=PeopleFile(tmp_path / "people.json")))
    page = open_page(address + "/slice/s1")
    page.watch.expected.append("401")
    expect(page.locator("h1")).to_contain_text("Who are you?")
    page.locator("#token").fill(token)
    page.get_by_role("button", name="Open").click()
    page.wait_for_url(address + "/slice/s1")
    expect(page.locator("#person")).to_have_value("Ada Ö.")
    assert page.locator("#person").get_attribute("readonly") is not None
    with page.expect_response("**/api/decisions") as got:
        page.keyboard.press("a")
    assert got.value.ok
    assert [line.person for line in records.journal()] == ["Ada Ö."]
    page.goto(address + "/log")
    expect(page.get_by_role("row")).to_have_count(2)
