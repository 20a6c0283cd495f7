"""The answers of several people together: how often they agree, where they differ, what most of them say."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

from ..core import InputError
from ..core.gaps import wilson
from .entries import Entry, Task, as_json

AnswersByItem = dict[str, dict[str, str]]  # item -> person -> answer, as JSON: equal texts are equal answers


@dataclass(frozen=True)
class Pair:
    """How often two people agree.

    Attributes
    ----------
    people : (str, str)
        Their names.
    items : int
        That both answered.
    kappa : float, optional
        Cohen's; None where chance alone would always agree: both gave one and the same answer throughout.
    """

    people: tuple[str, str]
    items: int
    kappa: float | None


@dataclass(frozen=True)
class Agreement:
    """How often people agree.

    Attributes
    ----------
    people : mapping of str to int
        Items that each answered.
    items : int
        That two or more people answered.
    same : int
        Items to which all gave the same answer.
    share : float, optional
        `same / items`.
    interval : (float, float)
        Of the share: Wilson's, 95%.
    kappa : float, optional
        Cohen's; of more than two people the mean over pairs that have one.
    pairs : tuple of Pair
        Those who have an item in common.
    """

    people: Mapping[str, int]
    items: int
    same: int
    share: float | None
    interval: tuple[float, float]
    kappa: float | None
    pairs: tuple[Pair, ...]


@dataclass(frozen=True)
class Disagreement:
    """An item on which people differ.

    Attributes
    ----------
    task, item : str
        The question.
    answers : mapping
        Person -> answer.
    """

    task: Task
    item: str
    answers: Mapping[str, Any]


@dataclass(frozen=True)
class Majority:
    """What most people answer.

    Attributes
    ----------
    item : str
        The question.
    votes : tuple of (answer, int)
        Each answer and its count, most first.
    n, none : int
        Votes, and those for none of the above.
    answer : any
        Of the most; None, where decided, is none of the above.
    decided : bool
        False on a tie and without answers: `answer` then means nothing.
    settled_by : str, optional
        The person whose answer decided, over the votes.
    """

    item: str
    votes: tuple[tuple[Any, int], ...]
    n: int
    none: int
    answer: Any
    decided: bool
    settled_by: str | None = None


def measure_agreement(answers: Iterable[Entry], part: str | None = None) -> Agreement:
    """How often people agree.

    Parameters
    ----------
    answers : iterable of Entry
        Current ones, to one task.
    part : str, optional
        Of answers that have several, which: "failure" or "label" of a region, any question of a questionnaire.
    """
    by_item = _answers_by_item(answers, part)
    several = [list(by_person.values()) for by_person in by_item.values() if len(by_person) >= 2]
    same = sum(len(set(texts)) == 1 for texts in several)
    people = Counter(person for by_person in by_item.values() for person in by_person)
    pairs = _pairs(by_item)
    kappas = [pair.kappa for pair in pairs if pair.kappa is not None]
    share = same / len(several) if several else None
    kappa = sum(kappas) / len(kappas) if kappas else None
    return Agreement(
        people=dict(sorted(people.items())),
        items=len(several),
        same=same,
        share=share,
        interval=wilson(same, len(several)),
        kappa=kappa,
        pairs=pairs,
    )


def _pairs(by_item: AnswersByItem) -> tuple[Pair, ...]:
    """Of those who have an item in common."""
    both: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for by_person in by_item.values():
        for people in combinations(sorted(by_person), 2):
            both.setdefault(people, []).append((by_person[people[0]], by_person[people[1]]))
    return tuple(
        Pair(people, len(answers), cohen_kappa([first for first, _ in answers], [second for _, second in answers]))
        for people, answers in sorted(both.items())
    )


def cohen_kappa(first: Sequence[str], second: Sequence[str]) -> float | None:
    """Cohen's kappa of two people's answers to the same items, (observed - chance) / (1 - chance).

    None where chance is 1, or there are no items.
    """
    n = len(first)
    same = sum(a == b for a, b in zip(first, second, strict=True))
    second_counts = Counter(second)
    # Times n squared: whole numbers, so exact.
    by_chance = sum(count * second_counts[answer] for answer, count in Counter(first).items())
    if n * n <= by_chance:
        return None
    return (n * same - by_chance) / (n * n - by_chance)


def disagreements(answers: Iterable[Entry], settled: Iterable[Entry]) -> tuple[Disagreement, ...]:
    """Items on which people differ and that nobody settled, in the order they came up; not of a questionnaire.

    Parameters
    ----------
    answers : iterable of Entry
        Current ones.
    settled : iterable of Entry
        Those that ended a disagreement.
    """
    done = {(entry.task, entry.item) for entry in settled}
    open_items: dict[tuple[Task, str], dict[str, Any]] = {}
    for entry in answers:
        if entry.task != "questionnaire" and (entry.task, entry.item) not in done:
            open_items.setdefault((entry.task, entry.item), {})[entry.person] = entry.answer
    return tuple(
        Disagreement(task, item, by_person)
        for (task, item), by_person in open_items.items()
        if len({as_json(answer) for answer in by_person.values()}) > 1
    )


def majorities(answers: Iterable[Entry], settled: Iterable[Entry], part: str | None = None) -> tuple[Majority, ...]:
    """What most people answer, of each item, in the order they came up.

    Parameters
    ----------
    answers : iterable of Entry
        Current ones, to one task.
    settled : iterable of Entry
        Those that ended a disagreement: they decide over the votes.
    part : str, optional
        Of answers that have several.
    """
    last_word = {entry.item: entry for entry in settled}
    results = []
    for item, by_person in _answers_by_item(answers, part).items():
        majority = count_votes(item, by_person.values())
        if item in last_word:
            word = last_word[item]
            answer = word.answer if part is None else word.answer[part]
            majority = replace(majority, answer=answer, decided=True, settled_by=word.person)
        results.append(majority)
    return tuple(results)


def count_votes(item: str, answers: Iterable[str]) -> Majority:
    """The majority of answers, given as JSON, to one item."""
    votes = sorted(Counter(answers).items(), key=lambda vote: (-vote[1], vote[0]))
    decided = len(votes) == 1 or (len(votes) > 1 and votes[0][1] > votes[1][1])
    answer = json.loads(votes[0][0]) if decided else None
    return Majority(
        item=item,
        votes=tuple((json.loads(answer), count) for answer, count in votes),
        n=sum(count for _, count in votes),
        none=dict(votes).get("null", 0),
        answer=answer,
        decided=decided,
    )


def _answers_by_item(answers: Iterable[Entry], part: str | None) -> AnswersByItem:
    by_item: AnswersByItem = {}
    for entry in answers:
        if entry.task == "questionnaire" and part is None:
            raise InputError("answers to a questionnaire have many parts; give the `part` to compare")
        if part is not None and entry.task not in ("region", "questionnaire"):
            raise InputError(f"an answer to {entry.task!r} has no parts; leave `part` out")
        if part is None or part in entry.answer:
            answer = entry.answer if part is None else entry.answer[part]
            # In a questionnaire None is what was not asked; elsewhere it is none of the above.
            if entry.task != "questionnaire" or answer is not None:
                by_item.setdefault(entry.item, {})[entry.person] = as_json(answer)
    return by_item
