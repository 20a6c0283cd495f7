"""The command from end to end: what it writes, what it prints, and that the same seed gives the same bytes."""

from __future__ import annotations

import json
import re
import sys
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import rich.progress

import errata
from errata.bench.recipes import RECIPES
from errata.cli.common import plain_warnings
from errata.report import progress_bars as bars_module
from support.command import Done
from support.command import run as run_command

N, D = 1000, 4
SLICE_KEYS = {"id", "method", "name", "verdict", "threshold", "discover", "confirm", "beyond", "explained_by",
              "found_by", "explanations"}  # fmt: skip
CONFIRM_KEYS = {"n", "error_rate", "gap", "gap_in_class", "interval", "p_value", "q_value"}


Run = Callable[..., Done]


@pytest.fixture
def run() -> Run:
    """Draws no map and tests no search unless asked: most of an audit's time would be that."""

    def quick(*words: object) -> Done:
        slow = [name for name in ("map", "self-test") if words[:1] == ("audit",) and f"--{name}" not in words]
        return run_command(*words, *(f"--no-{name}" for name in slow))

    return quick


def planted(n: int = N, seed: int = 0) -> dict[str, Any]:
    """A model that fails in one corner of its embedding, whatever the label, and now and then elsewhere."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D)).astype(np.float32)
    corner = np.arange(n) % 10 == 0
    X[corner] = 0.3 * X[corner] + 3
    labels = rng.integers(0, 2, n)
    wrong = np.where(corner, rng.random(n) < 0.8, rng.random(n) < 0.05)
    sure = rng.uniform(0.6, 0.9, n)
    positive = np.where(labels ^ wrong, sure, 1 - sure)
    return {"embedding": X, "labels": labels, "probs": np.stack([1 - positive, positive], axis=1)}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """x.npz, x.parquet and x.csv with the same rows, and `audit`, the audit of the first."""
    folder = tmp_path_factory.mktemp("data")
    arrays = planted()
    np.savez(folder / "x.npz", **arrays)
    lists = {name: [row.tolist() for row in arrays[name]] for name in ("embedding", "probs")}
    pq.write_table(pa.table({"labels": arrays["labels"], **lists}), folder / "x.parquet")
    frame = pd.DataFrame({"labels": arrays["labels"], "prob:0": arrays["probs"][:, 0], "prob:1": arrays["probs"][:, 1]})
    frame["embedding"] = [" ".join(map(repr, map(float, row))) for row in arrays["embedding"]]
    frame.to_csv(folder / "x.csv", index=False)
    return folder


@pytest.fixture(scope="module")
def audit(data: Path) -> Path:
    """A saved audit of x.npz with four methods, made by the command."""
    words = ["audit", data / "x.npz", "-o", data / "one" / "audit", "--method", "spotlight,gmm"]
    assert run_command(*words, "--method", "confusion", "--method", "high-loss", "--no-self-test").code == 0
    return data / "one" / "audit"


def facts(folder: Path) -> dict[str, Any]:
    read: dict[str, Any] = json.loads((folder / "audit.json").read_text())
    return read


def files(folder: Path) -> dict[str, bytes]:
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def confirmed(folder: Path) -> list[dict[str, Any]]:
    return [found for found in facts(folder)["slices"] if found["verdict"] == "confirmed"]


# --- what is written -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["npz", "parquet", "csv"])
def test_each_form_finds_the_planted_corner(data: Path, tmp_path: Path, run: Run, kind: str) -> None:
    done = run("audit", data / f"x.{kind}", "-o", tmp_path / "audit")
    assert (done.code, done.err) == (0, "")
    assert done.out.rstrip().splitlines()[-1] == str(tmp_path / "audit" / "report.html")
    table = pq.read_table(tmp_path / "audit" / "memberships.parquet").to_pandas()
    found = confirmed(tmp_path / "audit")[0]
    members = table[found["id"]] >= found["threshold"]
    assert (table["id"][members] % 10 == 0).mean() > 0.9
    assert found["confirm"]["gap"] > 0.5


def test_the_files_of_the_design_are_there(audit: Path) -> None:
    written = files(audit)
    keys = ["spotlight", "gmm", "confusion", "confusion-approximation", "high-loss", "high-loss-approximation"]
    expected = {"audit.json", "checksums.json", "memberships.parquet", "report.html"}
    expected |= {f"slicers/{key}.{form}" for key in keys for form in ("json", "safetensors")}
    expected |= {f"evaluation/{name}" for name in ("evaluation.json", "rows.parquet", "representations.safetensors")}
    assert set(written) == expected
    report = written["report.html"].decode()
    assert report.lstrip().lower().startswith("<!doctype html")


def test_audit_json_has_the_keys_of_the_design(audit: Path) -> None:
    read = facts(audit)
    assert read["schema"] == "errata.audit/1"
    assert {"schema", "origin", "settings", "overall", "slices", "null"} <= set(read)
    assert {"model", "data", "code"} == set(read["origin"])
    assert {"n", "error_rate", "loss"} <= set(read["overall"])
    assert read["overall"]["n"] == N
    assert read["slices"]
    for found in read["slices"]:
        assert set(found) >= SLICE_KEYS
        assert found["verdict"] in ("confirmed", "not confirmed", "too few to tell")
        if found["confirm"] is not None:
            assert set(found["confirm"]) >= CONFIRM_KEYS
            assert len(found["confirm"]["interval"]) == 2
            assert set(found["discover"]) >= {"n", "error_rate"}
    assert [found["id"] for found in read["slices"]] == [f"s{i + 1}" for i in range(len(read["slices"]))]


def test_numbers_in_audit_json_can_be_recomputed_from_the_memberships(audit: Path) -> None:
    """A row belongs where its weight is at least the threshold: counted again from the files alone."""
    table = pq.read_table(audit / "memberships.parquet").to_pandas()
    read = facts(audit)
    assert list(table.columns) == [
        "id",
        "split",
        *(found["id"] for found in read["slices"]),
        *(found["id"] for found in read["error_types"]),
    ]
    assert table["id"].tolist() == list(range(N))
    assert set(table["split"]) == {"discover", "confirm"}
    assert abs((table["split"] == "discover").mean() - 0.5) < 0.01
    arrays = planted()
    wrong = arrays["probs"].argmax(axis=1) != arrays["labels"]
    tested = [found for found in read["slices"] if found["confirm"] is not None]
    assert tested
    for found in tested:
        assert table[found["id"]].between(0, 1).all()
        inside = table[found["id"]] >= found["threshold"]
        for split in ("discover", "confirm"):
            rows = inside & (table["split"] == split)
            assert found[split]["n"] == rows.sum()
            assert found[split]["error_rate"] == pytest.approx(wrong[rows].mean(), abs=1e-12)


def test_slices_come_in_the_order_of_the_design(audit: Path) -> None:
    """Confirmed first, those that nothing explains before the others, then by the lower bound of excess errors."""
    tested = [found for found in facts(audit)["slices"] if found["confirm"] is not None]
    ranks = [(s["verdict"] != "confirmed", bool(s["explained_by"]), -s["confirm"]["excess"][1]) for s in tested]
    assert ranks == sorted(ranks)
    untested = [found["confirm"] is None for found in facts(audit)["slices"]]
    assert untested == sorted(untested)


def test_json_on_stdout_is_audit_json(data: Path, tmp_path: Path, run: Run) -> None:
    done = run("audit", data / "x.npz", "-o", tmp_path / "audit", "--json")
    assert (done.code, done.err) == (0, "")
    assert done.out == (tmp_path / "audit" / "audit.json").read_text()
    assert json.loads(done.out)["slices"]


# --- methods, presets, options -------------------------------------------------------------------------------


def test_methods_by_comma_and_repeated(audit: Path) -> None:
    settings = facts(audit)["settings"]
    assert settings["methods"] == ["spotlight", "gmm", "confusion", "high-loss"]


def test_presets_and_options_reach_the_method(data: Path, tmp_path: Path, run: Run) -> None:
    words = [
        "--method",
        "spotlight:as_published,gmm",
        "--set",
        "spotlight.advanced.steps=50",
        "--set",
        "gmm.components=3",
    ]
    assert run("audit", data / "x.npz", "-o", tmp_path / "audit", *words).code == 0
    published = json.loads((tmp_path / "audit/slicers/spotlight-as_published.json").read_text())["params"]
    assert (published["advanced"]["solver"], published["advanced"]["steps"]) == ("adam", 50)
    assert json.loads((tmp_path / "audit/slicers/gmm.json").read_text())["params"]["components"] == 3
    settings = facts(tmp_path / "audit")["settings"]
    assert settings["options"] == {"spotlight": {"advanced.steps": 50}, "gmm": {"components": 3}}
    methods = {name for found in facts(tmp_path / "audit")["slices"] for name in found["found_by"]}
    assert methods <= {"spotlight:as_published", "gmm"}


def test_representation_for_all_and_for_one(data: Path, tmp_path: Path, run: Run) -> None:
    rng = np.random.default_rng(1)
    arrays = planted()
    noise = rng.normal(size=(N, 2))
    given = {"embedding:good": arrays.pop("embedding"), "embedding:noise": noise, **arrays}
    np.savez(tmp_path / "x.npz", **given)

    def searched(name: str, *words: str) -> dict[str, str]:
        methods = ["--method", "spotlight,gmm,confusion"]
        assert run("audit", tmp_path / "x.npz", "-o", tmp_path / name / "audit", *methods, *words).code == 0
        slicers = tmp_path / name / "audit" / "slicers"
        return {
            key: json.loads((slicers / f"{key}.json").read_text())["representation"] for key in ("spotlight", "gmm")
        }

    assert searched("first") == {"spotlight": "good", "gmm": "good"}
    assert searched("all", "--representation", "noise") == {"spotlight": "noise", "gmm": "noise"}
    assert searched("one", "--representation", "gmm=noise") == {"spotlight": "good", "gmm": "noise"}


def test_texts_describe_what_was_found(data: Path, tmp_path: Path, run: Run) -> None:
    """The planted corner lies where all four columns are large."""
    towards = np.array([[1, 1, 1, 1], [-1, -1, -1, -1], [1, -1, 1, -1]])
    np.savez(tmp_path / "texts.npz", texts=["a far corner", "the other side", "sideways"], embedding=towards)
    words = ["--method", "spotlight", "--texts", tmp_path / "texts.npz"]
    done = run("audit", data / "x.npz", "-o", tmp_path / "audit", *words)
    assert (done.code, done.err) == (0, "")
    first = confirmed(tmp_path / "audit")[0]
    (told,) = [e for e in first["explanations"] if e["kind"] == "descriptions"]
    assert told["rows"][0]["text"] == "a far corner"
    assert told["rows"][0]["average_precision"] > 5 * told["rows"][0]["base_rate"]
    assert (told["of"], told["rows"][0]["n"]) == (3, N // 2)
    assert "“a far corner” (" in " ".join(done.out.split())
    assert "<td>a far corner</td>" in (tmp_path / "audit" / "report.html").read_text()


def test_texts_that_do_not_fit_are_refused_before_the_search(
    data: Path, tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(errata.workflow.searching, "_run", lambda *given: pytest.fail("it was searched"))
    for name, arrays, sentence in (
        ("other", {"texts": ["a"], "embedding:clip": np.eye(1)}, "unknown representation `clip`"),
        (
            "wide",
            {"texts": ["a"], "embedding": np.ones((1, 5))},
            "the texts have 5 columns where `embedding:embedding`",
        ),
        ("none", {"texts": np.array([], dtype=str), "embedding": np.ones((0, D))}, "`texts` is empty"),
    ):
        np.savez(tmp_path / f"{name}.npz", **arrays)
        done = run("audit", data / "x.npz", "-o", tmp_path / "audit", "--texts", tmp_path / f"{name}.npz")
        assert (done.code, done.out, done.err.count("\n")) == (2, "", 1)
        assert sentence in done.err
        assert not (tmp_path / "audit").exists()


def test_methods_are_listed(run: Run) -> None:
    listed = json.loads(run("methods", "--json").out)
    assert {item["name"] for item in listed} >= {"spotlight", "gmm", "confusion", "high-loss"}
    spotlight = next(item for item in listed if item["name"] == "spotlight")
    assert {"as_published", "recommended"} <= set(spotlight["presets"])
    assert spotlight["options"]["size"] == 0.01
    plain = run("methods")
    assert plain.code == 0
    for item in listed:
        assert f"{item['name']}: {item['summary']}" in plain.out


def test_version_and_help(run: Run) -> None:
    assert run("--version") == Done(0, f"errata {errata.__version__}\n", "")
    for words in ([], ["--help"]):
        done = run(*words)
        assert (done.code, done.err) == (0, "")
        assert "audit" in done.out
        assert "apply" in done.out


# --- the same bytes, the same split, further looks -----------------------------------------------------------


def test_the_same_seed_gives_the_same_bytes(data: Path, audit: Path, tmp_path: Path, run: Run) -> None:
    words = ["--method", "spotlight,gmm,confusion,high-loss"]
    assert run("audit", data / "x.npz", "-o", tmp_path / "other" / "audit", "--map", *words).code == 0
    again, first = files(tmp_path / "other" / "audit"), files(audit)
    assert sorted(again) == sorted(first)
    assert [name for name in first if first[name] != again[name]] == []


def test_another_seed_keeps_the_split(data: Path, audit: Path, tmp_path: Path, run: Run) -> None:
    assert run("audit", data / "x.npz", "-o", tmp_path / "audit", "--seed", "7").code == 0
    split = [pq.read_table(f / "memberships.parquet").column("split").to_pylist() for f in (audit, tmp_path / "audit")]
    assert split[0] == split[1]
    assert facts(tmp_path / "audit")["settings"]["seed"] == 7


def test_a_sibling_and_a_named_audit_are_earlier_looks(data: Path, audit: Path, tmp_path: Path, run: Run) -> None:
    def looked(*words: object) -> tuple[int, float]:
        assert run("audit", data / "x.npz", *words).code == 0
        settings = facts(Path(str(words[1])))["settings"]
        return settings["run"], settings["level"]

    assert looked("-o", tmp_path / "a" / "first") == (1, 0.05)
    assert looked("-o", tmp_path / "a" / "second", "--seed", 1) == (2, pytest.approx(0.05 / 2))
    assert looked("-o", tmp_path / "a" / "third", "--seed", 2) == (3, pytest.approx(0.05 / 6))
    assert looked("-o", tmp_path / "b" / "after", "--after", audit) == (2, pytest.approx(0.05 / 2))
    beside = tmp_path / "a" / "first"  # named and a sibling: one look
    assert looked("-o", tmp_path / "a" / "fourth", "--seed", 3, "--after", beside)[0] == 4
    # The same look again is no further chance, whichever of them it is.
    assert looked("-o", tmp_path / "a" / "again") == (1, 0.05)
    assert looked("-o", tmp_path / "a" / "third-again", "--seed", 2) == (3, pytest.approx(0.05 / 6))
    assert files(tmp_path / "a" / "again") == files(tmp_path / "a" / "first")


def test_other_rows_and_damaged_neighbours_are_no_look(data: Path, tmp_path: Path, run: Run) -> None:
    np.savez(tmp_path / "y.npz", **planted(seed=5))
    assert run("audit", tmp_path / "y.npz", "-o", tmp_path / "other").code == 0
    for name, text in (("damaged", "{"), ("foreign", '{"schema": "mine"}'), ("list", "[]")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "audit.json").write_text(text)
    done = run("audit", data / "x.npz", "-o", tmp_path / "audit")
    assert (done.code, done.err) == (0, "")
    assert facts(tmp_path / "audit")["settings"]["run"] == 1


def test_reference_stores_no_copies(data: Path, tmp_path: Path, run: Run) -> None:
    arrays = {**planted(), "text": np.array([f"row {i}" for i in range(N)])}
    np.savez(tmp_path / "x.npz", **arrays)
    assert run("audit", tmp_path / "x.npz", "-o", tmp_path / "audit", "--reference").code == 0
    evaluation = {name for name in files(tmp_path / "audit") if name.startswith("evaluation/")}
    assert evaluation == {"evaluation/evaluation.json", "evaluation/rows.parquet"}
    assert "text" not in pq.read_schema(tmp_path / "audit" / "evaluation" / "rows.parquet").names
    loaded = errata.load(tmp_path / "audit")
    assert np.array_equal(np.asarray(loaded.evaluation.representations["embedding"]), arrays["embedding"])
    assert loaded.evaluation.media is not None
    assert loaded.evaluation.media.text(3) == "row 3"


# --- other tasks, and silence --------------------------------------------------------------------------------


def _all_right() -> dict[str, Any]:
    arrays = planted()
    return {**arrays, "probs": np.eye(2)[arrays["labels"]] * 0.8 + 0.1}


def _all_wrong() -> dict[str, Any]:
    arrays = planted()
    return {**arrays, "probs": np.eye(2)[1 - arrays["labels"]] * 0.8 + 0.1}


def _no_pattern() -> dict[str, Any]:
    arrays = planted()
    return {**arrays, "embedding": np.random.default_rng(3).normal(size=(N, D))}


SILENT = {
    "right everywhere": (_all_right, "smallest slice that would be confirmed"),
    "wrong everywhere": (_all_wrong, "no slice can be worse than the rest"),
    "no pattern": (_no_pattern, "smallest slice that would be confirmed"),
}


@pytest.mark.parametrize("name", SILENT)
def test_silence_is_a_result_with_a_meaning(tmp_path: Path, run: Run, name: str) -> None:
    make, words = SILENT[name]
    np.savez(tmp_path / "x.npz", **make())
    done = run("audit", tmp_path / "x.npz", "-o", tmp_path / "audit")
    assert done.code == 0
    assert ("check class_names" in done.err) == (name == "wrong everywhere")
    assert confirmed(tmp_path / "audit") == []
    sentence = facts(tmp_path / "audit")["silence"]
    assert words in sentence
    assert " ".join(sentence.split()) in " ".join(done.out.split())


def test_regression_and_loss_only(tmp_path: Path, run: Run) -> None:
    rng = np.random.default_rng(0)
    X = planted()["embedding"]
    corner = np.arange(N) % 10 == 0
    target = rng.normal(size=N)
    predicted = target + rng.normal(size=N) * np.where(corner, 4.0, 0.3)
    np.savez(tmp_path / "regression.npz", embedding=X, labels=target, predictions=predicted)
    np.savez(tmp_path / "loss.npz", embedding=X, losses=(target - predicted) ** 2)
    for name, task in (("regression", "regression"), ("loss", "loss")):
        folder = tmp_path / "out" / name
        assert run("audit", tmp_path / f"{name}.npz", "-o", folder).code == 0
        read = facts(folder)
        assert read["overall"]["error_rate"] is None
        assert read["overall"]["outcome"].startswith("loss above")
        first = confirmed(folder)[0]
        assert first["confirm"]["error_rate"] is None
        assert first["confirm"]["mean_loss"] > 2
        assert errata.load(folder).evaluation.task == task


def test_tolerance_says_which_loss_is_bad(tmp_path: Path, run: Run) -> None:
    losses = np.where(np.arange(N) % 10 == 0, 3.0, 1.0) + np.linspace(0, 0.1, N)
    np.savez(tmp_path / "x.npz", embedding=planted()["embedding"], losses=losses)
    assert run("audit", tmp_path / "x.npz", "-o", tmp_path / "audit", "--tolerance", "2").code == 0
    overall = facts(tmp_path / "audit")["overall"]
    assert overall["outcome"] == "loss above 2"
    assert overall["confirm_rate"] == pytest.approx(0.1, abs=0.03)


def test_multi_label(tmp_path: Path, run: Run) -> None:
    arrays, rng = planted(), np.random.default_rng(2)
    other = rng.integers(0, 2, N)
    labels = np.stack([arrays["labels"], other], axis=1)
    fair = np.where(rng.random(N) < 0.1, 1 - other, other) * 0.8 + 0.1
    probs = np.stack([arrays["probs"][:, 1], fair], axis=1)
    np.savez(tmp_path / "x.npz", embedding=arrays["embedding"], labels=labels, probs=probs, class_names=["cat", "dog"])
    assert run("audit", tmp_path / "x.npz", "-o", tmp_path / "audit").code == 0
    read = facts(tmp_path / "audit")
    assert [task["task"] for task in read["tasks"]] == ["cat", "dog"]
    assert {found["task"] for found in confirmed(tmp_path / "audit")} == {"cat"}
    assert {p.name for p in (tmp_path / "audit/slicers").glob("*.json")} == {
        "consensus-task0.json",
        "consensus-task1.json",
    }
    done = run("apply", tmp_path / "audit", tmp_path / "x.npz", "-o", tmp_path / "o.parquet")
    assert done.code == 0
    _same_weights(tmp_path / "audit", tmp_path / "o.parquet")


def test_crossfit_searches_both_halves(data: Path, tmp_path: Path, run: Run) -> None:
    assert run("audit", data / "x.npz", "-o", tmp_path / "audit", "--crossfit", "--method", "spotlight").code == 0
    assert facts(tmp_path / "audit")["settings"]["crossfit"] is True
    assert (tmp_path / "audit/slicers/spotlight-reverse.json").is_file()


def test_demo_finds_the_hidden_group(tmp_path: Path, run: Run) -> None:
    done = run("demo", "--example", "digits", "-o", tmp_path / "demo")
    assert (done.code, done.err) == (0, "")
    last = Path(done.out.rstrip().splitlines()[-1])
    assert last == tmp_path / "demo" / "report.html"
    assert last.stat().st_size > 10_000
    words = " ".join(done.out.split())
    assert re.search(r"digit 7: found and confirmed as s\d+ by (consensus|rules)", words)


def test_demo_trains_a_network_with_a_blindspot_where_nothing_else_is_said(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Three epochs of small images are enough to be blind; the command takes five of larger ones."""
    pytest.importorskip("torch")
    monkeypatch.setitem(RECIPES, "small", replace(RECIPES["small"], epochs=3, px=32))
    heard: list[tuple[str, float]] = []
    monkeypatch.setattr(
        bars_module, "progress_bar", lambda: nullcontext(lambda what, share: heard.append((what, share)))
    )
    done = run("demo", "-o", tmp_path / "demo")
    assert (done.code, done.err) == (0, "")
    words = " ".join(done.out.split())
    assert re.search(r"- square present, .*: found and confirmed as s\d+ by (consensus|rules)", words)
    assert [share for what, share in heard if what == "training a small network"] == pytest.approx([0, 1 / 3, 2 / 3, 1])
    assert {"consensus", "rules"} <= {what for what, _ in heard}
    assert heard[-1] == ("map", 1.0)


