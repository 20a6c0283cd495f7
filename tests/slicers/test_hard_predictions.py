"""Labels, predictions and a representation are enough: every method runs on them, or says in one sentence why not."""

from __future__ import annotations

import numpy as np
import pytest

import errata
from errata.core import Evaluation, InputError
from errata.core.soften import SOFTNESS, class_probs
from errata.slicers import make, registry

N = 600
QUICK = {
    "spotlight:as_published": {"advanced.steps": 60},
    "planespot:as_published": {"advanced.stride": 11},
    "directions:recommended": {"permutations": 3},
}


def hard_rows(classes: int = 3, n: int = N, seed: int = 0) -> Evaluation:
    rng = np.random.default_rng(seed)
    cluster = rng.integers(0, 5, n)
    X = rng.normal(0, 3, (5, 4))[cluster] + rng.normal(size=(n, 4))
    labels = rng.integers(0, classes, n)
    wrong = rng.random(n) < np.where(cluster == 0, 0.7, 0.1)
    predictions = np.where(wrong, (labels + 1) % classes, labels)
    columns = {"cluster": np.array(list("abcde"))[cluster], "x": X[:, 0]}
    return Evaluation(labels=labels, predictions=predictions, representations={"e": X}, metadata=columns)


def every_method() -> list[str]:
    return [f"{name}:{preset}" for name, cls in registry().items() for preset in cls.presets]


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("method", every_method())
def test_every_method_audits_hard_predictions(method: str, classes: int) -> None:
    audit = errata.audit(hard_rows(classes), methods=[method], options={method: QUICK.get(method, {})})
    assert audit.slicers
    cls = registry()[method.partition(":")[0]]
    softened = cls.reads_probs or cls.options().get("representation") == "influence"
    assert audit.settings["softness"] == (SOFTNESS if softened else None)


@pytest.mark.parametrize("method", ["domino:as_published", "planespot", "multiaccuracy"])
def test_few_rows_do_not_need_to_show_every_class(method: str) -> None:
    rows = hard_rows(3)
    slicer = make(method, options=QUICK.get(method, {})).fit(rows)
    whole = slicer.membership(rows)
    first = rows.rows(np.flatnonzero((rows.labels == 0) & (rows.predictions == 0)))
    assert np.allclose(slicer.membership(first), whole[(rows.labels == 0) & (rows.predictions == 0)])


def test_a_class_that_the_search_did_not_show_is_taken() -> None:
    rows = hard_rows(3)
    seen = rows.rows((rows.labels < 2) & (rows.predictions < 2))
    weights = make("domino:as_published").fit(seen).membership(rows)
    assert np.isfinite(weights).all()


def test_probabilities_are_read_as_they_are() -> None:
    probs = np.array([[0.6, 0.4], [0.2, 0.8]])
    assert class_probs(Evaluation(labels=np.array([0, 1]), probs=probs), "x") is not None
    assert np.array_equal(class_probs(Evaluation(labels=np.array([0, 1]), probs=probs), "x"), probs)


def test_a_hard_prediction_leaves_something_to_the_others() -> None:
    soft = class_probs(Evaluation(labels=np.array([0, 1, 2]), predictions=np.array([0, 2, 2])), "x")
    assert np.allclose(soft, [[0.9, 0.05, 0.05], [0.05, 0.05, 0.9], [0.05, 0.05, 0.9]])
    assert np.allclose(class_probs(Evaluation(predictions=np.array([0, 5])), "x", 2), [[0.9, 0.1], [0.5, 0.5]])


@pytest.mark.parametrize("method", ["domino", "planespot", "multiaccuracy"])
def test_a_regression_is_refused_in_one_sentence(method: str) -> None:
    rng = np.random.default_rng(0)
    y = rng.normal(size=100)
    rows = Evaluation(labels=y, predictions=y + rng.normal(size=100), representations={"e": rng.normal(size=(100, 2))})
    with pytest.raises(InputError, match="regression"):
        make(method).fit(rows)


def test_each_label_of_many_has_its_own_errors() -> None:
    labels = np.array([[0, 1], [1, 1], [1, 0]])
    predictions = np.array([[0, 1], [0, 1], [0, 1]])
    rows = Evaluation(labels=labels, predictions=predictions, representations={"e": np.eye(3)})
    losses = [view.losses.tolist() for _, view in rows.tasks()]
    assert losses == [[0.0, 1.0, 1.0], [0.0, 0.0, 1.0]]
