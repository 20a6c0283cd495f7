"""The recipe for public robust checkpoints, run as the page has it, with a small network in their place."""

from __future__ import annotations

import pickle
import re
import sys
import types
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402  # only once torch is known to be there

import errata  # noqa: E402
from errata.core import InputError  # noqa: E402
from errata.train import fit, fit_robust, network, normalise_bytes  # noqa: E402

torch.set_num_threads(1)
PAGE = Path(__file__).parents[1] / "docs" / "how-to" / "use-a-robust-checkpoint.md"
METHOD = PAGE.parents[1] / "explanation" / "methods" / "barlow.md"
PX = 16


def tiny() -> nn.Module:
    torch.manual_seed(0)
    body = [nn.Conv2d(3, 8, 3, 2, 1), nn.ReLU(), nn.Conv2d(8, 12, 3, 2, 1), nn.ReLU()]
    return nn.Sequential(*body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(12, 2))


def pictures(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Dark and bright ones."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(2, size=n)
    images = rng.integers(0, 120, size=(n, PX, PX, 3)) + 90 * labels[:, None, None, None]
    return images.astype(np.uint8), labels


def snippets() -> list[str]:
    """The conversion, and what it is converted for."""
    return re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)


def snippet() -> str:
    return snippets()[1]


class Parameters:
    """An object of another package, as files of `robustness` hold them."""


@pytest.fixture
def place(tmp_path, monkeypatch):
    """The working folder with a checkpoint in the public form, and a torchvision that makes the small network."""
    normalise = {}
    exec(snippet().partition("saved =")[0].replace("import torch, torchvision", "import torch"), normalise)
    model = tiny()
    images, labels = pictures(300, 0)
    fit_robust(model, images, labels, radius=0.5, steps=2, epochs=4, batch=50, lr=1e-2, prepare=normalise["normalise"])
    state = {f"module.model.{name}": value for name, value in model.state_dict().items()}
    state |= {f"module.attacker.model.{name}": torch.zeros(1) for name in model.state_dict()}
    torch.save({"model": state, "epoch": 3}, tmp_path / "resnet50_l2_eps3.ckpt")
    fake = types.ModuleType("torchvision")
    fake.models = types.SimpleNamespace(resnet50=tiny)
    monkeypatch.setitem(sys.modules, "torchvision", fake)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_page_runs_as_it_is(place, capsys):
    images, labels = pictures(400, 1)
    images[: len(images) // 4] = 255 - images[: len(images) // 4]  # so that something fails
    names = {"images": images, "labels": labels, "audited": tiny()}
    exec(snippet(), names)
    accuracies = [
        float(line.split()[1]) for line in capsys.readouterr().out.splitlines() if line.startswith(("0.0", "3.0"))
    ]
    assert accuracies[0] > 0.7 > accuracies[1]
    audit = errata.load(place / "audit")
    assert audit.evaluation.representations["robust"].shape == (400, 12)
    shown = [e.kind for slice_ in audit.slices for e in slice_.explanations]
    assert shown.count("features") == len(audit.slices) > 0
    assert "data:image/png" in (place / "audit" / "report.html").read_text()


def test_a_checkpoint_that_holds_objects_is_converted(place, monkeypatch):
    try:
        import dill
    except ImportError:  # no requirement of the tests; pickle is the part of it that is used here
        dill = pickle
    monkeypatch.setitem(sys.modules, "dill", dill)
    converted = place / "resnet50_l2_eps3.ckpt"
    saved = torch.load(converted, weights_only=True)
    converted.unlink()
    for name in ("model", "state_dict"):
        torch.save({name: saved["model"], "args": Parameters()}, place / "imagenet_l2_3_0.pt", pickle_module=dill)
        with pytest.raises(pickle.UnpicklingError):
            torch.load(place / "imagenet_l2_3_0.pt", weights_only=True)
        exec(snippets()[0], {})
        again = torch.load(converted, weights_only=True)["model"]
        assert again.keys() == saved["model"].keys()
        assert all(torch.equal(again[key], value) for key, value in saved["model"].items())


def test_another_normalisation_is_refused_before_a_picture_is_drawn(place):
    images, labels = pictures(200, 2)
    names = {"images": images, "labels": labels, "audited": tiny()}
    wrong = snippet().replace("robust, images, prepare=normalise, ", "robust, images, ")
    assert wrong != snippet()
    with pytest.raises(InputError, match="its `prepare`"):
        exec(wrong, names)


def test_the_methods_page_runs_as_it_is(tmp_path, monkeypatch):
    """But for the network and the epochs, which are smaller."""
    told = re.findall(r"```python\n(.*?)```", METHOD.read_text(), re.DOTALL)[0]
    smaller = told.replace('"resnet18-slim", px=32, outputs=10', f'"small", px={PX}, outputs=2')
    smaller = smaller.replace("epochs=40, batch=512", "epochs=4, batch=50")
    assert smaller.count(f"px={PX}") == smaller.count("epochs=4,") == 1
    images, labels = pictures(300, 0)
    audited = network("small", px=PX, outputs=2)
    fit(audited, images, labels, epochs=4, batch=50, lr=1e-2)
    test_images, truth = pictures(400, 1)
    test_images[:100] = 255 - test_images[:100]  # so that something fails
    names = {"images": images, "labels": labels, "held_out": pictures(100, 2), "audited": audited}
    names |= {"test_images": test_images, "test_labels": truth, "test_parts": [(test_images, truth)]}
    names |= {"loader": [(normalise_bytes(torch.from_numpy(test_images)), torch.from_numpy(truth))]}
    monkeypatch.chdir(tmp_path)
    exec(smaller, names)
    audit = errata.load(tmp_path / "audit")
    assert audit.evaluation.representations["robust"].shape == (400, 64)
    shown = [explanation.kind for found in audit.slices for explanation in found.explanations]
    assert shown.count("features") == len(audit.slices) > 0
    assert "data:image/png" in (tmp_path / "audit" / "report.html").read_text()
