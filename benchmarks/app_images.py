"""The images in docs/images: every page of a demo audit, light, dark and narrow, as small palette PNGs.

errata demo -o DIR && python benchmarks/app_images.py DIR [docs/images]
"""

from __future__ import annotations

import io
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

import _support  # noqa: F401 - `support` is found from here on
from errata import hypothesis, workflow
from errata.app.access import Access
from errata.app.server import create_app
from errata.cli.serve import questionnaire
from errata.core import Audit
from errata.people.entries import Annotation, Decision, Drawing, Hypothesis
from errata.people.records import Records
from support.asking import other_audit
from support.servers import ServerThread

CHROMIUM = "/usr/bin/chromium"
SCREENS = {
    "": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "light"},
    "-dark": {"viewport": {"width": 1280, "height": 900}, "color_scheme": "dark"},
    "-narrow": {
        "viewport": {"width": 360, "height": 780},
        "color_scheme": "light",
        "has_touch": True,
        "is_mobile": True,
    },
}
HYPOTHESES = (
    '"background colour" = white and square = present',
    '"square position" = low and text = present',
    "circle = absent and rectangle = present",
    '"square colour" = orange',
    "text = absent",
    '"background colour" = grey',
)
TOKEN = "a-token-for-images"


@contextmanager
def served(audit: Audit, **more: Any) -> Iterator[tuple[str, Records]]:
    names = {found.id: found.name for found in audit.slices}
    with ExitStack() as stack:
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        records = Records(folder, fingerprint=audit.evaluation.fingerprint, slices=names)
        stack.enter_context(records)
        yield stack.enter_context(ServerThread(create_app(audit, records, **more))), records


def mended(audit: Audit) -> Audit:
    """The same rows under a model that is right on every second one."""
    kept = audit.evaluation
    better = np.where(np.arange(len(kept)) % 2 == 0, kept.labels, kept.predictions)
    return replace(audit, evaluation=replace(kept, predictions=better, probs=None, losses=None))


def said(audit: Audit, records: Records) -> None:
    """What people would have said: guesses, answers, a loop, decisions."""
    for number, text in enumerate(HYPOTHESES, start=1):
        found = hypothesis.run_test(audit, text, hypotheses=number)
        rest = round((found.rest_rate or 0.0) * found.rest_n)
        person = "Ada" if number % 2 else "Bob"
        counts = {"n": found.n, "errors": found.errors or 0, "rest_n": found.rest_n, "rest_errors": rest}
        records.add_hypothesis(Hypothesis(text=text, kind="condition", person=person, **counts))
    members = np.flatnonzero(audit.slices[0].members)
    beside = np.flatnonzero(~audit.slices[0].members)[:40]
    items = tuple(map(str, audit.evaluation.row_ids[np.concatenate([members[::2], beside])].tolist()))
    records.draw(Drawing(name="Low squares, by eye", items=items, person="Ada"))
    records.decide(
        Decision(
            slice="s1",
            decision="accepted",
            name="Squares at the bottom",
            person="Bob",
            note="Collect squares below the middle.",
        ),
        version=0,
    )


def answered(address: str, records: Records) -> None:
    """Two people on twenty rows, who differ on three."""
    import httpx

    told = httpx.get(f"{address}/api/queues/s1", params={"person": "Ada"}).json()["items"][:20]
    for i, item in enumerate(told):
        first = 0 if i % 4 == 0 else 1
        second = 1 - first if i < 3 else first
        for person, answer in (("Ada", first), ("Bob", second)):
            records.annotate(Annotation(queue="s1", item=item["id"], person=person, task="class", answer=answer))


