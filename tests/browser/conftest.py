"""A real browser, and pages that must load without an error, a refusal or a request to elsewhere."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from errata.app.server import create_app
from errata.core import Audit
from errata.people.records import Records
from errata.report import to_html
from support.asking import other_audit

playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no page is opened")

# Nothing passes sooner for it, and a machine that has other work to do fails no test.
playwright.expect.set_options(timeout=20_000)

ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
NAMED = """try { if (!localStorage.getItem("errata-person")) localStorage.setItem("errata-person", "%s"); } catch { }"""
PROGRAMS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Of a module: while it is open, its thread runs no other loop."""
    program = next(filter(None, map(shutil.which, PROGRAMS)), None)
    if program is None:
        pytest.skip("no chromium on this machine: no page is opened")
    with playwright.sync_playwright() as driver:
        opened = driver.chromium.launch(executable_path=program, args=ARGUMENTS)
        yield opened
        opened.close()


class Watch:
    """What went wrong on a page while somebody used it."""

    def __init__(self) -> None:
        self.wrong: list[str] = []
        self.expected: list[str] = []  # words of what goes wrong on purpose, whenever it comes
        self.asked: list[str] = []

    def page(self, page: Any) -> Any:
        page.on("console", lambda said: self.wrong.append(said.text) if said.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: self.wrong.append(str(error)))
        page.on("requestfailed", self._failed)
        page.on("response", lambda got: self.wrong.append(f"{got.status} {got.url}") if got.status >= 400 else None)
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("dialog", lambda dialog: (self.wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
        page.set_default_timeout(30_000)
        return page

    def _failed(self, request: Any) -> None:
        if request.failure != "net::ERR_ABORTED":  # somebody went on before it had come, or it became a download
            self.wrong.append(f"failed: {request.url} {request.failure}")


@pytest.fixture
def open_page(browser: Any, serve: Any) -> Iterator[Callable[..., Any]]:
    """Opens a page in a context of its own (another person, another machine); none may go wrong.

    person: whose name the browser remembers; "" where nobody has typed one yet.

    It asks for `serve` so that pages close before their server does: pictures may still be on their way.
    """
    watch = Watch()
    contexts: list[Any] = []

    def open_one(address: str, *, in_context: Any = None, person: str = "Grace", **options: Any) -> Any:
        context = in_context or browser.new_context(**{"viewport": {"width": 1440, "height": 900}, **options})
        if in_context is None:
            contexts.append(context)
        if person:
            context.add_init_script(NAMED % person)
        page = watch.page(context.new_page())
        page.watch = watch
        page.goto(address)
        return page

    yield open_one
    for context in contexts:
        context.close()
    assert [one for one in watch.wrong if not any(word in one for word in watch.expected)] == []


@contextmanager
def running(audit: Audit, folder: Path, **more: Any) -> Iterator[tuple[str, Records]]:
    from support.servers import ServerThread

    names = {found.id: found.name for found in audit.slices}
    with ExitStack() as stack:
        records = stack.enter_context(Records(folder, fingerprint=audit.evaluation.fingerprint, slices=names))
        yield stack.enter_context(ServerThread(create_app(audit, records, **more))), records


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Callable[..., tuple[str, Records]]]:
    """Serves an audit with new records until the test ends: its address, and what people said."""
    with ExitStack() as stack:
        yield lambda audit, **more: stack.enter_context(running(audit, tmp_path, **more))


@pytest.fixture(scope="module")
def better(audit: Audit) -> Audit:
    kept = audit.evaluation
    assert kept.errors is not None
    mended = np.where(np.arange(len(kept)) % 2 == 0, kept.labels, kept.predictions)
    return replace(audit, evaluation=replace(kept, predictions=mended, probs=None, losses=None))


@pytest.fixture(scope="module")
def report(audit: Audit, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(to_html(audit), encoding="utf-8")
    return path.as_uri()


@pytest.fixture
def home(serve: Any, audit: Audit, better: Audit) -> tuple[str, Records]:
    return serve(audit, others=(other_audit("better", better),))
