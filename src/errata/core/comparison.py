"""Two models on the same rows: how each frozen slice, the rest and all rows changed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from .blocks import Array
from .gaps import wilson
from .id_order import draw_in_order
from .paired import change_interval, count_changes, visible_rise

SCHEMA = "errata.comparison/1"

Judgement = Literal["better", "worse", "no change shown"]
Kind = Literal["all", "rest", "slice", "group", "found", "new"]


@dataclass(frozen=True)
class Change:
    """One group of rows, before and after.

    Attributes
    ----------
    id : str
        A slice's, or "overall", "rest".
    name, task : str
        Of the slice.
    n : int
        Rows.
    before_errors, after_errors : int
        Bad outcomes.
    before_rate, after_rate : float, optional
        Their share; None without rows.
    before_interval, after_interval : (float, float)
        Of the rates: Wilson's, 95%.
    fixed, broken : int
        Rows that were wrong and now are right, and the other way round.
    change : float, optional
        Of the rate: negative is better.
    interval : (float, float)
        Of the change; simultaneous over all changes of the comparison.
    judgement : str
        "better", "worse" or "no change shown".
    visible : float, optional
        The smallest rise of the rate that these rows would have shown with 80% power; None where none would.
    kind : str
        "all" rows, the "rest", a "slice" that is known, a "group" that was named, "found" by a search for rows that
        got worse, or "new" in the second model's own audit.
    corrected : float, optional
        The change without regression to the mean, where the rows also confirmed the slice; else the change.
    """

    id: str
    name: str
    task: str
    n: int
    before_errors: int
    after_errors: int
    before_rate: float | None
    after_rate: float | None
    before_interval: tuple[float, float]
    after_interval: tuple[float, float]
    fixed: int
    broken: int
    change: float | None
    interval: tuple[float, float]
    judgement: Judgement
    visible: float | None = None
    kind: Kind = "slice"
    corrected: float | None = None

    @property
    def fair(self) -> float | None:
        """The change, without regression to the mean where there is any; None without rows."""
        return self.change if self.corrected is None else self.corrected


@dataclass(frozen=True)
class Comparison:
    """Two models on the same rows, slice by slice: what `recheck` and `compare` return.

    Attributes
    ----------
    changes : tuple of Change
        All rows first, then the rest, then the slices in the order of the audit.
    outcome : str
        What counts as bad: "error", or "loss above 2.31".
    alpha : float
        The chance, on each side, that any of the intervals misses.
    facts : mapping
        How the comparison was made.

    Examples
    --------
    >>> import errata, numpy as np
    >>> from errata.core.comparison import Group, measure
    >>> before, after = np.ones(40), np.zeros(40)
    >>> change = measure(Group("s1", "small", "", np.arange(40) < 30, before, after), None, level=0.025)
    >>> comparison = errata.Comparison((change,), "error", 0.05)
    >>> comparison["s1"].change, comparison["s1"].judgement
    (-1.0, 'better')
    """

    changes: tuple[Change, ...]
    outcome: str
    alpha: float
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, id: str) -> Change:
        return next(change for change in self.changes if change.id == id)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {
            "schema": SCHEMA,
            "outcome": self.outcome,
            "alpha": self.alpha,
            "changes": [asdict(change) for change in self.changes],
            "facts": dict(self.facts),
        }

    @classmethod
    def from_json(cls, facts: Mapping[str, Any]) -> Comparison:
        """A comparison from what `to_json` gave."""
        changes = []
        for change in facts["changes"]:
            intervals = {name: tuple(change[name]) for name in ("before_interval", "after_interval", "interval")}
            changes.append(Change(**{**change, **intervals}))
        return cls(tuple(changes), facts["outcome"], facts["alpha"], facts["facts"])


@dataclass(frozen=True, eq=False)
class Group:
    """Some rows of a task, with their outcomes under both models.

    Attributes
    ----------
    id, name, task : str
        As in `Change`.
    inside : array
        (n,) bool: the rows of the group.
    before, after : array
        (n,) 0/1 outcomes of all rows.
    kind : str
        As in `Change`.
    regression : float, optional
        What must be added to the change, since these rows confirmed the slice; None where they did not.
    """

    id: str
    name: str
    task: str
    inside: Array
    before: Array
    after: Array
    kind: Kind = "slice"
    regression: float | None = None

    def changed_rows(self, ids: Array, most: int | None = None) -> dict[str, list[Any]]:
        """Ids of its rows that were `fixed`, and `broken`, in the order of the rows; at most so many of each.

        Parameters
        ----------
        ids : array
            (n,) of all rows.
        most : int, optional
            Of each. Default: all.
        """
        fixed = self.inside & (self.before > self.after)
        broken = self.inside & (self.after > self.before)
        return {"fixed": ids[fixed][:most].tolist(), "broken": ids[broken][:most].tolist()}

    def random_rows(self, ids: Array, most: int) -> list[Any]:
        """Ids of at most so many of its rows, drawn at random, the same each time.

        Parameters
        ----------
        ids : array
            (n,) of all rows.
        most : int
            Rows.
        """
        drawn: list[Any] = ids[draw_in_order(ids, self.inside, most, np.random.default_rng(0))].tolist()
        return drawn


def measure(group: Group, groups: Array | None, level: float) -> Change:
    """How a group of rows changed.

    Parameters
    ----------
    group : Group
        Its rows and their outcomes.
    groups : array, optional
        (n,) rows that belong together count as fewer.
    level : float
        The chance, on each side, that the interval of the change misses.
    """
    before = group.before[group.inside]
    after = group.after[group.inside]
    n = len(before)
    before_errors = int(before.sum())
    after_errors = int(after.sum())
    before_rate = after_rate = change = corrected = None
    if n:
        before_rate = before_errors / n
        after_rate = after_errors / n
        change = (after_errors - before_errors) / n
        if group.regression is not None:
            corrected = change + group.regression
    members = None if groups is None else groups[group.inside]
    counts = count_changes(before, after, members)
    low, high = change_interval(counts, level)
    visible = visible_rise(counts.n, counts.fixed / counts.n, level) if n else None
    return Change(
        id=group.id,
        name=group.name,
        task=group.task,
        n=n,
        before_errors=before_errors,
        after_errors=after_errors,
        before_rate=before_rate,
        after_rate=after_rate,
        before_interval=wilson(before_errors, n),
        after_interval=wilson(after_errors, n),
        fixed=int((before > after).sum()),
        broken=int((after > before).sum()),
        change=change,
        interval=(low, high),
        judgement=_judge(low, high),
        visible=visible,
        kind=group.kind,
        corrected=corrected,
    )


def _judge(low: float, high: float) -> Judgement:
    """What may be said of a change with this interval."""
    if high < 0:
        return "better"
    return "worse" if low > 0 else "no change shown"
