"""The benchmark of planted groups: what is planted, when a group counts as found, and the two hundred groups."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from errata.bench import captured, many, planted, real_models
from errata.bench.planted import Match, PlantedBenchmark, Trial, best_match, is_confirmed, plant, plant_errors
from errata.bench.real_models import FOREIGN, AuditedModel
from errata.cli import app as cli
from errata.cli.bench import many_table, planted_table
from errata.core import InputError, MissingInput
from errata.workflow import audit

TRIAL = Trial("metadata", 1000, 0.1, 0.4, 0, 0)


def made_up(seed=0, n=2000):
    """Ten tight groups that the metadata names, three labels, random errors at .1."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n)
    town = rng.integers(0, 10, n)
    X = rng.normal(0, 6, (10, 8))[town] + rng.normal(size=(n, 8))
    wrong = rng.random(n) < 0.1
    return AuditedModel(
        labels=labels,
        predictions=np.where(wrong, (labels + 1) % 3, labels),
        representations={FOREIGN: X.astype(np.float32)},
        metadata={"town": town.astype(str)},
        class_names=("a", "b", "c"),
        model="made up",
        words={FOREIGN: "towns"},
    )


# --- what is planted -----------------------------------------------------------------------------------------


def test_errors_are_added_to_those_of_the_model():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 20_000)
    predictions = np.where(rng.random(20_000) < 0.2, (labels + 1) % 3, labels)
    group = np.arange(20_000) < 5000
    new = plant_errors(labels, predictions, group, 0.4, rng)
    before = predictions != labels
    after = new != labels
    assert np.array_equal(new[~group], predictions[~group])
    assert after[before].all()  # what was wrong stays wrong
    assert after[group].mean() == pytest.approx(before[group].mean() + 0.4, abs=0.02)
    added = new[after & ~before] - labels[after & ~before]
    assert set(np.unique(added % 3)) == {1, 2}  # either of the other classes
    everything = plant_errors(labels, predictions, group, 0.9, rng)
    assert (everything != labels)[group].all()


@pytest.mark.parametrize("kind", planted.KINDS)
def test_a_group_has_the_size_that_was_asked_for(kind):
    made = plant(made_up(), replace(TRIAL, kind=kind))
    assert len(made.evaluation) == 1000
    assert made.group.sum() == 100
    rate = made.evaluation.errors[made.group].mean()
    assert rate > made.evaluation.errors[~made.group].mean() + 0.25
    assert not made.evaluation.metadata
    assert not made.evaluation.source(FOREIGN).from_model


def test_a_group_of_metadata_holds_all_rows_of_its_value():
    model = made_up()
    made = plant(model, TRIAL)
    town = int(made.name.removeprefix("town "))
    centre = model.representations[FOREIGN][model.metadata["town"] == str(town)].mean(axis=0)
    X = made.evaluation.representations[FOREIGN]
    near = np.square(X - centre).sum(axis=1) < 40
    assert np.mean(near == made.group) > 0.99


def test_a_group_of_a_class_is_of_one_label_and_a_neighbourhood_is_near():
    made = plant(made_up(), replace(TRIAL, kind="class"))
    assert len(np.unique(made.evaluation.labels[made.group])) == 1
    made = plant(made_up(), replace(TRIAL, kind="neighbourhood", size=0.05))
    X = made.evaluation.representations[FOREIGN]
    assert X[made.group].std(axis=0).mean() < 0.5 * X.std(axis=0).mean()


def test_a_group_that_the_table_does_not_have():
    assert plant(made_up(), replace(TRIAL, size=0.5)) is None  # no town has 500 of 2,000 rows
    assert plant(made_up(), replace(TRIAL, kind="neighbourhood", n=5000)) is None


def test_trials_differ_and_repeat():
    benchmark = PlantedBenchmark(n=(500,), repeats=2)
    trials = list(benchmark.trials())
    assert len(trials) == len({trial.seed for trial in trials}) == 3 * 3 * 2 * 2
    assert trials == list(benchmark.trials())
    assert trials[0].seed != next(PlantedBenchmark(n=(500,), seed=1).trials()).seed


def test_tables_take_turns_and_one_without_such_a_group_is_passed_over(tmp_path, monkeypatch):
    tables = {"one": made_up, "two": made_up, "tiny": lambda seed: made_up(seed, n=300)}
    monkeypatch.setattr(real_models, "TABLES", tables)
    benchmark = PlantedBenchmark(kinds=["neighbourhood"], n=[600], sizes=[0.1], gaps=[0.4], repeats=4)
    results = planted.run(benchmark, list(tables), ["confusion"], tmp_path)
    assert [row["table"] for row in results] == ["one", "two", "one", "one"]


