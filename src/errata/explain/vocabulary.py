"""Which columns may describe a slice: all but those that would tell which of its rows are wrong.

Label and prediction together are the outcome, and so is either of them within the other. A column that gives one of
them away counts as that one: the age of a face describes those labelled old, not those predicted old.
"""

from __future__ import annotations

from ..core.rules.literals import CodedColumn
from .context import Context
from .view import SliceView

OUTCOMES = ("label", "prediction")  # a rule may read one of them at most


def readings(context: Context, task: str) -> dict[str, str]:
    """Column -> "outcome", "label" or "prediction", where it is one of them or gives it away."""
    leaks = {column: what.removeprefix("the ") for column, what in context.leaks[task].items()}
    return {**{name: name for name in OUTCOMES}, **leaks}


def unfair_columns(view: SliceView, context: Context) -> set[str]:
    """The columns that would tell the errors of a slice, given the class that its rule is limited to."""
    scope = view.slice.rule.get("scope") or {}
    unfair = {"outcome"}
    if "prediction" in scope and "label" not in scope:
        unfair.add("label")
    if "label" in scope and "prediction" not in scope:
        unfair.add("prediction")
    return {column for column, reads in readings(context, view.slice.task).items() if reads in unfair}


def fair_columns(view: SliceView, context: Context) -> list[CodedColumn]:
    """What a rule about a slice may read, as bins: metadata, and label and prediction outside a class."""
    unfair = unfair_columns(view, context)
    columns = [column for column in context.coded_columns if column.name not in unfair]
    if not view.in_class:
        columns += context.coded_classes[view.slice.task]
    return columns
