"""A run as a folder: begun once, resumed by what is whole, and refused where it would mix two runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from errata.core import InputError, State
from errata.defuse import stages as runs
from errata.defuse.stages import RunFolder, is_run

FACTS: dict[str, Any] = {"settings": {"epochs": 3, "strengths": (0.1, 1.0)}, "class_names": ["a", "b"], "model": "abc"}
STATE = State("vae", {"latent": 2}, {"w": np.arange(6, dtype=np.float32).reshape(2, 3), "none": np.zeros((0, 4))})


def begun(tmp_path: Path) -> RunFolder:
    return RunFolder.create_or_open(tmp_path / "deep" / "run", FACTS)


def test_a_run_is_begun_and_opened_again_with_the_same_facts(tmp_path):
    """Tuples come back from JSON as lists, and are the same."""
    run = begun(tmp_path)
    run.write("stage", {"x": 1})
    again = begun(tmp_path)
    assert again.folder == run.folder
    assert again.read("stage") == {"x": 1}
    assert again.about["settings"]["strengths"] == [0.1, 1.0]
    assert is_run(run.folder)
    assert not is_run(tmp_path)
    assert RunFolder(run.folder).about == again.about


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"settings": {"epochs": 4, "strengths": (0.1, 1.0)}}, "was created with settings.epochs = 3, and now it is 4"),
        ({"settings": {"epochs": 3, "strengths": (0.1,)}}, r"settings.strengths = \[0.1, 1.0\], and now it is \[0.1\]"),
        ({"settings": {"epochs": 3}}, r"settings.strengths = \[0.1, 1.0\], and now it is 'nothing'"),
        ({"settings": {**FACTS["settings"], "new": None}}, "settings.new = 'nothing', and now it is None"),
        ({"model": "xyz"}, "was created with model = 'abc', and now it is 'xyz'"),
        ({"more": 1}, "was created with more = None, and now it is 1"),
    ],
)
def test_other_facts_are_refused_and_named(change, words, tmp_path):
    begun(tmp_path)
    with pytest.raises(InputError, match=words + "; name another folder"):
        RunFolder.create_or_open(tmp_path / "deep" / "run", {**FACTS, **change})
    assert begun(tmp_path).about["model"] == "abc"


def test_later_facts_may_change_and_the_last_stay(tmp_path):
    folder = tmp_path / "run"
    assert RunFolder.create_or_open(folder, FACTS, {"rho": (0.5,)}).about["rho"] == [0.5]
    before = (folder / runs.ABOUT).stat().st_mtime_ns
    RunFolder.create_or_open(folder, FACTS, {"rho": (0.5,)})
    assert (folder / runs.ABOUT).stat().st_mtime_ns == before  # nothing new, nothing written
    assert RunFolder.create_or_open(folder, FACTS, {"rho": (0.4,)}).about["rho"] == [0.4]
    assert RunFolder(folder).about == {"schema": runs.SCHEMA, **json.loads(json.dumps(FACTS)), "rho": [0.4]}
    with pytest.raises(InputError, match="was created with model"):
        RunFolder.create_or_open(folder, {**FACTS, "model": "xyz"}, {"rho": (0.3,)})
    assert RunFolder(folder).about["rho"] == [0.4]


def test_a_folder_of_something_else_is_not_written_to(tmp_path):
    (tmp_path / "mine").mkdir()
    with pytest.raises(InputError, match="exists already; name another output"):
        RunFolder.create_or_open(tmp_path / "mine", FACTS)
    with pytest.raises(InputError, match="is not a folder of `errata defuse`; name one"):
        RunFolder(tmp_path / "mine")
    assert list((tmp_path / "mine").iterdir()) == []


def test_a_folder_of_another_version_is_refused(tmp_path):
    run = begun(tmp_path)
    (run.folder / runs.ABOUT).write_text(json.dumps({"schema": "errata.defuse/0"}))
    with pytest.raises(InputError, match=r"by another version \('errata.defuse/0'\); start in another folder"):
        begun(tmp_path)


@pytest.mark.parametrize("text", ["", "{", "[1]", "7"])
def test_a_damaged_beginning_is_refused(text, tmp_path):
    run = begun(tmp_path)
    (run.folder / runs.ABOUT).write_text(text)
    with pytest.raises(InputError, match=r"cannot be read|another version"):
        begun(tmp_path)


def test_a_stage_comes_back_as_it_was_saved(tmp_path):
    run = begun(tmp_path)
    assert not run.has("vae")
    run.save("vae", STATE)
    found = begun(tmp_path).load("vae")
    assert (found.name, found.facts) == ("vae", {"latent": 2})
    for name, array in STATE.arrays.items():
        np.testing.assert_array_equal(found.arrays[name], array)
        assert found.arrays[name].dtype == array.dtype
        assert found.arrays[name].shape == array.shape


def test_a_stage_that_was_not_finished_is_not_there(tmp_path, monkeypatch):
    """Killed between the arrays and the word that they are whole."""
    run = begun(tmp_path)

    def killed(run: RunFolder, name: str, value: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(RunFolder, "write", killed)
        with pytest.raises(KeyboardInterrupt):
            run.save("vae", STATE)
    assert (run.folder / "vae.safetensors").is_file()
    assert not run.has("vae")
    run.save("vae", STATE)  # over what was left
    assert run.load("vae").facts == {"latent": 2}


def test_a_file_is_whole_or_not_there(tmp_path, monkeypatch):
    """What cannot be written, as JSON or at all, leaves the earlier file, and nothing else."""
    run = begun(tmp_path)
    run.write("stage", {"x": 1})
    for bad, error in ((float("nan"), ValueError), (object(), TypeError)):
        with pytest.raises(error):
            run.write("stage", {"x": bad})

    def broken(path: Path, text: str, **more: Any) -> int:
        path.write_bytes(text[:3].encode())
        raise OSError("no space left")

    monkeypatch.setattr(Path, "write_text", broken)
    with pytest.raises(InputError, match=r"stage.json` cannot be written \(no space left\)"):
        run.write("stage", {"x": 2})
    assert run.read("stage") == {"x": 1}
    assert sorted(path.name for path in run.folder.iterdir()) == [runs.ABOUT, "stage.json"]


@pytest.mark.parametrize("damage", [b"", b"x", b'{"name": 1', b"\xff\xfe"])
def test_a_damaged_word_is_named(damage, tmp_path):
    run = begun(tmp_path)
    run.save("vae", STATE)
    (run.folder / "vae.json").write_bytes(damage)
    with pytest.raises(InputError, match=r"vae.json` cannot be read \(.*\); restore it, or start in another folder"):
        run.load("vae")
    with pytest.raises(InputError, match="remove it to do that again"):
        run.read("vae")


@pytest.mark.parametrize("kept", [None, 0, 4, 40, -1])
def test_damaged_arrays_are_named(kept, tmp_path):
    run = begun(tmp_path)
    run.save("vae", STATE)
    path = run.folder / "vae.safetensors"
    whole = path.read_bytes()
    path.unlink()
    if kept is not None:
        path.write_bytes(whole[:kept])
    with pytest.raises(InputError, match=r"vae.safetensors` cannot be read \(.*\); restore it, or start"):
        run.load("vae")


@pytest.mark.parametrize("text", ["{}", "[]", "3"])
def test_a_word_that_says_too_little_is_named(text, tmp_path):
    run = begun(tmp_path)
    run.save("vae", STATE)
    (run.folder / "vae.json").write_text(text)
    with pytest.raises(InputError, match=r"cannot be read .* restore it, or start in another folder"):
        run.load("vae")


def test_pictures_and_texts_are_kept(tmp_path):
    run = begun(tmp_path)
    run.write_bytes("a.png", b"\x89PNG")
    assert run.write_text("a.html", "Straße").read_text(encoding="utf-8") == "Straße"
    assert (run.folder / "a.png").read_bytes() == b"\x89PNG"
