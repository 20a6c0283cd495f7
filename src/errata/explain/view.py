"""One slice beside the rest of its rows, with the rows that choose and the rows that measure kept apart."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..core import Array, Audit, Evaluation, Slice
from ..core.scope import rows_in_scope

FEWEST_TO_CHOOSE = 5  # members; with fewer, all rows choose, and the explanation says so


@dataclass(frozen=True, eq=False)
class View:
    """Everything is chosen on `chosen` rows and measured on `measured` rows."""

    slice: Slice
    evaluation: Evaluation  # of the slice's own task
    inside: Array  # (n,) bool: members within the scope of the rule
    rest: Array  # (n,) bool: the other rows of that scope
    searched: Array  # (n,) bool

    @cached_property
    def chosen(self) -> Array:
        """(n,) bool: rows that may decide what to show."""
        return self.searched if self.chosen_on == "discover" else np.ones_like(self.searched)

    @cached_property
    def chosen_on(self) -> str:
        return "discover" if np.count_nonzero(self.inside & self.searched) >= FEWEST_TO_CHOOSE else "all"

    @cached_property
    def measured(self) -> Array:
        """(n,) bool: rows nobody searched."""
        rows: Array = ~self.searched
        return rows

    @property
    def roles(self) -> dict[str, str]:
        """What every explanation says of its rows."""
        return {"chosen_on": self.chosen_on, "measured_on": "confirm"}


def view_of(audit: Audit, found: Slice, tasks: Mapping[str, Evaluation]) -> View:
    """The view of one slice; in the reverse half of a cross-fit the two kinds of rows change places."""
    evaluation = tasks[found.task]
    within = rows_in_scope(evaluation, found.rule.get("scope"))
    searched = audit.discover if found.confirmed_on == "confirm" else ~audit.discover
    inside = found.members & within
    return View(found, evaluation, inside, within & ~inside, searched)


def outcome(evaluation: Evaluation, rows: Array) -> dict[str, Any]:
    """What happened on some rows ((n,) bool): a rate with its counts, and the mean loss."""
    n = int(np.count_nonzero(rows))
    wrong = None if evaluation.errors is None else int(np.count_nonzero(evaluation.errors & rows))
    losses = evaluation.losses
    return {
        "n": n,
        "errors": wrong,
        "error_rate": None if wrong is None else ratio(wrong, n),
        "mean_loss": None if losses is None or n == 0 else float(losses[rows].mean(dtype=np.float64)),
    }


def ratio(k: float, n: float) -> float | None:
    """k / n; None where there is nothing to divide by, which is not zero."""
    return float(k) / float(n) if n else None


def description(view: View, matches: Array) -> dict[str, Any]:
    """How well `matches` ((n,) bool) describes the slice, on measured rows.

    covers: of the members, those it matches. precise: of its matches, those that are members.
    """
    members, matched = view.inside & view.measured, matches & (view.inside | view.rest) & view.measured
    both = int(np.count_nonzero(members & matched))
    return {
        "covers": [both, int(np.count_nonzero(members))],
        "precise": [both, int(np.count_nonzero(matched))],
        **outcome(view.evaluation, matched),
    }


def points(view: View, matches: Array) -> tuple[float, float]:
    """On chosen rows: the share of members that match, and how much larger it is than the rest's."""
    members, rest = view.inside & view.chosen, view.rest & view.chosen
    share = float(matches[members].mean()) if members.any() else 0.0
    other = float(matches[rest].mean()) if rest.any() else 0.0
    return share, share - other