def test_the_bar_says_the_time_left_after_one_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """However long a step takes: an epoch can be longer than the half minute that rich looks back on."""
    now, bars = [0.0], []

    class WatchedBars(rich.progress.Progress):
        def __init__(self, *columns: Any, **options: Any) -> None:
            super().__init__(*columns, **options, get_time=lambda: now[0])
            bars.append(self)

    monkeypatch.setattr(rich.progress, "Progress", WatchedBars)
    with bars_module.progress_bar() as progress:
        progress("training", 0.0)
        now[0] = 60.0
        progress("training", 0.2)
        assert bars[0].tasks[0].time_remaining == pytest.approx(240)


# --- apply ---------------------------------------------------------------------------------------------------


def _same_weights(audit: Path, applied: Path) -> None:
    """Bit for bit, for every slice that can be applied."""
    saved, again = pq.read_table(audit / "memberships.parquet"), pq.read_table(applied)
    able = [found["id"] for found in facts(audit)["slices"] if found["column"] >= 0]
    assert able
    assert again.column_names == ["id", *(column for name in able for column in (name, f"{name}:in"))]
    assert again.column("id").equals(saved.column("id"))
    members = {found["id"]: found["discover"]["n"] + found["confirm"]["n"] for found in facts(audit)["slices"]}
    for name in able:
        assert int(again.column(f"{name}:in").to_numpy().sum()) == members[name]
        assert again.column(name).to_numpy().tobytes() == saved.column(name).to_numpy().tobytes()


