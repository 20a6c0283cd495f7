"""A path in words and numbers, from its rule and the rows alone."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import errata
from errata.core import Evaluation, Source
from errata.explain import explain
from errata.explain.path import in_words, path_rule
from errata.slicers.barlow.slicer import tree_statistics

FOREIGN = {"robust": Source(from_model=False)}


def purses() -> Evaluation:
    """Table 3's purse: 1,300 rows with 401 failures, and 257 of them among the 615 rows with a low feature."""
    low = np.arange(1300) < 615
    wrong = np.where(low, np.arange(1300) < 257, np.arange(1300) < 615 + 144)
    X = np.zeros((1300, 3), dtype=np.float32)
    X[:, 1] = np.where(low, 0.3, 0.42)
    return Evaluation(labels=np.zeros(1300, int), predictions=wrong.astype(int), representations={"robust": X})


def rule(*conditions: tuple[int, str, float], others: Any = (), leaf: int = 0, **changes: Any) -> dict[str, Any]:
    path = [{"feature": f, "op": op, "value": value} for f, op, value in conditions]
    rest = [[{"feature": f, "op": op, "value": value} for f, op, value in other] for other in others]
    return {
        "kind": "path", "representation": "robust", "scope": {"label": 0}, "conditions": path,
        "names": [f"feature {one['feature']}" for one in path], "leaves": [path, *rest], "leaf": leaf, "tree": 0,
        **changes,
    }  # fmt: skip


PURSE = rule((1, "<=", 0.36), others=[[(1, ">", 0.36)]])


def told(make_audit, ev: Evaluation, given: dict[str, Any], **changes: Any) -> dict[str, Any]:
    audit = make_audit(ev, np.ones(len(ev)), rule=given, **changes)
    found = {e.kind: e.to_json() for e in explain(audit).slices[0].explanations}["path"]
    json.dumps(found, allow_nan=False)
    return dict(found)


def test_the_papers_sentence_and_its_numbers(make_audit):
    data = told(make_audit, purses(), PURSE, discover=np.ones(1300))
    assert data["text"] == "feature 1 below 0.36"
    assert data["within"] == "label 0"
    assert data["searched"]["text"] == "feature 1 below 0.36: error 42% against 31%, 64% of the failures"
    numbers = {key: round(value, 4) for key, value in data["searched"].items() if key != "text"}
    assert numbers == {
        "n": 615, "failures": 257, "group_n": 1300, "group_failures": 401, "base_error_rate": 0.3085,
        "error_rate": 0.4179, "error_coverage": 0.6409, "importance": 0.2678, "aler": 0.3433,
    }  # fmt: skip
    assert data["confirm"]["text"] == "feature 1 below 0.36: no rows"
    assert data["confirm"]["error_rate"] is None
    assert data["confirm"]["aler"] is None


def test_searched_and_other_rows_are_counted_apart(make_audit):
    discover = np.arange(1300) % 3 == 0
    data = told(make_audit, purses(), PURSE, discover=discover)
    ev = purses()
    low = ev.representations["robust"][:, 1] < 0.36
    for key, rows in (("searched", discover), ("confirm", ~discover)):
        assert data[key]["group_n"] == rows.sum()
        assert data[key]["group_failures"] == ev.errors[rows].sum()
        assert data[key]["n"] == (rows & low).sum()
        assert data[key]["failures"] == (rows & low & ev.errors).sum()
    assert data["searched"]["n"] + data["confirm"]["n"] == 615
    assert not data["knows_outcome"]


def test_a_group_without_failures_has_none_to_share(make_audit):
    ev = purses()
    right = Evaluation(labels=ev.labels, predictions=ev.labels, representations=ev.representations)
    data = told(make_audit, right, PURSE)
    assert data["searched"]["text"] == "feature 1 below 0.36: error 0% against 0%, no failures in the group"
    assert data["searched"]["error_coverage"] is None
    assert data["groups"][0] == {"which": "failures", "of": 0, "rows": []}


def test_conditions_in_words():
    def said(*conditions):
        given = rule(*conditions)
        return in_words(given["conditions"], given["names"])

    assert said((7, ">", 12345.6)) == "feature 7 above 1.23e+04"
    assert said((2, "<=", 0.5), (1, ">", 2.0)) == "feature 2 below 0.5 and feature 1 above 2"
    assert said((2, ">", 0.25), (1, ">", 2.0), (2, "<=", 0.5)) == "feature 2 between 0.25 and 0.5 and feature 1 above 2"


def test_groups_in_words(make_audit):
    ev = purses()
    ev = Evaluation(
        labels=ev.labels, predictions=ev.predictions, representations=ev.representations, class_names=("cat", "dog"),
        metadata={"site": np.array(["a"] * 1300)},
    )  # fmt: skip
    both = {"label": 0, "site": "a"}
    groups = {"label cat": {"label": 0}, "site a": {"site": "a"}, "": {}, "label cat and site a": both}
    for words, scope in groups.items():
        assert told(make_audit, ev, {**PURSE, "scope": scope})["within"] == words
    pair = {key: value for key, value in PURSE.items() if key != "scope"} | {"pair": [0, 1]}
    assert told(make_audit, ev, pair)["within"] == "cat and dog taken for each other"


