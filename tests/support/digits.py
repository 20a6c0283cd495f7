"""Small digits, a classifier trained on few of them, and a run of `errata defuse` that takes seconds.

A plugin of pytest: `digits_run` is one run for all tests of a session, to be copied before it is changed.
"""

from __future__ import annotations

import copy
import functools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

Labelled = tuple[np.ndarray, np.ndarray]
QUICK: dict[str, Any] = {
    "epochs": 30,
    "faithful": 0.0,  # a generator of seconds
    "batch": 64,
    "anneal": 100,
    "q": 20,
    "cap": 5,
    "components": 12,
    "least": 0.02,
    "shown": 6,
    "tuning": 32,
    "testing": 32,
    "strengths": (0.1, 1.0),
    "tune_epochs": 20,
    "tune_lr": 1e-3,
    "baseline": False,
}


@functools.cache
def images() -> Labelled:
    """8 x 8 pixels, as they come with scikit-learn."""
    from sklearn.datasets import load_digits

    pixels, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    return (pixels.reshape(-1, 8, 8) * 255 / 16).astype(np.uint8)[order], labels[order].astype(np.int64)


def splits() -> tuple[Labelled, Labelled, Labelled]:
    """Training, validation and test rows."""
    pixels, labels = images()
    return (pixels[:400], labels[:400]), (pixels[400:1000], labels[400:1000]), (pixels[1000:], labels[1000:])


@functools.cache
def _trained() -> Any:
    import torch
    from torch import nn

    from errata.train import fine_tune

    train, validation, _ = splits()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    return fine_tune(model, train, validation=validation, epochs=6, batch=32, lr=3e-3)[0]


def classifier() -> Any:
    """A copy of its own, right on about four of five."""
    return copy.deepcopy(_trained())


def predict(pixels: np.ndarray) -> np.ndarray:
    """The classifier's classes."""
    import torch

    classes: np.ndarray = _trained()(torch.from_numpy(pixels[:, None] / np.float32(255))).argmax(dim=1).numpy()
    return classes


def run_defuse(folder: Path, **changes: Any) -> Any:
    """Create the run of a folder, or resume it, as far as it comes."""
    from errata.defuse import DefuseSettings, defuse

    train, validation, test = splits()
    options = {"validation": validation, "test": test, "settings": DefuseSettings(**QUICK), **changes}
    return defuse(classifier(), train, folder, **options)


@pytest.fixture(scope="session")
def digits_run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that waits for labels. Copy it: other tests use it too."""
    pytest.importorskip("torch", reason="torch is not installed: nothing is generated")
    folder = tmp_path_factory.mktemp("digits") / "run"
    assert run_defuse(folder).stage == "to label"
    return folder


@pytest.fixture
def quick_map(monkeypatch: pytest.MonkeyPatch) -> None:
    """For runs whose map is not looked at: it takes as long as all else of a run, and `digits_run` has a true one."""
    from errata.defuse import figure

    def first_and_last_column(evaluation: Any, name: str, **_: Any) -> np.ndarray:
        return evaluation.representations[name][:, [0, -1]]

    monkeypatch.setattr(figure, "lay_out", first_and_last_column)
