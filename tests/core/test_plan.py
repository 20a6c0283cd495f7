"""A plan finds its rows by their ids, in whatever order they are."""

from __future__ import annotations

import numpy as np
import pytest

from errata.core import Evaluation, InputError, Plan

ROWS = Evaluation(losses=np.zeros(4), ids=np.array([30, 10, 40, 20]))


def test_each_row_has_its_own_weight():
    plan = Plan("weights", "", ids=np.array([20, 30]), weights=np.array([2.0, 5.0]))
    assert plan.weights_of(ROWS).tolist() == [5, 1, 1, 2]
    assert plan.rows_of(ROWS).tolist() == [3, 0]


def test_a_row_that_does_not_exist_is_named():
    plan = Plan("select", "", ids=np.array([20, 25]), weights=np.ones(2))
    with pytest.raises(InputError, match=r"names row .*25.*, which these rows do not have"):
        plan.rows_of(ROWS)
