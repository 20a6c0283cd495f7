"""Does an audit stay silent where there is nothing to find, and speak where there is? One audit at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core import Audit
from ..core.gaps import wilson
from ..workflow import audit
from .null_worlds import copied_world, patients_world, planted_world, with_logits, world

ALPHA = 0.05
SEARCHERS = ("spotlight", "gmm")  # a search that reads no outcome of a row it places


@dataclass(frozen=True)
class NullOutcome:
    """What one audit found."""

    confirmed: bool  # any slice
    beyond_both: bool  # any confirmed slice that neither class nor confidence explains


@dataclass(frozen=True)
class BoundedShare:
    """A row of the table: how many of some audits had an outcome, and the bounds on that share."""

    what: str
    times: int
    audits: int
    at_most: float | None = None
    at_least: float | None = None

    @property
    def broken(self) -> bool:
        """Whether a bound does not hold."""
        share = self.times / self.audits
        too_many = self.at_most is not None and share > self.at_most
        return too_many or (self.at_least is not None and share < self.at_least)

    def __str__(self) -> str:
        low, high = wilson(self.times, self.audits)
        bounds = []
        if self.at_most is not None:
            bounds.append(f"<= {100 * self.at_most:.1f}%")
        if self.at_least is not None:
            bounds.append(f">= {100 * self.at_least:.0f}%")
        verdict = "ok" if bounds else "true, so not bounded"
        if self.broken:
            verdict = "BROKEN"
        rate = f"{100 * self.times / self.audits:5.1f}%"
        interval = f"[{100 * low:.1f}, {100 * high:.1f}]"
        return f"{self.what:58} {self.times:4}/{self.audits:<4} {rate} {interval:14} {' '.join(bounds):9} {verdict}"


def audit_null_world(kind: str, n: int, methods: tuple[str, ...] | None, seed: int) -> NullOutcome:
    """What methods, or those of a default audit, find in a world without a slice of its own."""
    rows = world(kind, n, seed)
    if methods and any(method.startswith("infembed") for method in methods):
        rows = with_logits(rows)
    result = audit(rows, methods=methods, seed=seed)
    return _outcome(result)


def _outcome(result: Audit) -> NullOutcome:
    both = any(slice_.beyond == ("class", "confidence") for slice_ in result.confirmed)
    return NullOutcome(bool(result.confirmed), both)


def audit_copied_world(n: int, noise: float, seed: int) -> NullOutcome:
    """What a default audit finds in random errors of rows that stand five times."""
    return _outcome(audit(copied_world(n, 5, noise, seed), seed=seed))


def audit_patients_world(n: int, column: bool, seed: int) -> NullOutcome:
    """What a default audit finds in errors of patients with twenty rows and a rate of their own each."""
    return _outcome(audit(patients_world(n, 20, seed, column), seed=seed))


def finds_planted(n: int, share: float, gap: float, seed: int, methods: tuple[str, ...] | None = SEARCHERS) -> bool:
    """Whether a slice is confirmed of which at least half was planted. methods: None for those of a default audit."""
    evaluation, bad = planted_world(n, share, gap, seed)
    result = audit(evaluation, methods=methods, seed=seed)
    return any(bad[slice_.members].mean() >= 0.5 for slice_ in result.confirmed)


def largest_share(audits: int) -> float:
    """The largest share of false alarms that passes: alpha and two standard errors of it."""
    return ALPHA + 2 * float(np.sqrt(ALPHA * (1 - ALPHA) / audits))
