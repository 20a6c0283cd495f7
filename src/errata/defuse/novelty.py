"""How new generated mistakes are: the distance of each from the nearest image that the model already gets wrong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core import Array, InputError

BLOCK = 1 << 25  # numbers in a block of distances


@dataclass(frozen=True, eq=False)
class Novelty:
    """Distances of generated from known mistakes, Euclidean, of pixels in [0, 1]."""

    nearest: Array  # (m,) the known mistake that is nearest to each generated one
    distances: Array  # (m,) from it
    usual: Array  # (k,) of each known mistake from the nearest other one

    @property
    def farther(self) -> float | None:
        """The share of generated mistakes whose distance is above the median distance between known ones."""
        if not len(self.usual) or not len(self.distances):
            return None
        return float((self.distances > np.median(self.usual)).mean())


def novelty(generated: Array, known: Array) -> Novelty:
    """generated: (m, h, w, c) bytes; known: (k, h, w, c) bytes of images that the model gets wrong."""
    if generated.shape[1:] != known.shape[1:]:
        raise InputError(f"images must have one size; got {generated.shape[1:]} and {known.shape[1:]}")
    new = _flatten(generated)
    old = _flatten(known)
    usual = np.empty(0)
    if not len(old):
        return Novelty(np.zeros(len(new), dtype=np.int64), np.full(len(new), np.inf), usual)
    if len(old) > 1:
        usual = _nearest(old, old, but_itself=True)[1]
    nearest, distances = _nearest(new, old)
    return Novelty(nearest, distances, usual)


def _flatten(images: Array) -> Array:
    """(n, p) bytes as float64, in which squares and products of them are exact: equal images have a distance of 0."""
    return np.asarray(images, dtype=np.float64).reshape(len(images), int(np.prod(images.shape[1:])))


def _nearest(rows: Array, others: Array, but_itself: bool = False) -> tuple[Array, Array]:
    """(n,) which of the others is nearest to each row, and (n,) its distance."""
    nearest = np.empty(len(rows), dtype=np.int64)
    lengths = np.empty(len(rows))
    squares = np.square(others).sum(axis=1)
    step = max(1, BLOCK // max(1, len(others)))
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        distances = np.square(part).sum(axis=1)[:, None] + squares - 2 * part @ others.T
        if but_itself:
            distances[np.arange(len(part)), np.arange(start, start + len(part))] = np.inf
        nearest[start : start + step] = distances.argmin(axis=1)
        lengths[start : start + step] = np.sqrt(distances.min(axis=1)) / 255
    return nearest, lengths
