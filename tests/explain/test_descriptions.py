"""Texts in a hand-made space that rows and texts share, one of them planted."""

from __future__ import annotations

import json

import numpy as np
import pytest

from errata.core import Captions, Evaluation, InputError
from errata.explain import explain
from errata.explain.descriptions import describe

N, D = 1200, 8
AXIS = np.eye(D)
TEXTS = ["a dog", "a cat", "snow", "grass", "a dog in snow", "night"]
TEXT_ROWS = np.array([AXIS[0], AXIS[1], AXIS[2], AXIS[3], AXIS[0] + AXIS[2], AXIS[4]]) * 7.0
CAPTIONS = Captions(TEXTS, TEXT_ROWS, "clip")


def _space(seed=0):
    """Class 1 is dogs (axis 0), class 0 cats (axis 1); a sixth of the dogs stand in snow (axis 2)."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, N)
    snow = (labels == 1) & (rng.random(N) < 1 / 6)
    X = 3 * AXIS[1 - labels] + 2 * AXIS[np.where(snow, 2, 3)] + 0.3 * rng.normal(size=(N, D))
    return X * rng.uniform(0.5, 5, (N, 1)), labels, snow, np.arange(N) % 2 == 0


def _texts(explanation):
    return [row["text"] for row in explanation.to_json()["rows"]]


def test_the_planted_text_comes_first_and_is_measured_on_other_rows():
    X, labels, snow, discover = _space()
    found = describe(snow.astype(float), labels, X, CAPTIONS, chosen=discover)
    assert found.kind == "descriptions"
    assert _texts(found)[0] == "snow"
    first = found.to_json()["rows"][0]
    assert first["average_precision"] > 0.9
    assert first["base_rate"] == pytest.approx(snow[~discover].mean())
    assert first["n"] == N // 2
    assert found.to_json()["rows"][-1]["average_precision"] < 0.3
    assert (found.to_json()["majority"], found.to_json()["representation"], found.to_json()["of"]) == (1, "clip", 6)
    json.dumps(found.to_json())


def test_a_random_slice_is_retrieved_by_nothing():
    X, labels, snow, discover = _space()
    random = np.random.default_rng(5).permutation(snow).astype(float)
    found = describe(random, labels, X, CAPTIONS, chosen=discover)
    assert max(row["average_precision"] - row["base_rate"] for row in found.to_json()["rows"]) < 0.1


def test_scores_by_hand():
    """Lengths are taken out: rows (3, 0), (0, 5) and (2, 0) are (1, 0), (0, 1) and (1, 0)."""
    X = np.array([[3.0, 0], [0, 5], [2, 0], [0, 1]])
    labels = np.array([1, 1, 1, 0])
    found = describe(np.array([0.25, 0.75, 0, 0]), labels, X, Captions(["x", "y"], np.array([[2.0, 0], [0, 9]]), "r"))
    scores = {row["text"]: row["score"] for row in found.to_json()["rows"]}
    assert scores == pytest.approx({"x": 0.25 - 2 / 3, "y": 0.75 - 1 / 3})
    assert found.to_json()["rows"][0]["average_precision"] is None


def test_confirm_rows_do_not_choose():
    X, labels, snow, discover = _space()
    elsewhere = X.copy()
    elsewhere[~discover] = np.random.default_rng(1).normal(size=((~discover).sum(), D)) + 20 * AXIS[4]
    a, b = (describe(snow.astype(float), labels, x, CAPTIONS, chosen=discover) for x in (X, elsewhere))
    assert [row["score"] for row in a.to_json()["rows"]] == [row["score"] for row in b.to_json()["rows"]]
    assert a.to_json()["rows"][0]["average_precision"] > 2 * b.to_json()["rows"][0]["average_precision"]


def test_against_its_class_a_slice_of_cats_is_not_described_as_a_cat():
    X, labels, _, discover = _space()
    cats = (labels == 0) & (np.arange(N) % 3 == 0)
    cats_in_grass = describe(cats.astype(float), labels, X, CAPTIONS, chosen=discover)
    assert cats_in_grass.to_json()["majority"] == 0
    assert max(row["score"] for row in cats_in_grass.to_json()["rows"]) < 0.1
    published = describe(cats * 1.0, labels, X, CAPTIONS, chosen=discover, reference="all positives")
    assert _texts(published)[0] == "a cat"
    assert published.to_json()["rows"][0]["score"] > 0.5


def test_as_many_as_asked_for():
    X, labels, snow, discover = _space()
    assert len(describe(snow * 1.0, labels, X, CAPTIONS, chosen=discover, most=2).rows) == 2


@pytest.mark.parametrize("weights", [np.zeros(N), np.ones(N)])
def test_empty_and_full_slices(weights):
    X, labels, _, discover = _space()
    X[3] = 0
    rows = describe(weights, labels, X, CAPTIONS, chosen=discover).rows
    assert rows
    assert all(np.isfinite(row.score) and row.retrieval.average_precision is None for row in rows)


def test_what_does_not_fit_is_refused():
    X, labels, snow, _ = _space()
    with pytest.raises(InputError, match="the texts have 7 columns where the rows have 8; embed both"):
        describe(snow * 1.0, labels, X, Captions(TEXTS, TEXT_ROWS[:, 1:], "clip"))
    with pytest.raises(InputError, match="one value a row"):
        describe(snow[1:] * 1.0, labels, X, CAPTIONS)
    with pytest.raises(InputError, match="`reference` must be"):
        describe(snow * 1.0, labels, X, CAPTIONS, reference="klass")


# --- in an audit ---------------------------------------------------------------------------------------------


def _evaluation(**changes):
    X, labels, snow, discover = _space()
    given = {"labels": labels, "predictions": np.where(snow, 0, labels), "class_names": ("cat", "dog")}
    return Evaluation(**{**given, **changes}, representations={"pixels": X[:, :3], "clip": X}), snow, discover


def test_every_slice_of_an_audit_is_described(make_audit, kinds):
    evaluation, snow, discover = _evaluation()
    grass = (evaluation.labels == 0) & (np.arange(N) % 3 == 0)
    audit = explain(make_audit(evaluation, snow, grass, discover=discover), texts=CAPTIONS)
    first, second = (kinds(found)["descriptions"] for found in audit.slices)
    X = evaluation.representations["clip"]
    described = describe(snow * 1.0, evaluation.labels, X, CAPTIONS, chosen=discover)
    assert first == {
        **described.to_json(),
        "chosen_on": "discover", "measured_on": "confirm", "class": "dog",
    }  # fmt: skip
    assert first["rows"][0]["text"] == "snow"
    assert (second["class"], second["majority"]) == ("cat", 0)
    assert "descriptions" not in kinds(explain(make_audit(evaluation, snow, discover=discover)).slices[0])


def test_members_are_those_of_the_verdict(make_audit, kinds):
    """At its threshold the slice has half of the rows that its weights sum to; within its scope, the dogs only."""
    evaluation, snow, discover = _evaluation()
    weights = np.where(snow, np.where(np.arange(N) % 4 < 2, 0.9, 0.6), 0.0)
    audit = make_audit(evaluation, weights, discover=discover, threshold=0.8, rule={"scope": {"label": 1}})
    first = kinds(explain(audit, texts=CAPTIONS).slices[0])["descriptions"]["rows"][0]
    dogs = (evaluation.labels == 1) & ~discover
    assert first["n"] == dogs.sum()
    assert first["base_rate"] == (weights[dogs] >= 0.8).mean()


def test_few_members_to_choose_from_are_said(make_audit, kinds):
    evaluation, snow, _ = _evaluation()
    hidden = ~snow | (np.cumsum(snow) <= 3)  # three of the members were searched
    data = kinds(explain(make_audit(evaluation, snow, discover=hidden), texts=CAPTIONS).slices[0])["descriptions"]
    assert (data["chosen_on"], data["measured_on"], data["rows"][0]["n"]) == ("all", "confirm", (~hidden).sum())
    by_all = describe(snow * 1.0, evaluation.labels, evaluation.representations["clip"], CAPTIONS)
    assert [row["score"] for row in data["rows"]] == [row["score"] for row in by_all.to_json()["rows"]]


def test_each_label_of_a_multi_label_audit_has_its_own_classes(make_audit, kinds):
    X, labels, snow, discover = _space()
    both = np.stack([labels, 1 - labels], axis=1)
    evaluation = Evaluation(labels=both, predictions=both, representations={"clip": X}, class_names=("dog", "cat"))
    audit = explain(make_audit(evaluation, snow, discover=discover, task="cat"), texts=CAPTIONS)
    data = kinds(audit.slices[0])["descriptions"]
    assert (data["class"], data["rows"][0]["text"]) == ("not cat", "snow")


@pytest.mark.parametrize(
    ("captions", "changes", "words"),
    [
        (Captions(TEXTS, TEXT_ROWS, "clap"), {}, "unknown representation `clap`; did you mean `clip`"),
        (Captions(TEXTS, TEXT_ROWS, "pixels"), {}, "the texts have 8 columns where `embedding:pixels` has 3"),
        (CAPTIONS, {"labels": np.linspace(0, 1, N), "predictions": np.zeros(N)}, "without classes .task `regression`"),
        (CAPTIONS, {"labels": None, "predictions": None, "losses": np.ones(N)}, "without classes .task `loss`"),
    ],
)
def test_texts_that_no_slice_can_be_described_by(make_audit, captions, changes, words):
    evaluation, snow, discover = _evaluation(**{"class_names": None, **changes})
    with pytest.raises(InputError, match=words):
        explain(make_audit(evaluation, snow, discover=discover), texts=captions)
