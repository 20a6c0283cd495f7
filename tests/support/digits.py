"""Small digits, a classifier that learnt from few of them, and a run of `errata defuse` that takes seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

Pictures = tuple[np.ndarray, np.ndarray]
QUICK: dict[str, Any] = {
    "epochs": 30, "batch": 64, "anneal": 100, "q": 20, "cap": 5, "components": 12, "least": 0.02, "shown": 6,
    "tuning": 32, "testing": 32, "strengths": (0.1, 1.0), "tune_epochs": 20, "tune_lr": 1e-3, "baseline": False,
}  # fmt: skip


def pictures() -> Pictures:
    """8 x 8 pixels, as they come with scikit-learn."""
    from sklearn.datasets import load_digits

    images, labels = load_digits(return_X_y=True)
    order = np.random.default_rng(0).permutation(len(labels))
    return (images.reshape(-1, 8, 8) * 255 / 16).astype(np.uint8)[order], labels[order].astype(np.int64)


def parts() -> tuple[Pictures, Pictures, Pictures]:
    """Learnt from, choosing, and kept apart."""
    images, labels = pictures()
    return (images[:400], labels[:400]), (images[400:1000], labels[400:1000]), (images[1000:], labels[1000:])


def classifier() -> Any:
    """Right on about four of five."""
    import torch
    from torch import nn

    from errata.train import fine_tune

    learnt, held, _ = parts()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Flatten(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    return fine_tune(model, learnt, validation=held, epochs=6, batch=32, lr=3e-3)[0]


def said(images: np.ndarray) -> np.ndarray:
    """What the classifier calls them."""
    import torch

    classes: np.ndarray = classifier()(torch.from_numpy(images[:, None] / np.float32(255))).argmax(dim=1).numpy()
    return classes


def go_on(folder: Path, **more: Any) -> Any:
    """The run of this folder, as far as it comes."""
    from errata.defuse import DefuseSettings, defuse

    learnt, held, kept = parts()
    given = {"validation": held, "test": kept, "settings": DefuseSettings(**QUICK), **more}
    return defuse(classifier(), learnt, folder, **given)
