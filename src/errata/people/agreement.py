"""What several people's answers come to: how often they agree, what is left to settle, what most of them say."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from ..core import InputError
from ..core.gaps import wilson
from .entries import Entry, Task, as_json

Said = dict[str, dict[str, str]]  # item -> person -> answer, as JSON: equal texts are equal answers


@dataclass(frozen=True)
class Pair:
    people: tuple[str, str]
    items: int  # that both answered
    kappa: float | None  # None where chance alone would agree always: both gave one and the same answer throughout


@dataclass(frozen=True)
class Agreement:
    people: Mapping[str, int]  # items that each answered
    items: int  # that two or more people answered
    same: int  # of these: all gave the same answer
    share: float | None
    interval: tuple[float, float]  # Wilson, 95%
    kappa: float | None  # Cohen's; of more than two people the mean over pairs that have one
    pairs: tuple[Pair, ...]


@dataclass(frozen=True)
class Dispute:
    task: Task
    item: str
    answers: Mapping[str, Any]  # person -> answer


@dataclass(frozen=True)
class Majority:
    """What most say. `decided` is False on a tie and without answers, and `answer` then says nothing."""

    item: str
    votes: tuple[tuple[Any, int], ...]  # answer and count, most first
    n: int
    none: int  # votes for none of the above
    answer: Any  # None, where decided, is none of the above
    decided: bool
    settled_by: str | None = None  # one person's word, over the votes


def agreement(answers: Iterable[Entry], part: str | None = None) -> Agreement:
    """answers: current ones, to one task. part: of answers that have several, which (region: failure or label)."""
    said = _said(answers, part)
    several = [list(given.values()) for given in said.values() if len(given) >= 2]
    same = sum(len(set(given)) == 1 for given in several)
    people = Counter(person for given in said.values() for person in given)
    pairs = _pairs(said)
    kappas = [pair.kappa for pair in pairs if pair.kappa is not None]
    return Agreement(
        people=dict(sorted(people.items())),
        items=len(several),
        same=same,
        share=same / len(several) if several else None,
        interval=wilson(same, len(several)),
        kappa=sum(kappas) / len(kappas) if kappas else None,
        pairs=pairs,
    )


def _pairs(said: Said) -> tuple[Pair, ...]:
    """Of those who have an item in common."""
    both: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for given in said.values():
        for one, other in combinations(sorted(given), 2):
            both.setdefault((one, other), []).append((given[one], given[other]))
    return tuple(
        Pair(people, len(answers), cohen_kappa([one for one, _ in answers], [other for _, other in answers]))
        for people, answers in sorted(both.items())
    )


def cohen_kappa(first: Sequence[str], second: Sequence[str]) -> float | None:
    """(observed - chance) / (1 - chance); None where chance is 1, or there is nothing."""
    n = len(first)
    same = sum(one == other for one, other in zip(first, second, strict=True))
    ones, others = Counter(first), Counter(second)
    by_chance = sum(count * others[answer] for answer, count in ones.items())  # times n squared: whole, so exact
    return (n * same - by_chance) / (n * n - by_chance) if n * n > by_chance else None


def to_settle(answers: Iterable[Entry], settled: Iterable[Entry]) -> tuple[Dispute, ...]:
    """Items on which people differ and that nobody settled, in the order they came up. Opinions need no settling."""
    done = {(entry.task, entry.item) for entry in settled}
    asked: dict[tuple[Task, str], dict[str, Any]] = {}
    for entry in answers:
        if entry.task != "questionnaire" and (entry.task, entry.item) not in done:
            asked.setdefault((entry.task, entry.item), {})[entry.person] = entry.answer
    return tuple(
        Dispute(task, item, given)
        for (task, item), given in asked.items()
        if len({as_json(answer) for answer in given.values()}) > 1
    )


def majorities(answers: Iterable[Entry], settled: Iterable[Entry], part: str | None = None) -> tuple[Majority, ...]:
    """Of each item, in the order they came up. Who settled an item has the last word on it."""
    last_word = {entry.item: entry for entry in settled}
    found = [count_votes(item, given.values()) for item, given in _said(answers, part).items()]
    return tuple(_settled(one, last_word[one.item], part) if one.item in last_word else one for one in found)


def _settled(votes: Majority, word: Entry, part: str | None) -> Majority:
    answer = word.answer if part is None else word.answer[part]
    return Majority(votes.item, votes.votes, votes.n, votes.none, answer, True, word.person)


def count_votes(item: str, answers: Iterable[str]) -> Majority:
    """answers: as JSON."""
    votes = sorted(Counter(answers).items(), key=lambda vote: (-vote[1], vote[0]))
    decided = len(votes) == 1 or (len(votes) > 1 and votes[0][1] > votes[1][1])
    return Majority(
        item=item,
        votes=tuple((json.loads(answer), count) for answer, count in votes),
        n=sum(count for _, count in votes),
        none=dict(votes).get("null", 0),
        answer=json.loads(votes[0][0]) if decided else None,
        decided=decided,
    )


def _said(answers: Iterable[Entry], part: str | None) -> Said:
    said: Said = {}
    for entry in answers:
        if entry.task == "questionnaire" and part is None:
            raise InputError("answers to a questionnaire have many parts; say which `part` to compare")
        if part is not None and entry.task not in ("region", "questionnaire"):
            raise InputError(f"an answer to {entry.task!r} has no parts; leave `part` out")
        if part is None or part in entry.answer:
            answer = entry.answer if part is None else entry.answer[part]
            # In a questionnaire None is what was not asked; elsewhere it is none of the above.
            if entry.task != "questionnaire" or answer is not None:
                said.setdefault(entry.item, {})[entry.person] = as_json(answer)
    return said
