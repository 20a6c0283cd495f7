"""Jobs from the first look to the report that is sent, by mouse and by keyboard alone; every action is counted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import errata
from errata.app.access import Access
from errata.cli.serve import AuditSite
from errata.core import Audit
from support.command import run
from support.servers import ServerThread
from support.small_audits import image_evaluation

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no page is opened")
expect: Any = playwright.expect

Open = Callable[..., Any]
RULE = "light = night and size > 3"
MOST = {  # actions of a job: clicks, keys, and texts that are typed; one more page in the bar is one more Tab
    "mouse": {"say who": 2, "name": 4, "five out": 6, "accept": 1, "merge": 4, "promote": 5, "compare": 2},
    "keyboard": {"say who": 12, "name": 5, "five out": 36, "accept": 1, "merge": 5, "promote": 6, "compare": 24},
}


class Hands:
    """Somebody at a page; `counts` has the actions of each job."""

    def __init__(self, page: Any) -> None:
        self.page = page
        self.counts: dict[str, int] = {}
        self.job = ""

    def act(self) -> None:
        self.counts[self.job] = self.counts.get(self.job, 0) + 1

    def write(self, text: str) -> None:
        self.act()
        self.page.keyboard.type(text)

    def press(self, *keys: str) -> None:
        for key in keys:
            self.act()
            self.page.keyboard.press(key)

    def click(self, what: Any) -> None:
        self.act()
        what.click()

    def tab_to(self, selector: str) -> None:
        for _ in range(120):
            if self.page.evaluate("(s) => document.activeElement?.matches(s)", selector):
                return
            self.press("Tab")
        raise AssertionError(f"no {selector} by the Tab key")


def by_mouse(hands: Hands, address: str) -> None:
    page = hands.page
    hands.job = "say who"
    hands.click(page.locator("#person"))
    hands.write("Ada")
    hands.job = "name"
    hands.click(page.locator("#finds .find h3 a").first)
    hands.click(page.locator("[data-do=rename]"))
    hands.write("Rooms at night")
    saved(page, "decisions", lambda: hands.click(page.locator(".decide .primary")))
    expect(page.locator("h1")).to_have_text("Rooms at night")
    hands.job = "five out"
    hands.click(page.locator("[data-do=rows]"))
    for row in page.locator("[data-mixed] [data-row]").all()[:5]:
        saved(page, "edits", lambda row=row: hands.click(row))
    hands.job = "accept"
    saved(page, "decisions", lambda: hands.click(page.locator("[data-do=accepted]")))
    hands.job = "merge"
    hands.click(page.get_by_role("link", name="Next"))
    hands.click(page.locator("[data-do=merge]"))
    hands.click(page.locator(".decide .primary"))
    merging = page.get_by_role("button", name="Merge into s1")
    saved(page, "decisions", lambda: hands.click(merging))
    hands.job = "promote"
    hands.click(page.locator("[data-hypothesis] [name=text]"))
    hands.write(RULE)
    hands.click(page.locator("[data-hypothesis] button").first)
    hands.click(page.get_by_role("button", name="Keep as a slice"))
    hands.click(page.get_by_text("Kept as").get_by_role("link"))
    expect(page.locator("h1")).to_have_text(RULE)
    hands.job = "compare"
    hands.click(page.get_by_role("link", name="Compare"))
    hands.click(page.get_by_role("link", name="fixed").first)


def by_keyboard(hands: Hands, address: str) -> None:
    page = hands.page
    hands.job = "say who"
    hands.tab_to("#person")
    hands.write("Ada")
    hands.press("Escape")
    page.evaluate("document.activeElement.blur()")
    hands.job = "name"
    hands.press("j", "Enter")
    page.wait_for_url("**/slice/s1")
    hands.press("e")
    hands.write("Rooms at night")
    saved(page, "decisions", lambda: hands.press("Enter"))
    expect(page.locator("h1")).to_have_text("Rooms at night")
    hands.job = "five out"
    page.reload()  # the keyboard starts at the top
    hands.tab_to("[data-mixed] [data-row] a")
    for _ in range(5):
        saved(page, "edits", lambda: hands.press("x"))
        hands.press("Tab")
    hands.job = "accept"
    saved(page, "decisions", lambda: hands.press("a"))
    hands.job = "merge"
    hands.press("]")
    page.wait_for_url("**/slice/s2")
    hands.press("m")
    expect(page.locator(".decide select")).to_be_focused()
    hands.press("Tab", "Enter")
    expect(page.get_by_role("button", name="Merge into s1")).to_be_visible()
    saved(page, "decisions", lambda: hands.press("Enter"))
    hands.job = "promote"
    hands.press("/")
    hands.write(RULE)
    hands.press("Enter")
    expect(page.get_by_role("button", name="Keep as a slice")).to_be_visible()
    hands.tab_to("[data-hypothesis] .more button")
    hands.press("Enter")
    expect(page.get_by_text("Kept as")).to_be_visible()
    hands.job = "compare"
    page.goto(address + "/")
    hands.tab_to("a[href='/compare']")
    hands.press("Enter")
    page.wait_for_url("**/compare*")
    hands.tab_to(".cmp a[href*='change=fixed']")
    hands.press("Enter")


def saved(page: Any, what: str, act: Callable[[], None]) -> None:
    with page.expect_response(f"**/api/{what}") as got:
        act()
    assert got.value.ok


@pytest.fixture
def place(audit: Audit, tmp_path: Path) -> Path:
    """Audits of two models, and training rows."""
    errata.save(audit, tmp_path / "audit")
    kept = audit.evaluation
    mended = np.where(np.arange(len(kept)) % 2 == 0, kept.labels, kept.predictions)
    other = replace(audit, evaluation=replace(kept, predictions=mended, probs=None, losses=None))
    errata.save(other, tmp_path / "better")
    train = image_evaluation(500, seed=5)
    np.savez(
        tmp_path / "train.npz",
        labels=train.labels,
        predictions=train.predictions,
        ids=np.array([f"train-{i}" for i in range(500)]),
        **{"embedding:features": train.representations["features"]},
        **{f"metadata:{name}": values for name, values in train.metadata.items()},
    )
    return tmp_path


@pytest.mark.parametrize("how", ["mouse", "keyboard"])
def test_from_the_first_look_to_the_report_that_is_sent(how: str, open_page: Open, place: Path) -> None:
    folder = place / "audit"
    with (
        AuditSite().open_app(folder, None, [place / "better"], access=Access(("127.0.0.1",))) as app,
        ServerThread(app) as address,
    ):
        page = open_page(address)
        hands = Hands(page)
        {"mouse": by_mouse, "keyboard": by_keyboard}[how](hands, address)
        page.wait_for_url("**change=fixed*")
        expect(page.locator("h1")).to_contain_text("accepted slice")
        expect(page.locator(".cmp h3").first).to_have_text("Rooms at night")
        assert page.locator("#changed .thumb").count() > 5
        expect(page.locator(".gate")).to_contain_text("Gate passes")
        page.goto(address + "/")
        expect(page.locator("#finds")).to_contain_text("Rooms at night")
        expect(page.locator("#finds")).to_contain_text("Accepted by Ada")
        expect(page.locator("#finds")).to_contain_text("Edited by people")
        page.close()
    assert {job: n for job, n in hands.counts.items() if n > MOST[how][job]} == {}
    # Plan a fix from accepted slices, and send the report: one command each.
    done = run("plan", "weights", "audit", "train.npz", "-o", "plan.parquet", folder=place)
    assert (done.code, "Starts from 1 slice that people accepted: s1" in done.out) == (0, True), done.err
    assert run("report", "audit", "-o", "sent.html", folder=place).code == 0
    page = open_page((place / "sent.html").as_uri())
    expect(page.locator("#finds")).to_contain_text("Rooms at night")
    expect(page.locator("#finds")).to_contain_text("merged into it by people")
    page.close()
