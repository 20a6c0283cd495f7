"""`rules`: conjunctions of conditions on metadata columns. `core.rules` has the search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...core import Array, Evaluation
from ...core.confirm import LARGEST_SHARE
from ...core.errors import unknown
from ...core.rules import match_all, read_rule
from ...core.rules.conditions import KIND
from ...core.rules.leaks import find_leaks, search_classes
from ...core.rules.literals import CodedColumn, encode
from ...core.rules.search import Rule, find_rules
from ...core.scope import can_place, rows_in_scope
from ..choice import Candidate, choose
from ..contract import BaseSlicer
from ..numerics import pick
from ..options import AT_LEAST_ONE, SHARE, Interval
from ..scopes import FEWEST_BAD, MOST_COMPARED, Scope, bad_rows, list_scopes

MOST_SEARCHED = 100_000  # search rows that rules are found on; others then say what they are worth
FEWEST_ROWS = 20  # of a rule: fewer are hardly a group
MOST_RULES = 300  # that are compared with each other, over all scopes
THRESHOLD = 0.5


class Rules(BaseSlicer):
    """Conjunctions of up to three conditions on metadata columns, such as `age < 5 and race in (a, b)`.

    Thresholds, ranges, values and groups of values of all columns are joined exhaustively over bins, among all rows,
    the rows of each prediction and those of each label; missing is a value. The best are refined on finer bins, a
    condition that adds less evidence than it costs is dropped, and rules that tell the same rows are told once.

    Parameters
    ----------
    slices
        Slices to tell at most.
    depth
        Conditions of a rule at most.
    support
        The smallest share of the rows that are searched, of a rule; never fewer than 20 rows.
    scope
        `auto` looks at all rows, within predictions and within labels; or one of `none`, `prediction`, `label`.
    columns
        Names of the metadata columns that are searched. Default: all but those that give the outcome away.
    seed
        Of the sample that is searched, where there are over 100,000 rows.
    """

    name = "rules"
    needs = frozenset({"metadata", "losses"})
    presets: ClassVar = {"recommended": {}, "as_published": {}}
    own_scopes: ClassVar = {kind: {"scope": kind} for kind in ("none", "label", "prediction")}
    limits: ClassVar = {"slices": AT_LEAST_ONE, "depth": Interval(1, 3), "support": SHARE}

    def __init__(
        self,
        slices: int = 20,
        depth: int = 3,
        support: float = 0.005,
        scope: Scope = "auto",
        columns: list[str] | None = None,
        seed: int = 0,
    ):
        self.slices = slices
        self.depth = depth
        self.support = support
        self.scope = scope
        self.columns = columns
        self.seed = seed

    notes: tuple[str, ...] = ()

    def _fit(self, evaluation: Evaluation, train: Evaluation | None) -> None:
        bad = bad_rows(evaluation)
        columns = self._columns(evaluation, bad)
        plans = self._plans(evaluation)
        searched = pick(len(bad), MOST_SEARCHED, self.seed)
        compared = _compared(len(bad), searched, self.seed)
        found: list[_Found] = []
        candidates: list[Candidate] = []
        for done, scope in enumerate(plans):
            self.report_progress(self.name, done / len(plans))
            inside = rows_in_scope(evaluation, scope)
            rows = searched[inside[searched]]
            if bad[rows].sum() < FEWEST_BAD or bad[rows].all():
                continue
            base = max(float(bad.mean()), float(bad[inside].mean()))
            for rule in self._search(columns, bad, rows, base, len(searched), MOST_RULES // len(plans)):
                members = inside[compared] & rule.matches([column.codes[compared] for column in columns])
                candidates.append(Candidate(done, len(found), members, base, rule.price))
                found.append(_Found(scope, rule))
        chosen = self._choose(candidates, plans, bad[compared])
        self.rules_ = tuple(self._rule(found[c.index], c, len(plans)) for c in chosen)

    def _plans(self, evaluation: Evaluation) -> list[dict[str, Any]]:
        """The scopes that are searched; labels only where there are no probabilities, or if asked.

        Columns that the model reads tell its prediction, which is the outcome within a label: a rule there says no more
        than the probabilities do.
        """
        plans = list(list_scopes(evaluation, self.scope))
        if evaluation.probs is None or self.scope != "auto":
            return plans
        return [plan for plan in plans if "label" not in plan]

    def _choose(self, candidates: list[Candidate], scopes: Sequence[Mapping[str, Any]], bad: Array) -> list[Candidate]:
        """Rules among all rows or predictions and rules within labels are chosen apart: neither stands for the other.

        A rule within a label may only say that the model predicts another class there, so that others come first.
        """
        others = choose([c for c in candidates if "label" not in scopes[c.part]], bad, self.slices, after_price=True)
        left = max(self.slices - len(others), self.slices // 2)
        within = choose([c for c in candidates if "label" in scopes[c.part]], bad, left, after_price=True)
        return others[: self.slices - len(within)] + within

    def _search(
        self, columns: Sequence[CodedColumn], bad: Array, rows: Array, base: float, total: int, most: int
    ) -> list[Rule]:
        """The rules of one scope, on some of its rows."""
        return find_rules(
            [column.rows(rows) for column in columns],
            bad[rows],
            base,
            depth=self.depth,
            least=max(FEWEST_ROWS, round(self.support * len(rows))),
            largest=int(LARGEST_SHARE * total),
            most=max(most, self.slices),
        )

    def _columns(self, evaluation: Evaluation, bad: Array) -> list[CodedColumn]:
        """The columns that are searched, as bins; those that give the outcome away are left out, with a note."""
        names = list(evaluation.metadata) if self.columns is None else self.columns
        for name in names:
            if name not in evaluation.metadata:
                raise unknown("column of method `rules`", name, evaluation.metadata)
        coded = [encode(name, np.asarray(evaluation.metadata[name])) for name in names]
        columns = [column for column in coded if column is not None]
        self.notes = ()
        if self.columns is not None:
            return columns
        leaks = find_leaks(columns, bad, search_classes(evaluation, np.arange(len(bad))))
        self.notes = tuple(
            f"rules: the column `{name}` gives {what} away and was left out; name it in `rules.columns` to search it"
            for name, what in leaks.items()
        )
        return [column for column in columns if column.name not in leaks]

    def _rule(self, found: _Found, candidate: Candidate, searches: int) -> dict[str, Any]:
        return {
            "kind": KIND,
            "generator": "rule",
            "conditions": [condition.to_json() for condition in found.rule.conditions],
            "scope": dict(found.scope),
            "reads": sorted(set(found.scope) & {"label", "prediction"}),
            "found_by": len(candidate.found_by),
            "searches": searches,
        }

    def _thresholds(self, evaluation: Evaluation) -> Array:
        return np.full(len(self.rules_), THRESHOLD)

    @property
    def reads(self) -> frozenset[str]:
        """What the scopes read; each rule says it for its own slice."""
        fitted = getattr(self, "rules_", ())
        return frozenset(read for rule in fitted for read in rule.get("reads", ()))

    def membership(self, evaluation: Evaluation) -> Array:
        """(n, s) 1 for the rows that meet a rule within its scope."""
        weights = np.zeros((len(evaluation), len(self.rules_)))
        for j, rule in enumerate(self.rules_):
            scope = rule.get("scope")
            if can_place(evaluation, scope):
                weights[:, j] = match_all(read_rule(rule), evaluation) & rows_in_scope(evaluation, scope)
        return weights


@dataclass(frozen=True, eq=False)
class _Found:
    """A rule and the scope that it was found in."""

    scope: Mapping[str, Any]
    rule: Rule


def _compared(n: int, searched: Array, seed: int) -> Array:
    """Rows on which rules are compared: those that did not choose them where there are enough, else all."""
    others = np.setdiff1d(np.arange(n), searched)
    if len(others) < MOST_COMPARED:
        return pick(n, MOST_COMPARED, seed)
    return others[pick(len(others), MOST_COMPARED, seed)]
