"""From weights to sets, on cases small enough to be done by hand."""

from __future__ import annotations

import numpy as np
import pytest

from errata.core.membership import drop_overlapping, excess_order, jaccard, threshold, thresholds
from hypothesis import given
from hypothesis import strategies as st


def _set(*rows, n=10):
    return np.isin(np.arange(n), rows)


@pytest.mark.parametrize(
    ("weights", "members"),
    [
        ([1, 0, 1, 0, 0], [0, 2]),  # 0/1 stays as it is
        ([1, 1, 1], [0, 1, 2]),
        ([0.9, 0.7, 0.3, 0.1], [0, 1]),  # sums to 2
        ([0.9, 0.5, 0.5, 0.1], [0, 1, 2]),  # ties enter
        ([0.3, 0.2, 0.3, 0.1, 0.1], [0, 2]),  # a kernel that never exceeds .3: 1 row by its sum, tied
        ([0.4, 0.3, 0.2, 0.1, 0.0], [0]),
        ([0.3, 0.1], []),  # less than half a row
        ([0.0, 0.0], []),
    ],
)
def test_a_slice_holds_as_many_rows_as_its_weights_sum_to(weights, members):
    weights = np.array(weights, dtype=float)
    assert np.flatnonzero(weights >= threshold(weights)).tolist() == members


def test_an_empty_slice_has_no_threshold_that_can_be_reached():
    assert threshold(np.full(4, 0.1)) == np.inf


def test_sums_are_taken_in_double_precision():
    weights = np.full(1_000_000, np.float16(0.1))  # their sum, 100,000, is infinite in half precision
    assert threshold(weights) == np.float16(0.1)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=40))
def test_the_set_is_as_large_as_the_sum_but_for_ties(values):
    weights = np.array(values)
    cut = threshold(weights)
    m = round(weights.sum())
    assert (weights >= cut).sum() >= m
    assert (weights > cut).sum() <= max(m - 1, 0)
    assert not (weights[weights >= cut] == 0).any()


def test_each_column_has_its_own_threshold():
    weights = np.array([[1, 0.2], [0, 0.6], [1, 0.4], [0, 0.8]])
    assert thresholds(weights).tolist() == [1.0, 0.6]


def test_jaccard_is_the_share_that_two_sets_have_in_common():
    assert jaccard(_set(0, 1, 2), _set(1, 2, 3)) == 0.5
    assert jaccard(_set(0, 1), _set(0, 1)) == 1
    assert jaccard(_set(0, 1), _set(2)) == 0
    assert jaccard(_set(), _set()) == 0


def test_excess_weighs_a_slices_rate_by_the_root_of_its_size():
    outcome = _set(0, 1, 2, 3).astype(float)  # overall .4
    one, four, five, clean, empty = _set(0), _set(0, 1, 2, 8), _set(1, 2, 3, 8, 9), _set(5, 6), _set()
    hard = np.stack([clean, one, five, empty, four], axis=1)
    # (0 - .4) sqrt 2 < 0; (1 - .4) 1 = .6; (.6 - .4) sqrt 5 = .45; nothing: 0; (.75 - .4) 2 = .7
    assert excess_order(hard, outcome).tolist() == [4, 1, 2, 3, 0]


def test_folding_keeps_the_first_of_those_that_overlap_by_half():
    hard = np.stack([_set(0, 1, 2), _set(1, 2, 3), _set(3, 4, 5), _set(0, 1, 2, 3, 4, 5)], axis=1)
    assert drop_overlapping(hard, np.array([0, 1, 2, 3])) == [0, 2]
    assert drop_overlapping(hard, np.array([3, 2, 1, 0])) == [3]
    assert drop_overlapping(hard, np.array([1, 0, 2])) == [1, 2]
    assert drop_overlapping(hard, np.array([], dtype=int)) == []


def test_a_slice_folds_into_kept_ones_only():
    """The third overlaps the second, which is gone: so it stays."""
    chain = np.stack([_set(0, 1, 2), _set(1, 2, 3), _set(2, 3, 4)], axis=1)
    assert jaccard(chain[:, 1], chain[:, 2]) == 0.5
    assert drop_overlapping(chain, np.array([0, 1, 2])) == [0, 2]
