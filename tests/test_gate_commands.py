"""Commands as gates of a build: exit codes, and files that are written whether the gate passes or not."""

from __future__ import annotations

import json
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from support.command import run

N = 1000


def model(place: Path, hard: float, first_id: int = 0, n: int = N, seed: int = 0, corner: float = 1.0) -> Path:
    """Outcomes of a model that errs at the rate `hard` where x > corner; the rows depend on `first_id` alone."""
    rng = np.random.default_rng(first_id)
    x = rng.normal(size=(n, 3))
    labels = rng.integers(0, 2, n)
    wrong = np.random.default_rng([first_id, seed]).random(n) < np.where(x[:, 0] > corner, hard, 0.05)
    np.savez(place, embedding=x, labels=labels, predictions=labels ^ wrong, ids=np.arange(n) + first_id)
    return place


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rows of two models, one with a hard corner, and the audits of both."""
    place = tmp_path_factory.mktemp("gates")
    for name, hard in (("hard", 0.8), ("even", 0.05)):
        model(place / f"{name}.npz", hard)
        model(place / f"{name}-new.npz", hard, first_id=5000)
    words = ["--method", "gmm", "--no-map"]
    assert run("audit", place / "hard.npz", "-o", place / "hard", *words).code == 0
    return place


def cases(path: Path) -> dict[str, str]:
    """Test case -> "failure", "skipped" or "system-out"."""
    root = ElementTree.parse(path).getroot()
    return {str(case.get("name")): case[0].tag for case in root.iter("testcase")}


def audit_words(place: Path, name: str, folder: Path) -> list[object]:
    files = ["--junit", folder / "out" / "junit.xml", "--summary", folder / "out" / "summary.md"]
    return ["audit", place / f"{name}.npz", "-o", folder / name, "--method", "gmm", "--no-map", *files]


@pytest.mark.parametrize("fail_on", ["confirmed", "beyond"])
def test_an_audit_fails_on_a_confirmed_slice_and_is_written(place: Path, tmp_path: Path, fail_on: str) -> None:
    done = run(*audit_words(place, "hard", tmp_path), "--fail-on", fail_on)
    assert (done.code, done.err) == (1, "")
    assert done.out.splitlines()[-1].startswith("Gate fails, since a slice is confirmed")
    assert (tmp_path / "hard" / "report.html").is_file()
    assert "failure" in cases(tmp_path / "out" / "junit.xml").values()
    assert "Gate fails" in (tmp_path / "out" / "summary.md").read_text()


def test_an_audit_passes_where_nothing_is_confirmed(place: Path, tmp_path: Path) -> None:
    done = run(*audit_words(place, "even", tmp_path), "--fail-on", "confirmed")
    assert (done.code, done.err) == (0, "")
    assert done.out.splitlines()[-1] == "Gate passes: it fails where a slice is confirmed."
    assert "failure" not in cases(tmp_path / "out" / "junit.xml").values()


def test_without_a_gate_nothing_fails(place: Path, tmp_path: Path) -> None:
    done = run(*audit_words(place, "hard", tmp_path))
    assert done.code == 0
    assert "Gate" not in done.out
    assert "failure" not in cases(tmp_path / "out" / "junit.xml").values()


def test_standard_output_stays_json(place: Path, tmp_path: Path) -> None:
    done = run(*audit_words(place, "hard", tmp_path), "--fail-on", "confirmed", "--json")
    assert done.code == 1
    assert json.loads(done.out)["slices"]
    assert done.err.startswith("Gate fails")


def test_reports_are_replaced(place: Path, tmp_path: Path) -> None:
    """A build runs again and again in one workspace, and its reports lie where they lay."""
    words = ["apply", place / "hard", place / "hard-new.npz", "--junit", tmp_path / "junit.xml", "--fail-on"]
    assert run(*words, "0.01", "-o", tmp_path / "a.parquet").code == 1
    assert "failure" in cases(tmp_path / "junit.xml").values()
    assert run(*words, "1", "-o", tmp_path / "b.parquet").code == 0
    assert "failure" not in cases(tmp_path / "junit.xml").values()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.parquet", "b.parquet", "junit.xml"]


def test_recheck_fails_where_the_other_model_is_worse(place: Path, tmp_path: Path) -> None:
    words = ["--fail-on", "worse", "--junit", tmp_path / "junit.xml", "--summary", tmp_path / "summary.md"]
    model(tmp_path / "worse.npz", 1.0, first_id=5000, corner=0.5)
    done = run("recheck", place / "hard", place / "hard-new.npz", tmp_path / "worse.npz", *words)
    assert done.code == 1
    assert "Gate fails, since the second model is worse: all rows" in done.out
    assert cases(tmp_path / "junit.xml")["all rows"] == "failure"
    assert "❌" in (tmp_path / "summary.md").read_text()
    done = run("recheck", place / "hard", place / "hard-new.npz", place / "even-new.npz", *words)
    assert done.code == 0
    assert done.out.splitlines()[-1] == "Gate passes: it fails where the second model is worse."
    assert "failure" not in cases(tmp_path / "junit.xml").values()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["audit", "{}/hard.npz", "-o", "{}/new", "--fail-on", "confirm"], "confirm"),
        (["audit", "{}/hard.npz", "-o", "{}/new", "--junit", "{}"], "is a folder; name a file"),
        (["recheck", "{}/hard", "{}/hard-new.npz", "{}/even-new.npz", "--fail-on", "better"], "better"),
        (["apply", "{}/hard", "{}/hard-new.npz", "-o", "{}/n.parquet", "--fail-on", "2"], "between 0 and 1"),
        (
            ["apply", "{}/hard", "{}/hard-new.npz", "-o", "{}/n.parquet", "--summary", "{}/hard.npz/y.md"],
            "cannot be written",
        ),
    ],
)
def test_bad_input_is_one_sentence_and_nothing_is_written(place: Path, words: list[str], sentence: str) -> None:
    before = sorted(place.rglob("*"))
    done = run(*(word.replace("{}", str(place)) for word in words))
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("errata: ")
    assert done.err.count("\n") == 1
    assert sentence in done.err
    assert sorted(place.rglob("*")) == before


WORKFLOWS = sorted((Path(__file__).parents[1] / "examples" / "ci").glob("*.yml"))


def texts(value: object) -> Iterator[str]:
    """All texts of a document, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from (text for item in value.values() for text in texts(item))
    elif isinstance(value, list):
        yield from (text for item in value for text in texts(item))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_ready_workflow_runs_as_it_stands(path: Path, place: Path, tmp_path: Path) -> None:
    """Its own command, on files of the names it uses: it fails, and leaves what its later steps read."""
    yaml = pytest.importorskip("yaml")
    lines = [line.strip() for text in texts(yaml.safe_load(path.read_text())) for line in text.splitlines()]
    command = next(shlex.split(line) for line in lines if line.startswith("errata "))
    for line in lines:
        if line.startswith("python "):
            script, _, output, *_ = line.split()[1:]
            assert (path.parent / script).is_file()
            assert output in command
    shutil.copy(place / "even.npz", tmp_path / "main.npz")
    shutil.copy(place / "hard.npz", tmp_path / "candidate.npz")
    done = run(*command[1:], folder=tmp_path)
    assert (done.code, done.err) == (1, "")
    for name in ("gate.xml", "gate.md", "comparison.json"):
        assert (tmp_path / name).is_file()
        assert any(name in line for line in lines if not line.startswith("errata "))


