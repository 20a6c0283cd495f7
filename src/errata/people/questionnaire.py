"""What people say of a feature's pictures, as data (Barlow, sections 8 and 9): answers, agreement, cumulative curves.

One form serves both studies of the paper. The crowd described features and said how easy that was and which view
helped; practitioners said whether a feature is necessary and what they would do. What was not asked is None.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Literal, Self, get_args

import numpy as np

from ..core import Array, InputError
from ..core.blocks import unit
from ..core.errors import unknown

UsefulView = Literal["heat map", "attack", "both", "none"]
Necessity = Literal["necessary", "spurious"]
Action = Literal["collect", "relabel", "architecture", "warn users", "do not deploy", "other"]
Description = Literal["description3", "description15", "both"]
Embed = Callable[[Sequence[str]], Array]  # (m,) texts -> (m, d)

WORDS = {"description3": 3, "description15": 15}
SCALE = (1, 5)  # Likert: 1 not at all, 5 very


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What one person said of one thing shown."""

    about: str  # what was shown: "s3 feature 1456"
    person: str
    description3: str | None = None  # in at most 3 words
    description15: str | None = None  # in at most 15 words
    ease: int | None = None  # of describing it, 1 to 5
    confidence: int | None = None  # in the description, 1 to 5
    view: UsefulView | None = None  # the most useful one
    necessity: Necessity | None = None  # of the feature, for the class
    actions: tuple[Action, ...] = ()  # that one would take; the paper's practitioners named two on average

    def __post_init__(self) -> None:
        for name in ("about", "person"):
            if not isinstance(getattr(self, name), str) or not getattr(self, name).strip():
                raise InputError(f"`{name}` of an answer must be a text that is not empty; got {getattr(self, name)!r}")
        for name, most in WORDS.items():
            _check_words(name, getattr(self, name), most)
        for name in ("ease", "confidence"):
            _check_scale(name, getattr(self, name))
        if self.view is not None:
            _check_choice("view", self.view, UsefulView)
        if self.necessity is not None:
            _check_choice("necessity", self.necessity, Necessity)
        if isinstance(self.actions, str):
            raise InputError(f"`actions` is a list, of any number; got the text {self.actions!r}")
        for action in self.actions:
            _check_choice("action", action, Action)
        object.__setattr__(self, "actions", tuple(self.actions))

    def to_json(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in fields(self)} | {"actions": list(self.actions)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        names = [field.name for field in fields(cls)]
        for name in data:
            if name not in names:
                raise unknown("part of an answer", str(name), names)
        for name in ("about", "person"):
            if name not in data:
                raise InputError(f"an answer needs `{name}`; got {', '.join(data) or 'nothing'}")
        return cls(**data)


def form() -> dict[str, Any]:
    """What a page that asks must know: how many words, which numbers, which choices."""
    low, high = SCALE
    choices = {"view": UsefulView, "necessity": Necessity, "actions": Action}
    named = {name: list(get_args(choice)) for name, choice in choices.items()}
    return {"words": dict(WORDS), "scale": list(range(low, high + 1)), **named}


def checked(data: Mapping[str, Any]) -> dict[str, Any]:
    """An answer as JSON, as it is kept; an InputError where it is none."""
    return Answer.from_json(data).to_json()


def _check_words(name: str, text: Any, most: int) -> None:
    if text is None:
        return
    if not isinstance(text, str) or not text.strip():
        raise InputError(f"`{name}` must be a text that is not empty, or None where there is none; got {text!r}")
    if len(text.split()) > most:
        raise InputError(f"`{name}` may have {most} words; got {len(text.split())}: {text!r}; shorten it")


def _check_scale(name: str, value: Any) -> None:
    low, high = SCALE
    if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high):
        raise InputError(f"`{name}` must be a whole number from {low} to {high}; got {value!r}")


def _check_choice(name: str, value: Any, choices: Any) -> None:
    if value not in get_args(choices):
        raise InputError(f"`{name}` must be one of {', '.join(get_args(choices))}; got {value!r}")


def agreement(answers: Iterable[Answer], embed: Embed, description: Description = "both") -> dict[str, float]:
    """What was shown -> mean cosine, over pairs of people, between their descriptions (appendix G).

    embed: texts to rows; the paper takes the mean word vector. description: which, or both put together. What fewer
    than two people described is left out.
    """
    if description not in get_args(Description):
        raise InputError(f"`description` must be one of {', '.join(get_args(Description))}; got {description!r}")
    texts: dict[str, list[str]] = {}
    for answer in answers:
        names = WORDS if description == "both" else (description,)
        given = [text for name in names if (text := getattr(answer, name)) is not None]
        if given:
            texts.setdefault(answer.about, []).append(" ".join(given))
    shown = {about: said for about, said in texts.items() if len(said) >= 2}
    U = _embedded([text for said in shown.values() for text in said], embed)
    found, start = {}, 0
    for about, said in shown.items():
        found[about] = _mean_cosine(U[start : start + len(said)])
        start += len(said)
    return found


def _embedded(texts: list[str], embed: Embed) -> Array:
    """(m, d) of length one; a text without meaning to the encoder (stop words alone) is zero, and agrees with none."""
    if not texts:
        return np.empty((0, 1))
    rows = np.asarray(embed(texts), dtype=np.float64)
    if rows.ndim != 2 or len(rows) != len(texts) or not np.isfinite(rows).all():
        raise InputError(f"`embed` must give a finite row for each of {len(texts)} texts; got shape {rows.shape}")
    return unit(rows)


def _mean_cosine(U: Array) -> float:
    return float((U @ U.T)[np.triu_indices(len(U), 1)].mean())


def mean_scores(answers: Iterable[Answer], question: Literal["ease", "confidence"]) -> dict[str, float]:
    """What was shown -> the mean over those who were asked (the paper's figure 9a)."""
    given: dict[str, list[int]] = {}
    for answer in answers:
        score = getattr(answer, question)
        if score is not None:
            given.setdefault(answer.about, []).append(score)
    return {about: float(np.mean(scores)) for about, scores in given.items()}


def cumulative(values: Mapping[str, float] | Sequence[float]) -> list[dict[str, float]]:
    """The curve of the paper's figures 9a and 66: for each value, how many lie at or below it, and their share."""
    numbers = np.sort(np.array(list(values.values() if isinstance(values, Mapping) else values), dtype=np.float64))
    points, counts = np.unique(numbers, return_counts=True)
    below = np.cumsum(counts)
    return [
        {"value": float(value), "count": int(count), "share": float(count / len(numbers))}
        for value, count in zip(points, below, strict=True)
    ]


def tally(answers: Iterable[Answer], question: Literal["view", "necessity", "actions"]) -> dict[str, int]:
    """How often each choice was made, the unmade ones too (the paper's figures 9b and 10)."""
    choices = {"view": UsefulView, "necessity": Necessity, "actions": Action}
    counts = dict.fromkeys(get_args(choices[question]), 0)
    for answer in answers:
        given = getattr(answer, question)
        for choice in given if question == "actions" else [given] * (given is not None):
            counts[choice] += 1
    return counts
