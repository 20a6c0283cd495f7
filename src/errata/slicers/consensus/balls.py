"""Balls: the neighbourhood of a row, as wide as its evidence is largest. Compact groups of middling rates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from ...core import Array
from ...core.evidence import log_evidence
from ..numerics import pick

CENTRES = 300
SCANNED = 8000  # search rows
SMALLEST = 12
LARGEST = 0.25  # share of the scope
SIZES = 24
MOST_BALLS = 4
MOVES = 3  # of a centre to the middle of the bad rows around it


@dataclass(frozen=True, eq=False)
class Ball:
    """The rows around a point.

    Parameters
    ----------
    centre
        (r,) on the local axes.
    reach
        Squared distance of the farthest row.
    price
        Logarithm of the number of balls that were looked at.
    """

    centre: Array
    reach: float
    price: float


def find_balls(P: Array, bad: Array, base: float, seed: int) -> Iterator[Ball]:
    """The ball with most evidence, then the next among the rows that are left, while they have any.

    Parameters
    ----------
    P
        (m, r) search rows on local axes.
    bad
        (m,) bool.
    base
        The rate that a ball must exceed.
    seed
        Of the rows that are scanned and of the centres.
    """
    some = pick(len(P), SCANNED, seed)
    P = P[some]
    bad = bad[some]
    if len(P) < 2 * SMALLEST:
        return
    sizes = np.unique(np.geomspace(SMALLEST, max(SMALLEST + 1, LARGEST * len(P)), SIZES).astype(int))
    centres = P[pick(len(P), CENTRES, seed + 1)]
    price = float(np.log(len(centres) * len(sizes)))
    left = np.ones(len(P), dtype=bool)
    for _ in range(MOST_BALLS):
        best = (-np.inf, P[0], 0.0)
        for centre in centres:
            best = max(best, _scan(P, bad, left, centre, sizes, base), key=lambda found: found[0])
        best = _move(P, bad, left, best, sizes, base)
        evidence, centre, reach = best
        if evidence <= price:
            return
        yield Ball(centre, reach, price)
        left &= np.square(P - centre).sum(axis=1) > reach


Found = tuple[float, Array, float]  # evidence, centre, reach


def _scan(P: Array, bad: Array, left: Array, centre: Array, sizes: Array, base: float) -> Found:
    """The width with most evidence among the rows that are left."""
    distance = np.square(P - centre).sum(axis=1)
    near = np.argpartition(distance, sizes[-1] - 1)[: sizes[-1]]
    near = near[np.argsort(distance[near])]
    n = np.cumsum(left[near])[sizes - 1]
    errors = np.cumsum(left[near] & bad[near])[sizes - 1]
    evidence = log_evidence(n, errors, base)
    best = int(np.argmax(evidence))
    return float(evidence[best]), centre, float(distance[near[sizes[best] - 1]])


def _move(P: Array, bad: Array, left: Array, best: Found, sizes: Array, base: float) -> Found:
    """Move the centre to the middle of the bad rows inside, while that gains evidence."""
    for _ in range(MOVES):
        inside = (np.square(P - best[1]).sum(axis=1) <= best[2]) & bad & left
        if not inside.any():
            break
        moved = _scan(P, bad, left, P[inside].mean(axis=0), sizes, base)
        if moved[0] <= best[0]:
            break
        best = moved
    return best
