"""The benchmark of captured errors: its measure by hand, its ceiling and floor on planted rows, its folder."""

import json
import sys
from dataclasses import replace

import numpy as np
import pytest

from errata.bench import bounds, captured, real_models, results
from errata.bench.captured import confirmed_rows, measure_capture, summarise_capture
from errata.bench.methods import audited_methods, expand_audits
from errata.bench.real_models import FOREIGN, OWN, AuditedModel, expand_tables, read_model, write_model
from errata.bench.tables import data_folder
from errata.cli import app as cli
from errata.core import InputError, MissingInput
from errata.core.split import discover_mask
from errata.workflow import audit


def made_up(seed=0, n=2000, gap=0.6):
    """A tight group within label 1 is wrong at `gap` beyond .05; the rest is noise around two labels."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, n)
    group = (rng.random(n) < 0.2) & (labels == 1)
    X = rng.normal(size=(n, 6)) + 4 * group[:, None]
    wrong = rng.random(n) < np.where(group, 0.05 + gap, 0.05)
    return AuditedModel(
        labels=labels,
        predictions=np.where(wrong, 1 - labels, labels),
        representations={FOREIGN: X.astype(np.float32), OWN: np.column_stack([X, labels ^ wrong]).astype(np.float32)},
        metadata={"group": np.where(group, "in", "out")},
        class_names=("no", "yes"),
        model="made up",
        words={FOREIGN: "noise and a group", OWN: "the same with the prediction"},
    )


@pytest.fixture
def trained(monkeypatch):
    """Two tables that take no time, and the seeds that they were trained with."""
    seeds = []

    def maker(gap):
        def train(seed):
            seeds.append(seed)
            return made_up(seed, gap=gap)

        return train

    monkeypatch.setattr(real_models, "TABLES", {"one": maker(0.6), "sound": maker(0.0)})
    return seeds


# --- the measure ---------------------------------------------------------------------------------------------


def test_capture_by_hand():
    wrong = np.array([1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 0], dtype=bool)
    inside = np.array([1, 1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0], dtype=bool)
    # 3 of 4 errors on 4 of 12 rows, where the overall rate of 1/3 gives 4/3
    assert measure_capture(inside, wrong) == pytest.approx((3 - 4 / 3) / 4)
    assert measure_capture(np.ones(12, dtype=bool), wrong) == pytest.approx(0)
    assert measure_capture(~inside, wrong) < 0
    assert measure_capture(inside, np.zeros(12, dtype=bool)) == 0


def test_capture_of_an_audit_counts_held_out_rows_of_confirmed_slices_only():
    result = audit(made_up().evaluation(FOREIGN), methods=["gmm"])
    capture = summarise_capture(result)
    held_out = ~result.discover
    union = np.any([slice_.members for slice_ in result.confirmed], axis=0)
    assert np.array_equal(confirmed_rows(result), union)
    assert capture.slices == len(result.confirmed) >= 1
    assert capture.share == pytest.approx(union[held_out].mean())
    assert capture.captured == pytest.approx(measure_capture(union[held_out], result.evaluation.errors[held_out]))
    assert capture.captured > 0.4
    sound = summarise_capture(audit(made_up(gap=0.0).evaluation(FOREIGN), methods=["gmm"]))
    assert (sound.slices, sound.share, sound.captured, sound.rate) == (0, 0, 0, None)


# --- the ceiling and the floor -------------------------------------------------------------------------------


def bounds_of(model, kind=FOREIGN):
    evaluation = model.evaluation(kind)
    return bounds.measure_bounds(evaluation, discover_mask(evaluation), seed=0)


def test_the_ceiling_is_the_riskiest_rows_of_a_predictor():
    order = np.array([1, 1, 0, 0, 0, 1, 0, 0, 0, 0], dtype=bool)
    made = bounds.Bounds(order, "label", 0.1, 0.2, 1, "label")
    assert made.ceiling(0.2) == pytest.approx(2 / 3 - 0.2)
    assert made.ceiling(0.0) == 0
    assert made.ceiling(1.0) == pytest.approx(0)


def test_a_group_within_a_label_has_a_ceiling_and_a_floor():
    model = made_up()
    measured = bounds_of(model)
    held_out = ~discover_mask(model.evaluation(FOREIGN))
    group = (model.metadata["group"] == "in")[held_out]
    true = measure_capture(group, model.errors[held_out])
    assert measured.ceiling(float(group.mean())) == pytest.approx(true, abs=0.05)
    assert measured.tree_captured == pytest.approx(true, abs=0.05)
    assert measured.tree_share == pytest.approx(group.mean(), abs=0.03)
    assert measured.tree_scope == "label"


def test_random_errors_have_neither():
    model = made_up(gap=0.0)
    noise = np.random.default_rng(1).normal(size=(len(model.labels), 6))
    measured = bounds_of(replace(model, representations={FOREIGN: noise}))
    assert measured.tree_slices == 0
    assert measured.tree_captured == 0
    assert abs(measured.ceiling(0.2)) < 0.12  # two standard errors with 50 errors


def test_a_representation_that_shows_the_label_predicts_errors_within_predictions():
    """Rows of the group are of label 1, so that those which the model calls 0 are wrong: a ceiling, not a slice."""
    measured = bounds_of(made_up(gap=0.0))
    assert measured.tree_slices == 0
    assert measured.scope == "prediction"
    assert measured.ceiling(0.2) > 0.12


def test_on_the_own_layer_nothing_is_fitted_within_labels():
    """Its last column is the prediction: within a label that is the outcome, and the ceiling would be all errors."""
    measured = bounds_of(made_up(), OWN)
    assert measured.tree_scope == "prediction"
    assert measured.scope != "label"
    assert measured.ceiling(0.2) < 0.9


def test_bounds_are_read_for_the_same_search_rows_only(tmp_path):
    made = bounds.Bounds(np.array([True, False]), "label", 0.1, 0.2, 1, "label")
    discover = np.array([True, True, False, False])
    bounds.write_bounds(tmp_path / "b.npz", made, discover)
    stored = bounds.read_bounds(tmp_path / "b.npz", discover)
    assert stored.facts() == made.facts()
    assert bounds.read_bounds(tmp_path / "b.npz", ~discover) is None
    assert bounds.read_bounds(tmp_path / "c.npz", discover) is None


# --- the runner ----------------------------------------------------------------------------------------------


def test_models_and_bounds_are_stored_and_audits_run_again_where_code_has_changed(trained, tmp_path, monkeypatch):
    rows = captured.run(["one", "sound"], ["default", "gmm"], tmp_path, seed=3)
    assert [(row["table"], row["kind"], row["method"]) for row in rows[:4]] == [
        ("one", FOREIGN, "default"), ("one", FOREIGN, "gmm"), ("one", OWN, "default"), ("one", OWN, "gmm"),
    ]  # fmt: skip
    assert len(rows) == 8
    assert rows[1]["captured"] > 0.4
    assert rows[5]["slices"] == 0
    assert trained == [3, 3]
    monkeypatch.setattr(captured, "measure_bounds", None)
    audits = []
    monkeypatch.setattr(captured, "audit", lambda *given, **named: audits.append(named) or audit(*given, **named))
    again = captured.run(["one", "sound"], ["gmm"], tmp_path, seed=3)
    assert again == [row for row in rows if row["method"] == "gmm"]
    assert not audits
    captured.run(["one"], ["gmm"], tmp_path, seed=3, options={"gmm": {"axes": 3}})
    assert len(audits) == 2  # other options, other results
    monkeypatch.setattr(results, "code_fingerprint", lambda: "changed")
    again = captured.run(["one", "sound"], ["gmm"], tmp_path, seed=3)
    assert len(audits) == 6
    assert trained == [3, 3]
    without_seconds = {key: value for key, value in again[0].items() if key != "seconds"}
    assert without_seconds.items() <= rows[1].items()
    with pytest.raises(InputError, match="holds another benchmark"):
        captured.run(["one"], ["gmm"], tmp_path, seed=4)


@pytest.fixture
def unable(monkeypatch):
    """Rows that `barlow` cannot read."""

    def audit_or_raise(evaluation, **settings):
        if settings["methods"] == ["barlow"]:
            raise MissingInput("barlow needs `probs`")
        return audit(evaluation, **settings)

    monkeypatch.setattr(captured, "audit", audit_or_raise)


def test_a_method_that_cannot_read_the_rows_says_so(trained, unable, tmp_path):
    [row, _] = captured.run(["one"], ["barlow"], tmp_path)
    assert row["note"] == "barlow needs `probs`"
    assert row["table"] == "one"


def test_means_over_tables():
    row = {"method": "gmm", "kind": OWN, "note": None, "slices": 1, "share": 0.1, "seconds": 1.0, "tree_share": 0.2}
    rows = [
        {**row, "captured": 0.3, "ceiling": 0.4, "tree_captured": 0.3},
        {**row, "captured": 0.1, "ceiling": 0.4, "tree_captured": 0.2},
        {"method": "gmm", "kind": OWN, "note": "gmm needs more"},
        {**row, "kind": FOREIGN, "captured": 0.0, "ceiling": 0.0, "tree_captured": 0.0},
    ]
    own, foreign = captured.summarise(rows)
    assert (own["tables"], own["at_least_tree"]) == (2, 1)
    assert own["captured"] == pytest.approx(0.2)
    assert own["of_ceiling"] == pytest.approx(0.5)
    assert (foreign["of_ceiling"], foreign["at_least_tree"]) == (None, 1)


def test_a_stored_model_is_what_it_was(tmp_path):
    model = made_up()
    write_model(tmp_path / "m.npz", model)
    stored = read_model(tmp_path / "m.npz")
    assert np.array_equal(stored.predictions, model.predictions)
    assert np.array_equal(stored.metadata["group"], model.metadata["group"])
    assert np.allclose(stored.representations[OWN], model.representations[OWN], atol=0.01)
    assert (stored.class_names, stored.model, stored.words) == (model.class_names, model.model, model.words)


def test_an_evaluation_declares_its_representation():
    model = made_up()
    foreign = model.evaluation(FOREIGN)
    assert foreign.probs is None
    assert not foreign.source(FOREIGN).from_model
    assert model.evaluation(OWN).source(OWN).from_model
    rows = np.array([5, 7])
    some = model.evaluation(FOREIGN, rows, predictions=np.array([1, 0]))
    assert some.predictions.tolist() == [1, 0]
    assert some.labels.tolist() == model.labels[rows].tolist()


def test_names_of_tables_and_audits():
    assert expand_tables(["tuning", "agnews,sst2"]) == [*real_models.TUNING, "agnews"]
    assert expand_tables(["all"]) == list(real_models.TABLES)
    with pytest.raises(InputError, match="agnews"):
        expand_tables(["agnew"])
    assert expand_audits(["gmm,default", "gmm+domino:as_published,gmm"]) == [
        "gmm",
        "default",
        "gmm+domino:as_published",
    ]
    assert audited_methods(["default", "gmm+domino", "gmm"]) == ["gmm", "domino"]
    with pytest.raises(InputError, match="domino"):
        expand_audits(["gmm+domin"])
    assert expand_audits(["default"]) == ["default"]
    with pytest.raises(InputError, match="is empty"):
        expand_audits([""])


def test_attributes_of_texts():
    marks = real_models.text_attributes(["it is not good", "a film", "why ? 3 times", "a b c d e f g h i j"])
    assert marks["negation"].tolist() == ["yes", "no", "no", "no"]
    assert marks["digit"].tolist() == ["no", "no", "yes", "no"]
    assert marks["question"].tolist() == ["no", "no", "yes", "no"]
    assert marks["length"][1] == "shortest quarter"
    assert marks["length"][3] == "longest quarter"


# --- the command ---------------------------------------------------------------------------------------------


@pytest.fixture
def bench(monkeypatch, capsys):
    def run(*words):
        capsys.readouterr()
        monkeypatch.setattr(sys, "argv", ["errata", "bench", "captured", *map(str, words)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        said = capsys.readouterr()
        return stop.value.code, said.out, said.err

    return run


def test_the_command_prints_a_table_and_writes_its_rows(trained, unable, tmp_path, bench):
    words = ("--data", "one", "--method", "gmm,barlow", "-o", tmp_path / "run", "--json", tmp_path / "rows.json")
    code, out, err = bench(*words)
    assert (code, err) == (0, "")
    lines = out.splitlines()
    assert lines[1].startswith("| data | representation |")
    assert len({line.count("|") for line in lines[1 : lines.index("")]}) == 1
    assert len({line.count("|") for line in lines[lines.index("Means") + 1 :]}) == 1
    assert "| one | foreign | 2,000 |" in out
    assert "| barlow | barlow needs `probs` |" in out
    rows = json.loads((tmp_path / "rows.json").read_text())["rows"]
    assert [row["method"] for row in rows] == ["gmm", "barlow", "gmm", "barlow"]


def test_the_command_refuses_before_it_trains(trained, tmp_path, bench):
    for words, cure in [
        (("--data", "nonsense"), "unknown table"),
        (("--method", "nonsense"), "unknown method"),
        (("--set", "gmm.components=3"), "--method"),
        (("--method", "gmm", "--set", "gmm.nonsense=3"), "nonsense"),
        (("--json", tmp_path / "no" / "rows.json"), "does not exist"),
    ]:
        code, _, err = bench(*words, "-o", tmp_path / "run")
        assert code == 2
        assert cure in err
    assert trained == []


def test_the_real_tables():
    """The quickest of them, end to end."""
    if not (data_folder() / "adult.parquet").exists():
        pytest.skip(f"no adult.parquet in the data folder {data_folder()} (set ERRATA_DATA)")
    model = real_models.adult(0)
    assert len(model.labels) == 10_000
    assert 0.08 < model.errors.mean() < 0.2
    assert model.representations[FOREIGN].shape == (10_000, real_models.AXES)
    assert {"sex", "education"} <= set(model.metadata)
