"""Answers and decisions given in a browser, by keyboard, by one person or two: saved, waiting, taken back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from errata.core import Audit
from errata.people.entries import Drawing
from errata.people.records import Records
from support.gestures import lasso

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no page is opened")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
expect: Any = playwright.expect

Open = Callable[..., Any]
Serve = Callable[..., tuple[str, Records]]


def name_oneself(page: Any, name: str) -> None:
    page.locator("#person").fill(name)
    page.locator("#person").press("Tab")
    expect(page.locator(".who")).to_have_text(f"as {name}")
    page.locator("#main").click(position={"x": 5, "y": 5})


def press(page: Any, key: str) -> None:
    with page.expect_response("**/api/annotations") as got:
        page.keyboard.press(key)
    assert got.value.ok


# In the page and not by `page.route`, which lets a request that hangs go on when it is taken away.
ANSWERS = """() => {
  const real = window.fetch;
  const away = () => Promise.reject(new TypeError("away"));
  const replies = { there: real, away, silent: () => new Promise(() => {}) };
  window.fetch = (to, ...rest) => (to === "/api/annotations" ? replies[window.server] : real)(to, ...rest);
}"""


def set_server(page: Any, state: str) -> None:
    """What becomes of answers that are sent: the server is `there`, `away` or `silent`."""
    page.evaluate(f"window.server ?? ({ANSWERS})()")
    page.evaluate("state => { window.server = state; }", state)


def test_twenty_rows_by_keyboard_as_two_people(open_page: Open, home: tuple[str, Records]) -> None:
    address, records = home
    ada = open_page(address + "/annotate/s1")
    name_oneself(ada, "Ada")
    for i in range(20):
        press(ada, "12"[i % 2])
        expect(ada.locator(".count")).to_contain_text(f"{i + 1} of")
    expect(ada.locator(".saved")).to_have_text(re.compile(r"^Saved: dog, \d\d:\d\d:\d\d\.$"))
    expect(ada.locator(".agreement")).to_have_text("Not measured: one person so far.")
    bob = open_page(address + "/annotate/s1")
    name_oneself(bob, "Bob")
    for i in range(20):
        press(bob, "12"[i % 2] if i > 2 else "0")
    expect(bob.locator(".agreement")).to_have_text(
        re.compile(r"^17 of 20 answers are the same: 85\.0% \(95% interval 64\.0 to 94\.8\)\. Cohen's kappa 0\.\d\d\.$")
    )
    lines = bob.locator(".settle li")
    expect(lines).to_have_count(3)
    expect(lines.first).to_contain_text("Bob says none of the above")
    lines.first.get_by_role("button", name="Settle as none of the above").click()
    expect(lines).to_have_count(2)
    # Undo: the last two, one after the other.
    assert len(records.answers("s1", "Bob", "class")) == 20
    for left in (19, 18):
        with bob.expect_response("**/undo"):
            bob.keyboard.press("u")
        expect(bob.locator(".saved")).to_contain_text("Taken back:")
        expect(bob.locator(".count")).to_contain_text(f"{left} of")
    assert len(records.answers("s1", "Bob", "class")) == 18
    image = bob.locator(".item img").get_attribute("src")
    bob.keyboard.press("s")
    assert bob.locator(".item img").get_attribute("src") != image
    bob.reload()
    expect(bob.locator(".count")).to_contain_text("18 of")
    expect(bob.locator(".who")).to_have_text("as Bob")


def test_in_or_out_by_keyboard_and_no_label_is_shown(open_page: Open, home: tuple[str, Records]) -> None:
    page = open_page(home[0] + "/annotate/s1?task=member")
    name_oneself(page, "Ada")
    assert "cat" not in page.locator("main").inner_text()
    press(page, "i")
    press(page, "x")
    assert [one.answer for one in home[1].answers("s1", "Ada", "member")] == ["in", "out"]


def test_nobody_is_named_over_rows_that_are_still_on_their_way(open_page: Open, home: tuple[str, Records]) -> None:
    """A key would be lost, or answer for somebody else's rows."""
    page = open_page(home[0] + "/annotate/s1")
    name_oneself(page, "Ada")
    page.route("**/api/queues/**", lambda route: None)
    page.locator("#person").fill("Bob")
    page.locator("#person").press("Tab")
    expect(page.locator(".who")).to_have_text("")
    expect(page.locator("[data-answer]").first).to_be_disabled()


def test_an_answer_is_not_called_saved_before_it_is(open_page: Open, home: tuple[str, Records]) -> None:
    """The server is away: the answer waits in the tab, and goes when it is back."""
    page = open_page(home[0] + "/annotate/s1")
    name_oneself(page, "Ada")
    page.route("**/api/annotations", lambda route: route.abort())
    page.keyboard.press("1")
    expect(page.locator(".unsaved")).to_have_text("1 answer is not saved. They stay in this tab and are sent again.")
    expect(page.locator(".saved")).to_contain_text("Not saved: cat.")
    assert home[1].log() == ()
    page.unroute("**/api/annotations")
    expect(page.locator(".saved")).to_contain_text("Saved: cat")
    assert len(home[1].log()) == 1
    page.watch.expected += ["api/annotations", "ERR_FAILED"]


