"""A column that is the id of a group is kept together; a category, a quantity or a column like any other is not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from errata import Evaluation, audit
from errata.bench.null_worlds import patients_world, world
from errata.core.errors import InputError
from errata.core.group_columns import _alike, candidate_columns
from errata.core.grouping import column_groups, settle_groups

N = 4000


def _rows(columns, rates, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.integers(2, size=len(rates))
    wrong = rng.random(len(rates)) < rates
    return Evaluation(labels=labels, predictions=np.where(wrong, 1 - labels, labels), metadata=columns)


def _rate_of_each(values, seed=0):
    rates = np.random.default_rng(seed).beta(0.3, 2.4, size=int(values.max()) + 1)
    return rates[values]


def test_patients_stay_on_one_side():
    rows = patients_world(2000, 20, 5, column=True)
    settled, mask, record = settle_groups(rows)
    assert record["column"] == "patient"
    assert len(np.unique(rows.metadata["patient"][mask])) + len(np.unique(rows.metadata["patient"][~mask])) == 100
    chosen = settle_groups(rows, "patient")
    assert np.array_equal(chosen[1], mask)  # as if it had been asked for
    assert np.array_equal(chosen[0].groups, settled.groups)


def test_the_choice_of_a_column_reads_no_outcome_of_a_held_out_row():
    rows = replace(patients_world(2000, 20, 5, column=True), probs=None, losses=None)
    by_column = settle_groups(rows)
    by_rows = settle_groups(replace(rows, metadata={}))
    for held_out in (~by_column[1], ~by_rows[1]):  # whatever had been decided
        changed = replace(rows, predictions=np.where(held_out, rows.labels, rows.predictions), losses=None)
        assert (changed.errors != rows.errors).sum() > 50
        assert settle_groups(changed)[2] == by_column[2]


def test_a_category_with_many_rows_each_is_no_group():
    cluster = np.random.default_rng(1).integers(25, size=N)
    rows = _rows({"kind": np.array([f"c{value}" for value in cluster])}, _rate_of_each(cluster))
    assert not candidate_columns(rows)


def test_a_quantity_is_no_group():
    rng = np.random.default_rng(2)
    age = rng.integers(1, 90, size=N)
    rates = np.where(age < 20, 0.6, 0.05)
    assert candidate_columns(_rows({"patient age": age}, rates))  # by its shape alone it could be one
    assert not settle_groups(_rows({"patient age": age}, rates))[2]["alike"]
    shuffled = rng.permutation(90)[age]
    assert settle_groups(_rows({"patient age": shuffled}, rates))[2]["column"] == "patient age"  # its order decides


def test_a_column_without_errors_alike_is_no_group():
    found = 0
    for seed in range(20):
        user = np.random.default_rng(seed).integers(200, size=2000)
        found += bool(settle_groups(replace(world("random", 2000, seed), metadata={"user": user}))[2]["alike"])
    assert found == 0


def test_errors_that_the_class_explains_are_not_alike():
    rng = np.random.default_rng(3)
    user = rng.integers(200, size=N)
    labels = user % 4  # each user has rows of one class
    wrong = rng.random(N) < np.array([0.02, 0.1, 0.3, 0.6])[labels]
    rows = Evaluation(labels=labels, predictions=np.where(wrong, (labels + 1) % 4, labels), metadata={"user": user})
    assert not settle_groups(rows)[2]["alike"]


def test_of_two_columns_the_surer_is_kept_and_the_other_named():
    rng = np.random.default_rng(4)
    user = rng.integers(300, size=12000)
    item = rng.integers(300, size=12000)
    rates = np.clip(_rate_of_each(user, 5) + 0.6 * _rate_of_each(item, 6), 0, 1)
    record = settle_groups(_rows({"user": user, "item": item}, rates))[2]
    assert record["column"] == "user"
    assert [column["column"] for column in record["alike"]] == ["user", "item"]


def test_the_correlation_is_that_of_pairs():
    rng = np.random.default_rng(7)
    codes = rng.integers(30, size=200)
    residual = rng.normal(size=200) + rng.normal(size=30)[codes]
    same = (codes[:, None] == codes) & ~np.eye(200, dtype=bool)
    beside = np.abs(codes[:, None] - codes) == 1
    products = residual[:, None] * residual / np.square(residual).mean()
    correlation, z, next_to = _alike(residual, codes)
    assert correlation == pytest.approx(products[same].mean())
    assert next_to == pytest.approx(products[beside].mean())
    assert z > 4


def test_missing_values_are_groups_of_their_own():
    values = np.array([1.0, 1.0, np.nan, np.nan, 2.0])
    rows = Evaluation(losses=np.zeros(5), metadata={"user": values, "name": ["a", "a", None, None, "b"]})
    assert len(np.unique(column_groups(rows, "user"))) == 4
    assert len(np.unique(column_groups(rows, "name"))) == 4


def test_a_column_that_is_not_there_is_refused():
    with pytest.raises(InputError, match="patient"):
        audit(patients_world(200, 20, 1, column=True), methods=["gmm"], groups="patients")
