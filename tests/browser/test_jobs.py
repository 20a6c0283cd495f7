"""Ten jobs from the first look to the report that is sent, by mouse and by keyboard alone; every action is counted."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
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
NOTE = "Dark, where the right ones of its label are bright"
# Actions of a job: a click, a key, a text that is typed and a command are one each; one more page in the bar is one
# more Tab. docs/studies/app.md has this table beside that of 0.4.0.
MOST = {
    "mouse": {
        "say who": 2,
        "find the worst": 2,
        "say why": 3,
        "name it": 3,
        "five rows out": 6,
        "merge two": 4,
        "promote a hypothesis": 4,
        "compare two models": 2,
        "plan a fix": 2,
        "export members": 2,
        "send the report": 1,
    },
    "keyboard": {
        "say who": 12,
        "find the worst": 3,
        "say why": 3,
        "name it": 3,
        "five rows out": 10,
        "merge two": 5,
        "promote a hypothesis": 6,
        "compare two models": 3,
        "plan a fix": 2,
        "export members": 2,
        "send the report": 1,
    },
}


class Hands:
    """Somebody at a page; `counts` has the actions of each job."""

    def __init__(self, page: Any, folder: Path) -> None:
        self.page = page
        self.folder = folder
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

    def command(self, *words: str) -> Any:
        self.act()
        done = run(*words, folder=self.folder)
        assert done.code == 0, done.err
        return done

    def tab_to(self, selector: str) -> None:
        for _ in range(120):
            if self.page.evaluate("(s) => document.activeElement?.matches(s)", selector):
                return
            self.press("Tab")
        raise AssertionError(f"no {selector} by the Tab key")


def saved(page: Any, what: str, act: Callable[[], None]) -> None:
    with page.expect_response(f"**/api/{what}") as got:
        act()
    assert got.value.ok


def worst_is_open(page: Any) -> None:
    page.wait_for_url("**/slice/s1")
    pairs = page.locator(".group", has_text="Wrong beside right, same label")
    expect(pairs.locator(".wrong").first).to_be_visible()
    expect(pairs.locator(".right").first).to_be_visible()


def downloaded(page: Any, act: Callable[[], None]) -> Any:
    expect(page.locator(".rows-said")).to_contain_text("rows listed")
    with page.expect_download() as got:
        act()
    return pd.read_csv(got.value.path())


def by_mouse(hands: Hands, address: str) -> Any:
    page = hands.page
    hands.job = "say who"
    hands.click(page.locator("#person"))
    hands.write("Ada")
    hands.job = "find the worst"
    hands.click(page.get_by_role("radio", name="Highest error rate"))
    hands.click(page.locator("#finds .find h3 a").first)
    worst_is_open(page)
    hands.job = "say why"
    hands.click(page.locator("[data-do=note]"))
    hands.write(NOTE)
    saved(page, "decisions", lambda: hands.click(page.locator(".decide .primary")))
    hands.job = "name it"
    hands.click(page.locator("[data-do=rename]"))
    hands.write("Rooms at night")
    saved(page, "decisions", lambda: hands.click(page.locator(".decide .primary")))
    expect(page.locator("h1")).to_have_text("Rooms at night")
    hands.job = "five rows out"
    hands.click(page.locator("[data-do=rows]"))
    for row in page.locator("[data-mixed] [data-row]").all()[:5]:
        saved(page, "edits", lambda row=row: hands.click(row))
    hands.job = "plan a fix"
    saved(page, "decisions", lambda: hands.click(page.locator("[data-do=accepted]")))
    hands.job = "merge two"
    hands.click(page.get_by_role("link", name="Next"))
    page.wait_for_url("**/slice/s2")  # else the click that follows may be on the page that is left
    hands.click(page.locator("[data-do=merge]"))
    hands.click(page.locator(".decide .primary"))
    merging = page.get_by_role("button", name="Merge into s1")
    saved(page, "decisions", lambda: hands.click(merging))
    hands.job = "promote a hypothesis"
    hands.click(page.locator("[data-hypothesis] [name=text]"))
    hands.write(RULE)
    hands.click(page.locator("[data-hypothesis] button").first)
    hands.click(page.get_by_role("button", name="Keep as a slice"))
    expect(page.get_by_text("Kept as")).to_be_visible()
    page.goto(address + "/slice/s1")
    hands.job = "export members"
    hands.click(page.get_by_role("link", name=re.compile("See all .* members")))
    table = downloaded(page, lambda: hands.click(page.get_by_role("link", name="CSV")))
    hands.job = "compare two models"
    hands.click(page.get_by_role("link", name="Compare"))
    hands.click(page.get_by_role("link", name="fixed").first)
    return table


def by_keyboard(hands: Hands, address: str) -> Any:
    page = hands.page
    hands.job = "say who"
    hands.tab_to("#person")
    hands.write("Ada")
    hands.press("Escape")
    page.evaluate("document.activeElement.blur()")
    hands.job = "find the worst"
    hands.press("4", "j", "Enter")
    worst_is_open(page)
    hands.job = "say why"
    hands.press("o")
    hands.write(NOTE)
    saved(page, "decisions", lambda: hands.press("Enter"))
    hands.job = "name it"
    hands.press("e")
    hands.write("Rooms at night")
    saved(page, "decisions", lambda: hands.press("Enter"))
    expect(page.locator("h1")).to_have_text("Rooms at night")
    hands.job = "five rows out"
    for _ in range(5):
        hands.press("j")
        saved(page, "edits", lambda: hands.press("x"))
    hands.job = "plan a fix"
    saved(page, "decisions", lambda: hands.press("a"))
    hands.job = "merge two"
    hands.press("]")
    page.wait_for_url("**/slice/s2")
    hands.press("m")
    expect(page.locator(".decide select")).to_be_focused()
    hands.press("Tab", "Enter")
    expect(page.get_by_role("button", name="Merge into s1")).to_be_visible()
    saved(page, "decisions", lambda: hands.press("Enter"))
    hands.job = "promote a hypothesis"
    hands.press("/")
    hands.write(RULE)
    hands.press("Enter")
    expect(page.get_by_role("button", name="Keep as a slice")).to_be_visible()
    hands.tab_to("[data-hypothesis] .more button")
    hands.press("Enter")
    expect(page.get_by_text("Kept as")).to_be_visible()
    page.goto(address + "/slice/s1")
    hands.job = "export members"
    hands.press("v")
    page.wait_for_url("**/rows?slice=s1")
    table = downloaded(page, lambda: hands.press("c"))
    hands.job = "compare two models"
    page.goto(address + "/")
    hands.press("Shift+C")
    page.wait_for_url("**/compare*")
    hands.press("j")
    expect(page.locator(".cmp h3 a").first).to_be_focused()
    hands.press("f")
    return table


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
def test_ten_jobs_from_the_first_look_to_the_report_that_is_sent(how: str, open_page: Open, place: Path) -> None:
    with (
        AuditSite().open_app(place / "audit", None, [place / "better"], access=Access(("127.0.0.1",))) as app,
        ServerThread(app) as address,
    ):
        page = open_page(address, person="")
        hands = Hands(page, place)
        table = {"mouse": by_mouse, "keyboard": by_keyboard}[how](hands, address)
        page.wait_for_url("**change=fixed*")
        expect(page.locator(".lede")).to_contain_text("Starts from 1 slice that people accepted: s1.")
        expect(page.locator(".cmp h3 a").first).to_have_text("s1 Rooms at night")
        assert page.locator("#changed .thumb").count() > 5
        expect(page.locator(".gate")).to_contain_text("Gate passes")
        page.goto(address + "/")
        for words in ("Rooms at night", "Accepted by Ada", NOTE, "Edited by people", "merged into it by people"):
            expect(page.locator("#finds")).to_contain_text(words)
        page.close()
    hands.job = "plan a fix"
    done = hands.command("plan", "weights", "audit", "train.npz", "-o", "plan.parquet")
    assert "Starts from 1 slice that people accepted: s1" in done.out
    hands.job = "send the report"
    hands.command("report", "audit", "-o", "sent.html")
    page = open_page((place / "sent.html").as_uri())
    for words in ("Rooms at night", "Accepted by Ada", NOTE, "merged into it by people"):
        expect(page.locator("#finds")).to_contain_text(words)
    page.close()
    # What was exported, what the report and the file of slices say, and what the audit holds are the same rows.
    left = errata.load(place / "audit", judged=True)["s1"]
    assert left.judged is not None
    assert (left.judged.put_out, [other.id for other in left.judged.merged]) == (5, ["s2"])
    assert len(table) == int(left.members.sum())
    assert set(hands.counts) == set(MOST[how])
    assert {job: n for job, n in hands.counts.items() if n > MOST[how][job]} == {}
