"""Data that attacks whoever looks at it: in every name, value, text, id and note, on every page, in a real browser."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import numpy as np
import pytest

from errata.app.access import Access
from errata.app.questionnaire_routes import Questionnaire
from errata.core import Audit
from errata.people import questionnaire
from errata.people.entries import Annotation
from errata.people.records import Records
from errata.report import to_html
from support.asking import other_audit
from support.small_audits import image_evaluation, quick_audit, text_evaluation

pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no page is opened")

ASKED = Questionnaire(questionnaire.form(), questionnaire.checked)
HOSTILE = (
    "<script>hit()</script>",
    '"><img src=x onerror=hit()>',
    "'><svg onload=hit()>",
    "</script><script>hit()</script>",
    "javascript:hit()",
    "{{7*7}}{{ config }}{% raw %}{#",
    "${hit()}`+hit()+`",
    '" onmouseover="hit()" autofocus onfocus="hit()',
    "' onclick='hit()' x='",
    "\u2028hit()\u2029//",
    "</style><style>*{display:none}</style>",
    "</title><script>hit()</script>",
    "--><!-- <!--<script>",
    "]]><b onclick=hit()>",
    "&lt;img src=x onerror=hit()&gt; &#60;svg onload=hit()&#62;",
    "</textarea></select><iframe srcdoc='<script>parent.hit()</script>'>",
    '\\"};hit();//',
    "data:text/html,<script>parent.hit()</script>",
    '<base href="//elsewhere.example/">',
    "\u202eno\u202c \ufeff\u200b",
    "../../../etc/passwd",
    "%3Cscript%3Ehit()%3C/script%3E",
    "<math><mtext><table><mglyph><style><img src onerror=hit()>",
    "__proto__",
    "constructor",
)
TRAP = """window.hits = 0;
window.hit = () => { window.hits += 1; };
window.alert = window.prompt = window.confirm = window.hit;"""
LOOK = """() => {
  const all = [...document.querySelectorAll("*")], kinds = ["mouseover", "focus", "load", "error", "toggle"];
  for (const one of document.querySelectorAll("details")) one.open = true;
  for (const one of all) for (const kind of kinds) one.dispatchEvent(new Event(kind));
  const leads = (one) => ["href", "src", "action"].includes(one.name) && /^\\s*(javascript|data:text)/i.test(one.value);
  const handlers = all.flatMap((one) => [...one.attributes]).filter((one) => one.name.startsWith("on") || leads(one));
  const made = "iframe, object, embed, base, math, textarea, mglyph, img[src='x']";
  const scripts = "script:not([type=module]):not([type='application/json'])";
  return {
    hits: window.hits,
    handlers: handlers.map((one) => one.value),
    foreign: [...document.querySelectorAll(`${made}, ${scripts}`)].map((one) => one.outerHTML),
    hidden: getComputedStyle(document.querySelector("h1")).display,
  };
}"""


def hostile(kind: Callable[..., Any], n: int = 400, method: str = "domino", **more: Any) -> Audit:
    """Every string in every place that data can fill."""
    at = np.arange(n)
    plain = kind(n)
    values = np.array(HOSTILE, dtype=object)
    columns = {name: values[(at + j) % len(HOSTILE)] for j, name in enumerate(HOSTILE)}
    dark = plain.metadata["light"] == "night"
    columns["light"] = np.where(dark, HOSTILE[1], HOSTILE[3]).astype(object)
    ids = np.array([f"{HOSTILE[i % len(HOSTILE)]} {i}" for i in at])
    classes = (" ".join(HOSTILE[:12]), " ".join(HOSTILE[12:]))
    evaluation = kind(n, ids=ids, classes=classes, metadata=columns, **more)
    return quick_audit(evaluation, {f"s{j + 1}": name for j, name in enumerate(HOSTILE)}, method)


@pytest.fixture(scope="module")
def pictures() -> Audit:
    return hostile(image_evaluation)


@pytest.fixture(scope="module")
def texts() -> Audit:
    return hostile(text_evaluation, texts=[HOSTILE[i % len(HOSTILE)] for i in range(400)])


@pytest.fixture
def look(browser: Any, open_page: Callable[..., Any]) -> Callable[..., Any]:
    """Opens a page, stirs everything on it, and sees that nothing of the data came to life."""
    context = browser.new_context()
    context.add_init_script(TRAP)
    page = open_page("about:blank", in_context=context)

    def open_one(address: str) -> Any:
        page.goto("about:blank")
        page.goto(address)
        page.wait_for_load_state("load")
        found = page.evaluate(LOOK)
        assert found == {"hits": 0, "handlers": [], "foreign": [], "hidden": "block"}, address
        assert ">49<" not in page.content()
        return page

    return open_one


@pytest.mark.parametrize("kind", ["pictures", "texts"])
def test_a_saved_page_of_hostile_data(kind: str, look: Any, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    audit: Audit = request.getfixturevalue(kind)
    (tmp_path / "report.html").write_text(to_html(audit), encoding="utf-8")
    address = (tmp_path / "report.html").as_uri()
    page = look(address)
    for found in audit.slices[:6]:
        page = look(f"{address}#slice/{found.id}")
        assert page.locator("h1:visible").text_content() == found.name
    name = HOSTILE[3]
    box = page.locator(".hyp input:visible")
    for guess in (f'"{name}" = "{name}"', *HOSTILE):
        box.fill(guess)
        box.press("Enter")
    assert page.evaluate("window.hits") == 0
    assert page.locator(".hyp .said:visible").inner_text()


def test_served_pages_of_hostile_pictures(look: Any, serve: Any, pictures: Audit) -> None:
    address, records = serve(pictures, others=(other_audit(HOSTILE[1], pictures), other_audit(HOSTILE[3], pictures)))
    said(address, records, pictures)
    for path in ("/", "/curate", "/annotate", "/hypothesis", f"/compare?with={quote(HOSTILE[1])}"):
        look(address + path)
    ids = {found.id: found.name for found in pictures.slices}
    for found in pictures.slices[:5]:
        page = look(f"{address}/slice/{found.id}")
        standing = records.standings()[found.id]
        assert page.locator("h1").text_content() == standing.title
        assert standing.note in page.locator(".decide").text_content()
    assert len(ids) >= 2
    for row in range(len(HOSTILE)):
        name = str(pictures.evaluation.row_ids[row])
        page = look(f"{address}/slice/s1/row/{quote(name, safe='')}")
        assert page.locator("h1").text_content() == f"Row {name}"
        assert HOSTILE[row] in page.locator("main").text_content()
    for j, name in enumerate(HOSTILE):
        page = look(f"{address}/slice/drawn-{j + 1}")
        assert page.locator("h1").text_content() == name
    page.keyboard.press("m")
    page.get_by_role("button", name="Show overlap").click()
    page.locator(".overlap .sentence", has_text="Jaccard").wait_for()
    assert page.evaluate(LOOK)["hits"] == 0


def test_a_hostile_questionnaire_and_tree(look: Any, serve: Any) -> None:
    address, records = serve(hostile(image_evaluation, method="barlow"), questionnaire=ASKED)
    look(address + "/slice/s1")
    page = look(address + "/annotate/s1?task=questionnaire")
    about = page.locator("[data-about]").first.get_attribute("data-about")
    for name in HOSTILE:
        answer = {"description15": " ".join(name.split()[:15]) or "x"}
        records.annotate(Annotation(queue="s1", item=about, person=name, task="questionnaire", answer=answer))
    page = look(address + "/annotate/s1?task=questionnaire")
    page.locator("#person").fill(HOSTILE[1])
    page.locator("#person").press("Tab")
    page.locator(".said-list li", has_text=HOSTILE[3].split()[0]).first.wait_for()
    assert page.evaluate(LOOK)["hits"] == 0
    assert page.evaluate(LOOK)["foreign"] == []


def test_a_hostile_address_at_the_door(look: Any, serve: Any, pictures: Audit) -> None:
    address, _ = serve(pictures, access=Access(token="a-token-of-some-length"))
    for name in HOSTILE:
        page = look(f"{address}/slice/{quote(name, safe='')}?x={quote(name)}")
        page.watch.expected += ["401", "429"]  # a dozen wrong tokens are too many; the form says so as well
        page.locator("#token").fill(name[:200] or "x")
        page.locator("#token").press("Enter")
        page.get_by_role("alert").wait_for()
        assert page.evaluate(LOOK)["hits"] == 0


def test_served_pages_of_hostile_texts(look: Any, serve: Any, texts: Audit) -> None:
    address, records = serve(texts)
    said(address, records, texts)
    for path in ("/", "/slice/s1", "/slice/s2", "/annotate/s1", "/annotate/s1?task=member", "/curate"):
        look(address + path)
    page = look(address + "/annotate/s1")
    for name in HOSTILE[:4]:
        page.locator("#person").fill(name)
        page.locator("#person").press("Tab")
        page.locator(".keys button").first.click()
        page.locator(".saved", has_text="Saved").wait_for()
    page.locator(".settle li a").first.wait_for()
    page.wait_for_timeout(700)
    assert page.evaluate(LOOK)["hits"] == 0
    page = look(address + "/slice/s1")
    for key, name in (("e", HOSTILE[3]), ("o", HOSTILE[1])):
        page.locator("#main").click(position={"x": 3, "y": 3})
        page.keyboard.press(key)
        page.locator(".decide input").fill(name)
        with page.expect_response("**/api/decisions"):
            page.keyboard.press("Enter")
    assert page.locator("h1").text_content() == HOSTILE[3]
    assert page.evaluate(LOOK)["hits"] == 0


def test_hostile_guesses_and_addresses(look: Any, serve: Any, pictures: Audit) -> None:
    address, _ = serve(pictures)
    for name in HOSTILE:
        page = look(f"{address}/hypothesis?q={quote(name)}")
        page.locator(".answer .said", has_not_text="Searching").wait_for()
        assert page.evaluate("window.hits") == 0
        page.watch.expected.append("422")
    for path in (
        f"/slice/{quote(HOSTILE[0], safe='')}",
        f"/{quote(HOSTILE[1], safe='')}",
        f"/compare?with={quote(HOSTILE[3])}",
    ):
        page = look(address + path)
        assert "That did not work." in page.content()
        page.watch.expected.append("404")


def said(address: str, records: Records, audit: Audit) -> None:
    """Every string as a person, a name, a note, a guess, a drawn slice."""
    with httpx.Client(base_url=address) as client:
        items = [one["id"] for one in client.get("/api/queues/s1?person=x").json()["items"]]
        for j, name in enumerate(HOSTILE):
            found = audit.slices[j % len(audit.slices)].id
            given = {"slice": found, "person": name, "decision": "accepted", "name": name, "note": name, "into": None}
            seen = records.standings()[found].version
            assert client.post("/api/decisions", json={"given": given, "seen": seen}).status_code == 200
            client.post("/api/hypotheses", json={"text": name, "person": name})
            client.post("/api/drawn", json={"loop": [[-2, -2], [2, -2], [2, 2], [-2, 2]], "name": name, "person": name})
            answer = {"queue": "s1", "item": items[j % 5], "person": name, "task": "class", "answer": j % 2}
            assert client.post("/api/annotations", json=answer).status_code == 200
            edit = {"slice": "s1", "item": items[j % 5], "inside": j % 2 == 0, "person": name}
            assert client.post("/api/edits", json=edit).status_code == 200