def test_there_are_ready_workflows() -> None:
    assert [path.name for path in WORKFLOWS] == ["github-actions.yml", "gitlab-ci.yml"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("audit hard.npz -o new --junit hard.npz", "is read by this command"),
        ("audit hard.npz -o new --summary ./hard/../hard.npz", "is read by this command"),
        ("audit hard.npz -o new --junit new", "is the output already"),
        ("audit hard.npz -o new --junit x --summary ./x", "both write"),
        ("audit hard.npz -o new --vocabulary words.txt --summary words.txt", "is read by this command"),
        ("apply hard hard-new.npz -o new.parquet --junit hard/audit.json", "is read by this command"),
        ("apply hard hard-new.npz -o new.parquet --summary hard/report.html", "is read by this command"),
        ("apply hard hard-new.npz -o new.parquet --junit new.parquet", "is the output already"),
        ("recheck hard hard-new.npz even-new.npz --junit even-new.npz", "is read by this command"),
        ("compare hard even.npz --no-search --junit even.npz", "is read by this command"),
        ("compare hard even.npz --no-search --junit hard/memberships.parquet", "is read by this command"),
    ],
)
def test_a_report_of_a_gate_destroys_nothing(place: Path, words: str, sentence: str) -> None:
    """A build's report replaces that of the build before, and would have replaced the rows that were audited."""
    (place / "words.txt").write_text("night\n")
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    code, _, err = run(*shlex.split(words), folder=place)
    assert (code, err.count("\n"), sentence in err) == (2, 1, True), err
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before