def test_answers_that_could_not_be_sent_are_a_file_that_can_be_imported(
    open_page: Open, home: tuple[str, Records], audit: Audit, tmp_path: Path
) -> None:
    address, records = home
    page = open_page(address + "/annotate/s1")
    name_oneself(page, "Ada")
    expect(page.get_by_role("button", name="Download them")).to_be_hidden()
    set_server(page, "away")
    for done, key in enumerate(("1", "2", "0"), start=1):
        page.keyboard.press(key)
        expect(page.locator(".count")).to_contain_text(f"{done} of")
    expect(page.locator(".unsaved")).to_contain_text("3 answers are not saved.")
    with page.expect_download() as got:
        page.get_by_role("button", name="Download them").click()
    file = tmp_path / "answers.json"
    got.value.save_as(file)
    assert records.import_annotations(file).new == 3
    assert [one.answer for one in records.answers("s1", "Ada", "class")] == [0, 1, None]
    set_server(page, "there")
    expect(page.locator(".unsaved")).to_have_text("")
    expect(page.get_by_role("button", name="Download them")).to_be_hidden()
    assert len(records.log()) == 3, "imported and sent again, it is one answer"


def test_an_answer_that_hangs_is_not_left_behind(open_page: Open, home: tuple[str, Records]) -> None:
    """The server took the request and is silent: who leaves the page is asked, and the next failure counts both."""
    page = open_page(home[0] + "/annotate/s1")
    name_oneself(page, "Ada")
    set_server(page, "silent")
    page.keyboard.press("1")
    expect(page.locator(".saved")).to_have_text("Saving: cat …")
    expect(page.locator(".unsaved")).to_have_text("")
    assert page.evaluate("!dispatchEvent(new Event('beforeunload', {cancelable: true}))"), "leaving was not held up"
    set_server(page, "away")
    page.keyboard.press("2")
    expect(page.locator(".unsaved")).to_contain_text("2 answers are not saved.")


def refusing(status: int) -> Callable[[Any], None]:
    return lambda route: route.fulfill(status=status, json={"detail": "no"})


def test_an_answer_waits_for_a_token_and_not_for_ever(open_page: Open, home: tuple[str, Records]) -> None:
    """A server that was started again asks for another token: the answer waits. A wrong answer does not."""
    page = open_page(home[0] + "/annotate/s1")
    name_oneself(page, "Ada")
    for status, words in ((401, "1 answer is not saved."), (422, "")):
        page.route("**/api/annotations", refusing(status))
        page.keyboard.press("1")
        expect(page.locator(".saved")).to_have_text("Not saved: cat. no")
        expect(page.locator(".unsaved")).to_contain_text(words)
        page.keyboard.press("u")
        expect(page.locator(".saved")).to_have_text("Taken back: cat.")
    expect(page.locator(".unsaved")).to_have_text("")
    page.watch.expected += ["401", "422"]


def test_undo_before_the_answer_arrived_leaves_nothing(open_page: Open, home: tuple[str, Records]) -> None:
    page = open_page(home[0] + "/annotate/s1")
    page.route("**/api/annotations", lambda route: route.abort())  # long before it is needed: it takes a while to hold
    name_oneself(page, "Ada")
    page.keyboard.press("1")
    expect(page.locator(".saved")).to_contain_text("Not saved: cat.")
    page.keyboard.press("u")
    expect(page.locator(".saved")).to_contain_text("Taken back: cat.")
    page.unroute("**/api/annotations")
    page.wait_for_timeout(3500)
    assert home[1].log() == ()
    page.watch.expected += ["api/annotations", "ERR_FAILED"]


def decide(page: Any, key: str, text: str | None = None) -> None:
    page.keyboard.press(key)
    if text is not None:
        page.keyboard.press("Control+a")
        page.keyboard.type(text)
    with page.expect_response("**/api/decisions"):
        page.keyboard.press("Enter")


