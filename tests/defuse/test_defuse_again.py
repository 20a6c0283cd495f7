"""A run that is gone on with: what is done is not done twice, and what is asked for now is what is told."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: nothing is generated")

import torch
from torch import nn

from errata.core import InputError
from errata.defuse import DefuseSettings, correction, search
from errata.defuse.labels import NONE
from errata.defuse.pages import to_html
from errata.defuse.regions import Mistakes
from errata.defuse.stages import RunFolder
from errata.defuse.vae import Vae
from errata.defuse.view import load_run
from errata.tensors import state_fingerprint
from support import digits


def sources(pictures: np.ndarray) -> np.ndarray:
    """An oracle that knows the small digits: the nearest of all of them."""
    images, labels = digits.images()
    known, asked = (part.reshape(len(part), -1).astype(float) for part in (images, pictures))
    return labels[np.square(asked[:, None] - known).sum(axis=2).argmin(axis=1)]


@pytest.fixture(scope="module")
def ended(digits_run, tmp_path_factory):
    folder = shutil.copytree(digits_run, tmp_path_factory.mktemp("defuse") / "run")
    found = digits.run_defuse(folder, oracle=sources)
    assert found.stage == "corrected"
    return found


def never(*given, **more):
    raise AssertionError("this was done before")


def test_a_correction_is_not_made_twice(ended, tmp_path, monkeypatch):
    """The same labels and rows: what the folder has of it, and the same model. Other rows are another question."""
    folder = shutil.copytree(ended.folder, tmp_path / "again")
    monkeypatch.setattr(correction, "sweep", never)
    again = digits.run_defuse(folder, oracle=sources)
    assert again.comparison == ended.comparison
    assert state_fingerprint(again.model) == state_fingerprint(ended.model)
    learnt, held, _ = digits.splits()
    monkeypatch.setattr(digits, "splits", lambda: (learnt, held, held))
    with pytest.raises(AssertionError, match="done before"):
        digits.run_defuse(folder, oracle=sources)


def test_a_run_of_before_with_a_setting_that_is_no_more_is_resumed(ended, tmp_path, monkeypatch):
    """`patience` was a setting of the correction: nothing is tuned again for want of it, and no page has it."""
    folder = shutil.copytree(ended.folder, tmp_path / "again")
    run = RunFolder(folder)
    correction_json = run.read("correction")
    correction_json["asked"]["settings"]["patience"] = 5
    run.write("correction", correction_json)
    run.write("defuse", {**run.about, "correction": {**run.about["correction"], "patience": 5}})
    assert "patience" not in to_html(load_run(folder))
    monkeypatch.setattr(correction, "sweep", never)
    assert digits.run_defuse(folder, oracle=sources).comparison == ended.comparison


def test_a_correction_by_labels_that_no_longer_stand_is_not_shown(ended, tmp_path):
    folder = shutil.copytree(ended.folder, tmp_path / "again")
    assert load_run(folder).comparison is not None
    (folder / "votes.json").unlink()
    found = digits.run_defuse(folder, oracle=lambda pictures: np.full(len(pictures), NONE))
    assert found.stage == "nothing to correct"
    assert load_run(folder).comparison is None


def test_a_correction_that_was_cut_short_is_made_again(ended, tmp_path, monkeypatch):
    """The model of another one was written, and what is told of it was not: the two are never put together."""
    folder = shutil.copytree(ended.folder, tmp_path / "again")

    def full(run, name, told, write=RunFolder.write):
        if name == "correction":
            raise OSError("no space left")
        write(run, name, told)

    with monkeypatch.context() as patched:
        patched.setattr(RunFolder, "write", full)
        with pytest.raises(OSError, match="no space"):
            digits.run_defuse(folder, oracle=sources, settings=asking(strengths=(1000.0,)))
    found = digits.run_defuse(folder, oracle=sources)
    assert found.comparison == ended.comparison
    assert state_fingerprint(found.model) == state_fingerprint(ended.model)


def test_neighbours_of_another_correction_are_not_shown(ended, tmp_path):
    """They were written, and the run was killed before the word of their own correction was."""
    folder = shutil.copytree(ended.folder, tmp_path / "again")
    assert load_run(folder).near is not None
    run = RunFolder(folder)
    kept = run.load("novelty")
    run.save("novelty", replace(kept, facts={**kept.facts, "samples": 1}))
    assert load_run(folder).near is None
    assert "the nearest known mistake" not in to_html(load_run(folder))


@pytest.mark.usefixtures("quick_map")
def test_a_network_of_half_precision_is_corrected_and_kept(ended, tmp_path, monkeypatch):
    class Half(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = digits.classifier().to(torch.bfloat16)

        def forward(self, x):
            return self.inner(x.to(torch.bfloat16)).float()

    half = Half()
    monkeypatch.setattr(digits, "classifier", lambda: half)
    vae = Vae.from_state(RunFolder(ended.folder).load("vae"))
    found = digits.run_defuse(tmp_path / "run", vae=vae, oracle=sources)
    assert found.stage == "corrected"
    assert {value.dtype for value in found.model.parameters()} == {torch.bfloat16}
    assert state_fingerprint(found.model) == RunFolder(found.folder).read("correction")["model"]


def test_a_correction_whose_word_is_lost_is_made_again(ended, tmp_path):
    """As the sentence says that names it."""
    folder = shutil.copytree(ended.folder, tmp_path / "again")
    (folder / "correction.json").write_text("{")
    with pytest.raises(InputError, match=r"correction.json` cannot be read .*; remove it to do that again"):
        digits.run_defuse(folder, oracle=sources)
    (folder / "correction.json").unlink()
    assert load_run(folder).comparison is None
    assert digits.run_defuse(folder, oracle=sources).comparison == ended.comparison


@pytest.mark.parametrize(("gone", "left"), [("vae", "mistakes"), ("regions", "samples")])
def test_what_came_of_a_lost_stage_is_not_mixed_with_another(ended, tmp_path, gone, left):
    folder = shutil.copytree(ended.folder, tmp_path / "again")
    (folder / f"{gone}.json").unlink()
    with pytest.raises(InputError, match=f"has {left} and not the {gone} that they came from; restore it"):
        digits.run_defuse(folder, oracle=sources)


def test_rows_that_were_learnt_from_choose_only_where_there_are_no_others(ended, tmp_path):
    folder = shutil.copytree(ended.folder, tmp_path / "again")
    words = "There were no validation rows."
    assert words not in to_html(load_run(folder))
    digits.run_defuse(folder, oracle=sources, validation=None)
    assert words in to_html(load_run(folder))


def asking(**more):
    return DefuseSettings(**{**digits.QUICK, **more})


def test_another_correction_needs_no_other_run(ended, tmp_path, monkeypatch):
    """Nothing is searched or labelled again; what the folder tells is of the last correction."""
    folder = shutil.copytree(ended.folder, tmp_path / "again")
    for name in ("fit_vae", "identify", "distil"):
        monkeypatch.setattr(search, name, never)
    settings = asking(strengths=(0.3,), rho=0.4)
    found = digits.run_defuse(folder, oracle=sources, settings=settings)
    assert [one["strength"] for one in found.comparison.facts["curve"]] == [0.3]
    told = load_run(folder).facts["settings"]
    assert (told["strengths"], told["rho"], told["epochs"]) == ([0.3], 0.4, digits.QUICK["epochs"])
    with pytest.raises(InputError, match=r"was created with settings\.q = 20, and now it is 21"):
        digits.run_defuse(folder, oracle=sources, settings=asking(q=21))
    assert RunFolder(folder).about["correction"]["rho"] == 0.4


def test_what_is_checked_before_the_search_makes_no_other_correction(ended, tmp_path, monkeypatch):
    """Nor where an older version wrote both settings beside the correction."""
    folder = shutil.copytree(ended.folder, tmp_path / "again")
    run = RunFolder(folder)
    content = run.read("correction")
    older = {**content["asked"]["settings"], "check_prepare": True, "faithful": 0.0}
    monkeypatch.setattr(correction, "sweep", never)
    for written in (content, {**content, "asked": {**content["asked"], "settings": older}}):
        run.write("correction", written)
        found = digits.run_defuse(folder, oracle=sources, settings=asking(check_prepare=False, faithful=0.01))
        assert found.comparison == ended.comparison
        told = load_run(folder).facts["settings"]
        assert (told["check_prepare"], told["faithful"]) == (False, 0.01)


def test_a_page_tells_the_settings_of_the_correction_it_shows(ended, tmp_path, monkeypatch):
    """A second one that was stopped has changed nothing yet."""
    folder = shutil.copytree(ended.folder, tmp_path / "again")
    monkeypatch.setattr(correction, "sweep", never)
    with pytest.raises(AssertionError):
        digits.run_defuse(folder, oracle=sources, settings=asking(tune_lr=0.5))
    told = load_run(folder)
    assert told.comparison == ended.comparison
    assert told.facts["settings"]["tune_lr"] == asking().tune_lr != 0.5


@pytest.mark.usefixtures("quick_map")
def test_the_generator_of_another_run_is_used_again(ended, tmp_path, monkeypatch):
    """The same one: the same regions, to the byte. It has the last word on the size of codes."""
    vae = Vae.from_state(RunFolder(ended.folder).load("vae"))
    monkeypatch.setattr(search, "fit_vae", never)
    found = digits.run_defuse(tmp_path / "run", vae=vae, oracle=sources, settings=asking(latent=3))
    ours, theirs = (RunFolder(folder) for folder in (found.folder, ended.folder))
    for name in ("vae", "regions", "samples"):
        for key, value in theirs.load(name).arrays.items():
            np.testing.assert_array_equal(ours.load(name).arrays[key], value)
    assert ours.about["settings"]["latent"] == vae.architecture.latent
    assert ours.read("vae-told") == theirs.read("vae-told")
    again = digits.run_defuse(tmp_path / "run", oracle=sources, settings=asking(latent=3))  # it has its own by now
    assert again.comparison == found.comparison


def test_a_correction_that_harms_says_so(ended, tmp_path):
    """One step as long as this breaks the network on all rows; a careful one does not."""
    folder = shutil.copytree(ended.folder, tmp_path / "again")
    assert "lower `tune_lr`" not in ended.words
    assert "costs accuracy" not in to_html(load_run(folder))
    found = digits.run_defuse(folder, oracle=sources, settings=asking(tune_lr=50.0, tune_epochs=1))
    assert "every strength costs accuracy on validation rows, so lower `tune_lr`" in found.words
    facts = found.comparison.facts
    assert facts["curve"][facts["chosen"]]["validation_accuracy"] < facts["validation"]["accuracy"] - 0.1
    assert "Every strength costs accuracy on validation rows" in to_html(load_run(folder))


@pytest.mark.usefixtures("quick_map")
def test_where_training_pictures_are_all_right_validation_pictures_tell_what_is_new(ended, tmp_path, monkeypatch):
    """Neighbours are then mistakes among those."""
    (learnt, held, kept), model = digits.splits(), digits.classifier()
    monkeypatch.setattr(digits, "classifier", lambda: model)
    right = digits.predict(learnt[0]) == learnt[1]
    monkeypatch.setattr(digits, "splits", lambda: ((learnt[0][right], learnt[1][right]), held, kept))
    found = digits.run_defuse(tmp_path / "run", oracle=sources)
    told, wrong = found.facts["novelty"], np.flatnonzero(digits.predict(held[0]) != held[1])
    assert (told["among"], told["known"], told["of"]) == ("validation", len(wrong), len(held[1]))
    near = RunFolder(found.folder).load("novelty").arrays
    assert set(near["nearest"].tolist()) <= set(wrong.tolist())
    np.testing.assert_array_equal(near["pictures"][..., 0], held[0][near["nearest"]])
    assert f"one of {len(wrong)} validation images" in to_html(load_run(found.folder))
    assert ended.facts["novelty"]["among"] == "training"


def test_what_further_training_does_alone_is_told_of_no_strength_that_is_felt(ended, tmp_path):
    folder = shutil.copytree(ended.folder, tmp_path / "again")
    words = r"Further training alone, .* takes accuracy on samples of regions from (.*?) to (.*?)\."
    found = digits.run_defuse(folder, oracle=sources, settings=asking(strengths=(1.0, 0.0)))
    facts = found.comparison.facts
    told = re.search(words + "</p>", to_html(load_run(folder)))
    assert told is not None
    assert [float(one.rstrip("%")) / 100 for one in told.groups()] == [
        pytest.approx(rate, abs=6e-4) for rate in (facts["before"]["regions"], facts["curve"][1]["regions"])
    ]
    digits.run_defuse(folder, oracle=sources, settings=asking(strengths=(1.0, 1e-6)))
    assert re.search(words, to_html(load_run(folder))) is None


@pytest.mark.usefixtures("quick_map")
def test_where_no_picture_is_wrong_all_mistakes_are_new(tmp_path, monkeypatch):
    """There are no neighbours to show, and the page says so."""
    learnt, model = digits.splits()[0], digits.classifier()
    monkeypatch.setattr(digits, "classifier", lambda: model)
    right = digits.predict(learnt[0]) == learnt[1]
    monkeypatch.setattr(digits, "splits", lambda: ((learnt[0][right], learnt[1][right]), None, None))
    found = digits.run_defuse(tmp_path / "run", oracle=sources)
    assert found.stage == "corrected"
    assert found.facts["novelty"] == {"known": 0, "of": int(right.sum()), "among": "training"}
    assert f"gets none of {right.sum()} training images wrong" in to_html(load_run(found.folder))


@pytest.mark.usefixtures("quick_map")
def test_pictures_of_another_split_are_disturbed(ended, tmp_path, monkeypatch):
    """Mistakes come from them; the VAE has learnt from the training pictures all the same."""
    learnt, held, kept = digits.splits()
    model = digits.classifier()
    monkeypatch.setattr(digits, "classifier", lambda: model)
    found = digits.run_defuse(tmp_path / "run", settings=asking(split="validation"))
    mistakes = Mistakes.from_state(RunFolder(found.folder).load("mistakes"))
    assert mistakes.facts["pictures"] == len(held[1])
    np.testing.assert_array_equal(mistakes.labels, held[1][mistakes.rows])
    assert (found.folder / "vae.safetensors").read_bytes() == (ended.folder / "vae.safetensors").read_bytes()
    monkeypatch.setattr(digits, "splits", lambda: (learnt, kept, kept))
    with pytest.raises(InputError, match="was created with disturbed = "):
        digits.run_defuse(found.folder, settings=asking(split="validation"))
    with pytest.raises(
        InputError, match="must be `train` or `validation`, since the result is measured on test rows; got 'test'"
    ):
        asking(split="test")
