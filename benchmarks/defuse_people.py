"""Two people label every region of a real run in a browser, their server is killed midway, and the correction follows.

    python benchmarks/defuse.py mnist --output RUNS               a run, labelled by its oracle
    python benchmarks/defuse_people.py RUNS/defuse-mnist-0 --output DIR

The first of them says of each sample what the oracle said, the second another digit for one in twenty: what is tried is
the app and the way back into the run, not the people. Screenshots and the corrected run are left in DIR.
"""

from __future__ import annotations

import argparse
import shutil
import time
from pathlib import Path
from typing import Any

import numpy as np
from playwright.sync_api import expect, sync_playwright
from safetensors.torch import load_file

import _support  # noqa: F401 - `support` is found from here on
from defuse_pictures import mnist, mnist_network
from errata.defuse import DefuseSettings, defuse
from errata.defuse.labels import NONE
from errata.defuse.stages import RunFolder
from errata.defuse.view import load_run
from support.servers import ServerProcess

ARGUMENTS = ["--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking"]
STAGES = ("defuse", "vae", "vae-told", "mistakes", "regions", "samples", "map")
SLIPS = 0.05
Answers = dict[str, list[int]]  # of each region's samples


def unlabelled(run: Path, folder: Path) -> Answers:
    """A copy that stands before its labels, and what the oracle said."""
    kept = RunFolder(run)
    folder.mkdir(parents=True)
    for path in run.iterdir():
        if path.stem in STAGES:
            shutil.copy(path, folder)
    return dict(zip(kept.load("samples").facts["names"], kept.read("votes"), strict=True))


def slipping(answers: Answers, seed: int = 0) -> Answers:
    chance = np.random.default_rng(seed)
    changed: Answers = {}
    for id, row in answers.items():
        changed[id] = []
        for answer in row:
            slips = chance.random() < SLIPS
            digit = int(chance.integers(10)) if slips else answer
            changed[id].append(digit)
    return changed


def label(page: Any, address: str, name: str, answers: Answers) -> None:
    """By keyboard, sample by sample; `j` leads to the next region."""
    first, *_ = answers
    page.goto(f"{address}/annotate/{first}")
    page.locator("#person").fill(name)
    page.locator("#person").press("Tab")
    for id, row in answers.items():
        expect(page.locator("[data-annotate]")).to_have_attribute("data-annotate", id)
        expect(page.locator(".who")).to_have_text(f"as {name}")
        expect(page.locator(".count")).to_have_text(f"0 of {len(row)} done")
        page.locator("h1").click()
        for digit in row:
            with page.expect_response("**/api/annotations") as got:
                key = "n" if digit == NONE else str(digit)
                page.keyboard.press(key)
            assert got.value.ok, got.value.text()
        expect(page.locator(".count")).to_have_text(f"{len(row)} of {len(row)} done")
        page.keyboard.press("j")


def labelled(browser: Any, folder: Path, answers: Answers) -> None:
    """Ann and Ben; the server dies when Ann is halfway."""
    half = dict(list(answers.items())[: len(answers) // 2])
    with ServerProcess(folder) as server:
        address = server.address
        label(browser.new_page(), address, "Ann", half)
        server.end()
    with ServerProcess(folder) as server:
        address = server.address
        label(browser.new_page(), address, "Ann", {id: row for id, row in answers.items() if id not in half})
        label(browser.new_page(), address, "Ben", slipping(answers))
        page = browser.new_page(viewport={"width": 1440, "height": 900})
        page.goto(address, wait_until="networkidle")
        page.screenshot(path=folder.with_suffix(".labelled.png"))


def corrected(folder: Path, weights: Path, settings: DefuseSettings) -> Any:
    """From the stored labels alone."""
    study = mnist()
    model = mnist_network()
    model.load_state_dict(load_file(weights))
    return defuse(
        model,
        study.train,
        folder,
        validation=study.validation,
        test=study.test,
        prepare=study.prepare,
        settings=settings,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--output", type=Path, default=Path("bench-results/people"))
    parser.add_argument("--strengths", type=float, nargs="+", default=[1e-10, 1e-2, 1.0, 10.0])
    parser.add_argument("--tune-lr", type=float, default=DefuseSettings().tune_lr)
    asked = parser.parse_args()
    folder = asked.output
    began = time.perf_counter()
    answers = None if folder.exists() else unlabelled(asked.run, folder)  # labelled before: gone on with
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=shutil.which("chromium"), args=ARGUMENTS)
        if answers is not None:
            labelled(browser, folder, answers)
            print(f"{len(answers)} regions labelled by two people: {time.perf_counter() - began:.0f} s", flush=True)
        changed = {"strengths": tuple(asked.strengths), "tune_lr": asked.tune_lr}
        settings = DefuseSettings(**{**load_run(asked.run).facts["settings"], **changed})
        found = corrected(folder, asked.run.with_suffix(".safetensors"), settings)
        print(found.words)
        for change in found.comparison.changes[:2]:
            print(
                f"{change.name}, n = {change.n:,}: {change.before_rate:.1%} wrong before, {change.after_rate:.1%} after"
            )
        print("agreement:", found.facts["agreement"])
        with ServerProcess(folder) as server:
            address = server.address
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            page.goto(f"{address}/result", wait_until="networkidle")
            expect(page.get_by_role("heading", name="Before and after")).to_be_visible()
            page.screenshot(path=folder.with_suffix(".result.png"), full_page=True)


if __name__ == "__main__":
    main()
