"""The runner of the benchmark, with worlds that are made up instead of trained."""

import json
import sys

import numpy as np
import pytest

from errata.bench import spotcheck
from errata.bench.methods import expand
from errata.bench.spotcheck import SpotCheckBenchmark, read_world, run, screen
from errata.cli import app as cli
from errata.cli.bench import spotcheck_table
from errata.core import Evaluation, InputError

METHODS = ["gmm", "high-loss", "spotlight:as_published"]
QUICK = {"spotlight:as_published": {"advanced.steps": 30}}


def made_up(benchmark, world):
    """Two blindspots that are two tight groups, wrong throughout."""
    rng = np.random.default_rng(world.seed)
    cluster = rng.integers(0, 10, 600)
    X = rng.normal(0, 8, (10, 8))[cluster] + rng.normal(size=(600, 8))
    blindspot = np.stack([cluster == 0, cluster == 1], axis=1)
    logits = np.where(blindspot.any(axis=1), -4.0, 4.0)
    facts = {"called_positive": [0.0, 0.0], "worked": world.seed % 3 != 0, "features": 6}
    layer = {"penultimate": X.astype(np.float16), "influence": X.astype(np.float32)}
    labels = np.ones(len(X), dtype=np.int8)
    return {"labels": labels, "logits": logits, **layer, "blindspot": blindspot}, facts


@pytest.fixture
def trained(monkeypatch):
    calls = []

    def counted(benchmark, world):
        calls.append(world.seed)
        return made_up(benchmark, world)

    monkeypatch.setattr(spotcheck, "train_world", counted)
    return calls


def test_rows_of_the_table(trained, tmp_path):
    rows = run(SpotCheckBenchmark(configs=3), METHODS, tmp_path, options=QUICK)
    assert [(row["method"], row["preset"]) for row in rows] == [
        ("gmm", "recommended"), ("high-loss", "recommended"), ("spotlight", "as_published"),
    ]  # fmt: skip
    keys = {"method", "preset", "configs", "dr", "dr_se", "fdr", "fdr_se", "seconds", "representation"}
    assert keys <= set(rows[0])
    assert rows[0]["dr"] == 1.0
    assert rows[0]["fdr"] == 0.0
    assert rows[1]["dr"] < 1.0
    assert rows[1]["representation"] == "none"
    assert "gmm" in spotcheck_table(rows)
    assert rows[0]["replaced"] == len(trained) - 3  # those that failed the check were replaced and counted


def test_the_same_seed_gives_the_same_table_and_a_run_goes_on_from_its_files(trained, tmp_path):
    def without_seconds(rows):
        return [{k: v for k, v in row.items() if k != "seconds"} for row in rows]

    whole = run(SpotCheckBenchmark(configs=3), METHODS, tmp_path / "a", options=QUICK)
    again = run(SpotCheckBenchmark(configs=3), METHODS, tmp_path / "b", options=QUICK)
    assert without_seconds(whole) == without_seconds(again)
    before = len(trained)
    (tmp_path / "b" / "world-001.npz").unlink()
    (tmp_path / "b" / "judged-002-gmm.json").unlink()
    assert without_seconds(
        run(SpotCheckBenchmark(configs=3), METHODS, tmp_path / "b", options=QUICK)
    ) == without_seconds(whole)
    assert 1 <= len(trained) - before <= spotcheck.ATTEMPTS  # only the missing world was trained again
    assert run(SpotCheckBenchmark(configs=4), METHODS, tmp_path / "b", options=QUICK)[0]["configs"] == 4  # it may grow


def test_a_folder_holds_one_exam(trained, tmp_path):
    run(SpotCheckBenchmark(configs=1), ["gmm"], tmp_path)
    with pytest.raises(InputError, match="another benchmark"):
        run(SpotCheckBenchmark(configs=1, seed=7), ["gmm"], tmp_path)


def test_other_options_are_judged_again(trained, tmp_path):
    one = run(SpotCheckBenchmark(configs=1), ["gmm"], tmp_path, options={"gmm": {"components": 2}})
    other = run(SpotCheckBenchmark(configs=1), ["gmm"], tmp_path)
    assert one[0]["dr"] < other[0]["dr"]


