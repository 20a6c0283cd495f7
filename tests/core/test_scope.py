"""Scopes: which rows a slice is about, in rows and in words."""

from __future__ import annotations

import numpy as np
import pytest

from errata.core import Evaluation, InputError
from errata.core.rules.conditions import from_json
from errata.core.scope import MOST_SCOPES, can_place, rows_in_scope, scope_in_words, scopes

NAMES = ("cat", "dog", "bird", "fish", "cow")


def _evaluation(sizes, rate=0.2, **given):
    """As many rows of each class; one in five is taken for the next class."""
    labels = np.repeat(np.arange(len(sizes)), sizes)
    wrong = np.arange(len(labels)) % round(1 / rate) == 0
    predictions = np.where(wrong, (labels + 1) % len(sizes), labels)
    return Evaluation(labels=labels, predictions=predictions, **given)


def test_a_list_of_classes_is_one_scope():
    evaluation = _evaluation([10, 20, 30])
    assert rows_in_scope(evaluation, {"label": [0, 2]}).sum() == 40
    assert np.array_equal(rows_in_scope(evaluation, {"label": 1}), rows_in_scope(evaluation, {"label": [1]}))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (0, "label cat"),
        ([1], "label dog"),
        ([0, 1], "label cat or dog"),
        ([0, 1, 2], "label cat, dog or bird"),
        ([0, 1, 2, 3, 4], "label cat, dog or 3 others"),
    ],
)
def test_words_of_a_scope(value, words):
    evaluation = _evaluation([10] * 5, class_names=NAMES)
    assert scope_in_words(evaluation, {"label": value}) == words


def test_each_class_with_enough_errors_is_a_scope_and_the_small_ones_are_pooled():
    evaluation = _evaluation([200, 100, 30, 20, 25])
    assert scopes(evaluation, "label") == [{"label": 0}, {"label": 1}, {"label": [2, 3, 4]}]


def test_small_classes_without_errors_enough_are_left_out():
    assert scopes(_evaluation([200, 100, 20]), "label") == [{"label": 0}, {"label": 1}]


def test_predictions_are_scopes_too():
    evaluation = _evaluation([200, 200])
    assert scopes(evaluation, "prediction") == [{"prediction": 0}, {"prediction": 1}]


@pytest.mark.parametrize("within", ["none", "label", "prediction"])
def test_there_is_no_scope_where_there_is_nothing_to_choose_from(within):
    one = Evaluation(labels=np.zeros(100, int), predictions=np.zeros(100, int))
    small = _evaluation([4] * 50)
    assert scopes(one, within) == [{}]
    assert scopes(small, within) == [{}]
    assert scopes(Evaluation(losses=np.ones(100)), within) == [{}]


def test_of_very_many_classes_those_with_most_errors_are_searched_alone():
    sizes = [60] * 40 + [100] * 10
    found = scopes(_evaluation(sizes), "label")
    assert len(found) == MOST_SCOPES + 1
    assert all({"label": value} in found for value in range(41, 50))
    assert len(found[-1]["label"]) == len(sizes) - MOST_SCOPES


def test_without_errors_rows_count_alone():
    evaluation = Evaluation(labels=np.repeat([0, 1], 100), losses=np.ones(200))
    assert scopes(evaluation, "label") == [{"label": 0}, {"label": 1}]


def test_an_unknown_way_is_refused():
    with pytest.raises(InputError, match="within"):
        scopes(_evaluation([100, 100]), "labels")


@pytest.mark.parametrize("scope", [[["label"]], [{}], "label", 7])
def test_a_scope_of_a_damaged_file_is_refused(scope):
    """The fuzzer's case 2004 of seed 6: a list in a list ended with an error of Python's own."""
    rows = Evaluation(labels=[0, 1, 1], predictions=[0, 1, 0])
    for ask in (can_place, rows_in_scope):
        with pytest.raises(InputError, match="must map columns to values"):
            ask(rows, scope)


@pytest.mark.parametrize("condition", [7, None, [], {}, "age"])
def test_a_condition_of_a_damaged_file_is_refused(condition):
    """The fuzzer's case 2412 of seed 7."""
    with pytest.raises(InputError, match="must name a column"):
        from_json(condition)
