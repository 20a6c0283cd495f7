"""Thresholds by F1: against scikit-learn's F1 at every threshold."""

import numpy as np
import pytest
from sklearn.metrics import f1_score

import errata
from errata import Evaluation
from errata.core import InputError


def rows(n: int = 400, seed: int = 0) -> Evaluation:
    rng = np.random.default_rng(seed)
    labels = (rng.random((n, 3)) < [0.5, 0.1, 0.02]).astype(int)
    probs = np.round(np.clip(0.25 * labels + 0.3 * rng.random((n, 3)), 0, 1), 2)  # many are equal; few above one half
    return Evaluation(labels=labels, probs=probs, task="multilabel", class_names=("a", "b", "c"))


def test_no_other_threshold_has_a_better_f1():
    given = rows()
    found = errata.inputs.f1_thresholds(given)
    for t, threshold in enumerate(found):
        y, p = given.labels[:, t], given.probs[:, t]
        scores = {value: f1_score(y, p >= value) for value in np.unique(p)}
        assert f1_score(y, p >= threshold) == pytest.approx(max(scores.values()))
        assert threshold == min(value for value, score in scores.items() if score >= max(scores.values()) - 1e-12)


def test_labels_are_called_from_their_threshold_on():
    given = rows()
    called = errata.inputs.at_thresholds(given, np.array([0.3, 0.2, 0.9]))
    assert called.predictions.tolist() == (given.probs >= [0.3, 0.2, 0.9]).astype(int).tolist()
    assert dict(called.tasks())["b"].errors.sum() == ((given.probs[:, 1] >= 0.2) != given.labels[:, 1]).sum()


def test_two_classes_have_one_threshold():
    y, p = np.array([0, 0, 0, 1, 1]), np.array([0.1, 0.2, 0.3, 0.25, 0.4])
    given = Evaluation(labels=y, probs=np.stack([1 - p, p], axis=1))
    assert errata.inputs.f1_thresholds(given) == pytest.approx([0.25])
    assert errata.inputs.at_thresholds(given, np.array([0.25])).predictions.tolist() == [0, 0, 1, 1, 1]


def test_a_label_that_nobody_has_keeps_one_half():
    given = Evaluation(labels=np.zeros((30, 2), int), probs=np.full((30, 2), 0.2), task="multilabel")
    assert errata.inputs.f1_thresholds(given).tolist() == [0.5, 0.5]


def test_what_has_no_threshold_is_refused():
    three = Evaluation(labels=np.array([0, 1, 2]), probs=np.eye(3))
    with pytest.raises(InputError, match="present or not; these rows are of classification"):
        errata.inputs.f1_thresholds(three)
    with pytest.raises(InputError, match="a threshold by F1 needs `probs`"):
        errata.inputs.f1_thresholds(Evaluation(labels=np.array([0, 1]), predictions=np.array([0, 1])))
    with pytest.raises(InputError, match="one for each of 3 labels; got"):
        errata.inputs.at_thresholds(rows(), np.array([0.5]))
