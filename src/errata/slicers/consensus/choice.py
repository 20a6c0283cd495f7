"""The honest choice: which of many overlapping candidates are told, by evidence on search rows and a price for each.

A set of slices explains the outcomes of search rows better the more evidence its slices have in sum, each row
counted once. So a candidate stands against the smaller ones inside it: it takes their place where it has more evidence
than they have together, and else is told only where what it adds stands out by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from ...core import Array
from ...core.membership import OVERLAP, jaccard
from .evidence import log_evidence

INSIDE = 0.5  # share of a slice's rows in a larger one from which it is a part of it
JOINED = 1.25  # times their evidence: what several slices need to be told as one, since someone told them apart
ADDED = 0.5  # share of a candidate's rows that must be new, for what it adds to be told


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
        Those of a lower rank enter first: they tell groups apart by geometry as well as by their rate.
    found_by
        The parts that found it or a near-copy.
    """

    part: int
    index: int
    members: Array
    base: float
    price: float
    rank: int = 0
    found_by: set[int] = field(default_factory=set)
    value: float = 0.0

    def evidence(self, bad: Array, rows: Array | None = None) -> float:
        """Evidence of its rows, or of some of them, after its price."""
        inside = self.members if rows is None else rows
        return float(log_evidence(inside.sum(), bad[inside].sum(), self.base)) - self.price


def choose(candidates: Sequence[Candidate], bad: Array, most: int) -> list[Candidate]:
    """The candidates that are told, most excess first.

    Parameters
    ----------
    candidates
        All that were found.
    bad
        (m,) bool: outcomes of the search rows.
    most
        How many are told at most.
    """
    chosen: list[Candidate] = []
    for candidate in candidates:
        candidate.value = candidate.evidence(bad)
        candidate.found_by = {candidate.part}
    standing = [candidate for candidate in candidates if candidate.value > 0]
    for candidate in sorted(standing, key=lambda c: (c.rank, int(c.members.sum()), -c.value)):
        _enter(candidate, chosen, bad)
    chosen.sort(key=lambda c: -c.value)
    chosen = chosen[:most]
    _note_copies(chosen, standing)
    return chosen


def _enter(candidate: Candidate, chosen: list[Candidate], bad: Array) -> None:
    """Let a candidate take the place of smaller ones, stand beside them, or leave."""
    inside = [c for c in chosen if (c.members & candidate.members).sum() >= INSIDE * c.members.sum()]
    others = [c for c in chosen if c not in inside]
    alone = _value_beside(candidate, others, bad)
    margin = JOINED if any(c.rank < candidate.rank for c in inside) else 1.0
    if inside and alone > margin * sum(c.value for c in inside):
        chosen[:] = others
        candidate.value = alone
    else:
        candidate.value = _value_beside(candidate, chosen, bad)
    if candidate.value > 0:
        chosen.append(candidate)


def _value_beside(candidate: Candidate, chosen: Sequence[Candidate], bad: Array) -> float:
    """The evidence of the rows that no chosen slice has; nothing where too few are left."""
    rest = candidate.members.copy()
    for c in chosen:
        rest &= ~c.members
    if rest.sum() < ADDED * candidate.members.sum():
        return 0.0
    return min(candidate.evidence(bad), candidate.evidence(bad, rest))


def _note_copies(chosen: Sequence[Candidate], standing: Sequence[Candidate]) -> None:
    """Which parts found each chosen slice too."""
    for c in chosen:
        for other in standing:
            if jaccard(c.members, other.members) >= OVERLAP:
                c.found_by.add(other.part)