def test_a_benchmark_that_cannot_be_is_refused():
    for options, words in [
        ({"kinds": ["town"]}, "kind of group"),
        ({"sizes": [0.0]}, "`size` must lie between 0 and 1"),
        ({"gaps": [1.5]}, "`gap` must lie between 0 and 1"),
        ({"n": [50]}, "100 rows"),
        ({"repeats": 0}, "1 repeat"),
    ]:
        with pytest.raises(InputError, match=words):
            PlantedBenchmark(**options)


# --- what counts as found ------------------------------------------------------------------------------------


def rows(*numbers):
    mask = np.zeros(20, dtype=bool)
    mask[list(numbers)] = True
    return mask


def test_found_by_hand():
    group = rows(0, 1, 2, 3)
    wrong = rows(0, 1, 9)

    def matched(*members):
        return best_match(members, group, wrong)

    assert matched() == Match(False, False, 0.0, None, 0.0)
    assert matched(rows(8, 9)) == Match(False, False, 0.0, None, 0.0)
    assert matched(rows(0, 2, 8, 9)) == Match(True, True, 0.5, 0.5, 0.5)
    assert matched(rows(0, 8, 9), rows(0, 1, 2, 9)) == Match(True, True, 1.0, 0.75, 0.75)
    assert matched(rows(0)) == Match(False, False, 0.5, 1.0, 0.25)
    assert matched(~rows()) == Match(False, False, 0.0, 0.2, 1.0)


def test_found_in_parts_by_hand():
    """A group that crosses two labels is two slices where each is within a label."""
    group = rows(0, 1, 2, 3)
    none = rows()
    assert best_match([rows(0), rows(3, 9)], group, none) == Match(False, True, 0.0, 1.0, 0.25)
    assert not best_match([rows(0), rows(3, 8, 9)], group, none).in_parts  # the second is mostly something else
    assert not best_match([rows(0), rows(0, 9)], group, none).in_parts  # twice the same row


def test_a_slice_within_the_wrong_prediction_holds_the_errors_of_a_group_but_not_its_rows():
    match = best_match([rows(0, 1)], rows(*range(10)), rows(0, 1, 15))
    assert (match.found, match.in_parts, match.errors) == (False, False, 1.0)


def test_a_planted_group_is_found_and_a_sound_one_is_not():
    made = plant(made_up(), TRIAL)
    assert is_confirmed(made.evaluation, made.group)
    assert planted.match_group(audit(made.evaluation, methods=["gmm"]), made.group).found
    tree = planted.match_tree(plant(made_up(n=4000), replace(TRIAL, n=3000, gap=0.6)), 0)
    assert (tree.found, tree.in_parts) == (False, True)  # a town lies in three labels, a node in one
    one_label = planted.match_tree(plant(made_up(), replace(TRIAL, kind="class")), 0)
    assert (one_label.precision, one_label.recall) == (1.0, 1.0)
    sound = made_up().evaluation(FOREIGN)
    group = made_up().metadata["town"] == "3"
    assert not is_confirmed(sound, group)
    assert not planted.match_group(audit(sound, methods=["gmm"]), group).found


def test_a_group_is_visible_where_the_representation_or_the_label_shows_it():
    model = made_up()
    rows = model.evaluation(FOREIGN)
    assert planted.is_visible(rows, model.metadata["town"] == "3")
    assert planted.is_visible(rows, model.labels == 1)
    assert not planted.is_visible(rows, np.random.default_rng(0).random(len(rows)) < 0.1)


# --- the runner and the command ------------------------------------------------------------------------------


@pytest.fixture
def trained(monkeypatch):
    monkeypatch.setattr(real_models, "TABLES", {"one": made_up})


@pytest.fixture
def unable(monkeypatch):
    """Rows that `barlow` cannot read."""

    def run_audit(evaluation, name, *rest):
        if name == "barlow":
            raise MissingInput("barlow needs `probs`")
        return captured.run_audit(evaluation, name, *rest)

    monkeypatch.setattr(planted, "run_audit", run_audit)