def test_a_slice_is_decided_by_keys_and_shown_where_it_is_listed(
    open_page: Open, home: tuple[str, Records], audit: Audit
) -> None:
    address, records = home
    page = open_page(address + "/slice/s1")
    page.locator("#person").fill("Ada")
    page.locator("#person").press("Tab")
    page.locator("#main").click(position={"x": 5, "y": 5})
    state = page.locator(".decide .what")
    expect(state).to_have_text("Not decided.")
    with page.expect_response("**/api/decisions"):
        page.keyboard.press("a")
    expect(state).to_have_text(re.compile(r"^Accepted by Ada, saved \d\d:\d\d:\d\d\.$"))
    expect(page.locator("[data-do='accepted']")).to_have_attribute("aria-pressed", "true")
    page.locator("#main").click(position={"x": 5, "y": 5})
    decide(page, "e", "Rooms at night")
    expect(page.locator("h1")).to_have_text("Rooms at night")
    expect(page.locator(".head .made")).to_be_hidden()
    decide(page, "o", "ask for more")
    expect(state).to_contain_text("“ask for more”")
    standing = records.standings()["s1"]
    assert (standing.decision, standing.name, standing.note) == ("accepted", "Rooms at night", "ask for more")
    page.goto(address + "/slice/s2")
    with page.expect_response("**/api/decisions"):
        page.keyboard.press("r")
    expect(state).to_contain_text("Rejected by Ada")
    page.keyboard.press("m")
    page.locator(".decide select").select_option("s1")
    before = records.standings()["s2"].version
    page.locator(".decide form").get_by_role("button", name="Show overlap").press("Enter")
    one = audit.slices[1].members
    other = audit.slices[0].members
    shown = page.locator(".decide .overlap")
    shared = int((one & other).sum())
    expect(shown).to_contain_text(f"{shared} rows are in both" if shared else "No row is in both")
    expect(shown).to_contain_text(f"Jaccard {shared / (one | other).sum():.2f}")
    assert records.standings()["s2"].version == before, "nothing is merged before it is confirmed"
    with page.expect_response("**/api/decisions"):
        page.locator(".decide form").get_by_role("button", name="Merge into s1").press("Enter")
    expect(state).to_contain_text("Merged into s1 by Ada")
    page.goto(address + "/curate")
    cells = page.locator("tbody tr").nth(0).locator("td").all_inner_texts()
    assert cells[0] == "s1 Rooms at night"
    assert cells[3:6] == ["Accepted", "ask for more", "Ada"]
    assert page.locator("tbody tr").nth(1).locator("td").nth(3).inner_text() == "Merged into s1"
    with page.expect_download() as got:
        page.get_by_role("link", name="Download all that people said").click()
    told = json.loads(Path(got.value.path()).read_text())
    assert [(one["slice"], one["name"], one["merged"]) for one in told["accepted"]] == [
        ("s1", "Rooms at night", ["s2"])
    ]


def test_another_choice_or_no_answer_asks_for_the_overlap_again(open_page: Open, home: tuple[str, Records]) -> None:
    address, records = home
    records.draw(Drawing(name="mine", items=("row-1", "row-2"), person="Ada"))
    page = open_page(address + "/slice/s2")
    page.keyboard.press("m")
    form = page.locator(".decide form")
    shown = page.locator(".decide .overlap")
    form.locator("select").select_option("drawn-1")
    form.get_by_role("button", name="Show overlap").click()
    expect(shown).to_contain_text("2 rows of “drawn-1 mine”")
    form.locator("select").select_option("s1")
    expect(shown).to_be_hidden()
    page.route("**/api/overlap**", lambda route: route.abort())
    form.get_by_role("button", name="Show overlap").click()
    expect(shown).to_contain_text("Nothing was merged.")
    form.get_by_role("button", name="Show overlap").click()
    page.keyboard.press("Escape")
    expect(form).to_be_hidden()
    assert records.standings()["s2"].version == 0
    page.watch.expected += ["api/overlap", "ERR_FAILED"]


def test_a_loop_is_kept_named_and_accepted_by_keys(open_page: Open, home: tuple[str, Records]) -> None:
    address, records = home
    page = open_page(address + "/slice/s1#s1-map")
    page.locator("#person").fill("Ada")
    page.locator("#person").press("Tab")
    lasso(page, 0.95)
    page.get_by_role("button", name="Keep as a slice").click()
    page.get_by_role("link", name="Name it, accept it or reject it").click()
    page.wait_for_url("**/slice/drawn-1")
    expect(page.locator(".lede")).to_contain_text("rows in the loop are wrong")
    decide(page, "e", "The left side")
    expect(page.locator("h1")).to_have_text("The left side")
    decide(page, "o", "measure it")
    page.locator("#main").click(position={"x": 5, "y": 5})
    with page.expect_response("**/api/decisions"):
        page.keyboard.press("a")
    expect(page.locator(".decide .what")).to_contain_text("Accepted by Ada")
    standing = records.standings()["drawn-1"]
    assert (standing.decision, standing.name, standing.note) == ("accepted", "The left side", "measure it")
    with page.expect_response("**/api/decisions"):
        page.keyboard.press("r")
    expect(page.locator(".decide .what")).to_contain_text("Rejected by Ada")


def test_two_tabs_on_one_slice(open_page: Open, home: tuple[str, Records]) -> None:
    address, records = home
    one = open_page(address + "/slice/s1")
    other = open_page(address + "/slice/s1")
    one.locator("#person").fill("Ada")
    one.locator("#main").click(position={"x": 5, "y": 5})
    decide(one, "e", "Ada's name")
    expect(one.locator("h1")).to_have_text("Ada's name")
    other.locator("#person").fill("Bob")
    other.locator("#main").click(position={"x": 5, "y": 5})
    decide(other, "e", "Bob's name")
    state = other.locator(".decide .what")
    expect(state).to_contain_text("Changed in another tab by Ada: undecided, named “Ada's name”.")
    expect(state).to_contain_text("Yours, not saved: undecided, named “Bob's name”.")
    assert records.standings()["s1"].name == "Ada's name"
    decide(other, "e", "Bob's name")
    expect(other.locator("h1")).to_have_text("Bob's name")
    assert records.standings()["s1"].version == 2
    other.watch.expected.append("409")
