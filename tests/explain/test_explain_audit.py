from __future__ import annotations

import ast
import json
from pathlib import Path

import numpy as np
import pytest

import errata.explain
from errata.core import Evaluation, InputError
from errata.explain import explain

N = 200
MEMBERS = np.arange(N) < 40


def _evaluation():
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 3, N)
    probs = rng.dirichlet(np.ones(3), N)
    return Evaluation(labels=labels, probs=probs, metadata={"site": rng.choice(list("ab"), N)})


def _as_text(audit):
    return json.dumps([[e.kind, e.to_json()] for found in audit.slices for e in found.explanations])


def test_exemplars_hold_the_rows_they_promise(make_audit, kinds):
    weights = np.where(MEMBERS, 0.5 + np.arange(N) / 400, 0.1)
    data = kinds(explain(make_audit(_evaluation(), weights), seed=5).slices[0])["exemplars"]
    groups = {group["which"]: group for group in data["groups"]}
    assert list(groups) == ["slice", "highest loss", "worst members", "random"]
    worst = groups["worst members"]["rows"]
    assert all(row["wrong"] for row in worst)
    assert [row["loss"] for row in worst] == sorted((row["loss"] for row in worst), reverse=True)
    assert data["drawn_from"] == "confirm"
    members = groups["slice"]["rows"]
    assert [row["row"] for row in members if row["picked"] == "weight"] == [39, 37, 35, 33, 31, 29]
    at_random = [row["row"] for row in members if row["picked"] == "random"]
    assert len(at_random) == 6
    assert max(at_random) < 29
    assert all(i % 2 for i in at_random)
    assert groups["slice"]["of"] == 20
    assert groups["random"]["of"] == 100
    losses = [row["loss"] for row in groups["highest loss"]["rows"]]
    assert losses == sorted(_evaluation().losses[1::2], reverse=True)[:12]


def test_a_row_says_what_the_model_said(make_audit, kinds):
    evaluation = Evaluation(
        labels=["cat", "dog"] * 10, predictions=["cat"] * 20, ids=[f"r{i}" for i in range(20)], losses=np.arange(20.0)
    )
    group = kinds(explain(make_audit(evaluation, np.arange(20) < 8)).slices[0])["exemplars"]["groups"][1]
    assert group["rows"][0] == {
        "row": 19, "id": "r19", "label": "dog", "prediction": "cat", "loss": 19.0, "wrong": True, "picked": "loss",
    }  # fmt: skip


def test_equal_weights_are_not_ranked(make_audit, kinds):
    data = kinds(explain(make_audit(_evaluation(), MEMBERS)).slices[0])["exemplars"]
    assert {row["picked"] for row in data["groups"][0]["rows"]} == {"random"}


def test_a_slice_without_confirm_rows_is_still_shown(make_audit, kinds):
    audit = make_audit(_evaluation(), MEMBERS & (np.arange(N) % 2 == 0))
    data = kinds(explain(audit).slices[0])["exemplars"]
    assert data["drawn_from"] == "all"
    assert data["groups"][0]["of"] == 20


def test_the_same_seed_gives_the_same_bytes(make_audit):
    audit = make_audit(_evaluation(), MEMBERS)
    assert _as_text(explain(audit, seed=1)) == _as_text(explain(audit, seed=1))
    assert _as_text(explain(audit, seed=1)) != _as_text(explain(audit, seed=2))
    assert audit.slices[0].explanations == ()


def test_explaining_twice_replaces(make_audit):
    once = explain(make_audit(_evaluation(), MEMBERS), clusters=np.arange(N) % 4)
    twice = explain(once, clusters=np.arange(N) % 4)
    assert _as_text(once) == _as_text(twice)
    assert len(twice.explanations) == 1


def test_everything_is_plain_json(make_audit):
    audit = explain(make_audit(_evaluation(), MEMBERS), clusters=np.arange(N) % 4)
    assert json.loads(json.dumps(audit.to_json()))["slices"][0]["explanations"]


def test_sizes_of_slices_and_clusters_by_hand(make_audit):
    losses = np.where(MEMBERS, 2.0, 0.5)
    clusters = np.where(np.arange(N) < 20, 7, 0)
    audit = explain(make_audit(Evaluation(losses=losses), MEMBERS), clusters=clusters)
    data = audit.explanations[0].to_json()
    assert audit.explanations[0].kind == "sizes"
    assert data["overall"] == pytest.approx(0.8)
    assert [(p["n"], p["share"], p["mean_loss"]) for p in data["slices"]] == [(20, 0.2, 2.0)]
    assert [(p["cluster"], p["n"]) for p in data["clusters"]] == [(0, 90), (7, 10)]
    assert data["clusters"][0]["mean_loss"] == pytest.approx((10 * 2 + 80 * 0.5) / 90)
    assert data["slices"][0]["name"] == audit.slices[0].name


def test_clusters_of_another_length_are_refused(make_audit):
    with pytest.raises(InputError, match=r"`clusters` must have one whole number a row, shape \(200,\)"):
        explain(make_audit(_evaluation(), MEMBERS), clusters=np.zeros(3, dtype=int))


def test_an_audit_without_slices(make_audit):
    audit = explain(make_audit(_evaluation()))
    assert audit.slices == ()
    assert audit.explanations == ()


def test_losses_alone(make_audit, kinds):
    found = explain(make_audit(Evaluation(losses=np.arange(float(N))), MEMBERS)).slices[0]
    data = kinds(found)
    assert set(data) == {"exemplars", "name"}
    assert data["exemplars"]["groups"][0]["rows"][0]["wrong"] is None


def test_unlabelled_rows_with_predictions(make_audit, kinds):
    evaluation = Evaluation(predictions=np.arange(N) % 3, representations={"x": np.ones((N, 1))})
    data = kinds(explain(make_audit(evaluation, MEMBERS)).slices[0])
    assert data["classes"]["labels"] is None
    assert [group["which"] for group in data["exemplars"]["groups"]] == ["slice", "random"]


def test_a_multi_label_slice_uses_its_own_label(make_audit, kinds):
    labels = np.stack([MEMBERS, np.arange(N) % 2 == 0], axis=1).astype(int)
    probs = np.stack([np.where(MEMBERS, 0.2, 0.1), np.full(N, 0.4)], axis=1)
    evaluation = Evaluation(labels=labels, probs=probs, class_names=("cat", "night"))
    found = explain(make_audit(evaluation, MEMBERS, task="cat")).slices[0]
    assert found.name == "cat, mostly taken for not cat"
    assert kinds(found)["name"]["errors"] == 20
    assert kinds(found)["exemplars"]["groups"][0]["rows"][0]["label"] == "cat"


def test_the_reverse_half_of_a_cross_fit_is_measured_on_the_other_rows(make_audit, kinds):
    audit = make_audit(_evaluation(), MEMBERS, confirmed_on="discover")
    rows = kinds(explain(audit).slices[0])["exemplars"]["groups"][0]["rows"]
    assert all(row["row"] % 2 == 0 for row in rows)


def test_explain_imports_the_spine_only():
    folder = Path(errata.explain.__file__).parent
    for path in folder.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and node.level == 0 and (node.module or "").startswith("errata"):
                assert node.module.split(".")[:2] == ["errata", "core"], path
