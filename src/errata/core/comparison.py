"""Two models on the same rows: what became of each frozen slice, of the rest, and of everything."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from .blocks import Array
from .gaps import wilson
from .paired import change_interval, turned

SCHEMA = "errata.comparison/1"

Judgement = Literal["better", "worse", "no change shown"]


@dataclass(frozen=True)
class Change:
    """One group of rows, before and after. Its own rates have 95% intervals (Wilson); that of the change is shared."""

    id: str  # a slice's, or "overall", "rest"
    name: str
    task: str
    n: int
    before_errors: int
    after_errors: int
    before_rate: float | None  # None without rows
    after_rate: float | None
    before_interval: tuple[float, float]
    after_interval: tuple[float, float]
    fixed: int
    broken: int
    change: float | None  # of the rate: negative is better
    interval: tuple[float, float]  # simultaneous over all changes of the comparison
    judgement: Judgement


@dataclass(frozen=True)
class Comparison:
    """Everything first, then the rest, then the slices in the order of the audit."""

    changes: tuple[Change, ...]
    outcome: str  # what counts as bad
    alpha: float  # the chance that any of the intervals misses, on each side
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, id: str) -> Change:
        return next(change for change in self.changes if change.id == id)

    def to_json(self) -> dict[str, Any]:
        changes = [asdict(change) for change in self.changes]
        plain = {"schema": SCHEMA, "outcome": self.outcome, "alpha": self.alpha}
        return {**plain, "changes": changes, "facts": dict(self.facts)}

    @classmethod
    def from_json(cls, told: Mapping[str, Any]) -> Comparison:
        pairs = ("before_interval", "after_interval", "interval")
        changes = (Change(**{**one, **{name: tuple(one[name]) for name in pairs}}) for one in told["changes"])
        return cls(tuple(changes), told["outcome"], told["alpha"], told["facts"])


@dataclass(frozen=True, eq=False)
class Group:
    """Some rows of a task, with their outcomes under both models."""

    id: str
    name: str
    task: str
    inside: Array  # (n,) bool
    before: Array  # (n,) 0/1
    after: Array  # (n,) 0/1


def measure(group: Group, groups: Array | None, level: float) -> Change:
    """level: the chance, on each side, that the change's interval misses."""
    before, after = group.before[group.inside], group.after[group.inside]
    n, wrong, still = len(before), int(before.sum()), int(after.sum())
    low, high = change_interval(turned(before, after, None if groups is None else groups[group.inside]), level)
    return Change(
        group.id, group.name, group.task, n, wrong, still,
        before_rate=wrong / n if n else None,
        after_rate=still / n if n else None,
        before_interval=wilson(wrong, n),
        after_interval=wilson(still, n),
        fixed=int((before > after).sum()),
        broken=int((after > before).sum()),
        change=(still - wrong) / n if n else None,
        interval=(low, high),
        judgement="better" if high < 0 else "worse" if low > 0 else "no change shown",
    )  # fmt: skip
