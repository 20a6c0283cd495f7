"""A short name for a slice, made by machine: its own rule, or else the description that fits it best.

Descriptions are chosen on search rows and scored on held-out rows. One names a slice if, on both, most of what it fits
are members and it fits a tenth of them; or if it fits most members and tells them from the rest. Otherwise the slice
has "no short description", and the name says what its members have more of.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ..core import Array, Slice, gaps
from ..core.record import FLAT, OMIT_NONE, Record
from ..core.scope import is_pooled, scope_values
from .candidates import (
    NameCandidate,
    class_candidates,
    class_words,
    confidence_candidates,
    holds_up,
    ranked,
    taken_for,
    text_candidates,
    word_candidates,
)
from .context import Context
from .contrast import Contrast, contrast_words, telling_contrasts
from .kinds import SliceExplanation
from .path import TreePath
from .rule import Rule, rule_candidates
from .view import MEASURED_ON, Match, Outcome, SliceView, measure_match, measure_outcome, ratio

WEAK_COVERED = 0.5  # of the members: a name that fits fewer is weak
WEAK_PRECISE = 2 / 3  # of what it fits: a name that fits so much else is weak
SIDE = 0.025  # of the interval that says whether a description predicts errors
SCOPE_NOUNS = {"label": "label", "prediction": "predicted"}
NONE = "no short description"
YOUR_OWN = "your own slice"


@dataclass(frozen=True)
class Predicts(Record):
    """Of a description that also tells errors: how often what it fits is wrong, beside all other rows."""

    of_errors: tuple[int, int]  # errors that it fits, of all
    rate: float  # of errors, of what it fits
    others_rate: float  # of all other held-out rows
    others_n: int  # how many they are


@dataclass(frozen=True)
class Name(SliceExplanation):
    """The name of a slice, where it comes from, and how well it fits on held-out rows."""

    kind = "name"

    chosen_on: str
    measured_on: str
    text: str
    source: str | None  # such as "rule", "labels", "metadata", "confidence"; None: no short description
    match: Match | None = field(default=None, metadata=FLAT)  # None where no candidate fits
    interval: tuple[float, float] | None = field(default=None, metadata=OMIT_NONE)  # of its error rate: Wilson, 95%
    own: bool = False  # it is given, or the slice's own rule: it fits by definition
    weak: bool = False  # it fits less than half of the members, or a third of what it fits lies elsewhere
    predicts: Predicts | None = field(default=None, metadata=OMIT_NONE)  # None where it tells no errors
    contrast: Contrast | None = field(default=None, metadata=OMIT_NONE)  # where there is no short description
    further: tuple[Contrast, ...] | None = field(default=None, metadata=OMIT_NONE)  # others that its text tells

    @classmethod
    def explain(cls, view: SliceView, context: Context) -> Name:
        """The slice's own rule, else the description that fits best, else what its members have more of."""
        return next(names(view, context))


def names(view: SliceView, context: Context) -> Iterator[Name]:
    """All names of a slice, best first; the last has its size."""
    if "name" in view.slice.rule:  # what the user calls it
        yield _scored(view, [], NameCandidate(view.slice.rule["name"], "given", view.inside))
    scope = _scope_parts(view)
    own = _own_rule(view)
    if own is not None:
        yield _scored(view, scope, own)
    for candidates in (_candidates(view, context, scope), confidence_candidates(view, context)):
        for candidate in ranked(view, candidates):
            if holds_up(view, candidate):
                yield _scored(view, scope, candidate)
    path = _own_path(view)
    if path is not None:
        yield _scored(view, scope, path)
    yield from _without_description(view, context, scope)


def with_unique_names(slices: Sequence[Slice], views: Sequence[SliceView], context: Context) -> tuple[Slice, ...]:
    """The slices by their names; of two with one name in a task, the second takes its next best.

    views: of the same slices, with their explanations.
    """
    taken = {(slice_.task, slice_.rule["name"]) for slice_ in slices if "name" in slice_.rule}
    named = []
    for slice_, view in zip(slices, views, strict=True):
        name = slice_.explanation(Name)
        assert name is not None
        if (slice_.task, name.text) in taken and name.source != "given":
            name = _next_name(view, context, taken)
        taken.add((slice_.task, name.text))
        named.append(_with_name(slice_, name))
    return tuple(named)


def named_beside(slice_: Slice, others: Sequence[Slice]) -> Slice:
    """A slice of the user's own that joins others; where one of them has its name already, it says whose it is."""
    if all((other.task, other.name) != (slice_.task, slice_.name) for other in others):
        return slice_
    name = slice_.explanation(Name)
    assert name is not None
    return _with_name(slice_, replace(name, text=f"{slice_.name}, {YOUR_OWN}"))


def _with_name(slice_: Slice, name: Name) -> Slice:
    others = [explanation for explanation in slice_.explanations if not isinstance(explanation, Name)]
    return replace(slice_, name=name.text, explanations=(*others, name))


