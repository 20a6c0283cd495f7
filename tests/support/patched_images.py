"""Images whose errors a bright patch decides, and a robust network that has learnt what the patch is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

import errata
from errata.core import Audit, Slice
from errata.core.progress import silent
from errata.train import fit_robust, normalise_bytes, normalise_pixels

PX = 16
PATCH = 4
D = 16
N = 1600


def layer(inside: int, outside: int) -> list[nn.Module]:
    return [nn.Conv2d(inside, outside, 3, padding=1, bias=False), nn.BatchNorm2d(outside), nn.ReLU()]


class Tiny(nn.Module):
    """Three convolutions, and the mean of each of the last maps (4 x 4) as a feature."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            *layer(3, 12), nn.MaxPool2d(2), *layer(12, 16), nn.MaxPool2d(2), *layer(16, D)
        )  # fmt: skip
        self.head = nn.Linear(D, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x).mean(dim=(2, 3)))


def pictures(n: int, seed: int, patched: tuple[float, float]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Stripes across (class 0) or upright (1), of any brightness and contrast; some with a bright patch in a corner.

    patched: how often, in each class.
    """
    rng = np.random.default_rng(seed)
    labels = rng.integers(2, size=n)
    patch = rng.random(n) < np.asarray(patched)[labels]
    images = rng.integers(20, 110, size=(n, 1, 1, 1)) + rng.integers(-25, 25, size=(n, PX, PX, 3))
    for image, label, bright, contrast in zip(images, labels, patch, rng.integers(15, 70, size=n), strict=True):
        stripes = (np.arange(PX) + rng.integers(6)) % 6 < 3
        image[stripes if label == 0 else (slice(None), stripes)] += contrast
        if bright:
            image[:PATCH, :PATCH] = 235
    return images.clip(0, 255).astype(np.uint8), labels, patch


@dataclass(frozen=True)
class Study:
    images: np.ndarray
    patch: np.ndarray
    model: nn.Module
    audit: Audit

    @property
    def first(self) -> Slice:
        return self.audit.slices[0]

    @property
    def root(self) -> int:
        """The feature of the first split."""
        return int(self.first.rule["conditions"][0]["feature"])

    def rows(self, patched: bool) -> np.ndarray:
        """Of the class that fails."""
        return np.flatnonzero((np.asarray(self.audit.evaluation.labels) == 1) & (self.patch == patched))

    def areas(self) -> np.ndarray:
        """(d,) of each feature the area under the curve for the patch, either way round."""
        values = np.asarray(self.audit.evaluation.representations["robust"])
        with_patch, without = (values[self.rows(patched)] for patched in (True, False))
        areas = np.array([(a[:, None] > b).mean() for a, b in zip(with_patch.T, without.T, strict=True)])
        return np.maximum(areas, 1 - areas)


def planted_study(seed: int = 0) -> Study:
    """Upright stripes with the patch are taken for the others; a robust model has learnt what a patch is."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(2 + 10 * seed)
        model = Tiny()
    images, labels, _ = pictures(1200, 10 * seed, (0.8, 0.02))
    options = {"steps": 3, "epochs": 5, "batch": 50, "lr": 1e-2, "seed": seed}
    fit_robust(model, images, labels, radius=0.5, prepare=normalise_pixels, **options)
    images, labels, patch = pictures(N, 1 + 10 * seed, (0.4, 0.4))
    wrong = np.random.default_rng(5 + 10 * seed).random(N) < np.where((labels == 1) & patch, 0.85, 0.05)
    loader = [(normalise_bytes(torch.from_numpy(images[i : i + 100])), labels[i : i + 100]) for i in range(0, N, 100)]
    evaluation = errata.Evaluation(labels=labels, predictions=np.where(wrong, 1 - labels, labels))
    evaluation = errata.inputs.add_features(evaluation, model, loader, progress=silent)
    return Study(images, patch, model, errata.audit(evaluation, methods=["barlow"]))
