"""Small networks for the studies, each kept in a cache under a name made of all that it was trained with."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from scipy.special import softmax
from scipy.stats import t as student
from torch import nn

from errata.train import fit, generalised_cross_entropy, network, outputs
from errata.train.resnet import ResNet18

Array = np.ndarray
NARROW = "resnet18, a quarter as wide"
NARROW_WIDTHS = (16, 32, 64, 128)


@dataclass(frozen=True)
class Recipe:
    """How a network is trained. q: of generalised cross-entropy; left out, cross-entropy."""

    epochs: int
    batch: int = 128
    lr: float = 3e-3
    q: float | None = None
    architecture: str = "small"


@dataclass(frozen=True, eq=False)
class Seen:
    """What a trained network says of rows it was asked about."""

    probs: Array  # (n, k)
    hidden: Array  # (n, d) its last layer's input


def seen_by(
    folder: Path,
    recipe: Recipe,
    rows: tuple[Array, Array],
    asked: Array,
    *,
    seed: int,
    weights: Array | None = None,
    device: str = "cpu",
) -> Seen:
    """rows: pictures (n, px, px, 3) and labels (n,) to train on. asked: pictures to read the trained network on."""
    path = folder / "networks" / f"{_digest(recipe, *rows, asked, seed, weights)}.npz"
    if not path.exists():
        pixels, labels = rows
        model = untrained(recipe.architecture, px=pixels.shape[1], outputs=int(labels.max()) + 1, seed=seed)
        loss = None if recipe.q is None else generalised_cross_entropy(recipe.q)
        settings = {"epochs": recipe.epochs, "batch": recipe.batch, "lr": recipe.lr}
        fit(model, pixels, labels, seed=seed, weights=weights, loss=loss, device=device, **settings)
        logits, hidden = outputs(model, asked, device=device)
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez(path, probs=softmax(logits.astype(np.float64), axis=1), hidden=hidden)
    with np.load(path, allow_pickle=False) as file:
        return Seen(file["probs"], file["hidden"])


def untrained(architecture: str, *, px: int, outputs: int, seed: int) -> nn.Module:
    """A network of `errata.train`, or one that a CPU trains in minutes."""
    if architecture != NARROW:
        return network(architecture, px=px, outputs=outputs, seed=seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return ResNet18(outputs, px, NARROW_WIDTHS)


def _digest(*parts: object) -> str:
    digest = hashlib.blake2b(digest_size=12)
    for part in parts:
        if isinstance(part, np.ndarray):
            digest.update(np.ascontiguousarray(part))
        else:
            digest.update(repr(part).encode())
    return digest.hexdigest()


def over_runs(values: Sequence[float], digits: int = 3) -> str:
    """The mean over runs and its 95% interval by Student's t."""
    mean = float(np.mean(values))
    n = len(values)
    half = float(student.ppf(0.975, n - 1) * np.std(values, ddof=1) / np.sqrt(n))
    return f"{mean:.{digits}f} ({mean - half:.{digits}f} to {mean + half:.{digits}f}, n = {n})"


def over_finite_runs(values: Sequence[float], digits: int = 2) -> str:
    """As `over_runs`, of the runs that have a value: n is their number. A dash where fewer than two have one."""
    finite = [value for value in values if np.isfinite(value)]
    if len(finite) < 2:
        return "–"
    return over_runs(finite, digits)