def test_rows_along_the_range_and_at_its_top(make_audit):
    ev = purses()
    X = np.array(ev.representations["robust"])
    X[:, 1] = np.random.default_rng(0).permutation(1300) / 1300
    labels = (np.arange(1300) >= 1001).astype(int)  # 1,001 rows of the group: quantiles fall on rows
    ev = Evaluation(labels=labels, predictions=1 - labels, representations={"robust": X})
    (one,) = told(make_audit, ev, PURSE)["features"]
    group = np.sort(X[:1001, 1])
    assert one["name"] == "feature 1"
    assert one["cuts"] == [{"op": "<=", "value": 0.36}]
    assert one["of"] == 1001
    assert [row["quantile"] for row in one["range"]] == [0, 0.25, 0.5, 0.75, 1]
    assert [row["value"] for row in one["range"]] == pytest.approx(group[[0, 250, 500, 750, 1000]])
    assert [row["value"] for row in one["activating"]] == pytest.approx(group[::-1][:6])
    assert all(row["row"] < 1001 and X[row["row"], 1] == pytest.approx(row["value"]) for row in one["activating"])


def test_failures_of_the_leaf_and_what_is_right_in_it_and_beside_it(make_audit):
    ev = purses()
    data = told(make_audit, ev, PURSE)  # odd rows were not searched
    low = ev.representations["robust"][:, 1] < 0.36
    odd = np.arange(1300) % 2 == 1
    expected = {
        "failures": low & ev.errors & odd,
        "right in the leaf": low & ~ev.errors & odd,
        "right beside it": ~low & ~ev.errors & odd,
    }
    assert data["drawn_from"] == "confirm"
    assert [group["which"] for group in data["groups"]] == list(expected)
    for group in data["groups"]:
        allowed = expected[group["which"]]
        assert group["of"] == allowed.sum()
        assert len(group["rows"]) == 6
        assert all(allowed[row["row"]] for row in group["rows"])


def world(seed: int = 0, n: int = 1200) -> Evaluation:
    """Class 1 fails where feature 4 is high."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 8)).astype(np.float32)
    wrong = rng.random(n) < np.where((labels == 1) & (X[:, 4] > 0.5), 0.8, 0.1)
    return Evaluation(
        labels=labels, predictions=np.where(wrong, 1 - labels, labels), representations={"robust": X}, sources=FOREIGN
    )


def test_an_audit_tells_paths_as_the_slicer_counts_them():
    """Twice counted: by the tree that was fitted, and from the rule."""
    audit = errata.audit(world(), methods=["barlow"])
    slicer = audit.slicers["barlow"]
    on_searched = tree_statistics(slicer, audit.evaluation.rows(audit.discover))
    on_confirm = tree_statistics(slicer, audit.evaluation.rows(~audit.discover))
    assert audit.slices
    for found in audit.slices:
        data = {e.kind: e.to_json() for e in found.explanations}["path"]
        tree, leaf = found.rule["tree"], found.rule["leaf"]
        for key, counted in (("searched", on_searched), ("confirm", on_confirm)):
            assert {**counted[tree].leaves.numbers(leaf), "text": data[key]["text"]} == data[key]
        assert {key: data["searched"][key] for key in found.rule["searched"]} == found.rule["searched"]
        assert data["confirm"]["n"] == found.confirm.n
    first = audit.slices[0].rule
    assert first["conditions"][0]["feature"] == 4
    assert first["leaves"][first["leaf"]] == first["conditions"]


def test_a_path_that_knows_the_outcome_is_not_measured_on_other_rows():
    """Within a label on the model's own representation: its approximation is what the verdict is about."""
    ev = world()
    sources = {name: Source(from_model=True) for name in ev.representations}
    own = Evaluation(labels=ev.labels, predictions=ev.predictions, representations=ev.representations, sources=sources)
    audit = errata.audit(own, methods=["barlow"])
    found = next(found for found in audit.slices if found.rule["kind"] == "approximation")
    data = {e.kind: e.to_json() for e in found.explanations}["path"]
    assert data["knows_outcome"]
    assert data["confirm"] is None
    assert data["searched"]["error_rate"] > 0.5
    assert path_rule(found.rule) == found.rule["of"]


def test_other_rules_have_no_path(make_audit):
    assert path_rule({"kind": "ball"}) is None
    assert path_rule({"kind": "approximation", "of": {"kind": "ball"}}) is None
    assert path_rule({"kind": "path", "scope": {}}) is None  # somebody else's, without a tree
    kinds = {e.kind for e in explain(make_audit(purses(), np.ones(1300), rule={"kind": "ball"})).slices[0].explanations}
    assert "path" not in kinds
