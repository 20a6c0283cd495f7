"""The app under load, under kill -9, with many rows, and the size of a saved page. Prints tables in markdown.

python benchmarks/app.py [load] [kill] [map] [report]
"""

from __future__ import annotations

import http.client
import os
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import _support  # noqa: F401 - `support` is found from here on
from errata.core import Audit
from errata.report import to_html
from support.killed_server import example_answer, kill_while_answering, send
from support.servers import KillableServer
from support.small_audits import image_evaluation, quick_audit, tile_audit

SECONDS = 10.0
ROUNDS = 50


# Load


def offered(port: int, rate: float, what: Callable[[int], tuple[str, str, object]], workers: int) -> list[float]:
    """Seconds from when each request was due until its answer: who waits for a slow one is not excused."""
    late: list[float] = []
    start = time.perf_counter() + 0.2
    lock = threading.Lock()

    def work(mine: int) -> None:
        line = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
        kept = []
        for i in range(mine, int(rate * SECONDS), workers):
            due = start + i / rate
            time.sleep(max(0.0, due - time.perf_counter()))
            status, _ = send(line, *what(i))
            assert status == 200, status
            kept.append(time.perf_counter() - due)
        with lock:
            late.extend(kept)

    threads = [threading.Thread(target=work, args=(mine,)) for mine in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return late


def write(i: int) -> tuple[str, str, object]:
    return "POST", "/api/annotations", example_answer(i)


def read(i: int) -> tuple[str, str, object]:
    return "GET", f"/thumb/{i * 7 % 1000}?px=112", None


def load(audit: Audit, folder: Path) -> None:
    print(f"\n## Load for {SECONDS:.0f} s each, {os.cpu_count()} cores, the clients in another process on the same\n")
    print("| what | rate asked | rate held | median ms | 95% ms | 99% ms | slowest ms |\n|---|---|---|---|---|---|---|")
    kinds: tuple[tuple[str, float, Callable[[int], tuple[str, str, object]]], ...] = (
        ("annotation writes", 200, write),
        ("thumbnail reads", 500, read),
        ("annotation writes", 400, write),
        ("thumbnail reads", 800, read),
    )
    server = KillableServer(audit, folder)
    for name, rate, what in kinds:
        begun = time.perf_counter()
        late = offered(server.port, rate, what, workers=8)
        held = len(late) / (time.perf_counter() - begun - 0.2)
        median, high, higher, top = (1000 * v for v in (*np.quantile(late, (0.5, 0.95, 0.99)), max(late)))
        print(
            f"| {name} | {rate:.0f} | {held:.0f} | {median:.1f} | {high:.1f} | {higher:.1f} | {top:.0f} |", flush=True
        )
    server.kill()


# Kill


def kill(audit: Audit, folder: Path, rounds: int = ROUNDS) -> None:
    told = [kill_while_answering(audit, folder, seed) for seed in range(rounds)]
    counts = [n for n, _ in told]
    print(f"\n## kill -9 of the server during a burst of annotations, {rounds} times\n")
    print(
        "| rounds | answers acknowledged | in one round, least to most | lost | database opens |\n|---|---|---|---|---|"
    )
    lost = sum(n for _, n in told)
    print(
        f"| {rounds} | {sum(counts):,} | {min(counts)} to {max(counts)} | {lost} | {rounds} of {rounds} |", flush=True
    )


# Many rows


def many(audit: Audit, folder: Path) -> None:
    large = tile_audit(audit, 200)
    server = KillableServer(large, folder)
    line = http.client.HTTPConnection("127.0.0.1", server.port, timeout=120)
    angle = np.linspace(0, 2 * np.pi, 200)
    loop = np.column_stack([0.6 * np.cos(angle), 0.6 * np.sin(angle)]).tolist()
    print(f"\n## The map of {len(large.evaluation):,} rows\n")
    print("| what | first, ms | then, median ms | bytes |\n|---|---|---|---|")
    asked: tuple[tuple[str, str, str, object], ...] = (
        ("points to draw", "GET", "/api/map", None),
        ("numbers of a loop of 200 points", "POST", "/api/lasso", {"loop": loop}),
        ("page of a slice", "GET", "/slice/s1", None),
        ("a hypothesis", "POST", "/api/hypotheses", {"text": "light = night"}),
    )
    for name, method, path, body in asked:
        times = []
        for _ in range(6):
            begun = time.perf_counter()
            status, got = send(line, method, path, body)
            times.append(1000 * (time.perf_counter() - begun))
            assert status == 200, got
        print(f"| {name} | {times[0]:.0f} | {np.median(times[1:]):.0f} | {len(got):,} |", flush=True)
    drawn = in_browser(f"http://127.0.0.1:{server.port}/slice/s1")
    print(drawn)
    server.kill()


BROWSER = """async () => {
  const begun = performance.now(), box = document.querySelector("[data-map]");
  box.scrollIntoView();
  while (!box.errataChart) await new Promise((done) => setTimeout(done, 5));
  const seen = performance.now() - begun, times = [];
  for (let i = 0; i < 9; i++) {
    const from = performance.now();
    box.errataChart.draw(); box.errataChart.ink.getImageData(0, 0, 1, 1);
    times.push(performance.now() - from);
  }
  return [seen, times.sort((a, b) => a - b)[4]];
}"""


def in_browser(address: str) -> str:
    program = shutil.which("chromium")
    if program is None:
        return "No chromium: drawing was not timed."
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=program, args=["--headless", "--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(address)
        seen, again = page.evaluate(BROWSER)
        browser.close()
    return f"| drawn in Chromium (no GPU) | {seen:.0f} | {again:.0f} | |"


# The saved page


def report(folder: Path) -> None:
    audit = quick_audit(image_evaluation(10_000))
    begun = time.perf_counter()
    path = folder / "report.html"
    path.write_text(to_html(audit), encoding="utf-8")
    written = time.perf_counter() - begun
    print(f"\n## The saved page of {len(audit.evaluation):,} pictures\n\n| what | |\n|---|---|")
    print(f"| size | {path.stat().st_size / 1e6:.2f} MB |\n| written in | {written:.1f} s |")
    times = [usable(path) for _ in range(5)]
    print(f"| from opening to ordered by a key and a slice open, median of 5 | {np.median(times):.2f} s |", flush=True)


def usable(path: Path) -> float:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        program = shutil.which("chromium")
        browser = driver.chromium.launch(executable_path=program, args=["--headless", "--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        begun = time.perf_counter()
        page.goto(path.as_uri())
        page.keyboard.press("3")
        page.locator("#ordered", has_text="Ordered by most rows").wait_for(state="attached")
        page.locator("#finds .find h3 a").first.click()
        page.locator("h1:visible").wait_for()
        taken = time.perf_counter() - begun
        browser.close()
    return taken


def main(asked: list[str]) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        audit = quick_audit(image_evaluation(1000))
        for what in asked or ["load", "kill", "map", "report"]:
            (folder / what).mkdir()
            if what == "report":
                report(folder / what)
            else:
                {"load": load, "kill": kill, "map": many}[what](audit, folder / what)


if __name__ == "__main__":
    main(sys.argv[1:])
