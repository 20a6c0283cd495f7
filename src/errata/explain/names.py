"""A short name for a slice, made by machine and scored: from a label, a prediction, a metadata value or words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ..core import Array, Slice
from ..core.record import FLAT
from ..core.scope import is_pooled, scope_values
from .classes import Classes
from .context import Context
from .encode import Column
from .kinds import SliceExplanation
from .metadata import Metadata
from .tokens import Tokens
from .view import MEASURED_ON, Match, SliceView, measure_match, separation

LEAST_SHARE = 0.5  # of the members: a name that fits fewer misleads
LEAST_POINTS = 0.2  # above the rest: a name that fits everything says nothing
WORDS = 3
FEWEST_WRONG = 3  # errors before "mostly taken for" is said
LEAST_TAKEN = 0.5  # of those errors
SCOPE_NOUNS = {"label": "label", "prediction": "predicted"}


@dataclass(frozen=True)
class Name(SliceExplanation):
    """The name of a slice, where it comes from, and how well it fits."""

    kind = "name"

    chosen_on: str
    measured_on: str
    text: str
    source: str | None  # "labels", "predictions", "metadata:COLUMN", "tokens"; None where no candidate fits
    match: Match | None = field(default=None, metadata=FLAT)  # None where no candidate fits

    @classmethod
    def explain(cls, view: SliceView, context: Context) -> Name:
        """The candidate that sets the members apart most; the method and its number where none does."""
        candidate = best_candidate(view, candidates(view, context))
        # What the rule is limited to belongs to the name.
        rule_scope = view.slice.rule.get("scope") or {}
        limits = scope_values(view.evaluation, rule_scope)
        scope = [_scope_words(key, value, is_pooled(rule_scope[key])) for key, value in limits.items()]
        if candidate is None:
            return cls(view.chosen_on, MEASURED_ON, ", ".join([*scope, _fallback(view.slice)]), None)
        text = ", ".join([*(part for part in scope if part != candidate.text), candidate.text])
        return cls(view.chosen_on, MEASURED_ON, text, candidate.source, measure_match(view, candidate.matches))


@dataclass(frozen=True, eq=False)
class NameCandidate:
    """A name, where it comes from and the rows it would name."""

    text: str
    source: str
    matches: Array  # (n,) bool


def best_candidate(view: SliceView, options: Sequence[NameCandidate]) -> NameCandidate | None:
    """The candidate that sets the members apart most, in points of rows; None where none does."""
    strongest = None
    best = LEAST_POINTS
    for candidate in options:
        share, above = separation(view, candidate.matches)
        margin = 1e-9 if strongest is not None else 0.0  # the earlier wins a tie
        if share >= LEAST_SHARE and above >= best + margin:
            strongest = candidate
            best = above
    return strongest


def candidates(view: SliceView, context: Context) -> list[NameCandidate]:
    """All names that the earlier explanations of a slice suggest; the earlier wins a tie."""
    return [*_class_names(view, context), *_metadata_names(view, context), *_word_names(view, context)]


def _class_names(view: SliceView, context: Context) -> list[NameCandidate]:
    """The label and the prediction that the slice differs in most."""
    classes = view.explanation(Classes)
    if classes is None:
        return []
    columns = context.class_columns[view.slice.task]
    names = []
    if classes.labels is not None and classes.labels.rows:
        value = classes.labels.rows[0].value
        matches = columns["labels"].holds(value)
        text = class_words("label", value) + _taken_for(view, columns.get("predictions"), matches)
        names.append(NameCandidate(text, "labels", matches))
    if classes.predictions is not None and classes.predictions.rows:
        value = classes.predictions.rows[0].value
        names.append(NameCandidate(class_words("predicted", value), "predictions", columns["predictions"].holds(value)))
    return names


def class_words(word: str, value: str | None) -> str:
    """A class by its own name; a mere number needs a word before it, and a prediction always does."""
    named = value is not None and not value.replace(".", "").replace("−", "").replace(" to ", "").isdigit()
    return str(value) if named and word == "label" else f"{word} {value}"


def _taken_for(view: SliceView, predictions: Column | None, matches: Array) -> str:
    """ ", mostly taken for 1", where half the errors of the label's chosen members go one way."""
    errors = view.evaluation.errors
    if errors is None or predictions is None:
        return ""
    wrong = view.inside & view.chosen & matches & errors
    counts = np.bincount(predictions.codes[wrong], minlength=1)
    if counts.sum() < FEWEST_WRONG or counts.max() < LEAST_TAKEN * counts.sum():
        return ""
    return f", mostly taken for {predictions.values[int(counts.argmax())]}"


def _metadata_names(view: SliceView, context: Context) -> list[NameCandidate]:
    """The value of each column that the slice has most more of."""
    metadata = view.explanation(Metadata)
    if metadata is None:
        return []
    columns = {column.name: column for column in context.columns if isinstance(column, Column)}
    names = []
    for profile in metadata.columns:
        more = [row for row in profile.rows if row.search_points > 0]
        if more:
            value = more[0].value
            text = f"{profile.column} {value}"
            if value is None:
                text = f"{profile.column} missing"
            names.append(NameCandidate(text, f"metadata:{profile.column}", columns[profile.column].holds(value)))
    return names


def _word_names(view: SliceView, context: Context) -> list[NameCandidate]:
    """The words that the slice has most more of, as one name."""
    tokens = view.explanation(Tokens)
    if tokens is None or context.words is None or not tokens.rows:
        return []
    top = [row.token for row in tokens.rows[:WORDS]]
    return [NameCandidate(", ".join(top), "tokens", context.words.with_any(top))]


def _scope_words(key: str, value: str, pooled: bool) -> str:
    """A limit of a rule, in the words of a name; of several classes always with the word before them."""
    if pooled:
        return f"{SCOPE_NOUNS.get(key, key)} {value}"
    if key == "label":
        return class_words("label", value)
    if key == "prediction":
        return class_words("predicted", value)
    return f"{key} {value}"


def _fallback(slice_: Slice) -> str:
    """ "spotlight 2": the second slice of its method."""
    return slice_.method if slice_.column < 0 else f"{slice_.method} {slice_.column + 1}"


def unique(names: Sequence[str]) -> list[str]:
    """The same names, numbered where one stands twice."""
    counts: dict[str, int] = {}
    numbered = []
    for name in names:
        counts[name] = counts.get(name, 0) + 1
        if counts[name] > 1:
            name = f"{name} ({counts[name]})"
        numbered.append(name)
    return numbered