def _next_name(view: SliceView, context: Context, taken: set[tuple[str, str]]) -> Name:
    """The first name of a slice that no other has; a rule of its own, and what else is left, with its size or id."""
    options = list(names(view, context))
    if not options[0].own:
        for name in options:
            if (view.slice.task, name.text) not in taken:
                return name
    sized = replace(options[0], text=f"{options[0].text}, {_size(view)}")
    if (view.slice.task, sized.text) in taken:  # such as the other half of a cross-fit
        return replace(sized, text=f"{sized.text}, {view.slice.id}")
    return sized


def _candidates(view: SliceView, context: Context, scope: Sequence[str]) -> list[NameCandidate]:
    """All descriptions that the earlier explanations suggest; the earlier wins a tie."""
    found = [*class_candidates(view, context), *rule_candidates(view)]
    found += [*word_candidates(view, context), *text_candidates(view, context)]
    if scope:
        everything = np.ones(len(view.inside), dtype=bool)
        predictions = context.class_columns[view.slice.task].get("predictions")
        taken = ""
        if "label" in view.slice.rule["scope"]:
            taken = taken_for(view, predictions, everything).removeprefix(", ")
        found.append(NameCandidate(taken, "scope", everything))
    return found


def _own_rule(view: SliceView) -> NameCandidate | None:
    rule = view.explanation(Rule)
    if rule is None or not rule.own:
        return None
    return NameCandidate(rule.rows[0].words, "rule", view.inside)


def _own_path(view: SliceView) -> NameCandidate | None:
    """A path of features that have no names: better than nothing, since it is exact."""
    path = view.explanation(TreePath)
    if path is None or path.knows_outcome:
        return None
    return NameCandidate(path.text, "path", view.inside)


def _scored(view: SliceView, scope: Sequence[str], candidate: NameCandidate) -> Name:
    text = ", ".join([part for part in (*scope, candidate.text) if part])
    match = measure_match(view, candidate.matches)
    own = candidate.source in ("given", "rule", "path")
    weak = not own and _is_weak(match)
    matched = candidate.matches & (view.inside | view.rest) & view.measured
    interval = None
    if match.outcome.errors is not None:
        interval = gaps.wilson(match.outcome.errors, match.outcome.n)
    predicts = None if own else _predicts(view, matched, match.outcome)
    return Name(view.chosen_on, MEASURED_ON, text, candidate.source, match, interval, own, weak, predicts)


def _is_weak(match: Match) -> bool:
    covers = ratio(*match.covers) or 0.0
    precise = ratio(*match.precise) or 0.0
    return covers < WEAK_COVERED or precise < WEAK_PRECISE


def _predicts(view: SliceView, matched: Array, fitted: Outcome) -> Predicts | None:
    """How often what a description fits is wrong, where it is wrong more often than all other held-out rows."""
    others = measure_outcome(view.evaluation, view.measured & ~matched)
    if not fitted.n or not others.n or fitted.errors is None or others.errors is None:
        return None
    rate = fitted.errors / fitted.n
    others_rate = others.errors / others.n
    if gaps.p_gap(gaps.Counts(fitted.n, fitted.errors, others_rate, others.n)) > SIDE:
        return None
    return Predicts((fitted.errors, fitted.errors + others.errors), rate, others_rate, others.n)


def _without_description(view: SliceView, context: Context, scope: Sequence[str]) -> Iterator[Name]:
    """What the members have most more of, then more of it; with their number where all that is said of another."""
    contrasts = telling_contrasts(view, context)
    lead = ", ".join([*scope, NONE])
    plain = Name(view.chosen_on, MEASURED_ON, lead, None)
    if contrasts:
        plain = replace(plain, text=f"{lead}: {contrast_words(contrasts[:1])}", contrast=contrasts[0])
    yield plain
    for count in range(2, len(contrasts) + 1):
        text = f"{lead}: {contrast_words(contrasts[:count])}"
        yield replace(plain, text=text, further=tuple(contrasts[1:count]))
    yield replace(plain, text=f"{plain.text}, {_size(view)}")


def _scope_parts(view: SliceView) -> list[str]:
    """What the rule is limited to belongs to the name."""
    scope = view.slice.rule.get("scope") or {}
    limits = scope_values(view.evaluation, scope)
    return [_scope_words(key, value, is_pooled(scope[key])) for key, value in limits.items()]


def _scope_words(key: str, value: str, pooled: bool) -> str:
    """A limit of a rule, in the words of a name; of several classes always with the word before them."""
    if pooled:
        return f"{SCOPE_NOUNS.get(key, key)} {value}"
    if key == "label":
        return class_words("label", value)
    if key == "prediction":
        return class_words("predicted", value)
    return f"{key} {value}"


def _size(view: SliceView) -> str:
    """ "26 rows": the held-out members, which tell two slices apart that nothing else does; ids may change."""
    n = int(np.count_nonzero(view.inside & view.measured))
    return "1 row" if n == 1 else f"{n:,} rows"
