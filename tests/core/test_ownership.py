"""Whether a representation contains the prediction: measured within labels, on search rows alone."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import errata
from errata.bench.null_worlds import world
from errata.core import Evaluation, Source
from errata.core.ownership import settle_sources, words

N = 3000


def model_and_layers(seed: int = 0, n: int = N) -> Evaluation:
    """A noisy linear model of three classes; its layer, a rotation of it, what the label makes, and noise."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 3, n)
    centres = rng.normal(0, 1.5, (3, 6))
    hidden = centres[labels] + rng.normal(size=(n, 6))
    logits = hidden @ rng.normal(size=(6, 40)) @ rng.normal(size=(40, 3)) / 8
    logits = logits + 2 * np.eye(3)[labels]
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    layer = np.hstack([logits @ rng.normal(size=(3, 5)), rng.normal(size=(n, 3))])
    other = np.eye(3)[labels] @ rng.normal(size=(3, 8)) * 3 + rng.normal(size=(n, 8))
    return Evaluation(
        labels=labels, probs=probs, representations={"own": layer, "other": other, "noise": rng.normal(size=(n, 4))}
    )


def hard(evaluation: Evaluation) -> Evaluation:
    return Evaluation(
        labels=evaluation.labels, predictions=evaluation.predictions, representations=evaluation.representations
    )


def settled(evaluation: Evaluation) -> tuple[Evaluation, dict]:
    return settle_sources(evaluation, np.arange(len(evaluation)) % 2 == 0)


def test_the_last_layer_gives_back_the_logits_and_a_layer_that_knows_the_label_does_not():
    evaluation, record = settled(model_and_layers())
    assert record["own"]["r2"] > 0.98
    assert record["own"]["own"]
    assert abs(record["other"]["r2"]) < 0.05
    assert [evaluation.source(name).from_model for name in ("own", "other", "noise")] == [True, False, False]
    assert not any(fact["declared"] for fact in record.values())


def test_hard_predictions_tell_it_too():
    evaluation, record = settled(hard(model_and_layers()))
    assert record["own"]["r2"] is None
    assert record["own"]["auc"] > 0.95
    assert record["other"]["auc"] < 0.6
    assert [evaluation.source(name).from_model for name in ("own", "other", "noise")] == [True, False, False]


def test_rounded_probabilities_are_read_as_predictions():
    rows = model_and_layers()
    rounded = replace(rows, probs=np.eye(3)[rows.predictions])
    assert settled(rounded)[1]["own"]["auc"] is not None


def test_a_declaration_stands_above_the_measure():
    rows = model_and_layers()
    said = replace(rows, sources={"own": Source(from_model=False), "other": Source(from_model=True)})
    evaluation, record = settled(said)
    assert not evaluation.source("own").from_model
    assert evaluation.source("other").from_model
    assert record["own"] == {"own": False, "declared": True, "r2": None, "auc": None}


def test_what_cannot_be_measured_is_the_models_own():
    rng = np.random.default_rng(0)
    few = Evaluation(
        labels=np.zeros(60, int), predictions=np.arange(60) < 5, representations={"x": rng.normal(size=(60, 2))}
    )
    losses = Evaluation(losses=rng.random(60), representations={"x": rng.normal(size=(60, 2))})
    for rows in (few, losses):
        evaluation, record = settled(rows)
        assert record["x"]["own"]
        assert evaluation.source("x").from_model
        assert "assumed" in words(record["x"])


@pytest.mark.parametrize("kind", ["random", "calibrated", "miscal"])
@pytest.mark.parametrize("n", [600, 3000])
def test_the_layer_of_the_null_worlds_is_the_models_own(kind: str, n: int) -> None:
    """Elsewise audits within labels would confirm errors by construction there."""
    for seed in range(8):
        rows = world(kind, n, seed)
        assert settled(rows)[1]["penultimate"]["own"]
        assert settled(hard(rows))[1]["penultimate"]["own"]


def test_held_out_outcomes_and_row_order_change_nothing():
    rows = model_and_layers()
    search = np.arange(N) % 2 == 0
    record = settle_sources(rows, search)[1]
    probs = np.array(rows.probs)
    probs[~search] = probs[~search][:, ::-1]
    assert settle_sources(replace(rows, probs=probs, losses=None, predictions=None), search)[1] == record
    order = np.random.default_rng(1).permutation(N)
    assert settle_sources(rows.rows(order), search[order])[1] == record


def test_wide_representations_are_measured_too():
    rows = model_and_layers(n=1500)
    rng = np.random.default_rng(1)
    own = np.asarray(rows.representations["own"])
    wide = own @ rng.normal(size=(8, 700)) + 0.01 * rng.normal(size=(1500, 700))
    record = settled(rows.with_representation("wide", wide))[1]
    assert record["wide"]["r2"] > 0.9


def test_an_audit_says_it_and_tests_labels_directly_where_it_may(tmp_path) -> None:
    rows = model_and_layers()
    options = {"directions": {"permutations": 2, "representation": "other"}}
    audit = errata.audit(rows, methods=["directions"], options=options)
    assert audit.settings["ownership"]["other"]["own"] is False
    assert all(slice_.rule["kind"] == "direction" for slice_ in audit.slices)
    options["directions"]["representation"] = "own"
    own = errata.audit(rows, methods=["directions"], options=options)
    assert all(slice_.rule["kind"] != "direction" for slice_ in own.slices if slice_.confirm)
    folder = errata.save(audit, tmp_path / "audit")
    page = (folder / "report.html").read_text()
    assert "other: not the model’s own (measured" in page
    again = errata.load(folder).evaluation
    assert "own" not in again.sources
    assert not again.source("other").from_model
