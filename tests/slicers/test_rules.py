"""`rules`: planted conjunctions are found and confirmed without a representation; chance and leaks are not."""

import json
from dataclasses import replace

import numpy as np
import pytest

import errata
from errata.core import Evaluation, InputError
from errata.core.rules import read_rule, to_text
from errata.slicers import make

BASE = 0.1


def columns_of(n: int, seed: int) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    return {
        "age": np.where(rng.random(n) < 0.05, np.nan, rng.integers(0, 90, n)),
        "site": np.where(rng.random(n) < 0.05, "", rng.choice(["north", "south", "east", "west"], n)),
        "device": rng.choice(["phone", "desk", "tablet"], n, p=[0.6, 0.3, 0.1]),
        "dose": rng.gamma(2, 3, n).round(2),
        "night": rng.random(n) < 0.3,
    }


def rows(n: int = 6000, seed: int = 0, planted: bool = True, label: int | None = None) -> tuple[Evaluation, np.ndarray]:
    """Hard predictions of two classes, wrong by chance and more often where three conditions meet."""
    columns = columns_of(n, seed)
    rng = np.random.default_rng([seed, 1])
    labels = rng.integers(0, 2, n)
    inside = (columns["age"] < 30) & np.isin(columns["site"], ["north", "east"]) & (columns["device"] == "phone")
    if label is not None:
        inside &= labels == label
    wrong = rng.random(n) < np.where(inside & planted, 0.6, BASE)
    return Evaluation(labels=labels, predictions=labels ^ wrong, metadata=columns), inside


@pytest.mark.parametrize("label", [None, 1])
def test_a_planted_triple_is_found_and_confirmed(label):
    evaluation, inside = rows(label=label)
    audit = errata.audit(evaluation, methods=["rules"])
    first = audit.slices[0]
    assert first.verdict == "confirmed"
    assert (first.members & inside).sum() > 0.85 * (first.members | inside).sum(), to_text(read_rule(first.rule))
    assert {condition.column for condition in read_rule(first.rule)} == {"age", "site", "device"}
    assert first.rule["scope"] == ({} if label is None else {"label": 1})
    assert first.rule["reads"] == ([] if label is None else ["label"])


def test_the_highest_losses_of_a_regression_are_told():
    columns = columns_of(4000, 3)
    rng = np.random.default_rng(3)
    targets = rng.normal(size=4000)
    inside = (columns["dose"] >= 10) & columns["night"]
    noise = rng.normal(size=4000) * np.where(inside, 3.0, 0.5)
    evaluation = Evaluation(labels=targets, predictions=targets + noise, task="regression", metadata=columns)
    first = errata.audit(evaluation, methods=["rules"]).slices[0]
    assert first.verdict == "confirmed"
    assert (first.members & inside).sum() > 0.6 * (first.members | inside).sum(), to_text(read_rule(first.rule))


def test_errors_at_random_confirm_nothing():
    confirmed = 0
    for seed in range(12):
        evaluation, _ = rows(1500, seed=100 + seed, planted=False)
        audit = errata.audit(evaluation, methods=["rules"])
        confirmed += any(slice_.verdict == "confirmed" for slice_ in audit.slices)
    assert confirmed <= 2


@pytest.mark.parametrize("leak", ["correct", "loss", "label", "prediction"])
def test_a_column_that_gives_the_outcome_away_is_left_out(leak):
    evaluation, _ = rows()
    wrong = evaluation.errors
    rng = np.random.default_rng(0)
    given = {
        "correct": np.where(wrong, "no", "yes"),
        "loss": wrong + rng.normal(0, 0.2, len(wrong)),
        "label": np.array(["cat", "dog"])[evaluation.labels],
        "prediction": evaluation.predictions + 0.1 * rng.normal(size=len(wrong)),
    }
    evaluation = replace(evaluation, metadata={**evaluation.metadata, "leak": given[leak]})
    audit = errata.audit(evaluation, methods=["rules"])
    assert all("leak" not in to_text(read_rule(slice_.rule)) for slice_ in audit.slices)
    assert any("`leak`" in note and "left out" in note for note in audit.settings["notes"])
    named = make("rules", options={"columns": ["leak", "age"]}).fit(evaluation)
    assert not named.notes or "left out" not in named.notes[0]


