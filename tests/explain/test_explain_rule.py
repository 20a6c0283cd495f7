"""Rules that describe a slice: its own, or the one that tells its members best. Even rows are search rows."""

from __future__ import annotations

import sqlite3
from dataclasses import replace

import numpy as np
import pytest

import errata
from errata import hypothesis
from errata.core import Evaluation
from errata.core.rules import Condition
from errata.explain import explain, restore_explanation
from errata.explain.names import Name
from errata.explain.rule import Rule

N = 1200
ROWS = np.arange(N)
HELD_OUT = ROWS % 2 == 1
RNG = np.random.default_rng(4)
AGE = RNG.integers(0, 80, N).astype(float)
SITE = RNG.choice(["a", "b", "c d"], N)
LABELS = RNG.integers(0, 2, N)
KIDS = (AGE < 20) & (SITE == "a")
WRONG = RNG.random(N) < np.where(KIDS, 0.6, 0.1)
PREDICTIONS = np.where(WRONG, 1 - LABELS, LABELS)


def _rows(**changes):
    outcome = {"labels": LABELS, "predictions": PREDICTIONS, "class_names": ("cat", "big dog")}
    noise = np.random.default_rng(5).normal(size=N)
    return Evaluation(**{**outcome, "metadata": {"age": AGE, "site": SITE, "noise": noise}, **changes})


def _own(scope):
    conditions = [Condition("age", high=20.0), Condition("site", values=("a",))]
    return {"kind": "conditions", "conditions": [part.to_json() for part in conditions], "scope": scope}


def _counts(rows):
    inside = rows & HELD_OUT
    return int(inside.sum()), int((inside & WRONG).sum())


def test_a_slice_that_is_a_rule_is_named_by_it(make_audit):
    audit = explain(make_audit(_rows(), KIDS, rule=_own({})))
    found = audit.slices[0]
    assert found.name == "age < 20 and site = a"
    name = found.explanation(Name)
    assert (name.source, name.own, name.weak) == ("rule", True, False)
    rule = found.explanation(Rule)
    assert rule.own
    assert len(rule.rows) == 1
    first = rule.rows[0]
    assert (first.match.outcome.n, first.match.outcome.errors) == _counts(KIDS)
    assert (first.others.n, first.others.errors) == _counts(~KIDS)
    without = [(part.text, part.without.n, part.without.errors) for part in first.conditions]
    assert without == [("age < 20", *_counts(SITE == "a")), ("site = a", *_counts(AGE < 20))]
    assert restore_explanation({"kind": "rules", **rule.to_json()}) == rule


@pytest.mark.parametrize(
    ("scope", "words", "rows"),
    [
        ({"label": 1}, 'label = "big dog" and age < 20 and site = a', LABELS == 1),
        ({"prediction": 0}, "prediction = cat and age < 20 and site = a", PREDICTIONS == 0),
        ({"prediction": [0, 1]}, 'prediction in (cat, "big dog") and age < 20 and site = a', LABELS >= 0),
    ],
)
def test_the_scope_is_part_of_the_rule(make_audit, scope, words, rows):
    audit = explain(make_audit(_rows(), KIDS & rows, rule=_own(scope)))
    first = audit.slices[0].explanation(Rule).rows[0]
    assert first.text == words
    assert (first.match.outcome.n, first.match.outcome.errors) == _counts(KIDS & rows)
    assert (first.others.n, first.others.errors) == _counts(~(KIDS & rows))  # of all rows, not of the scope alone
    assert first.conditions[0].without.n == _counts((SITE == "a") & rows)[0]


@pytest.mark.parametrize("scope", [{}, {"label": 1}, {"prediction": [0, 1]}])
def test_a_rule_selects_the_same_rows_as_hypothesis_as_query_and_as_sql(make_audit, scope):
    rows = _rows()
    within = LABELS == 1 if scope == {"label": 1} else np.ones(N, dtype=bool)
    audit = explain(make_audit(rows, KIDS & within, rule=_own(scope)))
    found = audit.slices[0]
    members = np.flatnonzero(found.members)
    first = found.explanation(Rule).rows[0]
    assert np.flatnonzero(hypothesis.parse(first.text, rows).mask(rows)).tolist() == members.tolist()
    frame = rows.to_frame()
    assert frame.reset_index().query(found.query).index.tolist() == members.tolist()
    with sqlite3.connect(":memory:") as database:
        frame.reset_index(drop=True).to_sql("t", database, index_label="row")
        selected = database.execute(f"SELECT row FROM t WHERE {found.sql} ORDER BY row").fetchall()
    assert [row for (row,) in selected] == members.tolist()


@pytest.mark.parametrize("scope", [{}, {"label": 1}])
def test_the_planted_rule_describes_a_slice_of_another_method(make_audit, scope):
    within = LABELS == 1 if scope else np.ones(N, dtype=bool)
    members = within & (KIDS ^ (np.random.default_rng(1).random(N) < 0.005))
    found = explain(make_audit(_rows(), members, rule={"kind": "component", "scope": scope})).slices[0]
    first = found.explanation(Rule).rows[0]
    assert not found.explanation(Rule).own
    assert first.words == "age < 20 and site = a"
    assert found.name == ("big dog, age < 20 and site = a" if scope else "age < 20 and site = a")
    both = KIDS & within & HELD_OUT
    assert first.match.covers == (int((both & members).sum()), int((members & HELD_OUT).sum()))
    assert first.match.precise == (int((both & members).sum()), int(both.sum()))
    assert found.query is None
    assert found.sql is None


