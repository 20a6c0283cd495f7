"""What people answered about features: the name that most give it, how far they agree, and how they scored it."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..core import Audit
from ..core.questionnaire import (
    METHOD,
    STATEMENTS,
    QuestionnaireAnswer,
    cumulative,
    description_agreement,
    mean_scores,
    statement_scores,
    tally,
    word_counts,
)
from ..core.words import clipped
from . import numbers
from .class_trees import GroupKey, group_key

QUESTIONNAIRE = "questionnaire"
FEATURE = re.compile(r"\bfeature (\d+)\b")
LONGEST_NAME = 60  # characters: three words may be long ones
SCORES = {"ease": "How easy it was to describe, 1 to 5", "confidence": "How sure they were, 1 to 5"}
CHOICES = {
    "view": "The most useful view",
    "necessity": "For the class, the feature is",
    "actions": "What they would do, any number",
}


@dataclass(frozen=True)
class FeatureName:
    """A feature by its index, and by the words that most people have for it.

    index: "feature 186". words: "" where nobody described it. said, people: how many said so, of how many.
    """

    index: str
    words: str = ""
    said: int = 0
    people: int = 0

    def __str__(self) -> str:
        return f"{self.index}, “{self.words}”" if self.words else self.index

    @property
    def note(self) -> str:
        """ "by 3 of 5 people, 2 said otherwise"; "" where nobody described it."""
        if not self.words:
            return ""
        if self.people == 1:
            return "by 1 person"
        note = f"by {numbers.out_of(self.said, self.people)} people"
        otherwise = self.people - self.said
        return f"{note}, {otherwise} said otherwise" if otherwise else note


class FeatureAnswers:
    """All answers to the questionnaire that an audit, as people left it, has about features."""

    def __init__(self, audit: Audit):
        self._keys = {slice_.id: group_key(slice_) for slice_ in audit.slices}
        self._answers: dict[tuple[GroupKey, int], dict[str, QuestionnaireAnswer]] = {}
        self._of_method: dict[str, QuestionnaireAnswer] = {}
        # Who was asked about a feature in two slices of one tree has one opinion: the later.
        for _, slice_id, answer in sorted(_filled(audit), key=lambda filled: filled[0]):
            key = self._keys[slice_id]
            feature = FEATURE.search(answer.about)
            if answer.about == METHOD:
                self._of_method[answer.person] = answer
            elif key is not None and feature is not None:
                self._answers.setdefault((key, int(feature[1])), {})[answer.person] = answer

    def of(self, key: GroupKey, feature: int) -> tuple[QuestionnaireAnswer, ...]:
        """The answers about one feature, one a person."""
        return tuple(self._answers.get((key, feature), {}).values())

    def of_method(self) -> dict[str, Any] | None:
        """How far people agree with the statements about the method, one answer a person; None where nobody said."""
        scores = statement_scores(self._of_method.values())
        lines = [_score_line(STATEMENTS[name], own) for name, own in scores.items() if own]
        if not lines:
            return None
        people = len(self._of_method)
        who = "1 person" if people == 1 else f"{numbers.count(people)} people"
        return {"lead": f"{who}, in the questionnaires of all slices: 1 not at all, 5 fully.", "questions": lines}

    def of_group(self, key: GroupKey) -> dict[int, tuple[QuestionnaireAnswer, ...]]:
        """Feature -> its answers, of every feature of a group that somebody answered about."""
        return {feature: self.of(key, feature) for other, feature in self._answers if other == key}

    def name(self, key: GroupKey, feature: int) -> FeatureName:
        """The feature by the words that most people have for it; of equally many, by those that came first."""
        index = f"feature {feature}"
        words = Counter(words for answer in self.of(key, feature) if (words := _words(answer)))
        if not words:
            return FeatureName(index)
        text, said = words.most_common(1)[0]
        return FeatureName(index, clipped(text, LONGEST_NAME), said, words.total())

    def named(self, slice_id: str, text: str) -> str:
        """A text about the path of a slice, with the words that people have for its features."""
        key = self._keys.get(slice_id)
        if key is None:
            return text
        return FEATURE.sub(lambda found: str(self.name(key, int(found[1]))), text)


def _filled(audit: Audit) -> Iterator[tuple[int, str, QuestionnaireAnswer]]:
    """Every answer with its number in the log and its slice."""
    for slice_ in audit.slices:
        tasks = () if slice_.judged is None else slice_.judged.said
        for said in tasks:
            if said.task == QUESTIONNAIRE:
                for number, answer in zip(said.filled_as, said.filled, strict=True):
                    yield number, slice_.id, answer


def _words(answer: QuestionnaireAnswer) -> str:
    """What a person calls a feature, so that the same words are equal; the long description where there is no short."""
    words = answer.description3 or answer.description15 or ""
    return " ".join(words.casefold().split()).strip(".,;:!?")


def result_of(answers: Sequence[QuestionnaireAnswer]) -> dict[str, Any] | None:
    """What people said of one feature, every number with its n; None where nobody answered."""
    if not answers:
        return None
    words = Counter(words for answer in answers if (words := _words(answer)))
    people = "1 person" if len(answers) == 1 else f"{numbers.count(len(answers))} people"
    return {
        "lead": f"{people} answered.",
        "descriptions": [(clipped(text, 2 * LONGEST_NAME), count) for text, count in words.most_common()],
        "agreement": _agreement(answers, words.total()),
        "questions": _questions(answers),
    }


def pooled_result(answers: Mapping[int, Sequence[QuestionnaireAnswer]]) -> dict[str, Any] | None:
    """What people said of all features of a group together, as figures 9 and 10 of the paper; None of no answers."""
    everything = [answer for lines in answers.values() for answer in lines]
    if not everything:
        return None
    features = sum(bool(lines) for lines in answers.values())
    people = len({answer.person for answer in everything})
    who = "1 person" if people == 1 else f"{numbers.count(people)} people"
    return {
        "lead": f"{numbers.counted(len(everything), 'answer')} of {who} about {numbers.counted(features, 'feature')}.",
        "questions": _questions(everything),
        "curves": [curve for name, title in SCORES.items() if (curve := _curve(answers, name, title))["steps"]],
    }


def _agreement(answers: Sequence[QuestionnaireAnswer], described: int) -> str:
    """How similar the descriptions are, in words that they share."""
    same_thing = [QuestionnaireAnswer(**{**vars(answer), "about": "it"}) for answer in answers]
    similarity = description_agreement(same_thing, word_counts)
    if not similarity:
        return "Agreement is not measured: fewer than two people described it."
    pairs = described * (described - 1) // 2
    return (
        f"Agreement {similarity['it']:.2f} over {numbers.counted(pairs, 'pair')} of people: the mean cosine of the "
        "words in their descriptions, 1 the same, 0 none in common."
    )


def _questions(answers: Sequence[QuestionnaireAnswer]) -> list[dict[str, Any]]:
    """How often each answer was given, of those who answered that question."""
    lines = []
    for name, title in SCORES.items():
        scores = [score for answer in answers if (score := getattr(answer, name)) is not None]
        if scores:
            lines.append(_score_line(title, scores))
    for name, title in CHOICES.items():
        counts = tally(answers, name)  # type: ignore[arg-type]  # the keys of CHOICES are its questions
        asked = sum(bool(getattr(answer, name)) for answer in answers)
        if asked:
            lines.append({"title": title, "note": "", "bars": _bars(counts, asked), "n": asked})
    return lines


def _score_line(title: str, scores: Sequence[int]) -> dict[str, Any]:
    counts = {str(score): scores.count(score) for score in range(1, 6)}
    mean = f"mean {sum(scores) / len(scores):.1f}"
    return {"title": title, "note": mean, "bars": _bars(counts, len(scores)), "n": len(scores)}


def _bars(counts: Mapping[str, int], n: int) -> list[dict[str, Any]]:
    """n: those who answered; with any number of choices each, the counts sum to more."""
    return [
        {"label": label, "text": numbers.rate_of(count, n), "count": count, "at": 100 * count / n}
        for label, count in counts.items()
    ]


def _curve(answers: Mapping[int, Sequence[QuestionnaireAnswer]], name: Any, title: str) -> dict[str, Any]:
    """How many features have a mean score of at most so much: figure 9a."""
    by_feature = [
        QuestionnaireAnswer(**{**vars(answer), "about": f"feature {feature}"})
        for feature, lines in answers.items()
        for answer in lines
    ]
    scores = mean_scores(by_feature, name)
    above = sum(score > 3 for score in scores.values())
    steps = [(f"{step['value']:.1f}", numbers.out_of(int(step["count"]), len(scores))) for step in cumulative(scores)]
    return {
        "title": title,
        "above": f"{numbers.out_of(above, len(scores))} features have a mean above 3.",
        "steps": steps,
    }
