"""How new generated mistakes are: how far each lies from the nearest picture that the model already got wrong."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core import Array, InputError

BLOCK = 1 << 25  # numbers in a block of distances


@dataclass(frozen=True, eq=False)
class Novelty:
    """Distances are Euclidean, of pixels in [0, 1]. `usual`: of each known mistake from the next one."""

    nearest: Array  # (m,) the known mistake that is nearest to each generated one
    distances: Array  # (m,)
    usual: Array  # (k,)

    @property
    def farther(self) -> float | None:
        """Share of generated mistakes that lie farther off than known mistakes do from each other, at the median."""
        return (
            float((self.distances > np.median(self.usual)).mean()) if len(self.usual) and len(self.distances) else None
        )


def novelty(generated: Array, known: Array) -> Novelty:
    """generated: (m, h, w, c) bytes; known: (k, h, w, c) bytes of pictures that the model gets wrong."""
    if generated.shape[1:] != known.shape[1:]:
        raise InputError(f"pictures must have one size; got {generated.shape[1:]} and {known.shape[1:]}")
    made, had = _flat(generated), _flat(known)
    if not len(had):
        return Novelty(np.zeros(len(made), dtype=np.int64), np.full(len(made), np.inf), np.empty(0))
    nearest, distances = _nearest(made, had)
    usual = _nearest(had, had, but_itself=True)[1] if len(had) > 1 else np.empty(0)
    return Novelty(nearest, distances, usual)


def _flat(pictures: Array) -> Array:
    """(n, p) bytes as float64, in which squares and products of them are exact: equal pictures are at no distance."""
    return np.asarray(pictures, dtype=np.float64).reshape(len(pictures), int(np.prod(pictures.shape[1:])))


def _nearest(rows: Array, others: Array, but_itself: bool = False) -> tuple[Array, Array]:
    """(n,) which of the others is nearest to each row, and how far it is."""
    which, far = np.empty(len(rows), dtype=np.int64), np.empty(len(rows))
    squares, step = np.square(others).sum(axis=1), max(1, BLOCK // max(1, len(others)))
    for start in range(0, len(rows), step):
        part = rows[start : start + step]
        distances = np.square(part).sum(axis=1)[:, None] + squares - 2 * part @ others.T
        if but_itself:
            distances[np.arange(len(part)), np.arange(start, start + len(part))] = np.inf
        which[start : start + step] = distances.argmin(axis=1)
        far[start : start + step] = np.sqrt(distances.min(axis=1)) / 255
    return which, far