def test_a_method_is_judged_once_with_the_same_options_and_again_with_others(trained, monkeypatch, tmp_path):
    """Whether they were said for the method or for its preset."""
    judged, judge = [], spotcheck.judge

    def counted(method, evaluation, blindspots, options, rule):
        judged.append((method, options))
        return judge(method, evaluation, blindspots, options, rule)

    monkeypatch.setattr(spotcheck, "judge", counted)
    gmm, few = "gmm:recommended", {"components": 2}
    first = run(SpotCheckBenchmark(configs=2), [gmm], tmp_path, options={"gmm": few})
    assert run(SpotCheckBenchmark(configs=2), [gmm], tmp_path, options={"gmm": few}) == first
    assert run(SpotCheckBenchmark(configs=2), [gmm], tmp_path, options={gmm: few}) == first
    assert judged == [(gmm, few)] * 2  # one a world
    assert run(SpotCheckBenchmark(configs=2), [gmm], tmp_path, options={gmm: {"components": 3}}) != first
    assert judged[2:] == [(gmm, {"components": 3})] * 2
    run(SpotCheckBenchmark(configs=2), [gmm], tmp_path)
    assert judged[4:] == [(gmm, {})] * 2


def test_worlds_that_never_work_are_given_up(monkeypatch, tmp_path):
    monkeypatch.setattr(spotcheck, "train_world", lambda benchmark, world: ({}, {"worked": False}))
    with pytest.raises(InputError, match="no model of world 0 had its blindspots"):
        run(SpotCheckBenchmark(configs=1), ["gmm"], tmp_path)


def test_screening_drops_what_is_no_finding_and_what_repeats(trained, tmp_path):
    run(SpotCheckBenchmark(configs=1), ["gmm"], tmp_path)
    evaluation, blindspots = read_world(tmp_path / "world-000.npz")
    assert isinstance(evaluation, Evaluation)
    right = ~evaluation.errors
    h = np.stack([blindspots[:, 0], right, blindspots[:, 0], blindspots[:, 1]], axis=1)
    assert screen(h, evaluation).sum(axis=0).tolist() == sorted(blindspots.sum(axis=0).tolist(), reverse=True)


def test_only_the_published_size_is_called_spotcheck():
    assert SpotCheckBenchmark("published", px=224).name.startswith("SpotCheck, 224")
    assert SpotCheckBenchmark("published").name.startswith("SpotCheck-like, 112")
    assert SpotCheckBenchmark("small").name.startswith("SpotCheck-like")


def test_all_is_every_method_in_both_presets():
    assert {"domino:as_published", "domino:recommended", "spotlight:as_published"} <= set(expand(["all"]))
    assert expand(["gmm,confusion"]) == ["gmm", "confusion"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--configs", "0"], "`configs` must be at least 1"),
        (["--scale", "huge"], "`scale` must be one of"),
        (["--method", "spotligt"], "did you mean `spotlight`"),
        (["--method", ","], "`--method` is empty"),
        (["--method", "gmm", "--set", "gmm.components"], "`--set` takes METHOD.KEY=VALUE"),
        (["--method", "gmm", "--set", "domino.slices=3"], "an option is for method `domino`"),
        (["--method", "gmm", "--json", "nowhere/rows.json"], "the folder `nowhere` does not exist"),
    ],
)
def test_bad_benchmarks_are_one_sentence(words, sentence, monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["errata", "bench", "spotcheck", *words])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    said = capsys.readouterr().err
    assert stop.value.code == 2
    assert said.startswith("errata: ")
    assert sentence in said
    assert said.count("\n") == 1
    assert list(tmp_path.iterdir()) == []


def test_the_command_writes_its_rows(trained, monkeypatch, capsys, tmp_path):
    words = ["bench", "spotcheck", "--configs", "2", "--method", "gmm", "-o", "runs", "--json", "rows.json"]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["errata", *words])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 0
    assert "| gmm | recommended | 1.00 (0.00) |" in capsys.readouterr().out
    assert json.loads((tmp_path / "rows.json").read_text())["rows"][0]["configs"] == 2


def test_sets_are_sorted_by_errors_times_error_rate():
    """Twelve errors of forty rows come behind six of six: neither the errors nor their rate decide alone."""
    labels = np.zeros(60, dtype=int)
    predictions = np.zeros(60, dtype=int)
    predictions[:12] = predictions[40:46] = predictions[50] = 1
    h = np.zeros((60, 3), dtype=bool)
    h[:40, 0] = h[40:46, 1] = h[50, 2] = True
    evaluation = Evaluation(labels=labels, predictions=predictions)
    assert spotcheck.sort_by_importance(h, evaluation).sum(axis=0).tolist() == [6, 40, 1]
