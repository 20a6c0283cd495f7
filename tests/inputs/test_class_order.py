"""Labels and probabilities in different orders are noticed, and nothing else is."""

import warnings

import numpy as np
import pandas as pd
import pytest

from errata import Evaluation
from errata.core import silent
from errata.inputs import InputWarning, collect, from_table, other_order

NAMES = np.array(["a", "b", "c", "d"])


def outcome(accuracy, order=(0, 1, 2, 3), n=2000, seed=0):
    """Labels, and probabilities whose columns stand in another order."""
    rng = np.random.default_rng(seed)
    k = len(order)
    labels = rng.integers(0, k, n)
    right = rng.random(n) < accuracy
    predicted = np.where(right, labels, (labels + rng.integers(1, k, n)) % k)
    probs = np.full((n, k), 0.1 / (k - 1))
    probs[np.arange(n), predicted] = 0.9
    return labels, probs[:, list(order)]


def test_the_order_that_explains_the_errors_is_named():
    labels, probs = outcome(0.93, (1, 0, 3, 2))
    sentence = other_order(Evaluation(labels=NAMES[labels], probs=probs))
    assert sentence == (
        "accuracy is 2% where chance is 25%; reading the columns of `probs` as (b, a, d, c) gives 94%: "
        "check class_names"
    )
    # An order that is not its own inverse: column 0 holds class c.
    labels, probs = outcome(0.9, (2, 0, 1, 3))
    evaluation = Evaluation(labels=labels, probs=probs, class_names=tuple(NAMES))
    assert "as (c, a, b, d) gives" in other_order(evaluation)
    again = Evaluation(labels=labels, probs=probs[:, np.argsort([2, 0, 1, 3])], class_names=tuple(NAMES))
    assert again.errors.mean() < 0.15


def test_two_classes_of_ten_that_are_exchanged_are_named():
    labels, probs = outcome(0.9, (0, 1, 2, 5, 4, 3, 6, 7, 8, 9), n=4000)
    sentence = other_order(Evaluation(labels=labels, probs=probs))
    assert sentence.startswith("accuracy is 7")
    assert (
        "% for the classes 3, 5; reading the columns of `probs` as (0, 1, 2, 5, 4, 3, 6, 7, 8, 9) gives 9" in sentence
    )


def test_it_warns_on_every_way_in(tmp_path):
    labels, probs = outcome(0.93, (1, 0, 3, 2))
    frame = pd.DataFrame({"labels": NAMES[labels], "probs": list(probs), "embedding": list(probs)})
    with pytest.warns(InputWarning, match=r"reading the columns of `probs` as \(b, a, d, c\) gives 94%"):
        collect(frame)
    frame.to_parquet(tmp_path / "x.parquet")
    with pytest.warns(InputWarning, match="check class_names"):
        collect(tmp_path / "x.parquet")
    X = np.eye(4)[labels]
    with pytest.warns(InputWarning, match="check class_names"):
        collect(lambda batch: batch[:, [1, 0, 3, 2]], (X, NAMES[labels]), progress=silent)
    hard = pd.DataFrame({"labels": NAMES[labels], "predictions": NAMES[probs.argmax(axis=1)]})
    with pytest.warns(InputWarning, match="reading the classes of `predictions` as"):
        collect(hard)


@pytest.mark.parametrize("accuracy", [0.97, 0.6, 0.3, 0.25])
def test_models_at_chance_or_better_are_left_alone(accuracy):
    for seed in range(40):
        labels, probs = outcome(accuracy, n=400, seed=seed)
        assert other_order(Evaluation(labels=labels, probs=probs)) is None


def test_a_model_below_chance_without_a_pattern_has_no_other_order():
    """Always wrong, but never the same way."""
    labels, probs = outcome(0.0, n=4000)
    assert other_order(Evaluation(labels=labels, probs=probs)) is None


def test_two_classes_that_a_model_confuses_more_than_not_are_no_other_order():
    """Right in 40%, the other one in 60%: exchanged they would do better, but the model is above chance as it is."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 6000)
    other = np.where(labels == 2, 2, 1 - labels)
    predictions = np.where(rng.random(6000) < 0.6, other, labels)
    assert other_order(Evaluation(labels=labels, predictions=predictions)) is None


def test_few_rows_and_other_tasks_say_nothing():
    labels, probs = outcome(0.93, (1, 0, 3, 2), n=19)
    assert other_order(Evaluation(labels=labels, probs=probs)) is None
    assert other_order(Evaluation(losses=np.ones(100))) is None
    rng = np.random.default_rng(0)
    assert other_order(Evaluation(labels=rng.normal(size=100), predictions=rng.normal(size=100))) is None


def test_row_order_does_not_matter():
    labels, probs = outcome(0.8, (1, 0, 3, 2), n=300)
    ids = np.arange(300)
    turned = np.random.default_rng(1).permutation(300)
    assert other_order(Evaluation(labels=labels, probs=probs, ids=ids)) == other_order(
        Evaluation(labels=labels[turned], probs=probs[turned], ids=ids[turned])
    )


def test_many_classes_name_those_that_moved():
    order = np.roll(np.arange(30), 1)
    labels, probs = outcome(0.9, tuple(order), n=6000)
    sentence = other_order(Evaluation(labels=labels, probs=probs))
    assert "0 as 29, 1 as 0" in sentence
    assert sentence.count(" as ") == 13  # twelve are named


def test_probabilities_beside_labels_of_0_and_1_are_read_as_such():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 100)
    scores = np.where(labels == 1, 0.9, 0.2)
    frame = pd.DataFrame({"labels": labels, "predictions": scores})
    with pytest.warns(InputWarning, match=r"read as the probability of 1; task=\"regression\" reads them as values"):
        evaluation = collect(frame)
    assert evaluation.task == "classification"
    assert np.allclose(evaluation.probs[:, 1], scores)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert collect(frame, task="regression").task == "regression"


def test_whole_numbers_in_a_table_say_what_was_decided():
    rng = np.random.default_rng(0)
    ages = rng.integers(18, 80, 200)
    with pytest.warns(
        InputWarning, match=r"whole numbers \(\d+ values, 18 to 79\) and `predictions` are not.*regression"
    ):
        assert from_table(pd.DataFrame({"labels": ages, "predictions": ages + 0.5})).task == "regression"
    with pytest.warns(InputWarning, match="so they are read as classes"):
        assert from_table(pd.DataFrame({"labels": ages, "predictions": ages + 1})).task == "classification"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        asked = from_table(pd.DataFrame({"labels": ages, "predictions": ages + 1}), task="regression")
        assert asked.task == "regression"
        assert np.array_equal(asked.losses, np.ones(200))
        from_table(pd.DataFrame({"labels": rng.integers(0, 5, 200), "predictions": rng.integers(0, 5, 200)}))
