"""Baselines of a selection: the same classes, the same refusals, and as many rows as the slices' own rows."""

from __future__ import annotations

from typing import get_args

import numpy as np
import pytest

import errata
from errata import Evaluation, Source
from errata.core import InputError
from errata.fix.selection import By
from support.command import run

BASELINES = ("confidence", "random")


def world(first_id: int, hard: float = 0.8, n: int = 2000) -> Evaluation:
    """Three classes; of the second, rows that lie far along the first column are mostly wrong."""
    rng = np.random.default_rng(first_id)
    x = rng.normal(size=(n, 4))
    labels = rng.integers(0, 3, n)
    wrong = rng.random(n) < np.where((x[:, 0] > 1) & (labels == 1), hard, 0.05)
    probs = np.full((n, 3), 0.1)
    probs[np.arange(n), np.where(wrong, (labels + 1) % 3, labels)] = 0.8
    return Evaluation(
        labels=labels,
        probs=probs,
        class_names=("cat", "dog", "cow"),
        representations={"x": x},
        sources={"x": Source(from_model=False)},
        ids=np.arange(n) + first_id,
    )


@pytest.fixture(scope="module")
def audit() -> errata.Audit:
    found = errata.audit(world(0), methods=["directions"], map=False)
    assert [slice_.rule["scope"] for slice_ in found.confirmed] == [{"label": 1}]
    return found


@pytest.mark.parametrize("by", BASELINES)
def test_a_baseline_adds_rows_of_the_classes_of_the_slices(audit, by):
    pool = world(5000)
    plan = errata.plan_selection(audit, pool, 50, by=by)
    own = errata.plan_selection(audit, pool, 50)
    assert pool.labels[plan.rows_of(pool)].tolist() == [1] * 50 == pool.labels[own.rows_of(pool)].tolist()
    assert plan.slices == own.slices == ("s1",)
    of_class = int((pool.labels == 1).sum())
    assert plan.why == (
        f"add 50 of 2,000 rows of the pool, at most 50 a class, among the {of_class} in the classes of s1"
    )


def test_by_confidence_the_least_sure_of_the_class_come_first(audit):
    pool = world(5000)
    plan = errata.plan_selection(audit, pool, 50, by="confidence")
    dogs = pool.labels == 1
    wrong = np.flatnonzero(dogs & pool.errors)
    assert len(wrong) > 50
    assert set(plan.rows_of(pool).tolist()) <= set(wrong.tolist())


@pytest.mark.parametrize("by", BASELINES)
def test_without_a_slice_to_fix_a_baseline_takes_all_classes(by):
    found = errata.audit(world(0, hard=0.05), methods=["directions"], map=False)
    assert not found.confirmed
    pool = world(5000)
    plan = errata.plan_selection(found, pool, 50, by=by)
    assert np.bincount(pool.labels[plan.rows_of(pool)]).tolist() == [50, 50, 50]
    assert plan.slices == ()


@pytest.mark.parametrize("by", BASELINES)
def test_a_baseline_refuses_what_the_others_refuse(audit, by):
    with pytest.raises(InputError, match="nonsense"):
        errata.plan_selection(audit, world(5000), 50, by=by, slices=["nonsense"])
    with pytest.raises(InputError, match="rows of the audit are also in the pool"):
        errata.plan_selection(audit, world(0), 50, by=by)


def test_numbers_that_are_none_are_refused(audit):
    pool = world(5000)
    with pytest.raises(InputError, match=r"`per_class` must be a whole number of at least 1; got 2\.5"):
        errata.plan_selection(audit, pool, 2.5)
    with pytest.raises(InputError, match="`seed` must be a whole number of at least 0; got -1"):
        errata.plan_selection(audit, pool, 5, by="random", seed=-1)


def test_the_help_names_every_way():
    told = run("plan", "select", "--help").out
    assert [way for way in get_args(By) if f'"{way}"' not in told] == []
