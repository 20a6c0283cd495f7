"""The honest choice: which of many overlapping candidates are told, by evidence on search rows and a price for each.

A set of slices explains the outcomes of search rows better the more evidence its slices have in sum, where each row is
counted once, for the slice with the highest rate that holds it. Slices are added one by one while that sum grows, and
dropped again where others have made them needless. Groups that geometry told apart come first and stay: a slice that
joins two of them has as much evidence as they have, and says less.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..core import Array
from ..core.evidence import log_evidence
from ..core.membership import OVERLAP, jaccard

ADDED = 0.5  # share of a slice's rows that no sharper slice has, for it to be told
ALWAYS = 5  # slices that are told where there are any, so that small data is tested too
CONSIDERED = 100  # candidates that are compared, those with most evidence


@dataclass(eq=False)
class Candidate:
    """One slice of one generator in one scope.

    Parameters
    ----------
    part, index
        Which cells found it, and which of their slices it is.
    members
        (m,) bool: search rows, none of which chose itself.
    base
        The rate it must exceed.
    price
        Logarithm of how many were looked at to find it.
    rank
        0 for a group that geometry told apart from its neighbours, 1 for others.
    found_by
        The parts that found it or a near-copy.
    """

    part: int
    index: int
    members: Array
    base: float
    price: float
    rank: int = 1
    found_by: set[int] = field(default_factory=set)

    def value(self, bad: Array, rows: Array) -> float:
        """Evidence of some of its rows, after its price; a price alone where they are not worse than `base`."""
        evidence = float(log_evidence(rows.sum(), bad[rows].sum(), self.base))
        return max(evidence, 0.0) - self.price

    def evidence(self, bad: Array) -> float:
        """Evidence of all its rows, whatever it costs."""
        return float(log_evidence(self.members.sum(), bad[self.members].sum(), self.base))

    def rate(self, bad: Array) -> float:
        """The share of bad ones among its rows, drawn to the base rate where there are few."""
        return float((bad[self.members].sum() + self.base) / (self.members.sum() + 1))


def choose(candidates: Sequence[Candidate], bad: Array, most: int, after_price: bool = False) -> list[Candidate]:
    """The candidates that are told, those with most evidence first.

    Parameters
    ----------
    candidates
        All that were found.
    bad
        (m,) bool: outcomes of the search rows.
    most
        How many are told at most.
    after_price
        Whether candidates whose evidence does not pay their price are ranked by what is left of it, where too few
        others are told: prices differ much, so that evidence alone would prefer the dearest.
    """
    standing = [candidate for candidate in candidates if candidate.value(bad, candidate.members) > 0]
    standing.sort(key=lambda c: -c.value(bad, c.members))
    standing = standing[:CONSIDERED]
    apart = _grow([], [c for c in standing if c.rank == 0], bad, most)
    told = _grow(apart, [c for c in standing if c.rank > 0], bad, most)
    told = _fill(told, candidates, bad, min(most, ALWAYS), after_price)
    for candidate in told:
        copies = (c for c in standing if jaccard(candidate.members, c.members) >= OVERLAP)
        candidate.found_by = {candidate.part, *(c.part for c in copies)}
    return sorted(told, key=lambda c: -c.value(bad, c.members))


def _grow(fixed: list[Candidate], pool: Sequence[Candidate], bad: Array, most: int) -> list[Candidate]:
    """Add the candidate that adds most evidence, drop what that made needless, until nothing adds any."""
    told = list(fixed)
    total = _total(told, bad)
    while len(told) < most:
        gains = [(_total([*told, c], bad), i) for i, c in enumerate(pool) if c not in told]
        if not gains or max(gains)[0] <= total + 1e-9:
            break
        total, best = max(gains, key=lambda gain: (gain[0], -gain[1]))
        told.append(pool[best])
        for candidate in [c for c in told if c not in fixed]:
            without = [c for c in told if c is not candidate]
            if _total(without, bad) > total:
                told = without
                total = _total(told, bad)
    return told


def _fill(
    told: list[Candidate], candidates: Sequence[Candidate], bad: Array, least: int, after_price: bool
) -> list[Candidate]:
    """Add the next best of new rows where few are told: held-out rows may say what too few search rows cannot."""
    told = list(told)
    taken = np.zeros(len(bad), dtype=bool)
    for c in told:
        taken |= c.members
    ranked = sorted(candidates, key=lambda c: -c.evidence(bad) + after_price * c.price)
    for c in ranked:
        if len(told) >= least:
            break
        new = c.members & ~taken
        adds = new.sum() > ADDED * c.members.sum() and bad[new].mean() > c.base
        if adds and c not in told:
            told.append(c)
            taken |= c.members
    return told


def _total(told: Sequence[Candidate], bad: Array) -> float:
    """The evidence of slices in sum, each row counted for the sharpest; a slice of few rows of its own only costs."""
    left = np.ones(len(bad), dtype=bool)
    total = 0.0
    for candidate in sorted(told, key=lambda c: (c.rank, -c.rate(bad))):
        rows = candidate.members & left
        left &= ~candidate.members
        if rows.sum() < ADDED * candidate.members.sum():
            rows[:] = False
        total += candidate.value(bad, rows)
    return total