def test_applied_to_its_own_rows_the_weights_are_the_same_bits(
    data: Path, audit: Path, tmp_path: Path, run: Run
) -> None:
    done = run("apply", audit, data / "x.npz", "-o", tmp_path / "o.parquet")
    assert (done.code, done.err) == (0, "")
    assert done.out.rstrip().splitlines()[-1] == str(tmp_path / "o.parquet")
    _same_weights(audit, tmp_path / "o.parquet")
    assert [path.name for path in tmp_path.iterdir()] == ["o.parquet"]


def test_apply_needs_no_labels(data: Path, tmp_path: Path, run: Run) -> None:
    assert run("audit", data / "x.npz", "-o", tmp_path / "audit").code == 0
    new = planted(seed=9)
    np.savez(tmp_path / "new.npz", embedding=new["embedding"], probs=new["probs"])
    assert run("apply", tmp_path / "audit", tmp_path / "new.npz", "-o", tmp_path / "deep" / "o.parquet").code == 0
    first = confirmed(tmp_path / "audit")[0]
    weights = pq.read_table(tmp_path / "deep" / "o.parquet").column(first["id"]).to_numpy()
    inside = weights >= first["threshold"]
    assert inside.sum() > 3
    assert (np.flatnonzero(inside) % 10 == 0).all()


