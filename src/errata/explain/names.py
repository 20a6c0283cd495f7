"""A short name for a slice, made by machine and scored: from a label, a prediction, a metadata value or words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core import Array, Evaluation, Explanation
from .encode import Column
from .tokens import Words
from .view import View, description, points

LEAST_SHARE = 0.5  # of the members: a name that fits fewer misleads
LEAST_POINTS = 0.2  # above the rest: a name that fits everything says nothing
WORDS = 3
FEWEST_WRONG = 3  # errors before "mostly taken for" is said


@dataclass(frozen=True, eq=False)
class Candidate:
    """A name, where it comes from and the rows it would name."""

    text: str
    source: str
    matches: Array  # (n,) bool


def best_name(view: View, inputs: Sequence[Candidate], fallback: str) -> Explanation:
    """The candidate that sets the members apart most, in points of rows; the fallback where none does."""
    strongest, best = None, LEAST_POINTS
    for candidate in inputs:
        share, above = points(view, candidate.matches)
        if share >= LEAST_SHARE and above >= best + (1e-9 if strongest else 0):
            strongest, best = candidate, above
    prefix = _scope(view)
    if strongest is None:
        return Explanation("name", {**view.roles, "text": ", ".join([*prefix, fallback]), "source": None})
    text = ", ".join([*(part for part in prefix if part != strongest.text), strongest.text])
    data = {**view.roles, "text": text, "source": strongest.source, **description(view, strongest.matches)}
    return Explanation("name", data)


def candidates(
    view: View, explanations: Mapping[str, Explanation], columns: Mapping[str, Column], words: Words | None
) -> list[Candidate]:
    """All names the explanations of a slice suggest; the earlier wins a tie."""
    found = [*_class_names(view, explanations, columns), *_metadata_names(explanations, columns)]
    if words is not None and "tokens" in explanations:
        found += _word_names(explanations["tokens"].data, words)
    return found


def _class_names(view: View, explanations: Mapping[str, Explanation], columns: Mapping[str, Column]) -> list[Candidate]:
    if "classes" not in explanations:
        return []
    data, found = explanations["classes"].data, []
    for key, word in (("labels", "label"), ("predictions", "predicted")):
        for row in data[key]["rows"][:1] if data[key] else []:
            matches = columns[key].holds(row["value"])
            tail = _taken_for(view, columns, matches) if key == "labels" else ""
            found.append(Candidate(class_words(word, row["value"]) + tail, key, matches))
    return found


def class_words(word: str, value: str | None) -> str:
    """A class by its own name; a mere number needs a word before it, and a prediction always does."""
    named = value is not None and not value.replace(".", "").replace("−", "").replace(" to ", "").isdigit()
    return str(value) if named and word == "label" else f"{word} {value}"


def _taken_for(view: View, columns: Mapping[str, Column], matches: Array) -> str:
    """ ", mostly taken for 1", where half the errors of the label's chosen members go one way."""
    errors, predictions = view.evaluation.errors, columns.get("predictions")
    if errors is None or predictions is None:
        return ""
    wrong = view.inside & view.chosen & matches & errors
    counts = np.bincount(predictions.codes[wrong], minlength=1)
    if counts.sum() < FEWEST_WRONG or counts.max() < 0.5 * counts.sum():
        return ""
    return f", mostly taken for {predictions.values[int(counts.argmax())]}"


def _metadata_names(explanations: Mapping[str, Explanation], columns: Mapping[str, Column]) -> list[Candidate]:
    """The value of each column that the slice has most more of."""
    found = []
    for profile in explanations["metadata"].data["columns"] if "metadata" in explanations else []:
        more = [row for row in profile["rows"] if row["found_points"] > 0]
        if more:
            value, name = more[0]["value"], profile["column"]
            text = f"{name} missing" if value is None else f"{name} {value}"
            found.append(Candidate(text, f"metadata:{name}", columns[f"metadata:{name}"].holds(value)))
    return found


def _word_names(tokens: Mapping[str, Any], words: Words) -> list[Candidate]:
    top = [row["token"] for row in tokens["rows"][:WORDS]]
    return [Candidate(", ".join(top), "tokens", words.with_any(top))] if top else []


def _scope(view: View) -> list[str]:
    """What the rule is limited to belongs to the name."""
    scope: Mapping[str, Any] = view.slice.rule.get("scope") or {}
    return [_scope_words(view.evaluation, key, value) for key, value in scope.items()]


def _scope_words(evaluation: Evaluation, key: str, value: Any) -> str:
    if key not in ("label", "prediction"):
        return f"{key} {value}"
    word = "label" if key == "label" else "predicted"
    return class_words(word, evaluation.class_name(int(value)))


def unique(names: Sequence[str]) -> list[str]:
    """The same names, numbered where one stands twice."""
    seen: dict[str, int] = {}
    numbered = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        numbered.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return numbered
