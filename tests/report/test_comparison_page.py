"""The page of a comparison: groups of rows under their headings, axes with ticks, the gate's verdict."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from markupsafe import escape

import errata
from errata.report import comparison_html, image_sources
from errata.report.gates import comparison_gate
from support.command import run

N = 3000


def model(seed: int, hard: float, young: float) -> errata.Evaluation:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(N, 2))
    age = rng.integers(1, 90, N)
    labels = rng.integers(0, 2, N)
    risk = np.where(age < 20, young, np.where(x[:, 0] > 1, hard, 0.05))
    wrong = np.random.default_rng(seed).random(N) < risk
    metadata = {"age": age, "<b>site</b>": rng.choice(["north", "south"], N)}
    return errata.Evaluation(labels=labels, predictions=labels ^ wrong, representations={"x": x}, metadata=metadata)


@pytest.fixture(scope="module")
def comparison() -> errata.Comparison:
    """The second model fails on the young, whom nobody named."""
    audit = errata.audit(model(1, 0.6, 0.05))
    return errata.compare(audit, model(2, 0.6, 0.6), by=["<b>site</b>"])


def test_no_link_leads_to_rows_that_are_not_listed() -> None:
    """Of several labels no row that changed is listed."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, (600, 2))
    first = errata.Evaluation(labels=labels, predictions=labels ^ (rng.random((600, 2)) < 0.1), task="multilabel")
    second = errata.Evaluation(labels=labels, predictions=labels ^ (rng.random((600, 2)) < 0.1), task="multilabel")
    comparison = errata.compare(first, second, search=False)
    assert all(change.fixed for change in comparison.changes)
    gate = comparison_gate(comparison, "compare", "worse")
    html = comparison_html(comparison, gate, "main.npz", "new.npz", rows=(first, second))
    assert set(re.findall(r'href="#((?:fixed|broken)-[^"]*)"', html)) <= set(re.findall(r'id="([^"]*)"', html))


def page_of(comparison: errata.Comparison, fail_on: str | None = "worse") -> str:
    return comparison_html(comparison, comparison_gate(comparison, "compare", fail_on), "main.npz", "new.npz")


def headings(page: str) -> list[str]:
    return re.findall(r"<h2[^>]*>([^<]*)</h2>", page.partition("<dialog")[0])


def test_groups_stand_under_their_headings(comparison: errata.Comparison) -> None:
    page = page_of(comparison)
    assert headings(page) == [
        "All rows",
        "New weaknesses: slices that nobody named",
        "Known slices",
        "Values of columns",
        "What this comparison could have missed",
    ]
    worse = next(change for change in comparison.changes if change.kind == "found" and change.judgement == "worse")
    new = page.partition("New weaknesses")[2].partition("Known slices")[0]
    assert "age &lt; " in new
    assert f"{worse.fixed} fixed, {worse.broken} newly wrong" in new
    assert f"{100 * worse.before_rate:.1f}% → {100 * worse.after_rate:.1f}%" in new
    for change in comparison.changes:
        if change.kind == "slice":
            assert change.name in page


def test_axes_have_ticks_and_a_zero(comparison: errata.Comparison) -> None:
    page = page_of(comparison)
    for tick in ("0%", "50%", "100%", "−100", "0", "+100"):
        assert f">{tick}</text>" in page
    assert 'class="zero" x1="50.00%"' in page


def test_the_gate_and_what_could_have_been_missed(comparison: errata.Comparison) -> None:
    page = page_of(comparison)
    gate = comparison_gate(comparison, "compare", "worse")
    assert any(check.name.startswith("r1") for check in gate.failed)
    assert str(escape(gate.sentence)) in page
    assert "points would have been seen (80% power)" in page
    for note in comparison.facts["notes"]:
        assert str(escape(note)) in page
    assert "Gate" not in page_of(comparison, None).partition("<dialog")[0]


def test_a_model_that_is_no_worse() -> None:
    comparison = errata.compare(model(1, 0.3, 0.05), model(2, 0.3, 0.05))
    page = page_of(comparison)
    assert "Gate passes" in page
    assert "None was confirmed" in page
    assert "show a rise beyond chance" in page, "that none got worse is more than a test can say"


