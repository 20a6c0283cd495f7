"""Any method within each label or prediction: what it finds there, and that scope, rule and saved state follow."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace

import numpy as np
import pytest

import errata
from errata.core import Evaluation, InputError, State
from errata.engine import Local
from errata.slicers import make, registry, restore, search_within
from errata.slicers.within import Within

N = 1500


def two_faced(n: int = N, seed: int = 0, foreign: bool = True) -> Evaluation:
    """Rows with x > .8 are mostly wrong in class 1 and mostly right in class 0, where x < -.8 is wrong instead."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    labels = rng.integers(0, 2, n)
    bad = np.where(labels == 1, X[:, 0] > 0.8, X[:, 0] < -0.8)
    wrong = rng.random(n) < np.where(bad, 0.7, 0.08)
    sources = {"x": errata.Source(from_model=not foreign)}
    return Evaluation(labels=labels, predictions=labels ^ wrong, representations={"x": X}, sources=sources)


def within(method: str, scoping: str, options=None) -> errata.slicers.Slicer:
    return search_within(make(method, options=options or {}), scoping, options or {})


def test_slices_lie_in_their_scope_and_say_so():
    rows = two_faced()
    slicer = within("spotlight", "label").fit(rows)
    weights = slicer.membership(rows)
    for j, rule in enumerate(slicer.rules_):
        assert set(rule["scope"]) == {"label"}
        assert rule["reads"] == ["label"]
        assert not weights[rows.labels != rule["scope"]["label"], j].any()
    assert {rule["scope"]["label"] for rule in slicer.rules_} == {0, 1}


def test_within_labels_finds_what_all_rows_hide():
    audit = errata.audit(two_faced(), methods=["spotlight"], options={"spotlight": {"size": 0.1}}, within="label")
    scopes = [slice_.rule["scope"] for slice_ in audit.confirmed]
    assert {"label": 0} in scopes
    assert {"label": 1} in scopes
    assert audit.settings["within"] == "label"


def test_the_engine_runs_the_parts_and_what_is_fitted_can_travel():
    passes = []

    class Counting(Local):
        def hold(self, *columns):
            passes.append(len(columns[0]))
            return super().hold(*columns)

    rows = two_faced()
    slicer = within("gmm", "label")
    slicer.engine = Counting()
    slicer.report_progress = lambda stage, share: passes.append(share)
    slicer.fit(rows)
    assert {int((rows.labels == label).sum()) for label in (0, 1)} <= set(passes)
    del slicer.engine, slicer.report_progress  # as `place` does before it sends a slicer
    assert len(pickle.dumps(slicer)) > 0  # parts of it kept a function of this process


def test_slices_are_ordered_by_excess_over_all_scopes():
    rows = two_faced()
    slicer = within("gmm", "label").fit(rows)
    hard = slicer.membership(rows) >= slicer.thresholds_
    excess = []
    for j, rule in enumerate(slicer.rules_):
        rate = rows.errors[rows.labels == rule["scope"]["label"]].mean()
        excess.append(((rows.errors - rate) @ hard[:, j]) / np.sqrt(max(hard[:, j].sum(), 1)))
    assert np.all(np.diff(excess) <= 1e-9)


@pytest.mark.parametrize("scoping", ["label", "prediction"])
@pytest.mark.parametrize("method", ["spotlight", "gmm", "domino", "planespot", "high-loss", "multiaccuracy"])
def test_what_is_saved_is_what_was_fitted(method: str, scoping: str) -> None:
    rows = two_faced(600)
    slicer = within(method, scoping).fit(rows)
    state = slicer.to_state()
    again = restore(State(state.name, json.loads(json.dumps(state.facts)), state.arrays))
    new = two_faced(300, seed=1)
    assert np.array_equal(again.membership(new), slicer.membership(new))
    assert np.array_equal(again.thresholds_, slicer.thresholds_)
    assert again.rules_ == slicer.rules_
    assert again.reads == slicer.reads


