"""The frozen slices of an audit on any rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .audit import Audit
from .blocks import Array
from .evaluation import Evaluation
from .scope import rows_in_scope


def apply(audit: Audit, evaluation: Evaluation) -> dict[str, Array]:
    """Weights of the audit's frozen slices on any rows: slice id -> (n,). Labels only where a slice lies within one.

    Slices that only the outcome defines (reason "unconfirmable", without a stand-in) are left out.
    """
    tasks = dict(evaluation.tasks())
    weights: dict[tuple[str, str], Array] = {}
    able = [item for item in audit.slices if item.column >= 0]
    for item in able:
        place = item.slicer, item.task
        if place not in weights:
            weights[place] = audit.slicers[item.slicer].membership(tasks.get(item.task, evaluation))
    return {
        item.id: scoped(item.rule, tasks.get(item.task, evaluation), weights[item.slicer, item.task][:, item.column])
        for item in able
    }


def scoped(rule: Mapping[str, Any], evaluation: Evaluation, weights: Array) -> Array:
    """(n,) no weight outside of what the rule speaks about."""
    return weights * rows_in_scope(evaluation, rule["scope"]) if rule.get("scope") else weights
