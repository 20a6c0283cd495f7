"""What is probably not what was meant is said in the audit, on every way in."""

import re
import shlex
import sys

import numpy as np
import pytest

import errata
from errata import Captions, Evaluation, Source, cli
from errata.workflow.notes import own_layer_notes


def rows(n=800, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 4, n)
    probs = np.full((n, 4), 0.02)
    probs[np.arange(n), np.where(rng.random(n) < 0.93, labels, (labels + 1) % 4)] = 0.94
    return labels, probs, rng.normal(size=(n, 3))


def test_classes_in_another_order_are_a_note_of_the_audit():
    labels, probs, X = rows()
    turned = Evaluation(labels=labels, probs=probs[:, [1, 0, 3, 2]], representations={"x": X})
    audit = errata.audit(turned, methods=["gmm"])
    assert any("as (1, 0, 3, 2) gives 9" in note for note in audit.settings["notes"])
    right = errata.audit(Evaluation(labels=labels, probs=probs, representations={"x": X}), methods=["gmm"])
    assert not any("class_names" in note for note in right.settings["notes"])


def run(monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["errata", *map(str, words)])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    assert stop.value.code == 0
    return capsys.readouterr()


def test_the_command_says_it_in_one_line(tmp_path, monkeypatch, capsys):
    labels, probs, X = rows()
    np.savez(tmp_path / "x.npz", labels=labels, probs=probs[:, [1, 0, 3, 2]], embedding=X)
    said = run(monkeypatch, capsys, "audit", tmp_path / "x.npz", "-o", tmp_path / "out", "--method", "gmm", "--no-map")
    (line,) = said.err.splitlines()
    assert line.startswith(
        "Warning: accuracy is 2% where chance is 25%; reading the columns of `probs` as (1, 0, 3, 2)"
    )


def test_whole_numbers_and_the_task_on_the_command_line(tmp_path, monkeypatch, capsys):
    rng = np.random.default_rng(0)
    ages = rng.integers(18, 80, 400)
    np.savez(
        tmp_path / "x.npz",
        labels=ages,
        predictions=ages + rng.integers(-3, 4, 400),
        embedding=rng.normal(size=(400, 2)),
    )
    words = ["audit", tmp_path / "x.npz", "--method", "gmm", "--no-map", "-o"]
    said = run(monkeypatch, capsys, *words, tmp_path / "one")
    assert "so they are read as classes" in said.err
    said = run(monkeypatch, capsys, *words, tmp_path / "two", "--task", "regression", "--reference")
    assert said.err == ""
    loaded = errata.load(tmp_path / "two")
    assert loaded.evaluation.task == "regression"


def test_texts_that_directions_cannot_use_say_what_it_does_instead():
    labels, probs, X = rows(400)
    texts = Captions(["a dog", "a cat"], np.random.default_rng(0).normal(size=(2, 3)), "clip")
    both = Evaluation(
        labels=labels,
        probs=probs,
        representations={"penultimate": probs, "clip": X},
        sources={"penultimate": Source(True), "clip": Source(False)},
    )
    notes = errata.audit(both, methods=["directions"], texts=texts).settings["notes"]
    assert any("searches `penultimate`, and the texts lie in `clip`" in note for note in notes)
    assert any("have the texts nearest to them, and no captions of the direction" in note for note in notes)
    assert any("--representation directions=clip" in note for note in notes)
    options = {"directions": {"representation": "clip"}}
    assert errata.audit(both, methods=["directions"], options=options, texts=texts).settings["notes"] == []
    own = Captions(["a dog", "a cat"], np.random.default_rng(0).normal(size=(2, 4)), "penultimate")
    notes = errata.audit(both, methods=["directions"], texts=own).settings["notes"]
    assert any("is the model's own layer, where a direction within a label knows" in note for note in notes)


def own_layer(seed=0, n=1200):
    """Errors that nothing tells of; the layer holds the prediction, as a model's own does."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, n)
    predictions = np.where(rng.random(n) < 0.2, 1 - labels, labels)
    layer = rng.normal(size=(n, 5))
    layer[:, 0] += 3 * predictions
    return labels, predictions, layer


@pytest.mark.parametrize(
    ("from_model", "scope", "said"), [(True, "label", 1), (True, "prediction", 0), (False, "label", 0)]
)
def test_barlow_on_the_own_layer_says_the_way_out(from_model, scope, said):
    labels, predictions, layer = own_layer()
    evaluation = Evaluation(
        labels=labels,
        predictions=predictions,
        representations={"layer": layer},
        sources={"layer": Source(from_model=from_model)},
    )
    audit = errata.audit(evaluation, methods=["barlow"], options={"barlow": {"scope": scope}}, map=False)
    notes = [note for note in audit.settings["notes"] if "--set barlow.scope=prediction" in note]
    assert len(notes) == said
    assert all("`errata audit INPUT -o DIR --method barlow" in note for note in notes)


def test_a_search_without_a_path_does_not_say_that_approximations_were_tested():
    labels, predictions, layer = own_layer()
    evaluation = Evaluation(labels=labels, predictions=predictions, representations={"layer": layer})
    slicers = {"barlow": errata.slicers.Barlow()}
    (note,) = own_layer_notes(evaluation, slicers, [])
    assert "so only approximations can be tested, and there was none to test." in note
    assert "none holds" not in note


@pytest.fixture
def way_out(tmp_path, monkeypatch, capsys):
    """The note of an audit by the command, which confirms nothing."""
    labels, predictions, layer = own_layer()
    site = np.where(layer[:, 1] > 0, "a", "b")
    np.savez(tmp_path / "my rows.npz", labels=labels, predictions=predictions, embedding=layer, site=site)
    words = ["audit", tmp_path / "my rows.npz", "-o", tmp_path / "one", "--method", "barlow", "--no-map"]
    run(monkeypatch, capsys, *words, "--metadata", "site")
    (note,) = [note for note in errata.load(tmp_path / "one").settings["notes"] if "own layer" in note]
    return note


def test_the_way_out_is_a_command_that_runs(way_out, tmp_path, monkeypatch, capsys):
    command = shlex.split(way_out.partition("`errata ")[2].partition("`")[0])
    assert str(tmp_path / "my rows.npz") in command
    assert command[-2:] == ["--metadata", "site"]
    run(monkeypatch, capsys, *command, "--no-map")
    second = errata.load(tmp_path / "one-prediction")
    assert "another look at the same held-out rows, tested more strictly" in way_out
    assert second.settings["level"] < errata.load(tmp_path / "one").settings["level"]


def test_the_way_out_by_another_model_is_a_line_that_runs(way_out):
    torch = pytest.importorskip("torch")
    labels, _, layer = own_layer()
    robust_model = torch.nn.Sequential(torch.nn.Linear(5, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    names = {"errata": errata, "robust_model": robust_model, "loader": [(torch.tensor(layer).float(), labels)]}
    (line,) = re.findall(r"`(errata\.audit\(.*?)`", way_out)
    audit = eval(line, names)
    assert audit.evaluation.representations["robust"].shape == (len(labels), 4)
    assert audit.settings["level"] == 0.025, "the second look spends half"
    assert audit.settings["options"] == {"barlow": {"representation": "robust"}}
