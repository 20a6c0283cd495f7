"""The runner of the benchmark, with worlds that are made up instead of trained."""

import json
import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from errata.bench import spotcheck
from errata.bench.methods import expand
from errata.bench.spotcheck import SpotCheckBenchmark, read_world, run, screen
from errata.cli import app as cli
from errata.cli.bench import spotcheck_table
from errata.core import Evaluation, InputError
from errata.engine import Local

METHODS = ["gmm", "high-loss", "spotlight:as_published"]
QUICK = {"spotlight:as_published": {"advanced.steps": 30}}


def made_up(benchmark, world):
    """Two blindspots that are two tight groups, wrong throughout; as many images without a square, all right."""
    rng = np.random.default_rng(world.seed)
    cluster = rng.integers(0, 10, 600)
    X = rng.normal(0, 8, (10, 8))[cluster] + rng.normal(size=(600, 8))
    blindspot = np.stack([cluster == 0, cluster == 1], axis=1)
    logits = np.where(blindspot.any(axis=1), -4.0, 4.0)
    facts = {"called_positive": [0.0, 0.0], "worked": world.seed % 3 != 0, "features": 6}
    layer = {"penultimate": X.astype(np.float16), "influence": X.astype(np.float32)}
    if benchmark.foreign:
        layer["foreign"] = rng.permutation(X).astype(np.float16)  # knows nothing of the blindspots
    arrays = {"labels": np.ones(len(X), dtype=np.int8), "logits": logits, **layer, "blindspot": blindspot}
    negative = {
        "labels": np.zeros(len(X), dtype=np.int8),
        "logits": np.full(len(X), -4.0),
        **{name: values + 100 for name, values in layer.items()},
        "blindspot": np.zeros_like(blindspot),
    }
    return {name: np.concatenate([values, negative[name]]) for name, values in arrays.items()}, facts


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
    keys = {"method", "preset", "configs", "seconds", "representation"}
    keys |= {f"{kind}_{key}" for kind in ("raw", "screened") for key in ("dr", "dr_se", "fdr", "fdr_se")}
    assert keys <= set(rows[0])
    assert rows[0]["screened_dr"] == 1.0
    assert rows[0]["screened_fdr"] == 0.0
    assert rows[0]["raw_fdr"] > 0.0  # all components of the mixture, also those without an error
    assert rows[1]["screened_dr"] < 1.0
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
    assert one[0]["screened_dr"] < other[0]["screened_dr"]


def test_a_method_is_judged_once_with_the_same_options_and_again_with_others(trained, monkeypatch, tmp_path):
    """Whether they were said for the method or for its preset."""
    judged, judge = [], spotcheck.judge

    def counted(method, evaluation, blindspots, options, *rest):
        judged.append((method, options))
        return judge(method, evaluation, blindspots, options, *rest)

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


def test_both_presets_are_judged_both_ways(trained, tmp_path):
    """Screening is no matter of a preset's name: `as_published` is screened by the same function."""
    run(SpotCheckBenchmark(configs=1), ["gmm", "gmm:as_published"], tmp_path, options={"gmm": {"components": 10}})
    for preset in ("", "-as_published"):
        sets = json.loads((tmp_path / f"judged-000-gmm{preset}.json").read_text())["sets"]
        assert sets["raw"]["hypotheses"] > sets["screened"]["hypotheses"] == 2
        assert sets["raw"]["dr"] == sets["screened"]["dr"] == 1.0


def test_a_file_of_a_version_that_judged_one_way_is_judged_again(trained, tmp_path):
    run(SpotCheckBenchmark(configs=1), ["gmm"], tmp_path)
    path = tmp_path / "judged-000-gmm.json"
    path.write_text(json.dumps({"options": {}, "method": "gmm", "dr": 0.0}))
    assert run(SpotCheckBenchmark(configs=1), ["gmm"], tmp_path)[0]["screened_dr"] == 1.0


def test_an_audit_is_judged_by_what_it_confirms(trained, tmp_path):
    method = "audit:gmm"
    (row,) = run(SpotCheckBenchmark(configs=2), [method], tmp_path, options={"gmm": {"components": 10}})
    assert (row["method"], row["sets"]) == (method, ["confirmed"])  # gmm reads no outcome: there are no error types
    assert (row["confirmed_dr"], row["confirmed_fdr"], row["confirmed_hypotheses"]) == (1.0, 0.0, 2.0)
    evaluation, blindspots = read_world(tmp_path / "world-000.npz")
    elsewhere = spotcheck.judge_audit(method, evaluation, np.roll(blindspots, 300, axis=0), {}).sets["confirmed"]
    assert (elsewhere.dr, elsewhere.fdr) == (0.0, 1.0)
    one = spotcheck.judge_audit(method, evaluation, blindspots, {"gmm": {"components": 1}}).sets["confirmed"]
    assert (one.dr, one.fdr, one.hypotheses) == (0.0, None, 0)


