"""`errata defuse` as a user gives it: bad input is one sentence and exit code 2, and nothing is written."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: nothing is generated")

import torch

from errata.cli import app as cli
from errata.defuse.command import _classifier
from errata.train import network
from support import digits
from support.command import run

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
    for name, (images, labels) in zip(("train", "held", "kept"), digits.splits(), strict=True):
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


@pytest.fixture
def defuse(
    place: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[..., tuple[int, str, str]]:
    """Exit code, stdout and stderr of the command. In this process: another one imports torch for seconds."""
    monkeypatch.chdir(place)

    def run(*arguments: str) -> tuple[int, str, str]:
        monkeypatch.delitem(sys.modules, "mine", raising=False)
        monkeypatch.setattr(sys, "argv", ["errata", *words_of(*arguments)])
        with pytest.raises(SystemExit) as stop:
            cli.main()
        printed = capsys.readouterr()
        return stop.value.code, printed.out, printed.err

    return run


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-o", "x", "--prepare", "mine:black"], "no better than chance"),
        (["-o", "x", "--prepare", "mine:nothing"], "cannot import"),
        (["-o", "x", "--oracle", "mine"], "MODULE:FUNCTION"),
        (["-o", "x", "--set", "epoch=3"], "did you mean `epochs`"),
        (["-o", "x", "--set", "nosuch=3"], "unknown setting `nosuch`; known: a, anneal, b, "),
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
    place: Path, defuse: Callable[..., tuple[int, str, str]], arguments: list[str], words: str
) -> None:
    code, _, error = defuse(*arguments)
    assert code == 2, error
    assert words in error
    assert len(error.strip().splitlines()) == 1
    assert not (place / "x").exists()


@pytest.mark.usefixtures("quick_map")
def test_it_stops_to_be_labelled_and_all_none_of_the_above_is_an_answer(
    place: Path, defuse: Callable[..., tuple[int, str, str]]
) -> None:
    """The second command resumes the run of the first, with an oracle that recognises nothing."""
    code, out, error = defuse("-o", "run", "--model", "mine:instance")  # a network needs no call
    assert code == 0, error
    assert "errata serve run" in out
    assert out.splitlines()[-1] == "run/report.html"
    vae = (place / "run" / "vae.safetensors").stat().st_mtime_ns
    code, out, error = defuse("-o", "run", "--oracle", "mine:blind")
    assert code == 0, error
    assert "No region of" in out
    assert (place / "run" / "vae.safetensors").stat().st_mtime_ns == vae
    code, _, error = defuse("-o", "run", "--set", "tau=0.5")
    assert code == 2
    assert "settings.tau" in error
    assert len(error.strip().splitlines()) == 1
    code, _, error = defuse("-o", "third", "--vae", "run", "--set", "split=validation", "--validation", "held.npz")
    assert code == 0, error
    assert (place / "third" / "vae.safetensors").read_bytes() == (place / "run" / "vae.safetensors").read_bytes()
    assert json.loads((place / "third" / "mistakes.json").read_text())["facts"]["pictures"] == 600


def test_a_module_that_ends_the_program_is_an_error(tmp_path: Path) -> None:
    """It was a silent success: `sys.exit(0)` in it."""
    (tmp_path / "leaves_at_once.py").write_text("import sys\nsys.exit(0)\n")
    (tmp_path / "leaves_later.py").write_text("import sys\ndef make():\n    sys.exit(0)\n")
    images = np.random.default_rng(0).integers(0, 255, (30, 8, 8), dtype=np.uint8)
    np.savez(tmp_path / "x.npz", images=images, labels=np.arange(30) % 2)
    for module in ("leaves_at_once", "leaves_later"):
        code, _, err = run("defuse", "x.npz", "--model", f"{module}:make", "-o", "run", folder=tmp_path)
        assert (code, "SystemExit: 0" in err) == (2, True), err
        assert not (tmp_path / "run").exists()


def test_a_file_beside_never_takes_the_place_of_an_installed_package(tmp_path: Path) -> None:
    (tmp_path / "narwhals.py").write_text("raise RuntimeError('the file in this folder ran')\n")
    np.savez(tmp_path / "x.npz", images=np.zeros((30, 8, 8), dtype=np.uint8), labels=np.arange(30) % 2)
    before = sys.modules.pop("narwhals", None)
    try:
        code, _, err = run("defuse", "x.npz", "--model", "narwhals:nothing", "-o", "run", folder=tmp_path)
    finally:
        if before is not None:
            sys.modules["narwhals"] = before
    assert (code, "has no attribute 'nothing'" in err) == (2, True), err


def test_a_single_image_leaves_nothing(tmp_path: Path) -> None:
    text = "from torch import nn\ndef make():\n    last = nn.Linear(64, 2)\n    last.bias.data[0] = 99\n"
    (tmp_path / "tiny_net.py").write_text(text + "    return nn.Sequential(nn.Flatten(), last)\n")
    np.savez(tmp_path / "x.npz", images=np.zeros((1, 8, 8), dtype=np.uint8), labels=np.zeros(1, int))
    before = sorted(tmp_path.iterdir())
    code, _, err = run("defuse", "x.npz", "--model", "tiny_net:make", "-o", "run", folder=tmp_path)
    assert (code, "needs 2 images" in err) == (2, True), err
    assert [path for path in sorted(tmp_path.iterdir()) if path.name != "__pycache__"] == before


@pytest.mark.parametrize(("shape", "channels"), [((10, 16, 16), 1), ((10, 16, 16, 1), 1), ((10, 16, 16, 3), 3)])
def test_a_network_of_ours_has_the_channels_of_the_images(tmp_path, shape, channels):
    from safetensors.torch import save_file

    save_file(network("small", px=16, outputs=2, channels=channels).state_dict(), tmp_path / "w.safetensors")
    model, _ = _classifier("small", tmp_path / "w.safetensors", shape, 2)
    assert model(torch.zeros(2, channels, 16, 16)).shape == (2, 2)