def test_a_described_slice_may_be_told_by_its_label_but_never_by_its_error(make_audit):
    members = (LABELS == 1) & WRONG  # label and prediction together would tell it exactly
    found = explain(make_audit(_rows(), members)).slices[0]
    for row in found.explanation(Rule).rows:
        assert not {"label", "prediction"} <= {part.column for part in row.parts}
    cats = (LABELS == 0) & (AGE >= 60)
    first = explain(make_audit(_rows(), cats)).slices[0].explanation(Rule).rows[0]
    assert first.words == "age >= 60 and label = cat"


def test_the_order_of_rows_does_not_matter(make_audit):
    members = KIDS ^ (np.random.default_rng(1).random(N) < 0.005)
    ids = np.array([f"r{i:05d}" for i in ROWS])
    order = np.random.default_rng(0).permutation(N)
    straight = explain(make_audit(_rows(ids=ids), members)).slices[0]
    shuffled = make_audit(_rows(ids=ids).rows(order), members[order], discover=~HELD_OUT[order])
    assert explain(shuffled).slices[0].explanation(Rule) == straight.explanation(Rule)


def test_without_columns_there_is_no_rule(make_audit):
    assert explain(make_audit(_rows(metadata={}), KIDS)).slices[0].explanation(Rule) is None
    few = ROWS < 4  # too few to describe
    assert explain(make_audit(_rows(), few)).slices[0].explanation(Rule) is None


def test_a_rule_of_regression_is_told_by_mean_loss(make_audit):
    rows = _rows(labels=None, predictions=None, class_names=None, losses=np.where(KIDS, 5.0, 1.0))
    first = explain(make_audit(rows, KIDS, rule=_own({}))).slices[0].explanation(Rule).rows[0]
    assert first.match.outcome.errors is None
    assert first.interval is None
    assert first.match.outcome.mean_loss == 5.0
    assert first.others.mean_loss == 1.0
    kids = (SITE == "a") & HELD_OUT
    assert first.conditions[0].without.mean_loss == pytest.approx(np.where(KIDS, 5.0, 1.0)[kids].mean())


def test_a_second_slice_with_the_same_best_rule_takes_its_next(make_audit):
    noise = np.random.default_rng(1)
    members = [KIDS ^ (noise.random(N) < 0.005) for _ in range(3)]
    audit = explain(make_audit(_rows(), *members))
    names = [found.name for found in audit.slices]
    assert names[0] == "age < 20 and site = a"
    assert len(set(names)) == 3
    assert all(found.explanation(Name).text == found.name for found in audit.slices)


def test_what_the_user_calls_a_slice_stays_its_name(make_audit):
    audit = make_audit(_rows(), KIDS, KIDS)
    named = replace(audit.slices[1], rule={"kind": "given", "name": "age < 20 and site = a", "reads": []})
    audit = explain(replace(audit, slices=(audit.slices[0], named)))
    assert audit.slices[1].name == "age < 20 and site = a"
    assert audit.slices[1].explanation(Name).source == "given"
    assert audit.slices[0].name != audit.slices[1].name


def test_a_column_that_gives_the_label_away_names_nothing():
    """Within a prediction, the label under another name is the outcome: "predicted 0, kind = b" would be "wrong"."""
    rng = np.random.default_rng(0)
    n = 4000
    x = rng.normal(size=(n, 3))
    labels = rng.integers(0, 2, n)
    wrong = rng.random(n) < np.where(x[:, 0] > 1, 0.7, 0.03)
    evaluation = errata.Evaluation(
        labels=labels,
        predictions=np.where(wrong, 1 - labels, labels),
        representations={"x": x},
        metadata={"kind": np.array(["a", "b"])[labels], "site": rng.choice(["n", "s"], n)},
        sources={"x": errata.Source(from_model=False)},
    )
    audit = errata.audit(evaluation, methods=["consensus"])
    assert audit.confirmed
    assert not any("kind" in slice_.name.partition("(")[0] for slice_ in audit.slices)


def test_columns_that_tell_nothing_give_no_rule():
    rng = np.random.default_rng(0)
    n = 3000
    kind = rng.integers(0, 10, n)
    x = rng.normal(0, 4, (10, 6))[kind] + rng.normal(size=(n, 6))
    labels = rng.integers(0, 3, n)
    wrong = rng.random(n) < np.where(kind == 3, 0.6, 0.05)
    evaluation = errata.Evaluation(
        labels=labels,
        predictions=np.where(wrong, (labels + 1) % 3, labels),
        representations={"x": x},
        metadata={"site": rng.choice(["n", "s"], n), "age": rng.integers(0, 90, n)},
    )
    audit = errata.audit(evaluation, methods=["consensus"])
    found = audit.confirmed[0]
    assert found.explanation(Rule) is None
    assert found.name.startswith("no short description")