def test_rows_and_their_means(trained, unable, tmp_path, monkeypatch):
    benchmark = PlantedBenchmark(kinds=["metadata"], n=[1500], sizes=[0.1], gaps=[0.5], repeats=2)
    results = planted.run(benchmark, ["one"], ["gmm", "barlow"], tmp_path)
    assert [row["method"] for row in results] == ["gmm", "barlow"] * 2
    second, first = planted.summarise(results)
    assert (first["method"], first["trials"], first["found"]) == ("gmm", 2, 1.0)
    assert (first["given"], first["visible"]) == (1.0, 1.0)
    assert min(first["precision"], first["recall"]) >= 0.5
    assert (second["method"], second["trials"], second["found"]) == ("barlow", 0, None)
    table = planted_table([first, second]).splitlines()
    assert len({line.count("|") for line in table}) == 1
    monkeypatch.setattr(planted, "run_audit", None)  # a killed run is resumed
    assert planted.run(benchmark, ["one"], ["gmm", "barlow"], tmp_path) == results
    with pytest.raises(InputError, match="no table has a group"):
        planted.run(replace(benchmark, sizes=[0.4]), ["one"], ["gmm"], tmp_path)


@pytest.fixture
def bench(monkeypatch, capsys):
    def run(*words):
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["errata", "bench", "planted", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        said = capsys.readouterr()
        return stop.value.code, said.out, said.err

    return run


def test_the_command_prints_a_table_and_writes_its_rows(trained, tmp_path, bench):
    sizes = ("--n", 1000, "--size", 0.1, "--gap", 0.4, "--repeats", 1)
    words = ("--data", "one", "--kind", "class,neighbourhood", "--method", "gmm", *sizes)
    code, out, err = bench(*words, "-o", tmp_path / "run", "--json", tmp_path / "rows.json")
    assert (code, err) == (0, "")
    assert "| gmm | class | 1000 | 0.1 | 0.4 | 1 |" in out
    results = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert [row["kind"] for row in results] == ["class", "neighbourhood"]
    assert "| gmm | class | all | all | all | 1 |" in out


def test_the_command_refuses_before_it_trains(bench, tmp_path):
    for words, cure in [
        (("--kind", "town"), "unknown kind of group"),
        (("--data", "nonsense"), "unknown table"),
        (("--gap", "2"), "`gap`"),
        (("--many-rows", "10"), "at least"),
    ]:
        code, _, err = bench(*words, "-o", tmp_path / "run")
        assert code == 2
        assert cure in err
    assert not (tmp_path / "run").exists()


# --- two hundred groups --------------------------------------------------------------------------------------


def test_the_bad_groups_are_bad_and_tight():
    made = many.make_groups(20_000, 0)
    wrong = made.evaluation.errors
    assert np.bincount(made.group).tolist() == [100] * many.GROUPS
    assert wrong[made.group < many.BAD].mean() == pytest.approx(0.60, abs=0.05)
    assert wrong[made.group >= many.BAD].mean() == pytest.approx(0.08, abs=0.01)
    X = made.evaluation.representations["x"]
    assert X[made.group == 3].std(axis=0).mean() == pytest.approx(1, abs=0.05)
    assert X.std(axis=0).mean() == pytest.approx(np.sqrt(2), abs=0.1)
    again = many.make_groups(20_000, 0)
    assert np.array_equal(again.evaluation.representations["x"], X)


def test_memory_is_that_of_the_audit(monkeypatch):
    """An audit that copies the rows four times holds five times their size."""
    copies = []

    def greedy(evaluation, *rest):
        if len(evaluation) > many.WARM_UP_ROWS:
            X = evaluation.representations["x"]
            copies.append([X + i for i in range(4)])
        return audit(evaluation.rows(np.arange(600)), methods=["confusion"])

    monkeypatch.setattr(many, "run_audit", greedy)
    monkeypatch.setattr(many, "match_group", lambda result, group: Match(True, True, 1.0, 0.75, 0.5))
    row = many.measure_many(400_000, "default", 0, {})
    assert row["memory"] == pytest.approx(5, abs=1)
    assert (row["found"], row["precision"], row["recall"]) == (6, 0.75, 0.5)
    assert "6 of 6 | 0.75 | 0.50" in many_table([row])


def test_an_audit_in_a_process_of_its_own():
    row = many.judge_many(many.FEWEST_ROWS, "confusion", 0, {})
    assert (row["n"], row["found"], row["note"]) == (4000, 0, None)
    assert row["seconds"] > 0
