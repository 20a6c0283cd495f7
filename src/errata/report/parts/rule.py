"""A slice as a rule over columns: its conditions and what each adds, and the rule to copy."""

from __future__ import annotations

from typing import Any

from ...core import Slice
from ...core.words import FEWEST_FOR_PERCENT
from ...explain.rule import Rule, RuleCondition, RuleRow
from ...explain.view import Outcome
from .. import numbers, sentences
from ..contract import Part, View
from .profile import outcome_head, outcome_texts, outcome_word
from .words import SECTION

MOST_OTHERS = 3  # rules beside the first


def rule_values(view: View, slice_: Slice) -> dict[str, Any] | None:
    """The first rule with its conditions and how it is written elsewhere, and the others in one line each."""
    rule = slice_.explanation(Rule)
    if rule is None:
        return None
    first = rule.rows[0]
    return {
        "own": rule.own,
        "text": first.text,
        "query": first.query,
        "sql": first.sql,
        "sentence": sentences.rule(first, rule.own),
        "conditions": [_condition(first, part) for part in first.conditions],
        "without_head": f"{outcome_word(view)} without it",
        "outcome_head": outcome_head(view),
        "others": [_other(row) for row in rule.rows[1 : 1 + MOST_OTHERS]],
    }


def _condition(row: RuleRow, part: RuleCondition) -> dict[str, str]:
    """A condition, and the outcome of the rule without it."""
    return {"text": part.text, "adds": _adds(row.match.outcome, part.without), **outcome_texts(part.without)}


def _adds(own: Outcome, without: Outcome) -> str:
    """How much worse the rule is with a condition than without: in points of its rate, or in mean loss."""
    few = min(own.n, without.n) < FEWEST_FOR_PERCENT
    if few:
        return "too few rows"
    if own.error_rate is not None and without.error_rate is not None:
        return f"{numbers.points(own.error_rate - without.error_rate)} points"
    if own.mean_loss is not None and without.mean_loss is not None:
        return f"{numbers.quantity(own.mean_loss - without.mean_loss)} mean loss"
    return ""


def _other(row: RuleRow) -> dict[str, str]:
    return {
        "text": row.text,
        "covers": numbers.rate_of(*row.match.covers),
        "precise": numbers.rate_of(*row.match.precise),
        **outcome_texts(row.match.outcome),
    }


RULE = Part("rules", SECTION, rule_values, "part_rule.html", order=0)
