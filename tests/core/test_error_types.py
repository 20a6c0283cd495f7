"""Error types: chosen on search rows, merged, described by held-out rows, and never a rate."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from errata.core import Evaluation, Slice
from errata.core.confirm import Settings, SliceCandidate, SplitTask
from errata.core.error_types import FEWEST_ERRORS, MOST_ERROR_TYPES, OutcomeSlice, find_error_types

N = 2000
SEARCH = np.arange(N) % 2 == 0
LABELS = np.arange(N) // 2 % 3


def split(wrong: np.ndarray, **others: Any) -> SplitTask:
    predictions = np.where(wrong, (LABELS + 1) % 3, LABELS)
    evaluation = Evaluation(labels=LABELS, predictions=predictions, class_names=("a", "b", "c"), **others)
    return SplitTask(evaluation, SEARCH, Settings())


def outcome_slice(
    task: SplitTask, members: np.ndarray, approximation: np.ndarray | None = None, method: str = "reader", **rule: Any
) -> OutcomeSlice:
    own = SliceCandidate(method, 0, members.astype(float), 0.5, {"kind": "test", **rule})
    told = None
    if approximation is not None:
        told = replace(own, weights=approximation.astype(float))
    return OutcomeSlice(task, "", method, own, told)


def rows(*bounds: tuple[int, int]) -> np.ndarray:
    """Rows from a to b, of each pair."""
    inside = np.zeros(N, dtype=bool)
    for a, b in bounds:
        inside[a:b] = True
    return inside


WRONG = rows((0, 100), (600, 660))


def test_the_most_errors_come_first_with_their_mistakes_on_held_out_rows():
    task = split(WRONG)
    first, second = find_error_types([outcome_slice(task, rows((600, 660))), outcome_slice(task, rows((0, 100)))], [])
    assert (first.id, second.id) == ("e1", "e2")
    assert (first.n, first.errors) == (50, 50)
    assert sum(mistake.n for mistake in first.mistakes) == 50
    for mistake in first.mistakes:
        held_out = WRONG & ~SEARCH & rows((0, 100)) & (mistake.label == LABELS)
        assert mistake.n == held_out.sum()
        assert mistake.share == mistake.n / 50
        assert mistake.prediction == (mistake.label + 1) % 3
    mode = first.mistakes[0]
    assert mode.share < 0.5
    assert first.name == f"no short description: most often {'abc'[mode.label]} → {'abc'[mode.prediction]}"
    assert not first.is_one_mistake


def test_a_mistake_names_what_makes_it_in_half_of_its_errors():
    task = split(WRONG)
    parts = [outcome_slice(task, WRONG & (LABELS == 0) & part) for part in (rows((0, 100)), rows((600, 660)))]
    found = find_error_types(parts, [])
    assert [item.name for item in found] == ["a → b", "a → b"]  # told apart where they are explained
    assert all(item.is_one_mistake for item in found)


def test_few_errors_or_no_more_than_elsewhere_are_none():
    enough = rows((0, 2 * FEWEST_ERRORS))
    assert len(find_error_types([outcome_slice(split(enough), enough)], [])) == 1
    few = rows((0, 2 * FEWEST_ERRORS - 2))
    assert find_error_types([outcome_slice(split(few), few)], []) == ()
    everywhere = np.arange(N) // 2 % 10 == 0
    assert find_error_types([outcome_slice(split(everywhere), rows((0, 400)))], []) == ()


def test_the_rate_of_its_scope_is_what_counts():
    """All of label 0 is wrong half of the time: half of them, at the same rate, is no error type of its own."""
    wrong = (LABELS == 0) & (np.arange(N) // 6 % 2 == 0)
    members = (LABELS == 0) & rows((0, 1000))
    task = split(wrong)
    assert len(find_error_types([outcome_slice(task, members)], [])) == 1
    assert find_error_types([outcome_slice(task, members, scope={"label": 0})], []) == ()


def test_near_identical_ones_are_one_with_all_its_methods():
    task = split(WRONG)
    same = [outcome_slice(task, rows((0, 100)), method="one"), outcome_slice(task, rows((10, 100)), method="two")]
    (merged,) = find_error_types(same, [])
    assert merged.found_by == ("one", "two")
    assert merged.folded == 1
    assert merged.n == 50


def test_at_most_twenty():
    wrong = rows(*((80 * i, 80 * i + 20) for i in range(MOST_ERROR_TYPES + 4)))
    parts = [rows((80 * i, 80 * i + 20)) for i in range(MOST_ERROR_TYPES + 4)]
    task = split(wrong)
    assert len(find_error_types([outcome_slice(task, part) for part in parts], [])) == MOST_ERROR_TYPES


def test_held_out_outcomes_decide_nothing():
    """Other outcomes of held-out rows: the same error types, with other numbers."""
    task, other = split(WRONG), split(WRONG & SEARCH)
    given = [rows((0, 100)), rows((600, 660)), rows((1000, 1200))]
    before = find_error_types([outcome_slice(task, members) for members in given], [])
    after = find_error_types([outcome_slice(other, members) for members in given], [])
    assert len(before) == len(after) == 2
    for first, second in zip(before, after, strict=True):
        assert first.weights.tobytes() == second.weights.tobytes()
        assert second.errors == 0


@pytest.mark.parametrize(("overlap", "linked"), [(100, "s1"), (60, "s1"), (40, None)])
def test_it_points_at_the_slice_that_holds_the_rows_of_its_approximation(overlap, linked):
    task = split(WRONG)
    approximation = rows((0, 100))
    tested = Slice("s1", "reader", "", "confirmed", 0.5, {}, rows((0, overlap)).astype(float))
    (found,) = find_error_types([outcome_slice(task, rows((0, 100)), approximation)], [tested])
    assert found.slice == linked
    (alone,) = find_error_types([outcome_slice(task, rows((0, 100)))], [tested])
    assert alone.slice is None


def test_central_errors_are_wrong_held_out_members_by_weight_then_by_nearness():
    x = np.linspace(-1, 1, N)[:, None]
    task = split(WRONG, representations={"x": x})
    members = rows((0, 120))  # ten held-out rows of it are right
    found = outcome_slice(task, members)
    (plain,) = find_error_types([found], [])
    middle = x[members & ~SEARCH].mean()
    wrong = np.flatnonzero(members & WRONG & ~SEARCH)
    nearest = wrong[np.argsort(np.abs(x[wrong, 0] - middle), kind="stable")]
    assert plain.central == tuple(nearest[:6].tolist())
    weights = np.where(np.isin(np.arange(N), [5, 9]), 1.0, 0.9 * members)
    (graded,) = find_error_types([replace(found, own=replace(found.own, weights=weights))], [])
    assert set(graded.central[:2]) == {5, 9}


def test_losses_alone_have_no_mistakes():
    losses = np.where(WRONG, 5.0, 0.1)
    task = SplitTask(Evaluation(losses=losses), SEARCH, Settings(tolerance=1.0))
    (found,) = find_error_types([outcome_slice(task, rows((0, 100)))], [])
    assert (found.mistakes, found.errors, found.name) == ((), 50, "errors of reader")
