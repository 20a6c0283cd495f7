"""What is probably not what was meant is said in the audit, on every way in."""

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
    assert all("`errata audit INPUT -o DIR OPTIONS --method barlow" in note for note in notes)


def test_a_search_without_a_path_does_not_say_that_approximations_were_tested():
    labels, predictions, layer = own_layer()
    evaluation = Evaluation(labels=labels, predictions=predictions, representations={"layer": layer})
    slicers = {"barlow": errata.slicers.Barlow()}
    (note,) = own_layer_notes(evaluation, slicers, [], {}, {}, errata.Settings())
    assert "so only approximations can be tested, and there was none to test." in note
    assert "none holds" not in note


def rare_group(seed=0, n=3000):
    """A group that fails, which a column and the model's own layer both tell."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, n)
    x = rng.normal(size=(n, 6))
    predictions = np.where(rng.random(n) < np.where(x[:, 0] > 1.2, 0.5, 0.05), 1 - labels, labels)
    layer = x.copy()
    layer[:, 1] += 3 * predictions
    return Evaluation(labels=labels, predictions=predictions, representations={"layer": layer}, metadata={"z": x[:, 0]})


@pytest.mark.parametrize("methods", [["barlow:as_published"], ["rules", "barlow"]])
def test_a_path_that_is_confirmed_needs_no_way_out_whatever_its_preset_and_whoever_found_it_first(methods):
    options = {"barlow": {"slices": 1}}
    audit = errata.audit(rare_group(5), methods=methods, options=options, map=False, self_test=False)
    assert any(slice_.verdict == "confirmed" and methods[-1] in slice_.found_by for slice_ in audit.slices)
    assert not any(note.startswith("barlow searched") for note in audit.settings["notes"])


def test_the_way_out_has_the_options_of_a_built_method_and_names_what_it_cannot_hold():
    labels, predictions, layer = own_layer()
    evaluation = Evaluation(labels=labels, predictions=predictions, representations={"layer": layer})
    train = Evaluation(
        labels=labels, predictions=predictions, representations={"layer": layer}, ids=np.arange(len(labels)) + 10_000
    )
    methods = [errata.slicers.Barlow(depth=2)]
    audit = errata.audit(evaluation, methods=methods, train=train, map=False, self_test=False)
    (note,) = [note for note in audit.settings["notes"] if note.startswith("barlow searched")]
    assert "options={'barlow': {'depth': 2, 'representation': 'robust'}}, train=train, settings=" in note


def save_own_layer(path):
    """The rows of `own_layer`, with the patient of each and a column of a site."""
    labels, predictions, layer = own_layer()
    patients = np.array([f"p{i}" for i in np.random.default_rng(1).integers(0, 120, len(labels))])
    site = np.where(layer[:, 1] > 0, "a", "b")
    np.savez(path, labels=labels, predictions=predictions, embedding=layer, site=site, patient=patients)


OPTIONS = ("--groups", "patient", "--metadata", "patient", "--metadata", "site", "--alpha", "0.1", "--seed", "3")
OPTIONS += ("--within", "label", "--set", "gmm.components=4", "--representation", "barlow=embedding", "--no-map")


@pytest.fixture
def two_ways(tmp_path, monkeypatch, capsys):
    """The command and the line that an audit ends with, where its `barlow` confirms nothing."""
    save_own_layer(tmp_path / "my rows.npz")
    words = ["audit", tmp_path / "my rows.npz", "-o", tmp_path / "one", "--method", "gmm,barlow", *OPTIONS]
    printed = run(monkeypatch, capsys, *words).out.splitlines()
    (command,) = [line for line in printed if line.startswith("errata audit ")]
    (line,) = [line for line in printed if line.startswith("errata.audit(")]
    return command, line


def searched(audit):
    """Which rows were searched, by id."""
    return dict(zip(audit.evaluation.row_ids.tolist(), audit.discover.tolist(), strict=True))


def test_the_way_out_is_a_command_of_the_same_rows_and_options(two_ways, tmp_path, monkeypatch, capsys):
    run(monkeypatch, capsys, *shlex.split(two_ways[0])[1:])
    first = errata.load(tmp_path / "one")
    second = errata.load(tmp_path / "one-barlow-prediction")
    assert searched(second) == searched(first)
    assert second.settings["methods"] == ["barlow"]
    assert second.settings["options"] == {"barlow": {"scope": "prediction", "representation": "embedding"}}
    assert (second.settings["seed"], second.settings["run"], second.settings["level"]) == (3, 2, 0.05)
    assert set(second.evaluation.metadata) == {"patient", "site"}


def test_two_ways_out_have_two_folders_and_leave_the_files_of_the_first_gate(tmp_path, monkeypatch, capsys):
    save_own_layer(tmp_path / "rows.npz")
    words = ["audit", tmp_path / "rows.npz", "-o", tmp_path / "one", "--method", "barlow,barlow:as_published"]
    gates = ["--metadata", "all", "--summary", tmp_path / "gate.md", "--junit", tmp_path / "gate.xml"]
    printed = run(monkeypatch, capsys, *words, *gates, "--no-map").out.splitlines()
    commands = [shlex.split(line) for line in printed if line.startswith("errata audit ")]
    folders = [command[command.index("-o") + 1] for command in commands]
    assert folders == [f"{tmp_path}/one-barlow-prediction", f"{tmp_path}/one-barlow-as_published-prediction"]
    assert not any("gate" in word for command in commands for word in command)


def test_the_way_out_by_another_model_is_a_line_of_the_same_rows_and_options(two_ways, tmp_path):
    torch = pytest.importorskip("torch")
    labels, _, layer = own_layer()
    # No ReLU: rows that are alike in few features which are often 0 would be kept together as copies.
    robust_model = torch.nn.Sequential(torch.nn.Linear(5, 8), torch.nn.Tanh(), torch.nn.Linear(8, 2))
    names = {"errata": errata, "robust_model": robust_model, "loader": [(torch.tensor(layer).float(), labels)]}
    audit = eval(two_ways[1], names)
    assert audit.evaluation.representations["robust"].shape == (len(labels), 8)
    assert searched(audit) == searched(errata.load(tmp_path / "one"))
    assert audit.settings["level"] == pytest.approx(0.1 / 6), "run 2 is left to the command"
    assert audit.settings["options"] == {"barlow": {"representation": "robust"}}


def test_the_ways_out_are_further_looks_than_the_audit(tmp_path):
    labels, predictions, layer = own_layer()
    evaluation = Evaluation(labels=labels, predictions=predictions, representations={"layer": layer})
    settings = errata.Settings(run=3, delta=0.02)
    (note,) = errata.audit(evaluation, methods=["barlow"], settings=settings).settings["notes"]
    assert "settings=errata.Settings(run=5, delta=0.02))`" in note
    assert "the line leaves run 4 to it" in note


def test_an_audit_has_the_same_bytes_wherever_its_files_lie(tmp_path, monkeypatch, capsys):
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
        save_own_layer(tmp_path / name / "rows.npz")
        words = ["audit", tmp_path / name / "rows.npz", "-o", tmp_path / name / f"audit-{name}", "--no-map"]
        run(monkeypatch, capsys, *words, "--method", "barlow", "--metadata", "all")
    files = ("audit.json", "report.html", "checksums.json")
    here = [(tmp_path / "here" / "audit-here" / file).read_bytes() for file in files]
    there = [(tmp_path / "there" / "audit-there" / file).read_bytes() for file in files]
    assert here == there
    assert b"errata audit INPUT -o DIR OPTIONS" in here[0]
