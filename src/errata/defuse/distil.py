"""Defuse's distillation: a Dirichlet-process Gaussian mixture over codes of mistakes; components are regions."""

from __future__ import annotations

import numpy as np
import torch

from ..core import Array, InputError
from .mixture import fit_mixture
from .regions import Mistakes, Regions

FEWEST = 2  # codes that have a spread


def distil(
    mistakes: Mistakes,
    *,
    classes: int,
    components: int = 100,
    least: float = 0.01,
    steps: int = 100,
    seed: int = 0,
    device: torch.device | str | None = None,
) -> Regions:
    """At most `components` regions, those with a weight above `least`; none where there are no mistakes.

    steps: of variational inference; the mixture needs no more than it takes to sort codes, and is used where it stops.
    """
    if components < 1 or not 0 <= least < 1 or steps < 1:
        raise InputError(
            f"`components` and `steps` start at 1, `least` lies in [0, 1); got {components}, {steps}, {least}"
        )
    codes = np.asarray(mistakes.codes, dtype=np.float64)
    if len(codes) < FEWEST:
        return _none(codes.shape[1], classes)
    found = fit_mixture(codes, min(components, len(np.unique(codes, axis=0))), steps=steps, seed=seed, device=device)
    kept = np.flatnonzero(found.weights > least)
    kept = kept[np.argsort(-found.weights[kept], kind="stable")]
    return Regions(
        means=found.means[kept], covariances=found.covariances[kept], weights=found.weights[kept],
        sources=_counts(found.belongs, mistakes.labels, kept, classes),
        predictions=_counts(found.belongs, mistakes.predictions, kept, classes),
    )  # fmt: skip


def _counts(belongs: Array, values: Array, kept: Array, classes: int) -> Array:
    """(r, k) how often each class stands in each region."""
    counts = np.zeros((len(kept), classes), dtype=np.int64)
    for place, j in enumerate(kept):
        np.add.at(counts[place], values[belongs == j], 1)
    return counts


def _none(z: int, classes: int) -> Regions:
    counts = np.zeros((0, classes), dtype=np.int64)
    return Regions(np.zeros((0, z)), np.zeros((0, z, z)), np.zeros(0), counts, counts)
