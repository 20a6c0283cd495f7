"""Rules and regions that are one finding: what is told of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import errata
from errata import Evaluation
from errata.core.confirm import Settings, SliceCandidate, SplitTask, confirm_all
from errata.core.rules import Condition
from errata.workflow.findings import _in_order
from errata.workflow.searching import Search
from support.command import run

N = 4000
RNG = np.random.default_rng(0)
AGE = RNG.integers(0, 80, N)
KIDS = AGE < 10
LABELS = RNG.integers(0, 2, N)
WRONG = RNG.random(N) < np.where(KIDS, 0.6, 0.05)


@pytest.fixture(scope="module")
def rows():
    x = np.random.default_rng(1).normal(size=(N, 3)) + np.outer(KIDS, [6.0, 0.0, 0.0])
    predictions = np.where(WRONG, 1 - LABELS, LABELS)
    return Evaluation(labels=LABELS, predictions=predictions, representations={"x": x}, metadata={"age": AGE})


def _told(rows, region, rule, order=("gmm", "rules")):
    """The slices that are told of a region and a rule: (members, rule) each."""
    discover = np.arange(N) % 2 == 0
    trial = SplitTask(rows, discover, Settings())
    members = {"gmm": region, "rules": rule}
    rules = {
        "gmm": {"kind": "component"},
        "rules": {"kind": "conditions", "conditions": [Condition("age", high=10.0).to_json()]},
    }
    candidates = [SliceCandidate(name, 0, members[name].astype(float), 0.5, rules[name], "hard") for name in order]
    results = confirm_all([(trial, candidate) for candidate in candidates])
    searches = [Search(name, name, "", trial, None) for name in order]
    return _in_order(list(zip(searches, results, strict=True)))


def test_a_rule_that_is_about_as_bad_as_a_region_is_told_in_its_place(rows):
    region = KIDS | (WRONG & (AGE >= 78))  # a little more excess, so that it comes first
    (told,) = _told(rows, region, KIDS)
    assert (told.method, told.found_by, told.folded) == ("rules", ("rules", "gmm"), 1)
    assert told.members.tolist() == KIDS.tolist()


def test_a_rule_that_is_less_bad_is_not(rows):
    region = KIDS & (WRONG | (np.arange(N) % 3 == 0))  # the worst of them: it comes first
    wide = KIDS
    first, *_ = _told(rows, region, wide)
    gaps = [slice_.confirm.gap for slice_ in _told(rows, region, region)[:1]]
    assert first.confirm.gap == pytest.approx(gaps[0])
    assert first.method == "gmm"


def test_what_the_user_named_is_never_replaced(rows):
    region = KIDS | (WRONG & (AGE >= 78))
    told = _told(rows, region, KIDS)[0]
    assert told.method == "rules"
    own = errata.audit(rows, methods=["rules"], slices={"mine": KIDS | (AGE == 79)})
    assert "mine" in [slice_.name for slice_ in own.slices]


def test_an_audit_of_both_is_named_by_the_rule(rows):
    audit = errata.audit(rows, methods=["gmm", "rules"])
    first = audit.slices[0]
    assert (first.method, first.name) == ("rules", "age < 10")
    assert set(first.found_by) == {"rules", "gmm"}
    assert replace(first, explanations=()).query is None
    assert audit.evaluation.to_frame().query(first.query).shape[0] == int(KIDS.sum())


def test_a_representation_that_contains_the_outcome_is_told_before_any_verdict(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 1000)
    wrong = rng.random(1000) < 0.15
    leak = np.c_[rng.normal(size=(1000, 3)), 3 * wrong + rng.normal(size=1000) * 0.01]
    predictions = np.where(wrong, 1 - labels, labels)
    np.savez(tmp_path / "x.npz", embedding=leak, labels=labels, predictions=predictions)
    code, out, _ = run("audit", "x.npz", "-o", "out", "--no-self-test", "--no-map", "--method", "gmm", folder=tmp_path)
    assert code == 0
    text = " ".join(out.split())
    warned = text.index("Warning: Representation `embedding` tells errors")
    assert warned < text.index(" s1 ")
    assert text.count("almost without a mistake") == 1
    page = (tmp_path / "out" / "report.html").read_text()
    assert page.index("The verdicts below may be no evidence.") < page.index('id="h-slices"')
