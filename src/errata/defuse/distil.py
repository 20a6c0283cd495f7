"""Defuse's distillation: a Dirichlet-process Gaussian mixture over codes of mistakes; components are regions."""

from __future__ import annotations

import numpy as np
import torch

from ..core import Array, InputError
from .mixture import fit_mixture
from .regions import Mistakes, Regions

FEWEST = 2  # codes that have a spread
DIVERGED = 100  # spread of codes above which their generator is at fault; that of a trained one is about 1


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

    classes: how many there are. steps: of variational inference; the mixture is used as it is after them, converged or
    not.
    """
    if components < 1 or not 0 <= least < 1 or steps < 1:
        raise InputError(
            f"`components` and `steps` must be at least 1, `least` in [0, 1); got {components}, {steps}, {least}"
        )
    codes = np.asarray(mistakes.codes, dtype=np.float64)
    if len(codes) < FEWEST:
        z = codes.shape[1]
        counts = np.zeros((0, classes), dtype=np.int64)
        return Regions(np.zeros((0, z)), np.zeros((0, z, z)), np.zeros(0), counts, counts)
    distinct = len(np.unique(codes, axis=0))
    try:
        mixture = fit_mixture(codes, min(components, distinct), steps=steps, seed=seed, device=device)
    except torch.linalg.LinAlgError as error:  # type: ignore[attr-defined]  # documented, and not exported
        raise _no_mixture(codes) from error
    heavy = np.flatnonzero(mixture.weights > least)
    heavy = heavy[np.argsort(-mixture.weights[heavy], kind="stable")]
    return Regions(
        means=mixture.means[heavy],
        covariances=mixture.covariances[heavy],
        weights=mixture.weights[heavy],
        sources=_counts(mixture.belongs, mistakes.labels, heavy, classes),
        predictions=_counts(mixture.belongs, mistakes.predictions, heavy, classes),
    )


def _no_mixture(codes: Array) -> InputError:
    """The error for codes of which a covariance is not positive definite, with the cure for its cause."""
    spread = codes.std(axis=0).max()
    words = f"the codes of {len(codes):,} mistakes spread by {spread:.2g}"
    if spread > DIVERGED:
        return InputError(
            f"{words}, where those of a trained generator spread by about 1, and no mixture fits them; in another "
            "folder train it with a smaller `lr`"
        )
    return InputError(
        f"{words} and lie nearly on a line or a plane, so that no mixture fits them; in another folder widen the "
        "noise with a larger `scale`"
    )


def _counts(belongs: Array, values: Array, components: Array, classes: int) -> Array:
    """(r, k) how often each class occurs in each component."""
    counts = np.zeros((len(components), classes), dtype=np.int64)
    for i, component in enumerate(components):
        np.add.at(counts[i], values[belongs == component], 1)
    return counts