def test_the_page_is_complete_and_runs_its_own_script_alone(comparison: errata.Comparison) -> None:
    page = page_of(comparison)
    assert page.count("<script") == 1
    assert "script-src &#39;sha256-" in page
    assert 'data-key="g"' in page
    assert "Regression to the mean" in page.partition('id="glossary"')[2]
    assert "<b>site</b>" not in page
    assert "http://" not in page.replace("http://www.w3.org", "")
    assert "main.npz → new.npz" in page


def with_images(rows: errata.Evaluation, px: int) -> errata.Evaluation:
    pixels = np.random.default_rng(0).integers(0, 256, (len(rows), px, px, 3)).astype(np.uint8)
    return replace(rows, media=errata.inputs.ImageArrays(pixels))


def test_rows_that_changed_have_their_images_and_both_predictions() -> None:
    before = with_images(model(1, 0.6, 0.05), 8)
    after = with_images(model(2, 0.6, 0.6), 8)
    comparison = errata.compare(errata.audit(before), after)
    gate = comparison_gate(comparison, "compare", None)
    page = comparison_html(comparison, gate, "a", "b", (before, after))
    changed = page.partition("Rows that changed")[2]
    broken = comparison.facts["changed"]["overall"]["broken"]
    assert f"24 of {comparison['overall'].broken} listed" in changed
    for row in broken[:24]:
        assert f'<use href="#p{row}"/>' in changed
        assert f'<symbol id="p{row}"' in page
    first = broken[0]
    assert f"{before.labels[first]}: {before.predictions[first]} → <b>{after.predictions[first]}</b>" in changed
    worse = next(change for change in comparison.changes if change.kind == "found" and change.judgement == "worse")
    strip = page.partition(f'href="#broken-{worse.id}"')[0].rpartition("<h3>")[2]
    assert re.findall(r"#p(\d+)", strip) == [str(id) for id in comparison.facts["members"][worse.id][:4]]
    assert f'id="broken-{worse.id}"' in changed


def test_images_of_a_comparison_have_a_budget_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(image_sources, "BUDGET", 20_000)
    before = with_images(model(1, 0.6, 0.05), 30)
    after = with_images(model(2, 0.6, 0.6), 30)
    comparison = errata.compare(errata.audit(before), after, search=False)
    gate = comparison_gate(comparison, "compare", None)
    page = comparison_html(comparison, gate, "a", "b", (before, after))
    assert 0 < sum(map(len, re.findall(r'<image href="([^"]*)"', page))) < 20_000
    assert re.search(r"\d+ of \d+ images are left out to keep them under 0.02 MB in this file.", page)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("models")
    paths = []
    for name, rows in (("a", model(1, 0.3, 0.05)), ("b", model(2, 0.3, 0.6))):
        paths.append(folder / f"{name}.npz")
        np.savez(paths[-1], labels=rows.labels, predictions=rows.predictions, embedding=rows.representations["x"])
    return paths[0], paths[1]


def test_the_command_writes_what_the_name_asks_for(files: tuple[Path, Path], tmp_path: Path) -> None:
    for name in ("out", "out.json", "out.html"):
        assert run("compare", *files, "--no-search", "-o", tmp_path / name).code == 0
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == ["comparison.json", "report.html"]
    assert json.loads((tmp_path / "out.json").read_text()) == json.loads((tmp_path / "out/comparison.json").read_text())
    assert (tmp_path / "out.html").read_text() == (tmp_path / "out/report.html").read_text()
    again = run("compare", *files, "--no-search", "-o", tmp_path / "out")
    assert again.code == 2
    assert "exists already" in again.err


def test_the_page_is_written_where_the_gate_fails(files: tuple[Path, Path], tmp_path: Path) -> None:
    assert run("compare", *files, "--fail-on", "worse", "-o", tmp_path / "out").code == 1
    assert "Gate fails" in (tmp_path / "out/report.html").read_text()