def small(image: bytes) -> bytes:
    """A palette is enough for ink on paper; by coverage, since a rare hue is a measurement."""
    kept = io.BytesIO()
    flat = Image.open(io.BytesIO(image)).convert("RGB")
    flat.quantize(256, method=Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(kept, "PNG", optimize=True)
    return kept.getvalue()


def taken(page: Any) -> bytes:
    """What is on the screen, without the empty paper below."""
    page.wait_for_load_state("networkidle")
    page.wait_for_timeout(300)
    screen = page.viewport_size
    used = page.evaluate(
        "Math.ceil(Math.max(...[...document.body.children].map(one => one.getBoundingClientRect().bottom)))"
    )
    image: bytes = page.screenshot(
        clip={"x": 0, "y": 0, "width": screen["width"], "height": min(screen["height"], used)}
    )
    return image


def named(page: Any) -> None:
    page.locator("#person").fill("Ada")
    page.locator("#person").press("Tab")
    page.locator("h1").click()


def loop(page: Any) -> None:
    """A loop around the upper left of the map."""
    page.evaluate("document.documentElement.style.scrollBehavior = 'auto'")
    page.locator(".map").evaluate("map => scrollTo(0, map.getBoundingClientRect().top + scrollY - 130)")
    page.wait_for_timeout(600)
    page.locator("[data-do=lasso]").click()
    box = page.locator(".map canvas").bounding_box()
    for i, (x, y) in enumerate([(0.3, 0.3), (0.7, 0.25), (0.75, 0.6), (0.5, 0.75), (0.3, 0.6), (0.3, 0.32)]):
        page.mouse.move(box["x"] + x * box["width"], box["y"] + y * box["height"], steps=4)
        if i == 0:
            page.mouse.down()
    page.mouse.up()
    page.wait_for_timeout(500)


def merge(page: Any) -> None:
    if page.viewport_size["width"] < 480:
        return  # a narrow bar keeps accept, reject and note
    page.keyboard.press("m")
    page.locator(".decide select").select_option("s1")
    page.get_by_role("button", name="Show overlap").click()
    page.wait_for_timeout(300)


def to_tree(page: Any) -> None:
    page.evaluate("document.documentElement.style.scrollBehavior = 'auto'")
    page.locator(".tree").first.evaluate(
        "tree => scrollTo(0, tree.getBoundingClientRect().top + scrollY - (innerWidth < 500 ? 80 : 320))"
    )


def described(page: Any) -> None:
    named(page)
    page.keyboard.press("d")
    page.keyboard.type("low square")
    page.locator("[data-question=ease] input").first.focus()
    page.keyboard.press("4")


def wrong_token(page: Any) -> None:
    page.locator("#token").fill("not-this-one")
    page.keyboard.press("Enter")
    page.wait_for_timeout(300)


def nothing(page: Any) -> None:
    page.wait_for_timeout(100)


def shoot(browser: Any, out: Path, name: str, address: str, act: Callable[[Any], None]) -> None:
    for suffix, screen in SCREENS.items():
        context = browser.new_context(**screen)
        page = context.new_page()
        page.goto(address)
        page.wait_for_load_state("networkidle")
        act(page)
        (out / f"app-{name}{suffix}.png").write_bytes(small(taken(page)))
        context.close()


def main(folder: str, target: str = "docs/images") -> None:
    from playwright.sync_api import sync_playwright

    audit = workflow.load(folder)
    out = Path(target)
    paths = workflow.audit(audit.evaluation, methods=["barlow"])
    with ExitStack() as stack:
        asked = questionnaire()
        home, records = stack.enter_context(
            served(audit, others=(other_audit("half-mended", mended(audit)),), questionnaire=asked)
        )
        tree, _ = stack.enter_context(served(paths, questionnaire=asked))
        locked, _ = stack.enter_context(served(audit, access=Access(token=TOKEN)))
        said(audit, records)
        answered(home, records)
        driver = stack.enter_context(sync_playwright())
        browser = driver.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        row = audit.evaluation.row_ids[np.flatnonzero(audit.slices[0].members)[0]]
        for name, address, act in (
            ("overview", home, nothing),
            ("slice", f"{home}/slice/s1", nothing),
            ("map", f"{home}/slice/s1", loop),
            ("tree", f"{tree}/slice/s1", to_tree),
            ("class", f"{tree}/class/t2", nothing),
            ("rows", f"{home}/rows?slice=s1", nothing),
            ("row", f"{home}/slice/s1/row/{row}", nothing),
            ("drawn", f"{home}/slice/drawn-1", merge),
            ("annotate", f"{home}/annotate/s1", named),
            ("questionnaire", f"{tree}/annotate/s1?task=questionnaire", described),
            ("hypothesis", f"{home}/hypothesis", nothing),
            ("curate", f"{home}/curate", nothing),
            ("compare", f"{home}/compare", nothing),
            ("token", f"{locked}/", wrong_token),
        ):
            shoot(browser, out, name, address, act)
        browser.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
