"""One slice beside the rest of its rows, with the rows that choose and the rows that measure kept apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

import numpy as np

from ..core import Array, Audit, Evaluation, Explanation, Slice
from ..core.record import FLAT, Record
from ..core.scope import rows_in_scope

FEWEST_TO_CHOOSE = 5  # members; with fewer, all rows choose, and the explanation says so
MEASURED_ON = "confirm"
SLICE = "slice"
CLUSTER = "cluster"  # the rows that a method put together, of which a slice is an approximation

E = TypeVar("E", bound=Explanation)


@dataclass(frozen=True, eq=False)
class SliceView:
    """Everything is chosen on `chosen` rows and measured on `measured` rows."""

    slice: Slice
    evaluation: Evaluation  # of the slice's own task
    inside: Array  # (n,) bool: members within the scope of the rule
    rest: Array  # (n,) bool: the other rows of that scope
    searched: Array  # (n,) bool: the search rows
    earlier: Mapping[str, Explanation] = field(default_factory=dict)  # kind -> explanation made before this one

    @cached_property
    def chosen(self) -> Array:
        """(n,) bool: rows that may decide what to show."""
        if self.chosen_on == "discover":
            return self.searched
        return np.ones_like(self.searched)

    @cached_property
    def chosen_on(self) -> str:
        """ "discover": search rows; "all" where too few members are among them."""
        if np.count_nonzero(self.inside & self.searched) >= FEWEST_TO_CHOOSE:
            return "discover"
        return "all"

    @cached_property
    def measured(self) -> Array:
        """(n,) bool: the held-out rows."""
        rows: Array = ~self.searched
        return rows

    @property
    def in_class(self) -> bool:
        """Whether the rule is limited to a label or a prediction: the other of them would tell the errors."""
        scope = self.slice.rule.get("scope") or {}
        return "label" in scope or "prediction" in scope

    def explanation(self, kind: type[E]) -> E | None:
        """The explanation of one class that was made before this one."""
        explanation = self.earlier.get(kind.kind)
        return explanation if isinstance(explanation, kind) else None


def view_of(audit: Audit, slice_: Slice, tasks: Mapping[str, Evaluation]) -> SliceView:
    """The view of one slice; in the reverse half of a cross-fit the two kinds of rows change places."""
    evaluation = tasks[slice_.task]
    within = rows_in_scope(evaluation, slice_.rule.get("scope"))
    searched = audit.discover if slice_.confirmed_on == "confirm" else ~audit.discover
    inside = slice_.members & within
    return SliceView(slice_, evaluation, inside, within & ~inside, searched)


def view_of_cluster(view: SliceView, own: Mapping[str, Array]) -> tuple[SliceView, str]:
    """The view of the rows that the method put together, and whose rows they are: `CLUSTER` or `SLICE`.

    Why training rows bear on some rows is asked of those that lie together because of it. An approximation has others
    beside them.

    own: id of an approximation -> (n,) bool: the method's own rows.
    """
    if view.slice.id not in own:
        return view, SLICE
    within = view.inside | view.rest
    inside = own[view.slice.id] & within
    return replace(view, inside=inside, rest=within & ~inside), CLUSTER


@dataclass(frozen=True)
class Outcome(Record):
    """What happened on some rows: a rate with its counts, and the mean loss; None where it is not known."""

    n: int
    errors: int | None
    error_rate: float | None
    mean_loss: float | None


@dataclass(frozen=True)
class Match(Record):
    """How well a description fits a slice, on held-out rows."""

    covers: tuple[int, int]  # of the members, those it matches
    precise: tuple[int, int]  # of its matches, those that are members
    outcome: Outcome = field(metadata=FLAT)  # of all its matches


def measure_outcome(evaluation: Evaluation, rows: Array) -> Outcome:
    """What happened on some rows ((n,) bool)."""
    n = int(np.count_nonzero(rows))
    errors = None
    error_rate = None
    mean_loss = None
    if evaluation.errors is not None:
        errors = int(np.count_nonzero(evaluation.errors & rows))
        error_rate = ratio(errors, n)
    if evaluation.losses is not None and n > 0:
        mean_loss = float(evaluation.losses[rows].mean(dtype=np.float64))
    return Outcome(n, errors, error_rate, mean_loss)


def measure_match(view: SliceView, matches: Array) -> Match:
    """How well `matches` ((n,) bool) describes the slice, on held-out rows."""
    members = view.inside & view.measured
    matched = matches & (view.inside | view.rest) & view.measured
    both = int(np.count_nonzero(members & matched))
    return Match(
        covers=(both, int(np.count_nonzero(members))),
        precise=(both, int(np.count_nonzero(matched))),
        outcome=measure_outcome(view.evaluation, matched),
    )


def ratio(k: float, n: float) -> float | None:
    """k / n; None where there is nothing to divide by, which is not zero."""
    return float(k) / float(n) if n else None


def separation(view: SliceView, matches: Array) -> tuple[float, float]:
    """On chosen rows: the share of members that match, and how much larger it is than the rest's."""
    members = view.inside & view.chosen
    rest = view.rest & view.chosen
    share = float(matches[members].mean()) if members.any() else 0.0
    other = float(matches[rest].mean()) if rest.any() else 0.0
    return share, share - other


def finite(value: float) -> float | None:
    """A number as JSON has it; None where there is none."""
    return float(value) if np.isfinite(value) else None
