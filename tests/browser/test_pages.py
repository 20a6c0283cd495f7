"""The pages used as a person would, by mouse and by keyboard, served and saved."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import errata
from errata.app.access import Access
from errata.cli.serve import AuditSite
from errata.core import Audit
from errata.people.entries import Decision, Drawing
from errata.people.records import Records
from errata.report import comparison_html, to_html
from errata.report.gates import comparison_gate
from support.gestures import lasso
from support.servers import ServerThread
from support.small_audits import image_evaluation, quick_audit, text_evaluation

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no page is opened")
axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe is not installed")
expect: Any = playwright.expect

Open = Callable[..., Any]
Serve = Callable[..., tuple[str, Records]]
PAGES = ("/", "/slice/s1", "/slice/s1/row/row-5", "/hypothesis?q=light+%3D+night", "/annotate", "/annotate/s1",
         "/annotate/s1?task=member", "/curate", "/compare", "/slice/drawn-1", "/slice/none")  # fmt: skip


# The contrast of the words of an element and its own ground, as WCAG counts it.
CONTRAST = """(selector) => {
  const style = getComputedStyle(document.querySelector(selector));
  const light = (colour) => {
    const parts = colour.match(/[\\d.]+/g).slice(0, 3).map((part) => part / 255);
    const [r, g, b] = parts.map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05;
  };
  const both = [light(style.color), light(style.backgroundColor)];
  return Math.max(...both) / Math.min(...both); }"""


@pytest.fixture(scope="module")
def text_report(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "texts.html"
    path.write_text(to_html(quick_audit(text_evaluation(400))), encoding="utf-8")
    return path.as_uri()


@pytest.fixture(scope="module")
def compared(audit: Audit, better: Audit, tmp_path_factory: pytest.TempPathFactory) -> str:
    """What `errata compare A B -o compared.html` writes."""
    comparison = errata.compare(audit, better, by=["light"])
    gate = comparison_gate(comparison, "compare", "worse")
    path = tmp_path_factory.mktemp("report") / "compared.html"
    rows = (audit.evaluation, better.evaluation)
    path.write_text(comparison_html(comparison, gate, "first", "second", rows), encoding="utf-8")
    return path.as_uri()


def names(page: Any) -> list[str]:
    return [text.partition(" ")[0] for text in page.locator("#finds .find h3 a").all_inner_texts()]


@pytest.mark.parametrize("where", ["served", "saved"])
def test_the_list_is_ordered_and_walked_by_keys(
    open_page: Open, home: tuple[str, Records], report: str, where: str
) -> None:
    page = open_page(home[0] if where == "served" else report)
    rows = page.locator("#finds .find")
    first = names(page)
    for key, value in (("2", "gap"), ("3", "size"), ("4", "rate"), ("5", "named"), ("6", "errors")):
        page.keyboard.press(key)
        numbers = [float(row.get_attribute(f"data-{value}")) for row in rows.all()]
        assert numbers == sorted(numbers, reverse=True), value
        assert page.locator("#ordered").inner_text().startswith("Ordered by")
    page.keyboard.press("1")
    assert names(page) == first
    page.keyboard.press("j")
    expect(page.locator(":focus")).to_have_text(re.compile("^s1 "))
    page.keyboard.press("j")
    expect(page.locator(":focus")).to_have_text(re.compile("^s2 "))
    page.keyboard.press("k")
    page.keyboard.press("Enter")
    page.wait_for_url("**/slice/s1" if where == "served" else "**#slice/s1")
    expect(page.locator("h1:visible")).to_contain_text("night")
    page.keyboard.press("]")
    page.wait_for_url("**/slice/s2" if where == "served" else "**#slice/s2")
    expect(page.locator("[data-key='[']:visible")).to_have_count(1)  # the address is there before the view
    page.keyboard.press("[")
    page.wait_for_url("**/slice/s1" if where == "served" else "**#slice/s1")
    page.go_back()
    page.wait_for_url("**/slice/s2" if where == "served" else "**#slice/s2")


@pytest.mark.parametrize("where", ["served", "saved"])
def test_wrong_only_says_that_it_is_one_sided(
    open_page: Open, home: tuple[str, Records], report: str, where: str
) -> None:
    page = open_page(home[0] + "/slice/s1" if where == "served" else report + "#slice/s1")
    shown = page.locator("[data-mixed='s1'] [data-row]:visible")
    before = shown.count()
    assert page.locator("[data-mixed='s1'] [data-row].right:visible").count() > 0
    page.get_by_role("radio", name="Wrong only").check()
    assert 0 < shown.count() < before
    assert page.locator("[data-mixed='s1'] [data-row]:not(.wrong):visible").count() == 0
    expect(page.locator("[data-one-sided='s1']")).to_contain_text("a hypothesis from errors alone is often false")
    page.get_by_role("radio", name="Mixed").check()
    assert shown.count() == before


def test_a_row_is_put_out_by_a_key_and_stays_out(open_page: Open, home: tuple[str, Records]) -> None:
    address, records = home
    page = open_page(address + "/slice/s1")
    page.locator("#person").fill("Ada")
    row = page.locator("[data-mixed='s1'] [data-row]").first
    id = row.get_attribute("data-row")
    row.locator("a").focus()
    with page.expect_response("**/api/edits") as got:
        page.keyboard.press("x")
    assert got.value.ok
    expect(page.locator("[data-moved='s1']")).to_have_text(
        "People put 1 row out. The numbers above follow when the page is loaded again."
    )
    page.reload()
    expect(page.locator("[data-moved='s1']")).to_contain_text("People put 1 row out. The numbers above are those")
    expect(page.locator(".head .made").first).to_have_text("changed by people")
    expect(page.locator(".head")).to_contain_text("Edited by people: 0 rows put in, 1 put out.")
    expect(page.locator(".forest")).to_contain_text("As it was found")
    expect(row).to_have_class(re.compile("out"))
    row.locator("a").focus()
    with page.expect_response("**/api/edits"):
        page.keyboard.press("i")
    expect(row).not_to_have_class(re.compile("out"))
    assert records.edits("s1") == {id: True}
    row.locator("a").click()
    page.wait_for_url(f"**/slice/s1/row/{id}")
    expect(page.locator("h1")).to_have_text(f"Row {id}")
    expect(page.get_by_role("heading", name="Probabilities")).to_be_visible()
    page.go_back()
    page.wait_for_url("**/slice/s1")


def test_a_saved_page_hands_answers_over_as_a_file_that_can_be_imported(
    open_page: Open, report: str, audit: Audit, tmp_path: Path
) -> None:
    page = open_page(report + "#slice/s1")
    rows = page.locator("[data-mixed='s1'] [data-row]")
    wanted = {}
    for i, key in ((0, "x"), (1, "i"), (2, "x")):
        rows.nth(i).focus()
        page.keyboard.press(key)
        wanted[rows.nth(i).get_attribute("data-row")] = "out" if key == "x" else "in"
    page.locator("#person").fill("Ada")
    with page.expect_download() as got:
        page.get_by_role("button", name=re.compile("Download 3 answers")).click()
    target = tmp_path / "answers.json"
    got.value.save_as(target)
    with Records(tmp_path / "r.sqlite", fingerprint=audit.evaluation.fingerprint) as records:
        assert records.import_annotations(target).new == 3
        assert {one.item: one.answer for one in records.answers("s1", "Ada", "member")} == wanted


@pytest.mark.parametrize("where", ["served", "saved"])
def test_a_loop_drawn_by_mouse_has_its_numbers_at_once(
    open_page: Open, home: tuple[str, Records], report: str, audit: Audit, where: str
) -> None:
    page = open_page(home[0] + "/slice/s1#s1-map" if where == "served" else report + "#s1-map")
    lasso(page, 0.95)
    said = page.locator(".map .said:visible")
    expect(said).to_contain_text("rows in your loop")
    found = re.search(
        r"([\d.]+)% wrong\s*([\d,]+) of ([\d,]+) rows in your loop\. "
        r"95% interval ([\d.]+) to ([\d.]+)\. The rest: ([\d.]+)% of ([\d,]+)",
        said.inner_text(),
    )
    assert found, said.inner_text()
    percent, wrong, n, low, high, rest, others = (float(text.replace(",", "")) for text in found.groups())
    errors = audit.evaluation.errors
    assert errors is not None
    assert n + others == 1000
    assert percent == pytest.approx(100 * wrong / n, abs=0.051)
    assert wrong + rest / 100 * others == pytest.approx(errors.sum(), abs=1)
    assert low < percent < high
    expect(page.locator(".map .hand:visible")).to_contain_text("A loop drawn by eye is chosen after seeing the errors.")
    if where == "saved":
        assert page.get_by_role("button", name="Keep as a slice").count() == 0
        return
    with page.expect_response("**/api/drawn") as got:
        page.keyboard.press("n")
    assert got.value.json()["items"] == n
    expect(page.locator(".map .hand:visible")).to_contain_text("Saved as drawn-1")
    page.goto(home[0] + "/curate")
    cells = page.locator("section", has_text="Drawn by hand").locator("tbody td").all_inner_texts()
    assert cells[1:4] == [f"{int(n):,}", "Grace", "Undecided"]


def test_the_map_is_moved_by_keys_and_an_empty_loop_says_so(open_page: Open, home: tuple[str, Records]) -> None:
    page = open_page(home[0] + "/slice/s1")
    lasso(page, 0.02)
    said = page.locator(".map .said:visible")
    expect(said).to_contain_text(re.compile("No row in your loop|Too few to tell"))
    page.locator("canvas").focus()
    view = "() => JSON.stringify(document.querySelector('[data-map]').errataChart.view)"
    before = page.evaluate(view)
    for key in ("ArrowLeft", "+", "+", "-", "ArrowUp"):
        page.keyboard.press(key)
    assert page.evaluate(view) != before
    page.keyboard.press("Escape")
    expect(page.locator(".map .idle")).to_be_visible()
    assert json.loads(page.evaluate(view)) == {"x": 0, "y": 0, "k": 1}


@pytest.mark.parametrize("where", ["served", "saved"])
def test_a_guess_right_and_with_a_mistake(
    open_page: Open, home: tuple[str, Records], report: str, audit: Audit, where: str
) -> None:
    page = open_page(home[0] + "/slice/s1" if where == "served" else report + "#slice/s1")
    match = (audit.evaluation.metadata["light"] == "night") & ~audit.discover
    wrong = audit.evaluation.errors
    assert wrong is not None
    page.keyboard.press("/")
    page.keyboard.type("light = night")
    page.keyboard.press("Enter")
    said = page.locator(".hyp .said:visible")
    expect(said).to_contain_text(f"{match.sum()} held-out rows match. {(match & wrong).sum()} are wrong: ")
    expect(said).to_contain_text("of the other held-out rows.")
    box = page.locator(".hyp input:visible")
    if where == "saved":
        box.fill("ligth = night")
        box.press("Enter")
        expect(said).to_contain_text("light")
        expect(page.locator(".hyp .answer:visible")).to_have_attribute("data-bad", "")
    for size in (3, 4, 5):
        box.fill(f"size > {size}")
        box.press("Enter")
        expect(said).to_contain_text("held-out rows match")
        expect(said).not_to_contain_text("are wrong: 0.0%")
    expect(page.locator(".hyp .answer:visible")).to_contain_text(
        "4 hypotheses tested here; the interval allows for all of them."
    )
    assert page.locator(".hyp .answer:visible").inner_text().count("hypotheses tested here") == 1


@pytest.mark.parametrize("where", ["served", "saved"])
def test_words_say_where_they_were_looked_for(
    open_page: Open, home: tuple[str, Records], report: str, where: str
) -> None:
    page = open_page(home[0] + "/slice/s1" if where == "served" else report + "#slice/s1")
    box = page.locator(".hyp input:visible")
    box.fill("zebra crossing")
    box.press("Enter")
    said = page.locator(".hyp .said:visible")
    expect(said).to_contain_text("Words were looked for in ")
    expect(said).to_contain_text("“light”")
    expect(said).to_contain_text("to find them in images takes a text encoder.")


def test_words_are_found_in_a_saved_page_of_texts(open_page: Open, text_report: str) -> None:
    page = open_page(text_report + "#slice/s1")
    box = page.locator(".hyp input:visible")
    for text in ("dim room", "text contains “dim room”"):
        box.fill(text)
        box.press("Enter")
        expect(page.locator(".hyp .said:visible")).to_contain_text("held-out rows match.")


def test_a_mistake_in_a_guess_is_told_by_the_server(open_page: Open, home: tuple[str, Records]) -> None:
    page = open_page(home[0] + "/slice/s1")
    box = page.locator(".hyp input")
    box.fill("sise > 5")
    box.press("Enter")
    expect(page.locator(".hyp .said")).to_contain_text("size")
    expect(page.locator(".hyp .answer")).to_have_attribute("data-bad", "")
    page.watch.expected.append("422")


def test_a_guess_has_an_address_and_a_history(open_page: Open, home: tuple[str, Records]) -> None:
    page = open_page(home[0] + "/hypothesis?q=light+%3D+night")
    expect(page.locator(".said")).to_contain_text("held-out rows match.")
    assert page.locator(".matches .thumb img").count() == 12
    page.locator("#person").fill("Ada")
    page.locator("#hypothesis-page").fill("size > 5")
    page.keyboard.press("Enter")
    expect(page.locator(".said")).to_contain_text("held-out rows match.")
    page.wait_for_url("**/hypothesis?q=size+%3E+5")
    expect(page.locator("[data-history=''] .summary")).to_contain_text("2 hypotheses, each judged as one of 2.")
    at_once = page.locator("tbody tr").all_inner_texts()
    page.goto(home[0] + "/hypothesis")
    assert page.locator("tbody tr").all_inner_texts() == at_once, "judged again at once as after loading"
    assert page.locator("tbody tr").all_inner_texts()[0].split("\t")[0] == "size > 5"
    expect(page.locator("tbody tr").first).to_contain_text("Ada")
    page.get_by_role("link", name="light = night").click()
    expect(page.locator(".said")).to_contain_text("held-out rows match.")


def test_a_guess_that_holds_is_kept_as_a_slice_by_keyboard(open_page: Open, audit: Audit, tmp_path: Path) -> None:
    folder = errata.save(audit, tmp_path / "audit")
    with (
        AuditSite().open_app(folder, None, [], access=Access(("127.0.0.1",))) as app,
        ServerThread(app) as address,
    ):
        page = open_page(address + "/hypothesis?q=light+%3D+night+and+size+%3E+3")
        page.get_by_role("button", name="Keep as a slice").press("Enter")
        page.get_by_text("Kept as").get_by_role("link").press("Enter")
        expect(page.locator("h1")).to_have_text("light = night and size > 3")
        page.close()
    assert "light = night and size > 3" in [slice_.name for slice_ in errata.load(folder)]


def test_two_audits_are_compared(open_page: Open, home: tuple[str, Records]) -> None:
    page = open_page(home[0] + "/compare")
    expect(page.locator("h1")).to_have_text(re.compile("better"))
    page.keyboard.press("j")
    expect(page.locator(".cmp h3 a").first).to_be_focused()
    page.keyboard.press("Enter")
    page.wait_for_url("**/slice/*")


def test_pages_are_opened_by_shift_and_a_letter(open_page: Open, home: tuple[str, Records]) -> None:
    page = open_page(home[0])
    for key, path in (("R", "/rows"), ("H", "/hypothesis"), ("A", "/annotate"), ("U", "/curate"), ("O", "/")):
        page.keyboard.press(f"Shift+{key}")
        page.wait_for_url(home[0] + path)
    page.keyboard.press("?")
    expect(page.locator("dialog#keys")).to_contain_text("Overview, Rows, Compare, Hypothesis, Annotate, Curate")
    page.locator("#single-keys").uncheck()
    page.keyboard.press("Escape")
    page.keyboard.press("Shift+R")
    page.locator("#help").click()
    page.locator("#single-keys").check()
    page.keyboard.press("Escape")
    page.keyboard.press("R")  # as Caps Lock writes it, without Shift
    assert page.url == home[0] + "/"
    page.keyboard.press("Shift+C")
    page.wait_for_url("**/compare")


def test_rows_that_changed_are_one_key_away(open_page: Open, home: tuple[str, Records]) -> None:
    page = open_page(home[0] + "/compare")
    page.keyboard.press("f")
    page.wait_for_url("**rows=overall&change=fixed*")
    page.keyboard.press("j")
    page.keyboard.press("j")
    second = page.locator(".cmp h3 a").nth(1)
    expect(second).to_be_focused()
    slice_id = second.get_attribute("href").rpartition("/")[2]
    page.keyboard.press("f")
    page.wait_for_url(f"**rows={slice_id}&change=fixed*")
    page.keyboard.press("w")  # nothing has the focus: of the rows that are shown
    page.wait_for_url(f"**rows={slice_id}&change=broken*")


def load_again(page: Any) -> None:
    """Chromium sometimes forgets what a page from a file stored: then it is given back, as the page had stored it."""
    stored = page.evaluate("({ ...localStorage })")
    for _ in range(5):
        page.reload()
        if page.evaluate("({ ...localStorage })") == stored:
            return
        page.evaluate("(stored) => Object.assign(localStorage, stored)", stored)
    raise AssertionError(f"not kept: {stored}")


@pytest.mark.parametrize("where", ["served", "saved"])
def test_themes_keys_and_the_switch_for_them(
    open_page: Open, home: tuple[str, Records], report: str, where: str
) -> None:
    page = open_page(home[0] + "/" if where == "served" else report)
    root = page.locator("html")
    paper = "getComputedStyle(document.body).backgroundColor"
    seen = [page.evaluate(paper)]
    for theme in ("light", "dark"):
        page.locator("#theme").click()
        expect(root).to_have_attribute("data-theme", theme)
        seen.append(page.evaluate(paper))
    assert seen[0] == seen[1] != seen[2]
    load_again(page)
    expect(root).to_have_attribute("data-theme", "dark")
    page.keyboard.press("?")
    expect(page.locator("dialog#keys")).to_be_visible()
    page.keyboard.press("2")
    expect(page.locator("input[name=order][value=gap]")).not_to_be_checked()
    page.locator("#single-keys").uncheck()
    page.keyboard.press("Escape")
    expect(page.locator("dialog#keys")).to_be_hidden()
    page.keyboard.press("2")
    expect(page.locator("input[name=order][value=gap]")).not_to_be_checked()
    page.goto(home[0] + "/slice/s1" if where == "served" else report + "#slice/s1")
    load_again(page)
    row = page.locator("[data-mixed='s1'] [data-row]").first
    (row.locator("a") if where == "served" else row).focus()
    page.keyboard.press("x")
    page.keyboard.press("a")
    expect(row).not_to_have_class(re.compile("out"))
    assert home[1].edits("s1") == {}
    assert home[1].standings()["s1"].version == 0
    page.locator("#help").click()
    page.locator("#single-keys").check()
    page.locator("dialog#keys .btn").click()
    (row.locator("a") if where == "served" else row).focus()
    page.keyboard.press("x")
    expect(row).to_have_class(re.compile("out"))


def test_an_unknown_theme_in_a_link_is_no_theme(open_page: Open, home: tuple[str, Records]) -> None:
    page = open_page(home[0] + "/?theme=x%22%3E%3Cscript%3E")
    assert page.locator("html").get_attribute("data-theme") is None
    expect(page.locator("#theme")).to_have_text("Auto")


def test_links_into_a_saved_page(open_page: Open, report: str) -> None:
    page = open_page(report + "#slice/s1/words")
    expect(page.locator("[id='slice/s1/words']")).to_be_in_viewport()
    expect(page.locator("#overview")).to_be_hidden()
    page.goto(report + "#slice/s2")
    page.reload()
    expect(page.locator("h1:visible")).to_have_count(1)
    expect(page).to_have_title(re.compile("night.* · Errata"))
    page.goto(report + "#%E0%A4%A")
    page.reload()
    expect(page.locator("#overview")).to_be_visible()
    page.goto(report + "#nowhere")
    expect(page.locator("#overview")).to_be_visible()


@pytest.mark.parametrize("kind", ["pictures", "texts"])
def test_a_saved_page_needs_no_network(open_page: Open, report: str, text_report: str, kind: str) -> None:
    address = report if kind == "pictures" else text_report
    page = open_page(address, offline=True)
    for link in page.locator("#finds .find h3 a").all():
        page.goto(address + link.get_attribute("href"))
        page.mouse.wheel(0, 4000)
    page.wait_for_timeout(200)
    assert {one.partition("#")[0] for one in page.watch.asked if not one.startswith("data:")} == {address}
    if kind == "texts":
        expect(page.locator("article:visible")).to_contain_text("room, number")


def test_a_saved_page_is_whole_without_script(open_page: Open, report: str, audit: Audit) -> None:
    page = open_page(report, java_script_enabled=False)
    shown = page.locator("main").inner_text()
    for found in audit.slices:
        assert found.name in shown
    missed = "What this audit could have missed"
    for words in ("Confirmed slices", missed, "Members at random", "Profile", "The map did not start."):
        assert words in shown
    assert page.locator(".needs-script:visible").count() == 0


def in_the_way(page: Any, width: int) -> list[tuple[str, str, list[str]]]:
    """What axe finds with all folds open, and sideways scrolling: where, what, and the first pieces of markup."""
    page.wait_for_load_state("load")
    page.evaluate("for (const one of document.querySelectorAll('details')) one.open = true")
    found = axe.Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    wrong = [(page.url, one["id"], [node["html"][:150] for node in one["nodes"]][:3]) for one in found]
    if page.evaluate("document.documentElement.scrollWidth") > width:
        wrong.append((page.url, "scrolls sideways", []))
    return wrong


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 360])
def test_nothing_in_the_way_of_anybody(
    open_page: Open, home: tuple[str, Records], report: str, scheme: str, width: int
) -> None:
    """axe on every page with all folds open, and no sideways scrolling."""
    address, records = home
    records.draw(Drawing(name="mine", items=tuple(f"row-{i}" for i in range(40)), person="Ada"))
    page = open_page(address, viewport={"width": width, "height": 800}, color_scheme=scheme)
    page.watch.expected.append("404")
    wrong = []
    for path in (*(address + path for path in PAGES), report, report + "#slice/s1"):
        page.goto("about:blank")
        page.goto(path)
        wrong += in_the_way(page, width)
    assert wrong == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1440, 390])
def test_nothing_in_the_way_on_the_log_in_a_comparison_and_without_a_name(
    open_page: Open, home: tuple[str, Records], compared: str, scheme: str, width: int
) -> None:
    address, records = home
    loop = records.draw(Drawing(name="mine", items=("row-1", "row-2"), person="Ada"))
    records.decide(Decision(slice=loop.slice, decision="accepted", person="Ada"), version=0)
    page = open_page(address + "/log", person="", viewport={"width": width, "height": 800}, color_scheme=scheme)
    expect(page.locator("tbody tr")).to_have_count(2)
    wrong = in_the_way(page, width)
    page.goto(address)
    expect(page.locator("#h-loops")).to_be_visible()
    wrong += in_the_way(page, width)
    page.goto(compared)
    expect(page.locator("#h-changed")).to_be_visible()
    wrong += in_the_way(page, width)
    page.goto(address + "/slice/s1")
    page.keyboard.press("a")
    alert = page.get_by_role("alert").filter(has_text="Write your name and press Enter")
    expect(alert).to_be_visible()
    box = alert.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= width
    assert page.evaluate(CONTRAST, "#name-first") > 4.5  # axe cannot tell: it lies above other words
    expect(page.get_by_role("textbox", name="Your name", exact=True)).to_have_accessible_description(
        "Write your name and press Enter: then it is saved."
    )
    assert wrong + in_the_way(page, width) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_in_the_way_while_something_is_asked(open_page: Open, home: tuple[str, Records], scheme: str) -> None:
    """axe on what only shows after a key: an overlap before a merge, answers that wait, a guess that fell."""
    page = open_page(home[0] + "/slice/s2", color_scheme=scheme)
    page.keyboard.press("m")
    page.get_by_role("button", name="Show overlap").click()
    expect(page.locator(".overlap")).to_contain_text("Jaccard")
    seen = [axe.Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]]
    page.watch.expected += ["api/annotations", "ERR_FAILED"]
    page.goto(home[0] + "/annotate/s1")
    page.route("**/api/annotations", lambda route: route.abort())
    expect(page.locator(".who")).to_have_text("as Grace")
    page.keyboard.press("1")
    expect(page.get_by_role("button", name="Download them")).to_be_visible()
    seen.append(axe.Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"])
    assert [[one["id"] for one in found] for found in seen] == [[], []]
    page.keyboard.press("u")


def test_a_picture_that_is_gone_keeps_its_place(open_page: Open, home: tuple[str, Records]) -> None:
    page = open_page("about:blank")
    page.watch.expected.append("404")
    page.route("**/thumb/**", lambda route: route.fulfill(status=404, body="{}"))
    page.goto(home[0] + "/slice/s1")
    box = page.locator("[data-mixed='s1'] [data-row]").first.locator(".pic").bounding_box()
    assert box["width"] > 40
    assert box["height"] == pytest.approx(box["width"], abs=2)


def test_a_saved_page_of_ten_thousand_pictures_is_small(tmp_path: Path, open_page: Open) -> None:
    """How soon it can be used is in benchmarks/app.py."""
    path = tmp_path / "report.html"
    path.write_text(to_html(quick_audit(image_evaluation(10_000))), encoding="utf-8")
    assert path.stat().st_size < 10e6
    page = open_page(path.as_uri())
    page.keyboard.press("3")
    expect(page.locator("#ordered")).to_have_text("Ordered by most rows: held-out rows.")
