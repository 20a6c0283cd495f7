"""`errata defuse` as a user gives it: bad input is one sentence and exit code 2, and nothing is written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: nothing is generated")

from errata.cli import app as cli
from support import digits

MINE = """
from torch import nn

def net():
    return nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))

instance = net()

def pair():
    class Pair(nn.Sequential):
        def forward(self, x):
            return super().forward(x), x
    return Pair(*net())

def broken(size):
    return net()

def text():
    return "net"

def same(pixels):
    return pixels

def black(pixels):
    return pixels * 0

def blind(pictures):
    import numpy
    return numpy.full(len(pictures), -1)
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    from safetensors.torch import save_file

    folder = tmp_path_factory.mktemp("defuse")
    for name, (images, labels) in zip(("train", "held", "kept"), digits.parts(), strict=True):
        np.savez(folder / f"{name}.npz", images=images, labels=labels)
    (folder / "mine.py").write_text(MINE)
    save_file(digits.classifier().state_dict(), folder / "w.safetensors")
    (folder / "nothing.npz").touch()
    np.savez(folder / "bare.npz", images=np.zeros((5, 8, 8), np.uint8), labels=np.zeros(0, int))
    np.savez(folder / "large.npz", images=np.zeros((5, 9, 9), np.uint8), labels=np.zeros(5, int))
    return folder


def words_of(*arguments: str) -> list[str]:
    quick = [f"--set={key}={json.dumps(value)}" for key, value in digits.QUICK.items()]
    given = arguments if "--weights" in arguments else (*arguments, "--weights", "w.safetensors")
    return ["defuse", "train.npz", "--model", "mine:net", *quick, *given]


def defuse(place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "errata", *words_of(*arguments)]
    source = str(Path(__file__).parents[1] / "src")
    environment = {**os.environ, "PYTHONPATH": source, "OMP_NUM_THREADS": "1"}
    return subprocess.run(command, cwd=place, capture_output=True, text=True, env=environment)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-o", "x", "--prepare", "mine:black"], "no better than chance"),
        (["-o", "x", "--prepare", "mine:nothing"], "cannot import"),
        (["-o", "x", "--oracle", "mine"], "MODULE:FUNCTION"),
        (["-o", "x", "--set", "epoch=3"], "did you mean `epochs`"),
        (["-o", "x", "--set", "rho=2"], "`rho` must be a finite number, in [0, 1); got 2"),
        (["-o", "x", "--set", "centred=no"], "`centred` must be true or false; got 'no'"),
        (["-o", "x", "--model", "mine:pair"], "must give logits (2, k) of images (2, 1, 8, 8); got a tuple"),
        (["-o", "x", "--model", "mine:broken"], "called without arguments; it fails (TypeError: broken() missing 1"),
        (["-o", "x", "--model", "mine:text"], "must make the classifier, a torch.nn.Module; got str"),
        (["-o", "x", "--oracle", "mine:__name__"], "`mine:__name__` must be a function; got str"),
        (["-o", "x", "--test", "nothing.npz"], "`nothing.npz` cannot be read as .npz"),
        (["-o", "x", "--set", "split=test"], "measured on test rows"),
        (["-o", "x", "--vae", "none"], "is not a folder of `errata defuse`"),
        (["-o", "x", "--test", "bare.npz"], "`bare.npz` must have one label per image; got (0,) for 5 images"),
        (["-o", "x", "--test", "large.npz"], "images of (9, 9"),
        (["-o", "x", "--test", "none.npz"], "is no file"),
        (["-o", "x", "--weights", "held.npz"], "does not fit the classifier"),
    ],
)
def test_bad_input_is_a_sentence(
    place: Path, arguments: list[str], words: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process: another one imports torch for seconds."""
    monkeypatch.chdir(place)
    monkeypatch.delitem(sys.modules, "mine", raising=False)
    monkeypatch.setattr(sys, "argv", ["errata", *words_of(*arguments)])
    with pytest.raises(SystemExit) as stop:
        cli.main()
    said = capsys.readouterr().err
    assert stop.value.code == 2, said
    assert words in said
    assert len(said.strip().splitlines()) == 1
    assert not (place / "x").exists()


def test_it_stops_to_be_labelled_and_all_none_of_the_above_is_an_answer(place: Path) -> None:
    """The second command goes on from the first, with an oracle that recognises nothing."""
    first = defuse(place, "-o", "run", "--model", "mine:instance")  # a network needs no call
    assert first.returncode == 0, first.stderr
    assert "errata serve run" in first.stdout
    assert first.stdout.splitlines()[-1] == "run/report.html"
    vae = (place / "run" / "vae.safetensors").stat().st_mtime_ns
    second = defuse(place, "-o", "run", "--oracle", "mine:blind")
    assert second.returncode == 0, second.stderr
    assert "No region of" in second.stdout
    assert (place / "run" / "vae.safetensors").stat().st_mtime_ns == vae
    other = defuse(place, "-o", "run", "--set", "tau=0.5")
    assert other.returncode == 2
    assert "settings.tau" in other.stderr
    assert len(other.stderr.strip().splitlines()) == 1
    third = defuse(place, "-o", "third", "--vae", "run", "--set", "split=validation", "--validation", "held.npz")
    assert third.returncode == 0, third.stderr
    assert (place / "third" / "vae.safetensors").read_bytes() == (place / "run" / "vae.safetensors").read_bytes()
    assert json.loads((place / "third" / "mistakes.json").read_text())["facts"]["pictures"] == 600