def test_every_method_can_be_asked_or_says_why_not(tmp_path) -> None:
    rows = two_faced(400)
    rows = replace(rows, metadata={"x": rows.representations["x"][:, 0]})
    quick = {"directions": {"permutations": 2}}
    for name in registry():
        for scoping in ("none", "label", "prediction"):
            if scoping in registry()[name].refused_scopes:
                with pytest.raises(InputError, match="cannot search within"):
                    errata.audit(rows, methods=[name], within=scoping)
                continue
            audit = errata.audit(rows, methods=[name], options={name: quick.get(name, {})}, within=scoping)
            for slice_ in audit.slices:
                scope = slice_.rule.get("of", slice_.rule).get("scope") or {}
                assert name == "multiaccuracy" or (scoping in scope) == (scoping != "none")


def test_scope_is_saved_applied_and_named(tmp_path) -> None:
    rows = two_faced()
    audit = errata.audit(rows, methods=["spotlight"], within="label")
    again = errata.load(errata.save(audit, tmp_path / "audit"))
    for slice_ in again.slices:
        weights = errata.apply(again, rows)[slice_.id]
        assert np.array_equal(weights, slice_.weights)
        assert f"label {slice_.rule['scope']['label']}" in slice_.name


def test_pooled_classes_are_one_scope(tmp_path) -> None:
    rng = np.random.default_rng(0)
    n = 3000
    labels = np.where(rng.random(n) < 0.5, 0, rng.integers(1, 40, n))
    X = rng.normal(size=(n, 2))
    wrong = rng.random(n) < np.where((labels > 0) & (X[:, 0] > 1), 0.8, 0.05)
    rows = Evaluation(
        labels=labels,
        predictions=np.where(wrong, (labels + 1) % 40, labels),
        representations={"x": X},
        sources={"x": errata.Source(from_model=False)},
    )
    audit = errata.audit(rows, methods=["spotlight"], options={"spotlight": {"size": 0.08}}, within="label")
    first = audit.confirmed[0]
    assert len(first.rule["scope"]["label"]) > 30
    assert first.name.startswith("label 1, 2 or ")
    again = errata.load(errata.save(audit, tmp_path / "audit"))
    assert np.array_equal(errata.apply(again, rows)[first.id], first.weights)
    assert "or 3" in (tmp_path / "audit" / "report.html").read_text()


def test_on_the_models_own_layer_a_label_goes_through_the_approximation() -> None:
    audit = errata.audit(two_faced(foreign=False), methods=["gmm"], within="label")
    assert audit.slices
    assert all(slice_.rule["kind"] == "approximation" for slice_ in audit.slices if slice_.confirm)
    fair = errata.audit(two_faced(foreign=False), methods=["gmm"], within="prediction")
    assert all(slice_.rule["kind"] != "approximation" for slice_ in fair.slices)


def test_a_scope_of_its_own_is_asked_for_by_its_option() -> None:
    assert within("directions", "prediction").scope == "prediction"
    assert within("barlow", "none").scope == "all"
    assert within("george", "label").scope == "label"
    assert isinstance(within("george", "prediction"), Within)
    assert not isinstance(within("spotlight", "none"), Within)


@pytest.mark.parametrize(
    ("method", "scoping", "options", "words"),
    [
        ("directions", "none", {}, "cannot search within `none`"),
        ("confusion", "label", {}, "cells"),
        ("barlow", "label", {"scope": "pair"}, "both say where to search"),
        ("gmm", "class", {}, "unknown `within`"),
    ],
)
def test_what_makes_no_sense_is_one_sentence(method: str, scoping: str, options: dict, words: str) -> None:
    with pytest.raises(InputError, match=words):
        within(method, scoping, options)


def test_without_classes_there_is_nothing_to_search_within() -> None:
    rng = np.random.default_rng(0)
    rows = Evaluation(losses=rng.random(100), representations={"x": rng.normal(size=(100, 2))})
    with pytest.raises(InputError, match="needs `labels`"):
        errata.audit(rows, methods=["gmm"], within="label")


def test_one_class_is_no_scope() -> None:
    rows = two_faced()
    one = rows.rows(rows.labels == 1)
    slicer = within("gmm", "label").fit(one)
    assert all("scope" not in rule for rule in slicer.rules_)


def test_seeds_are_kept() -> None:
    rows = two_faced(600)
    slicer = search_within(make("gmm", seed=7), "label", {}).fit(rows)
    alone = make("gmm", seed=7).fit(rows.rows(rows.labels == 0))
    part = slicer.parts_[0]
    assert np.array_equal(part.membership(rows), alone.membership(rows))
