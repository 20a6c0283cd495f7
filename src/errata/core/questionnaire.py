"""A questionnaire about the images of a feature (Barlow, sections 8 and 9): answers, agreement, cumulative curves.

One form serves both studies of the paper. The crowd described features and rated how easy that was and which view
helped; practitioners judged whether a feature is necessary and what they would do, and at the end how far they agree
with six statements about the method. What was not asked is None, or empty.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Self, get_args

import numpy as np

from .blocks import Array, mean_cosine, unit
from .errors import InputError, unknown
from .words import words_of

UsefulView = Literal["heat map", "attack", "both", "none"]
Necessity = Literal["necessary", "spurious"]
Action = Literal["collect", "relabel", "architecture", "warn users", "do not deploy", "other"]
Description = Literal["description3", "description15", "both"]
Embed = Callable[[Sequence[str]], Array]  # (m,) texts -> (m, d)

CHOICES = {"view": UsefulView, "necessity": Necessity, "actions": Action}
WORDS = {"description3": 3, "description15": 15}
SCALE = (1, 5)  # Likert: 1 not at all, 5 very
METHOD = "the method"  # `about` of what is said of it as a whole
STATEMENTS = {
    "easy to use": "It was easy to use.",
    "easy to understand": "I could tell what its features show.",
    "new": "It showed me something new about the model.",
    "surprising": "Some of what it found surprised me.",
    "again": "I would use it again.",
    "valuable": "It can show where and why a model fails.",
}  # of figure 11


@dataclass(frozen=True, kw_only=True)
class QuestionnaireAnswer:
    """One person's answers about one feature; None where a question was not asked.

    Parameters
    ----------
    about : str
        What the images show: "s3 feature 1456".
    person : str
        Who answers.
    description3, description15 : str, optional
        In at most 3 words, and in at most 15.
    ease, confidence : int, optional
        Of describing it, and in the description; 1 to 5.
    view : str, optional
        The most useful one: "heat map", "attack", "both" or "none".
    necessity : str, optional
        Of the feature, for the class: "necessary" or "spurious".
    actions : tuple of str
        That the person would take; the paper's practitioners named two on average.
    statements : dict of str to int
        Statement about the method as a whole -> how far the person agrees, 1 to 5.
    """

    about: str
    person: str
    description3: str | None = None
    description15: str | None = None
    ease: int | None = None
    confidence: int | None = None
    view: UsefulView | None = None
    necessity: Necessity | None = None
    actions: tuple[Action, ...] = ()
    statements: Mapping[str, int] = field(default_factory=dict)

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
            raise InputError(f"`actions` must be a list; got the text {self.actions!r}")
        for action in self.actions:
            _check_choice("action", action, Action)
        object.__setattr__(self, "actions", tuple(self.actions))
        _check_statements(self.statements)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        values = {part.name: getattr(self, part.name) for part in fields(self)}
        return values | {"actions": list(self.actions), "statements": dict(self.statements)}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Self:
        """An answer from JSON; an InputError where it is none."""
        names = [part.name for part in fields(cls)]
        for name in data:
            if name not in names:
                raise unknown("part of an answer", str(name), names)
        for name in ("about", "person"):
            if name not in data:
                raise InputError(f"an answer needs `{name}`; got {', '.join(data) or 'nothing'}")
        return cls(**data)


def form() -> dict[str, Any]:
    """What the page of the questionnaire needs: how many words, which numbers, which choices."""
    low, high = SCALE
    choices = {name: list(get_args(choice)) for name, choice in CHOICES.items()}
    scale = list(range(low, high + 1))
    return {"words": dict(WORDS), "scale": scale, "statements": dict(STATEMENTS), **choices}


def checked(data: Mapping[str, Any]) -> dict[str, Any]:
    """An answer as JSON, as it is saved; an InputError where it is none."""
    return QuestionnaireAnswer.from_json(data).to_json()


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


def _check_statements(statements: Any) -> None:
    if not isinstance(statements, Mapping):
        raise InputError(f"`statements` must map statements to numbers; got {statements!r}")
    for name, value in statements.items():
        _check_choice("statement", name, Literal[*STATEMENTS])
        _check_scale(f"statements.{name}", value)
        if value is None:
            raise InputError(f"`statements.{name}` has no number; leave out what was not answered")


def _check_choice(name: str, value: Any, choices: Any) -> None:
    if value not in get_args(choices):
        raise InputError(f"`{name}` must be one of {', '.join(get_args(choices))}; got {value!r}")


def description_agreement(
    answers: Iterable[QuestionnaireAnswer], embed: Embed, description: Description = "both"
) -> dict[str, float]:
    """How similar people's descriptions are (appendix G).

    Parameters
    ----------
    answers : iterable of QuestionnaireAnswer
        What fewer than two people described is left out.
    embed : callable
        (m,) texts -> (m, d); the paper takes the mean word vector.
    description : str
        Which of the two, or "both" joined.

    Returns
    -------
    dict of str to float
        `about` -> mean cosine similarity over pairs of people.
    """
    if description not in get_args(Description):
        raise InputError(f"`description` must be one of {', '.join(get_args(Description))}; got {description!r}")
    texts: dict[str, list[str]] = {}
    for answer in answers:
        names = WORDS if description == "both" else (description,)
        parts = [text for name in names if (text := getattr(answer, name)) is not None]
        if parts:
            texts.setdefault(answer.about, []).append(" ".join(parts))
    several = {about: descriptions for about, descriptions in texts.items() if len(descriptions) >= 2}
    U = _embedded([text for descriptions in several.values() for text in descriptions], embed)
    similarity = {}
    start = 0
    for about, descriptions in several.items():
        stop = start + len(descriptions)
        similarity[about] = mean_cosine(U[start:stop])
        start = stop
    return similarity


def word_counts(texts: Sequence[str]) -> Array:
    """(m, d) how often each text has each word of all texts: what an agreement without word vectors embeds with."""
    words = [words_of(text) for text in texts]
    known = {word: column for column, word in enumerate(sorted({word for line in words for word in line}))}
    counts = np.zeros((len(texts), max(1, len(known))))
    for i, line in enumerate(words):
        for word in line:
            counts[i, known[word]] += 1
    return counts


def _embedded(texts: list[str], embed: Embed) -> Array:
    """(m, d) of length one; a text that the encoder maps to zero (stop words) stays zero, and agrees with none."""
    if not texts:
        return np.empty((0, 1))
    rows = np.asarray(embed(texts), dtype=np.float64)
    if rows.ndim != 2 or len(rows) != len(texts) or not np.isfinite(rows).all():
        raise InputError(f"`embed` must give a finite row for each of {len(texts)} texts; got shape {rows.shape}")
    return unit(rows)


def mean_scores(answers: Iterable[QuestionnaireAnswer], question: Literal["ease", "confidence"]) -> dict[str, float]:
    """`about` -> the mean score over those who were asked (the paper's figure 9a)."""
    scores: dict[str, list[int]] = {}
    for answer in answers:
        score = getattr(answer, question)
        if score is not None:
            scores.setdefault(answer.about, []).append(score)
    return {about: float(np.mean(of_item)) for about, of_item in scores.items()}


def cumulative(values: Mapping[str, float] | Sequence[float]) -> list[dict[str, float]]:
    """The curve of the paper's figures 9a and 66: for each value, how many are at most it, and their share."""
    if isinstance(values, Mapping):
        values = list(values.values())
    numbers = np.array(values, dtype=np.float64)
    points, counts = np.unique(numbers, return_counts=True)
    below = np.cumsum(counts)
    return [
        {"value": float(value), "count": int(count), "share": float(count / len(numbers))}
        for value, count in zip(points, below, strict=True)
    ]


def statement_scores(answers: Iterable[QuestionnaireAnswer]) -> dict[str, list[int]]:
    """Statement -> the scores of those who answered it (the paper's figure 11)."""
    scores: dict[str, list[int]] = {name: [] for name in STATEMENTS}
    for answer in answers:
        for name, score in answer.statements.items():
            scores[name].append(score)
    return scores


def tally(answers: Iterable[QuestionnaireAnswer], question: Literal["view", "necessity", "actions"]) -> dict[str, int]:
    """How often each choice was made, those never made too (the paper's figures 9b and 10)."""
    counts = dict.fromkeys(get_args(CHOICES[question]), 0)
    for answer in answers:
        if question == "actions":
            choices = answer.actions
        else:
            choice = getattr(answer, question)
            choices = () if choice is None else (choice,)
        for choice in choices:
            counts[choice] += 1
    return counts
