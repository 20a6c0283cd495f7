"""The whole tree of a path: its nodes as the slicer's, counted on searched and on other rows."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import errata
from errata.core import Audit, Evaluation, Source
from errata.core.leaves import group_mask
from errata.explain import explain


def world(n: int = 2400, own: bool = False) -> Evaluation:
    """Class 1 fails where feature 4 is high and feature 2 is low, and a little where feature 4 is very low."""
    rng = np.random.default_rng(3)
    labels = rng.integers(0, 2, n)
    X = rng.normal(size=(n, 8)).astype(np.float32)
    odds = np.select([(X[:, 4] > 0.3) & (X[:, 2] < 0), X[:, 4] < -1.5], [0.85, 0.4], 0.05)
    wrong = rng.random(n) < np.where(labels == 1, odds, 0.05)
    sources = {"robust": Source(from_model=own)}
    return Evaluation(labels=labels, predictions=np.where(wrong, 1 - labels, labels), representations={"robust": X},
                      sources=sources)  # fmt: skip


@pytest.fixture(scope="module")
def audit() -> Audit:
    return errata.audit(world(), methods=["barlow"])


def told(found: Any) -> Any:
    return next(one.to_json() for one in found.explanations if one.kind == "path")["tree"]


def rows_of(nodes: Any, at: int, X: Any) -> Any:
    """(n,) bool: by its conditions from the root, which is not how it was counted."""
    depth, inside = nodes[at]["depth"], np.ones(len(X), dtype=bool)
    for i in range(at, 0, -1):
        if nodes[i]["depth"] == depth:
            one = nodes[i]["condition"]
            below = X[:, one["feature"]] <= one["value"]
            inside &= below if one["op"] == "<=" else ~below
            depth -= 1
    return inside


def test_every_node_holds_what_its_conditions_say(audit: Audit) -> None:
    assert audit.slices
    evaluation = audit.evaluation
    X, errors = np.asarray(evaluation.representations["robust"]), np.asarray(evaluation.errors)
    for found in audit.slices:
        nodes = told(found)["nodes"]
        assert len(nodes) > 3
        group = group_mask(evaluation, found.rule["scope"])
        for at, node in enumerate(nodes):
            inside = group & rows_of(nodes, at, X)
            for which, rows in (("searched", audit.discover), ("confirm", ~audit.discover)):
                assert node[which] == {"n": (inside & rows).sum(), "failures": (inside & rows & errors).sum()}
        own = [node for node in nodes if node["here"] and node["leaf"] is not None]
        assert [node["leaf"] for node in own] == [found.rule["leaf"]]
        assert own[0]["confirm"]["n"] == found.confirm.n
        assert nodes[0]["here"]
        assert nodes[0]["condition"] is None


def test_a_tree_that_knows_the_outcome_is_counted_on_held_out_rows_too() -> None:
    audit = errata.audit(world(own=True), methods=["barlow"])
    found = next(found for found in audit.slices if found.rule["kind"] == "approximation")
    X, errors = np.asarray(audit.evaluation.representations["robust"]), np.asarray(audit.evaluation.errors)
    group = group_mask(audit.evaluation, found.rule["of"]["scope"])
    nodes = told(found)["nodes"]
    for at, node in enumerate(nodes):
        inside = group & rows_of(nodes, at, X) & ~audit.discover
        assert node["confirm"] == {"n": inside.sum(), "failures": (inside & errors).sum()}
    path = next(one for one in found.explanations if one.kind == "path")
    assert path.confirm is None, "its error is high by construction, so no rate of the path is claimed"


def test_a_rule_saved_before_has_no_tree_and_all_the_rest(audit: Audit) -> None:
    old = [{name: value for name, value in found.rule.items() if name != "nodes"} for found in audit.slices]
    slices = tuple(replace(found, rule=rule) for found, rule in zip(audit.slices, old, strict=True))
    again = explain(replace(audit, slices=slices))
    for found, before in zip(again.slices, audit.slices, strict=True):
        data = next(one.to_json() for one in found.explanations if one.kind == "path")
        kept = next(one.to_json() for one in before.explanations if one.kind == "path")
        assert data == {**kept, "tree": None}


def test_the_tree_is_saved_and_read_again(audit: Audit, tmp_path: Path) -> None:
    errata.save(audit, tmp_path / "audit")
    again = errata.load(tmp_path / "audit")
    assert [told(found) for found in again.slices] == [told(found) for found in audit.slices]
    assert json.dumps(again.slices[0].rule["nodes"]) == json.dumps(audit.slices[0].rule["nodes"])