def test_error_types_of_an_audit_have_rates_of_their_own(trained, monkeypatch, tmp_path):
    run(SpotCheckBenchmark(configs=1), ["gmm"], tmp_path)
    evaluation, blindspots = read_world(tmp_path / "world-000.npz")

    members = [*blindspots.T, ~blindspots.any(axis=1)]
    error_types = tuple(SimpleNamespace(members=rows) for rows in members)
    result = SimpleNamespace(confirmed=(), slicers={}, error_types=error_types)
    monkeypatch.setattr(spotcheck, "audit", lambda evaluation, methods, options, engine: result)
    sets = spotcheck.judge_audit("audit", evaluation, blindspots, {}).sets
    assert (sets["confirmed"].dr, sets["confirmed"].fdr) == (0.0, None)
    assert (sets["error_types"].dr, sets["error_types"].fdr) == (1.0, pytest.approx(1 / 3))


def test_a_default_audit_names_no_methods(trained, monkeypatch, tmp_path):
    searched = []
    audit = spotcheck.audit

    def recorded(evaluation, methods, options, engine):
        searched.append(methods)
        return audit(evaluation, methods=["gmm"], options=options, engine=engine)

    monkeypatch.setattr(spotcheck, "audit", recorded)
    run(SpotCheckBenchmark(configs=1), ["audit", "audit:gmm+domino:as_published"], tmp_path)
    assert searched == [None, ["gmm", "domino:as_published"]]


def test_other_rows_and_the_second_layer_have_files_of_their_own(trained, tmp_path):
    positive = SpotCheckBenchmark(configs=1, foreign=True)
    both = replace(positive, rows="both")
    second = replace(positive, layer="second")
    rows = [run(benchmark, ["gmm"], tmp_path)[0] for benchmark in (positive, both, second)]
    assert [(row["rows"], row["layer"]) for row in rows] == [
        ("positive", "own"),
        ("both", "own"),
        ("positive", "second"),
    ]
    assert sorted(path.name for path in tmp_path.glob("judged-*")) == [
        "judged-000-gmm.both.json", "judged-000-gmm.json", "judged-000-gmm.second.json",
    ]  # fmt: skip
    assert [row["representation"] for row in rows] == ["penultimate", "penultimate", "foreign"]
    assert [row["screened_dr"] for row in rows] == [1.0, 1.0, 0.0]
    assert "| gmm, both classes |" in spotcheck_table(rows)


def test_worlds_without_a_second_layer_are_refused_by_name(trained, tmp_path):
    run(SpotCheckBenchmark(configs=1), ["gmm"], tmp_path)
    with pytest.raises(InputError, match="has no layer of a second network"):
        run(SpotCheckBenchmark(configs=1, layer="second"), ["gmm"], tmp_path)


def test_prepared_worlds_are_judged_without_torch(trained, monkeypatch, capsys, tmp_path):
    run(SpotCheckBenchmark(configs=1), ["gmm"], tmp_path / "runs")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(sys.modules, "torch", None)
    words = ["bench", "spotcheck", "--configs", "1", "--method", "gmm", "-o", "runs", "--rows", "both"]
    monkeypatch.setattr(sys, "argv", ["errata", *words])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 0
    assert "gmm, both classes" in capsys.readouterr().out


def test_only_the_published_size_is_called_spotcheck():
    assert SpotCheckBenchmark("published", px=224).name.startswith("SpotCheck, 224")
    assert SpotCheckBenchmark("published").name.startswith("SpotCheck-like, 112")
    assert SpotCheckBenchmark("small").name.startswith("SpotCheck-like")


def test_all_is_every_method_in_both_presets():
    assert {"domino:as_published", "domino:recommended", "spotlight:as_published"} <= set(expand(["all"]))
    assert expand(["gmm,confusion"]) == ["gmm", "confusion"]
    assert "high-loss:within_label" not in expand(["all"])
    assert expand(["all"], beside=["high-loss:within_label"])[-1] == "high-loss:within_label"


def test_audits_stand_beside_methods_where_they_are_allowed():
    assert expand(["audit,gmm", "audit:gmm+domino"], audits=True) == ["audit", "gmm", "audit:gmm+domino"]
    assert expand(["all,audit"], audits=True)[-1] == "audit"
    with pytest.raises(InputError, match="spotligt"):
        expand(["audit:spotligt"], audits=True)
    with pytest.raises(InputError, match="unknown method `audit`"):
        expand(["audit"])


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--configs", "0"], "`configs` must be at least 1"),
        (["--scale", "huge"], "`scale` must be one of"),
        (["--rows", "negative"], "`rows` must be one of positive, both"),
        (["--layer", "first"], "`layer` must be one of own, second"),
        (["--method", "spotligt"], "did you mean `spotlight`"),
        (["--method", "audit:spotligt"], "did you mean `spotlight`"),
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
    assert "| gmm | recommended | 1.00 (0.00) |" in capsys.readouterr().out  # by the raw sets, which come first
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


@pytest.mark.parametrize("method", ["gmm", "audit:gmm"])
def test_an_engine_runs_the_methods(trained, tmp_path, method):
    passes = []

    class Counting(Local):
        def hold(self, *columns):
            passes.append(len(columns[0]))
            return super().hold(*columns)

    own = run(SpotCheckBenchmark(configs=1), [method], tmp_path / "own", options=QUICK)
    counted = run(SpotCheckBenchmark(configs=1), [method], tmp_path / "counted", options=QUICK, engine=Counting())
    assert passes
    for rows in (own, counted):
        rows[0].pop("seconds")
    assert counted == own