def test_the_gate(data: Path, audit: Path, tmp_path: Path, run: Run) -> None:
    assert confirmed(audit)
    shut = run("apply", audit, data / "x.npz", "-o", tmp_path / "a.parquet", "--fail-on", "0.0")
    assert shut.code == 1
    assert "Gate fails, since a confirmed or accepted slice holds more than 0.00% of the rows: s1" in shut.out
    assert (tmp_path / "a.parquet").is_file()
    free = run("apply", audit, data / "x.npz", "-o", tmp_path / "b.parquet", "--fail-on", "1")
    assert free.code == 0
    assert "Gate fails" not in free.out


def test_only_confirmed_slices_shut_the_gate(tmp_path: Path, run: Run) -> None:
    np.savez(tmp_path / "x.npz", **_no_pattern())
    assert run("audit", tmp_path / "x.npz", "-o", tmp_path / "audit", "--delta", "0").code == 0
    assert facts(tmp_path / "audit")["slices"]
    done = run("apply", tmp_path / "audit", tmp_path / "x.npz", "-o", tmp_path / "o.parquet", "--fail-on", "0")
    assert done.code == 0


def test_python_m_errata(tmp_path: Path) -> None:
    """The module runs as the command does."""
    import os
    import subprocess

    environment = {**os.environ, "PYTHONPATH": str(Path(errata.__file__).parents[1])}
    words = [sys.executable, "-m", "errata", "--version"]
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, f"errata {errata.__version__}\n")