def errors_at_random(n: int = 6000) -> tuple[Evaluation, np.ndarray]:
    """Columns that tell the prediction, and labels that are another class at random: nothing is systematic."""
    rng = np.random.default_rng(0)
    columns = {f"x{j}": rng.normal(size=n) for j in range(4)}
    score = sum(columns.values())
    probs = np.where(score > 0, 0.85, 0.15) + 0.1 * np.tanh(score)
    predictions = (score > 0).astype(int)
    labels = predictions ^ (rng.random(n) < 0.15)
    return Evaluation(labels=labels, predictions=predictions, metadata=columns), probs


def test_a_rule_within_a_label_that_only_tells_the_prediction_is_not_beyond_it():
    evaluation, probs = errors_at_random()
    hard = errata.audit(evaluation, methods=["rules"])
    assert any("label" in slice_.rule["scope"] for slice_ in hard.confirmed)  # true, and no news
    assert all("confidence" in slice_.explained_by for slice_ in hard.confirmed)
    soft = errata.audit(replace(evaluation, probs=probs, losses=None), methods=["rules"])
    assert not any("label" in slice_.rule["scope"] for slice_ in soft.slices)
    assert not soft.confirmed
    asked = errata.audit(replace(evaluation, probs=probs, losses=None), methods=["rules"], within="label")
    assert all("confidence" in slice_.explained_by for slice_ in asked.confirmed)


def test_what_is_saved_selects_the_same_rows(tmp_path):
    evaluation, _ = rows()
    audit = errata.audit(evaluation, methods=["rules"])
    again = errata.load(errata.save(audit, tmp_path / "audit"))
    new, _ = rows(seed=9)
    before = errata.apply(audit, new)
    for slice_ in again.slices:
        np.testing.assert_array_equal(errata.apply(again, new)[slice_.id], before[slice_.id])
        assert json.dumps(slice_.rule)


def test_rows_without_a_column_are_refused_by_its_name():
    evaluation, _ = rows()
    slicer = make("rules").fit(evaluation)
    without = replace(evaluation, metadata={name: evaluation.metadata[name] for name in ("site", "device")})
    with pytest.raises(InputError, match="reads the column `age`, which these rows do not have"):
        slicer.membership(without)


def test_columns_can_be_named_and_a_wrong_name_is_refused():
    evaluation, _ = rows()
    slicer = make("rules", options={"columns": ["site", "device"]}).fit(evaluation)
    assert {condition.column for rule in slicer.rules_ for condition in read_rule(rule)} <= {"site", "device"}
    with pytest.raises(InputError, match="unknown column of method `rules` `sites`; did you mean `site`"):
        make("rules", options={"columns": ["sites"]}).fit(evaluation)


@pytest.mark.parametrize("depth", [1, 2])
def test_depth_limits_the_conditions_of_a_rule(depth):
    evaluation, _ = rows()
    slicer = make("rules", options={"depth": depth}).fit(evaluation)
    assert max(len(rule["conditions"]) for rule in slicer.rules_) <= depth


def test_support_limits_how_small_a_rule_may_be():
    evaluation, _ = rows()
    slicer = make("rules", options={"support": 0.2, "scope": "none"}).fit(evaluation)
    assert (slicer.membership(evaluation).mean(axis=0) >= 0.2).all()


def test_many_rows_are_searched_by_a_sample(monkeypatch):
    monkeypatch.setattr("errata.slicers.rules.slicer.MOST_SEARCHED", 3000)
    monkeypatch.setattr("errata.slicers.rules.slicer.MOST_COMPARED", 2000)
    evaluation, inside = rows(12_000)
    slicer = make("rules").fit(evaluation)
    members = slicer.membership(evaluation)[:, 0] > 0
    assert (members & inside).sum() > 0.7 * (members | inside).sum()
