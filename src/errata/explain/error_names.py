"""Names of error types that make the same mistake: what tells the errors of one from the others of that mistake."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ..core import Array, ErrorType, Slice
from ..core.scope import rows_in_scope
from .candidates import holds_up, ranked, word_candidates
from .context import Context
from .contrast import contrast_words, telling_contrasts
from .metadata import Metadata
from .names import NONE
from .rule import Rule, rule_candidates
from .view import SliceView


def name_error_types(context: Context) -> tuple[ErrorType, ...]:
    """The error types of an audit, no two of a task with one name; a name that is alone stays as it is."""
    error_types = context.audit.error_types
    often = Counter((item.task, item.name) for item in error_types)
    taken = {key for key, count in often.items() if count == 1}
    named = []
    for item in error_types:
        if often[item.task, item.name] > 1:
            item = replace(item, name=next(name for name in _names(item, context) if (item.task, name) not in taken))
            taken.add((item.task, item.name))
        named.append(item)
    return tuple(named)


def _names(error_type: ErrorType, context: Context) -> Iterator[str]:
    """Longer names of an error type, best first; the last is its own."""
    view = _view(error_type, context)
    options = [*rule_candidates(view), *word_candidates(view, context)]
    for candidate in ranked(view, options):
        if holds_up(view, candidate):
            yield f"{error_type.name}, {candidate.text}"
    lead = f"{error_type.name}, {NONE}: "
    if error_type.name.startswith(NONE):  # it makes several mistakes, and says which most often
        lead = f"{error_type.name}, "
    contrasts = telling_contrasts(view, context)
    for count in range(1, len(contrasts) + 1):
        yield f"{lead}{contrast_words(contrasts[:count])}"
    yield f"{error_type.name}, {error_type.errors:,} errors"
    yield f"{error_type.name}, {error_type.errors:,} errors, {error_type.id}"


def _view(error_type: ErrorType, context: Context) -> SliceView:
    """Its errors beside all other errors, of the same mistake where most of its own are one."""
    evaluation = context.tasks[error_type.task]
    among: Array = np.ones(len(evaluation), dtype=bool)
    rule = {}
    if evaluation.errors is not None:
        among = evaluation.errors
    if error_type.is_one_mistake:
        mistake = error_type.mistakes[0]
        rule = {"scope": {"label": mistake.label, "prediction": mistake.prediction}}
        among = rows_in_scope(evaluation, rule["scope"])
    slice_ = Slice(
        id=error_type.id,
        method=error_type.method,
        name="",
        verdict="not confirmed",
        threshold=error_type.threshold,
        rule=rule,
        weights=error_type.weights,
        task=error_type.task,
    )
    members = error_type.members
    view = SliceView(slice_, evaluation, among & members, among & ~members, context.audit.discover)
    for kind in (Metadata, Rule):
        explanation = kind.explain(view, context) if context.has(evaluation, kind.needs) else None
        if explanation is not None:
            view = replace(view, earlier={**view.earlier, kind.kind: explanation})
    return view
