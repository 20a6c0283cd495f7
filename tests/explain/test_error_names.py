"""Error types of one mistake: told apart by what holds on held-out rows. Even rows are search rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from errata.core import ErrorType, Evaluation
from errata.core.audit import Mistake
from errata.explain import explain

N = 600
ROWS = np.arange(N)
FIRST = ROWS < 80
SECOND = (ROWS >= 80) & (ROWS < 160)
WRONG = FIRST | SECOND | (ROWS % 20 == 0)


def _evaluation(**given):
    labels = np.zeros(N, dtype=int)
    return Evaluation(labels=labels, predictions=WRONG.astype(int), class_names=("old", "young"), **given)


def _error_type(number, members, **changes):
    plain = {"name": "old → young", "mistakes": (Mistake(0, 1, 40, 1.0),), "errors": 30 + number}
    return ErrorType(
        id=f"e{number}",
        method="infembed",
        rule={},
        weights=members.astype(float),
        threshold=0.5,
        **{**plain, **changes},
    )


@pytest.fixture
def names(make_audit):
    def explained(evaluation, *error_types):
        audit = replace(make_audit(evaluation, FIRST), error_types=error_types)
        return [item.name for item in explain(audit).error_types]

    return explained


def test_each_says_what_tells_its_errors_from_others_of_the_mistake(names):
    age = np.where(FIRST, 90, np.where(SECOND, 70, 80)) + ROWS % 5
    found = names(_evaluation(metadata={"age": age}), _error_type(1, FIRST), _error_type(2, SECOND))
    assert found == ["old → young, age >= 81", "old → young, age < 80"]  # other such errors are 80


def test_words_tell_them_apart_too(names, texts):
    lines = ["with glasses" if FIRST[i] else f"in the dark {i % 7}" for i in range(N)]
    evaluation = _evaluation(media=texts(lines))
    found = names(evaluation, _error_type(1, FIRST), _error_type(2, SECOND))
    assert found[0] == "old → young, text contains “glasses”"
    assert found[1].startswith("old → young, ")
    assert len(set(found)) == 2


def test_a_name_that_is_alone_stays(names):
    age = np.where(FIRST, 90, 70)
    other = _error_type(2, SECOND, name="young → old")
    assert names(_evaluation(metadata={"age": age}), _error_type(1, FIRST), other) == ["old → young", "young → old"]
    elsewhere = _error_type(2, SECOND, name="old → young", errors=34)
    alone = replace(_error_type(1, FIRST), task="")
    assert len(set(names(_evaluation(metadata={"age": age}), alone, elsewhere))) == 2


def test_where_nothing_tells_them_apart_none_is_numbered_in_brackets(names):
    same = [_error_type(number, FIRST) for number in (1, 2, 3)]
    found = names(_evaluation(), *same[:2], replace(same[2], errors=32))
    assert found == [
        "old → young, 31 errors",
        "old → young, 32 errors",
        "old → young, 32 errors, e3",
    ]


def test_of_several_mistakes_the_most_frequent_is_said_once(names):
    mixed = "no short description: most often old → young"
    mistakes = (Mistake(0, 1, 40, 0.4),)
    found = names(
        _evaluation(), *(_error_type(i, part, name=mixed, mistakes=mistakes) for i, part in ((1, FIRST), (2, SECOND)))
    )
    assert found == [
        "no short description: most often old → young, 31 errors",
        "no short description: most often old → young, 32 errors",
    ]
