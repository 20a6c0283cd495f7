"""Rows and outcomes of a metric: their error rate is the metric, as scikit-learn has it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn import metrics as peer

from errata.core import Evaluation, InputError
from errata.core.confirm import Settings, SplitTask
from errata.core.searched import for_metric


def classes(k: int, n: int = 300, probs: bool = False) -> Evaluation:
    rng = np.random.default_rng(k)
    labels = rng.integers(0, k, n)
    if probs:
        return Evaluation(labels=labels, probs=rng.dirichlet(np.ones(k), n), class_names=tuple("abcd"[:k]))
    predictions = np.where(rng.random(n) < 0.3, rng.integers(0, k, n), labels)
    return Evaluation(labels=labels, predictions=predictions, class_names=tuple("abcd"[:k]))


@pytest.mark.parametrize("probs", [False, True])
@pytest.mark.parametrize(("k", "positive"), [(2, None), (2, "a"), (2, 1), (3, "c"), (4, 0)])
def test_the_error_rate_of_the_rows_is_the_metric(k: int, positive: Any, probs: bool) -> None:
    rows = classes(k, probs=probs)
    number = {None: 1, "a": 0, "c": 2}.get(positive, positive)
    is_positive = rows.labels == number
    predicted = rows.predictions == number
    for metric in ("fnr", "fpr"):
        found, which = for_metric(rows, metric, positive)
        assert np.array_equal(which, is_positive if metric == "fnr" else ~is_positive)
        assert found.row_ids.tolist() == rows.row_ids[which].tolist()
        recall = peer.recall_score(is_positive, predicted, pos_label=metric == "fnr")
        assert found.errors is not None
        assert found.errors.mean() == pytest.approx(1 - recall)
        assert found.metric == metric
        assert found.label_is_given
        if probs:
            p = rows.probs[which, number]  # type: ignore[index]
            assert np.allclose(found.losses, -np.log(p if metric == "fnr" else 1 - p))


def test_one_label_of_several() -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, (100, 2))
    rows = Evaluation(labels=labels, predictions=rng.integers(0, 2, (100, 2)), class_names=("hat", "coat"))
    found, which = for_metric(rows, "fnr", "coat")
    assert np.array_equal(which, labels[:, 1] == 1)
    assert found.errors.mean() == 1 - peer.recall_score(labels[:, 1], rows.predictions[:, 1])  # type: ignore
    with pytest.raises(InputError, match="hat, coat"):
        for_metric(rows, "fnr")


def test_over_and_under_prediction_are_losses() -> None:
    rows = Evaluation(labels=np.array([0.5, 1.0, 2.0]), predictions=np.array([1.5, 1.0, 0.0]))
    over, which = for_metric(rows, "over_prediction")
    under, _ = for_metric(rows, "under_prediction")
    assert which.all()
    assert over.losses.tolist() == [1.0, 0.0, 0.0]  # type: ignore[union-attr]
    assert under.losses.tolist() == [0.0, 0.0, 2.0]  # type: ignore[union-attr]
    assert not over.label_is_given
    split = SplitTask(over, np.array([True, True, False]), Settings(tolerance=0.25))
    assert split.outcome_name == "prediction too high by more than 0.25"
    assert split.outcome.tolist() == [1.0, 0.0, 0.0]
    assert split.bad_outcomes == "predictions too high by more than the tolerance"


def test_every_error_leaves_the_rows_as_they_are() -> None:
    rows = classes(3)
    found, which = for_metric(rows, "error")
    assert found is rows
    assert which.all()
    assert not found.label_is_given


@pytest.mark.parametrize(
    ("rows", "metric", "positive", "message"),
    [
        (classes(3), "fnr", None, "of 3 classes needs the class; name it as `positive`"),
        (classes(3), "fnrr", None, "did you mean `fnr`"),
        (classes(3), "error", "a", "names a class of `fnr` or `fpr`"),
        (classes(3), "over_prediction", None, "is of a regression"),
        (classes(3), "fnr", "x", "unknown class `x`"),
        (Evaluation(losses=np.ones(30)), "fnr", None, "needs labels"),
        (Evaluation(labels=np.zeros(30, int), predictions=np.zeros(30, int)), "fnr", None, "no row counts for `fnr`"),
    ],
)
def test_a_mistake_is_one_sentence(rows: Evaluation, metric: str, positive: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        for_metric(rows, metric, positive)
