"""The space that generators share: leading axes of the representation, and leading axes of a scope in it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core import Array
from ...core.blocks import blocks
from ..numerics import pick, principal_components

MOST_FITTED = 10_000  # rows that axes are fitted to: more change nothing that could be seen
MOST_COLUMNS = 1024  # beyond which axes are found by random projections


@dataclass(frozen=True, eq=False)
class Axes:
    """An affine map to a few orthogonal axes.

    Parameters
    ----------
    centre
        (d,) what is subtracted.
    axes
        (d, r) orthogonal columns, all divided by one number.
    """

    centre: Array
    axes: Array

    def leading(self, count: int) -> Axes:
        """The same map with fewer axes."""
        return Axes(self.centre, self.axes[:, :count])

    def reduce(self, X: Any) -> Array:
        """(n, r) float32 coordinates, a block of rows at a time."""
        out = np.empty((len(X), self.axes.shape[1]), dtype=np.float32)
        for rows, block in blocks(X):
            out[rows] = (block.astype(np.float32, copy=False) - self.centre) @ self.axes
        return out


def fit_axes(X: Any, most: int, seed: int) -> Axes:
    """The leading axes of the rows, in units of the spread along all of them together.

    Parameters
    ----------
    X
        (n, d) rows; only a sample is read.
    most
        Axes at most.
    seed
        Of the sample.
    """
    sample = np.asarray(X[pick(len(X), MOST_FITTED, seed)], dtype=np.float64)
    centre = sample.mean(axis=0)
    sample -= centre
    if sample.shape[1] > MOST_COLUMNS:
        axes = principal_components(sample, most, seed, solver="randomized").components_.T
    else:
        _, axes = np.linalg.eigh(sample.T @ sample)  # ascending
        axes = axes[:, ::-1][:, :most]
    spread = float(np.sqrt(np.square(sample @ axes).sum(axis=1).mean()))
    return Axes(centre.astype(np.float32), (axes / max(spread, 1e-12)).astype(np.float32))


def nearest(points: Array, centres: Array) -> Array:
    """(n,) position of the centre that is nearest to each point, a block of points at a time."""
    half = 0.5 * np.square(centres, dtype=np.float32).sum(axis=1)
    found = np.empty(len(points), dtype=np.int64)
    step = max(1, (1 << 22) // max(1, len(centres)))
    for start in range(0, len(points), step):
        block = points[start : start + step]
        found[start : start + step] = (block @ centres.T - half).argmax(axis=1)
    return found
