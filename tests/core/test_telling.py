"""Representations that contain the outcome are named, those that do not are not: worlds whose truth is known."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

import errata
from errata import Evaluation, Source
from errata.bench.null_worlds import world
from errata.core import Array
from errata.core.telling import is_outcome_note, outcome_notes, read_outcome

N = 2000
KINDS = ("random", "label", "calibrated", "miscal")
SEARCH = np.arange(N) % 2 == 0


def own(rows: Evaluation) -> Array:
    return np.asarray(next(iter(rows.representations.values())))


def labels_of(rows: Evaluation) -> Array:
    assert rows.labels is not None
    return np.eye(5)[rows.labels]


def noise(rows: Evaluation, columns: int) -> Array:
    return np.random.default_rng(len(rows)).normal(size=(len(rows), columns))


def rotated(rows: Evaluation) -> Array:
    axes = np.linalg.qr(np.random.default_rng(1).normal(size=(64, 64)))[0]
    return np.column_stack([noise(rows, 63), 3.0 * rows.errors]) @ axes


LEAKS: dict[str, Callable[[Evaluation], Array]] = {
    "a loss": lambda rows: np.column_stack([own(rows), rows.losses]),
    "a small sign of errors": lambda rows: np.column_stack([noise(rows, 511), 1e-3 * rows.errors]),
    "errors in all columns": rotated,
    "labels beside the layer": lambda rows: np.column_stack([own(rows), labels_of(rows)]),
    "probabilities less labels": lambda rows: rows.probs - labels_of(rows),
    "label and prediction": lambda rows: np.column_stack([noise(rows, 64), rows.labels, rows.predictions]),
}


def foreign(rows: Evaluation, strength: float) -> Array:
    """Another network that knows the label of most rows: 92% at .5, 99% at .7."""
    means = np.random.default_rng(2).normal(size=(5, 32))
    return strength * labels_of(rows) @ means + noise(rows, 32)


HONEST: dict[str, Callable[[Evaluation], Array]] = {
    "the layer": own,
    "noise": lambda rows: noise(rows, 512),
    "another network": lambda rows: foreign(rows, 0.5),
    "a better network": lambda rows: foreign(rows, 0.7),
    "probabilities": lambda rows: np.asarray(rows.probs),
}


def told(rows: Evaluation, X: Array) -> bool:
    return read_outcome(replace(rows, representations={"x": X}, sources={}), "x", SEARCH).told


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("leak", LEAKS)
def test_a_leak_is_named(leak: str, kind: str) -> None:
    rows = world(kind, N, seed=11)
    assert told(rows, LEAKS[leak](rows))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("honest", HONEST)
def test_what_is_honest_is_not(honest: str, kind: str) -> None:
    for seed in (11, 12):
        rows = world(kind, N, seed=seed)
        assert not told(rows, HONEST[honest](rows))


def test_the_layer_of_a_model_that_is_nearly_always_right_is_honest() -> None:
    """There its prediction tells the label of nearly every row, and so does every layer of it."""
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 5, 20_000)
    wrong = rng.random(len(labels)) < 0.006
    predictions = np.where(wrong, (labels + 1) % 5, labels)
    layer = 4 * np.eye(5)[predictions] + 0.1 * rng.normal(size=(len(labels), 5))
    search = np.arange(len(labels)) % 2 == 0
    rows = Evaluation(labels=labels, predictions=predictions, representations={"x": layer})
    assert not read_outcome(rows, "x", search).told
    leaking = replace(rows, representations={"x": np.column_stack([layer, labels])})
    assert read_outcome(leaking, "x", search).told


def test_losses_alone() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 8))
    losses = np.exp(rng.normal(size=N) + X[:, 0])
    rows = Evaluation(losses=losses, representations={"honest": X, "leaking": np.column_stack([X, np.log(losses)])})
    assert not read_outcome(rows, "honest", SEARCH).told
    assert read_outcome(rows, "leaking", SEARCH).told


def test_the_order_of_rows_does_not_matter() -> None:
    rows = world("calibrated", N, seed=3)
    order = np.random.default_rng(0).permutation(N)
    name = next(iter(rows.representations))
    assert read_outcome(rows, name, SEARCH) == read_outcome(rows.rows(order), name, SEARCH[order])


def test_held_out_outcomes_are_not_read() -> None:
    rows = world("random", N, seed=3)
    assert rows.labels is not None
    other = rows.labels.copy()
    other[~SEARCH] = (other[~SEARCH] + 1) % 5
    X = LEAKS["a loss"](rows)
    first = replace(rows, representations={"x": X}, sources={})
    second = replace(first, labels=other, losses=None)
    assert read_outcome(first, "x", SEARCH) == read_outcome(second, "x", SEARCH)


def test_what_is_declared_is_not_named() -> None:
    rows = world("random", N, seed=3)
    leaking = replace(rows, representations={"x": LEAKS["a loss"](rows)}, sources={})
    (note,) = outcome_notes(leaking, SEARCH)
    assert "Representation `x` tells errors" in note
    declared = replace(leaking, sources={"x": Source(reads=frozenset({"loss"}))})
    assert outcome_notes(declared, SEARCH) == []


def test_a_layer_of_the_model_may_see_what_it_fails_on() -> None:
    rows = world("random", N, seed=3)
    leaking = replace(rows, representations={"x": LEAKS["a loss"](rows)}, sources={})
    (alarm,) = outcome_notes(leaking, SEARCH)
    (note,) = outcome_notes(replace(leaking, sources={"x": Source(from_model=True)}), SEARCH)
    assert is_outcome_note(alarm)
    assert "then the model sees what it fails on" in note
    assert not is_outcome_note(note)


def test_an_audit_says_so() -> None:
    rows = world("random", N, seed=3)
    leaking = replace(rows, representations={"x": LEAKS["labels beside the layer"](rows)}, sources={})
    notes = errata.audit(leaking, methods=["gmm"]).settings["notes"]
    assert [note for note in notes if "Representation `x` tells the label of more than 99" in note]
    assert not [note for note in errata.audit(rows, methods=["gmm"]).settings["notes"] if "Representation" in note]


def test_answers_in_words_are_as_many_classes_as_rows_and_take_no_memory_for_each() -> None:
    rng = np.random.default_rng(0)
    labels = np.array([f"answer {i}" for i in range(N)])
    labels[: N // 2] = "none"
    wrong = rng.random(N) < 0.3
    predictions = np.where(wrong, np.where(labels == "none", "some", "none"), labels)
    columns = {"honest": rng.normal(size=(N, 4)), "leak": np.column_stack([rng.normal(size=(N, 3)), wrong])}
    rows = Evaluation(labels=labels, predictions=predictions, representations=columns)
    tracemalloc.start()
    area = {name: read_outcome(rows, name, np.ones(N, dtype=bool)).area for name in columns}
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert area["leak"] == 1
    assert area["honest"] < 0.6
    assert peak < 10e6


@pytest.mark.parametrize("rare", [0.0, 0.002])
def test_a_label_that_nearly_all_rows_have_is_told_by_nobody(rare: float) -> None:
    """An audit of the positives, or of a rare disease: naming the common label is right nearly always."""
    rng = np.random.default_rng(0)
    labels = (rng.random(6000) < rare).astype(int)
    wrong = rng.random(6000) < 0.1
    rows = Evaluation(
        labels=labels,
        predictions=np.where(wrong, 1 - labels, labels),
        representations={"x": rng.normal(size=(6000, 8))},
    )
    assert outcome_notes(rows, np.arange(6000) % 2 == 0) == []