def test_arrays_of_other_machines_are_read(tmp_path: Path, run: Run) -> None:
    """The other byte order and long doubles, as instruments and simulations write them: the same audit."""
    arrays = planted()
    np.savez(tmp_path / "x.npz", **{**arrays, "embedding": arrays["embedding"].astype(np.float64)})
    swapped = {"embedding": arrays["embedding"].astype(np.longdouble), "labels": arrays["labels"].astype(">i8")}
    np.savez(tmp_path / "y.npz", **swapped, probs=arrays["probs"].astype(">f8"), ids=np.arange(N).astype(">i8"))
    for name in ("x", "y"):
        assert run("audit", tmp_path / f"{name}.npz", "-o", tmp_path / name / "audit").code == 0
    first, second = files(tmp_path / "x" / "audit"), files(tmp_path / "y" / "audit")
    assert [name for name in first if first[name] != second[name]] == []


# --- by ------------------------------------------------------------------------------------------------------


def test_metrics_by_group(tmp_path: Path, run: Run) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 300)
    predictions = np.where(rng.random(300) < 0.2, 1 - labels, labels)
    site = rng.choice(["a", "b"], 300)
    columns = {"labels": labels, "predictions": predictions, "site": site}
    pd.DataFrame(columns).to_csv(tmp_path / "x.csv", index=False)
    done = run("by", tmp_path / "x.csv", "--column", "site", "--metric", "error,recall")
    assert (done.code, done.err) == (0, "")
    assert [line.split()[0] for line in done.out.splitlines()] == ["site", "a", "b", "all", "error:", "recall:"]
    done = run("by", tmp_path / "x.csv", "--column", "site", "--json")
    estimates = {(one["site"], one["metric"]): one for one in json.loads(done.out)["estimates"]}
    wrong = labels != predictions
    assert estimates["b", "error"]["value"] == pytest.approx(wrong[site == "b"].mean())
    assert estimates["all", "recall"]["n"] == labels.sum()
    done = run("by", tmp_path / "x.csv", "--column", "seit")
    assert (done.code, done.out) == (2, "")
    assert "did you mean `site`" in done.err


def test_a_file_that_is_not_closed_is_no_news_to_the_user(capsys: pytest.CaptureFixture[str]) -> None:
    with plain_warnings():
        warnings.warn("unclosed file", ResourceWarning, stacklevel=1)
        warnings.warn("the file has no ids", UserWarning, stacklevel=1)
    assert capsys.readouterr().err == "Warning: the file has no ids\n"


def test_an_output_by_way_of_a_folder_that_does_not_exist_is_printed_too(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "x.npz", losses=rng.random(100), embedding=rng.normal(size=(100, 3)))
    words = ["audit", "x.npz", "-o", "nope/../out", "--json", "--no-self-test", "--no-map", "--method", "gmm"]
    code, out, err = run_command(*words, folder=tmp_path)
    assert (code, err) == (0, "")
    assert json.loads(out)["schema"] == "errata.audit/1"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "x.npz"]
