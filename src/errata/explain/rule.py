"""A slice as a short rule over columns: its own, or the one that tells its members best, measured on held-out rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..core import Array, Evaluation
from ..core.gaps import wilson
from ..core.record import FLAT, OMIT_NONE, Record
from ..core.rules import Condition, from_json, read_rule, to_pandas, to_sql, to_text
from ..core.rules.literals import CodedColumn
from ..core.rules.search import Rule as FoundRule
from ..core.rules.search import find_rules
from ..core.scope import is_pooled
from .candidates import COST, FEWEST, NameCandidate, fit
from .context import Context
from .encode import class_values
from .kinds import SliceExplanation
from .view import MEASURED_ON, Match, Outcome, SliceView, measure_match, measure_outcome
from .vocabulary import OUTCOMES, fair_columns, readings

MOST = 5  # rules that are kept
MOST_ALONE = 10  # rules of one condition
MOST_COLUMNS = 6  # that rules of several conditions are made of
MOST_ROWS = 6000  # that are searched


@dataclass(frozen=True)
class RuleCondition(Record):
    """One condition of a rule, and what happens on the rows that meet all the others."""

    text: str
    condition: Mapping[str, Any]  # as in a slice's rule
    without: Outcome  # of the rule without this condition


@dataclass(frozen=True)
class RuleRow(Record):
    """A rule, how well it tells the members, and what happens on all rows that meet it."""

    text: str  # with the scope, in the grammar of hypotheses
    words: str  # without the scope
    query: str  # for pandas
    sql: str  # for a WHERE clause
    conditions: tuple[RuleCondition, ...]  # one entry each, with what it adds
    match: Match = field(metadata=FLAT)
    others: Outcome  # of all other rows
    interval: tuple[float, float] | None = field(default=None, metadata=OMIT_NONE)  # of its error rate: Wilson, 95%

    @property
    def parts(self) -> tuple[Condition, ...]:
        """Its conditions."""
        return tuple(from_json(part.condition) for part in self.conditions)


@dataclass(frozen=True)
class Rule(SliceExplanation):
    """The rule of a slice, or the rules that tell its members best, best first on search rows."""

    kind = "rules"
    needs = frozenset({"columns"})

    chosen_on: str
    measured_on: str
    own: bool  # the slice is this rule
    rows: tuple[RuleRow, ...]

    @classmethod
    def explain(cls, view: SliceView, context: Context) -> Rule | None:
        """None where no rule tells members from the rest."""
        own = read_rule(view.slice.rule)
        rules = [own] if own else find_descriptions(view, context)
        columns = rule_columns(view)
        rows = tuple(_row(view, rule, columns) for rule in rules)
        return cls(view.chosen_on, MEASURED_ON, bool(own), rows) if rows else None


def rule_columns(view: SliceView) -> dict[str, Array]:
    """What a rule may read: the metadata, and label or prediction where the slice is not limited to one of them."""
    evaluation = view.evaluation
    columns = dict(evaluation.metadata)
    if view.in_class:
        return columns
    return {**class_values(evaluation), **columns}


def find_descriptions(view: SliceView, context: Context) -> list[tuple[Condition, ...]]:
    """The conjunctions that tell members from the rest best, on the rows that choose; of equal ones the shorter."""
    rows = _searched_rows(view)
    members = view.inside[rows]
    if not FEWEST <= np.count_nonzero(members) < len(rows):
        return []
    offered = [column.rows(rows) for column in fair_columns(view, context)]
    found = _search(offered, members, readings(context, view.slice.task))
    values = rule_columns(view)
    scored: dict[str, tuple[bool, float, tuple[Condition, ...]]] = {}
    for rule in found:
        if rule.value <= 0:  # chance would tell the members as well
            continue
        fitted = fit(view, matches(rule.conditions, values), view.chosen)
        score = round(fitted.f1 - COST * (len(rule.conditions) - 1), 9)
        scored.setdefault(to_text(rule.conditions), (fitted.passes, score, rule.conditions))
    ranked = sorted(scored.values(), key=lambda entry: (not entry[0], -entry[1]))  # what may be a name first
    return [conditions for *_, conditions in ranked[:MOST]]


def _searched_rows(view: SliceView) -> Array:
    """The rows that choose, by number: all members and so many of the rest, evenly thinned in the order of ids."""
    order = np.argsort(view.evaluation.row_ids, kind="stable")
    members = order[(view.inside & view.chosen)[order]]
    rest = order[(view.rest & view.chosen)[order]]
    return np.sort(np.concatenate([_thinned(members, MOST_ROWS // 2), _thinned(rest, MOST_ROWS // 2)]))


def _thinned(rows: Array, most: int) -> Array:
    """Every k-th row, so that at most so many are left."""
    return rows[:: max(1, -(-len(rows) // most))]


def _search(columns: Sequence[CodedColumn], members: Array, reads: Mapping[str, str]) -> list[FoundRule]:
    """Rules of one condition, and of up to three on the columns that tell most alone; reads: see `readings`."""
    base = float(members.mean())
    found = find_rules(columns, members, base, depth=1, least=FEWEST, most=MOST_ALONE, aim="split")
    names = list(dict.fromkeys(rule.conditions[0].column for rule in found))[:MOST_COLUMNS]
    best = [column for column in columns if column.name in names]
    sets = [best]
    if {reads.get(name) for name in names} >= set(OUTCOMES):  # a rule that reads both tells the errors
        sets = [[column for column in best if reads.get(column.name) != side] for side in OUTCOMES]
    for kept in sets:
        found += find_rules(kept, members, base, depth=3, least=FEWEST, most=MOST, aim="split")
    return found


def rule_candidates(view: SliceView) -> list[NameCandidate]:
    """The rules that describe a slice, as names."""
    rule = view.explanation(Rule)
    if rule is None or rule.own:
        return []
    columns = rule_columns(view)
    return [NameCandidate(row.words, "metadata", matches(row.parts, columns), len(row.conditions)) for row in rule.rows]


def matches(conditions: Sequence[Condition], columns: Mapping[str, Array]) -> Array:
    """(n,) bool: the rows that meet all conditions."""
    inside = np.ones(len(next(iter(columns.values()))), dtype=bool)
    for condition in conditions:
        inside &= condition.matches_array(columns[condition.column])
    return inside


def scope_conditions(evaluation: Evaluation, scope: Mapping[str, Any] | None) -> tuple[Condition, ...]:
    """A scope as conditions, classes by their names where they have any."""
    conditions = []
    for key, value in (scope or {}).items():
        values = list(value) if is_pooled(value) else [value]
        if key in OUTCOMES and evaluation.class_names is not None:
            values = [evaluation.class_name(int(member)) for member in values]
        conditions.append(Condition(key, values=tuple(values)))
    return tuple(conditions)


def _row(view: SliceView, conditions: Sequence[Condition], columns: Mapping[str, Array]) -> RuleRow:
    within = view.inside | view.rest
    everything = (*scope_conditions(view.evaluation, view.slice.rule.get("scope")), *conditions)
    met = [condition.matches_array(columns[condition.column]) for condition in conditions]
    inside = np.logical_and.reduce(met)
    match = measure_match(view, inside)
    interval = None
    if match.outcome.errors is not None:
        interval = wilson(match.outcome.errors, match.outcome.n)
    return RuleRow(
        text=to_text(everything),
        words=to_text(conditions),
        query=to_pandas(everything),
        sql=to_sql(everything),
        conditions=tuple(
            RuleCondition(condition.text, condition.to_json(), _without(view, met, i))
            for i, condition in enumerate(conditions)
        ),
        match=match,
        others=measure_outcome(view.evaluation, view.measured & ~(inside & within)),
        interval=interval,
    )


def _without(view: SliceView, met: Sequence[Array], i: int) -> Outcome:
    """What happens on the held-out rows of the scope that meet all conditions but one."""
    inside = (view.inside | view.rest) & view.measured
    for j, rows in enumerate(met):
        if j != i:
            inside = inside & rows
    return measure_outcome(view.evaluation, inside)
