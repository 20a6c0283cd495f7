"""Neighbours that are right, and how alike members are: on rows whose places are known."""

from __future__ import annotations

import numpy as np
import pytest

from errata.core import Evaluation, Slice
from errata.explain.context import Context
from errata.explain.near import Near
from errata.explain.view import SliceView


def view(X: np.ndarray, inside: np.ndarray, wrong: np.ndarray, searched: np.ndarray | None = None) -> SliceView:
    labels = np.zeros(len(X), dtype=int)
    evaluation = Evaluation(labels=labels, predictions=wrong.astype(int), representations={"seen": X})
    searched = np.zeros(len(X), dtype=bool) if searched is None else searched
    found = Slice("s1", "gmm", "", "confirmed", 0.5, {"representation": "seen"}, inside.astype(float))
    return SliceView(found, evaluation, inside, ~inside, searched)


def blob(apart: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """100 members in one place, 300 others at a distance."""
    rng = np.random.default_rng(seed)
    inside = np.arange(400) < 100
    return rng.normal(size=(400, 3)) + np.where(inside, apart, 0.0)[:, None], inside


def test_members_far_from_all_others_are_wholly_alike_and_have_no_neighbour():
    X, inside = blob(50)
    told = Near.explain(view(X, inside, inside), Context(None, 0)).to_json()
    assert told["coherence"] == 1
    assert told["of"] == 0  # shown all the same, being the nearest there are
    assert len(told["rows"]) == 6


def test_members_at_random_are_no_more_alike_than_chance():
    X, _ = blob(0)
    inside = np.random.default_rng(1).random(400) < 0.25
    assert Near.explain(view(X, inside, inside), Context(None, 0)).to_json()["coherence"] == pytest.approx(0, abs=0.05)


def test_coherence_is_the_share_of_nearest_rows_beyond_chance():
    X, inside = blob(1.5)
    told = Near.explain(view(X, inside, inside), Context(None, 0)).to_json()
    D = np.linalg.norm(X[:, None] - X, axis=2)
    np.fill_diagonal(D, np.inf)
    share = inside[np.argsort(D[inside], axis=1)[:, :10]].mean()
    assert told["coherence"] == pytest.approx((share - 99 / 399) / (1 - 99 / 399), abs=1e-6)


def test_neighbours_are_right_outside_and_as_near_as_fellows():
    X, inside = blob(1.5)
    wrong = inside | (np.random.default_rng(2).random(400) < 0.3)
    told = Near.explain(view(X, inside, wrong), Context(None, 0)).to_json()
    D = np.linalg.norm(X[inside][:, None] - X, axis=2)
    fellow = np.median([np.sort(D[i][inside])[1] for i in range(100)])
    closest = D.min(axis=0)
    expected = np.flatnonzero(~inside & ~wrong & (closest <= fellow))
    assert told["of"] == len(expected) > 6
    pairs = sorted((D[i, j], i, j) for i in range(100) for j in np.flatnonzero(~inside & ~wrong))
    shown: list[tuple[int, int]] = []
    for _, i, j in pairs:
        if len(shown) < 6 and i not in {a for a, _ in shown} and j not in {b for _, b in shown}:
            shown.append((i, j))
    assert [(row["beside"]["row"], row["row"]) for row in told["rows"]] == shown


def test_a_right_row_has_the_label_of_the_mistake_beside_it_whatever_was_predicted():
    # Old faces (label 1) taken for young ones (0): the slice is among those predicted young, its contrast is not.
    X, inside = blob(1.5)
    labels = np.where(inside | (np.arange(400) % 2 == 0), 1, 0)
    predictions = np.where(inside, 0, labels)
    evaluation = Evaluation(
        labels=labels, predictions=predictions, class_names=("young", "old"), representations={"seen": X}
    )
    rule = {"representation": "seen", "scope": {"prediction": 0}}
    found = Slice("s1", "gmm", "", "confirmed", 0.5, rule, inside.astype(float))
    within = predictions == 0
    near = Near.explain(
        SliceView(found, evaluation, inside, within & ~inside, np.zeros(400, dtype=bool)), Context(None, 0)
    )
    assert len(near.rows) == 6
    assert near.total > 0
    for row in near.rows:
        assert (row.beside.label, row.beside.prediction, row.beside.wrong) == ("old", "young", True)
        assert (row.label, row.prediction, row.wrong) == ("old", "old", False)
    assert Near.from_json(near.to_json()) == near


def test_where_no_row_of_the_label_is_right_there_is_nothing_to_compare_with():
    X, inside = blob(1.5)
    labels = inside.astype(int)
    evaluation = Evaluation(labels=labels, predictions=np.zeros(400, int), representations={"seen": X})
    found = Slice("s1", "gmm", "", "confirmed", 0.5, {}, inside.astype(float))
    near = Near.explain(SliceView(found, evaluation, inside, ~inside, np.zeros(400, dtype=bool)), Context(None, 0))
    assert (near.total, near.rows) == (0, ())


def test_only_rows_that_nobody_searched_are_looked_at():
    X, inside = blob(1.5)
    searched = np.arange(400) % 2 == 0
    told = Near.explain(view(X, inside, inside, searched), Context(None, 0)).to_json()
    assert told["rows"]
    assert not any(searched[row["row"]] for row in told["rows"])


@pytest.mark.parametrize("members", [0, 1, 400])
def test_too_few_or_only_members_say_nothing(members):
    X, _ = blob(1)
    inside = np.arange(400) < members
    told = Near.explain(view(X, inside, inside), Context(None, 0)).to_json()
    assert (told["coherence"], told["rows"]) == (None, [])


def test_many_rows_are_sampled_by_the_seed():
    rng = np.random.default_rng(0)
    X, inside = rng.normal(size=(9000, 2)), np.arange(9000) < 900
    X[inside] += 2
    first, again, other = (Near.explain(view(X, inside, inside), Context(None, seed)).to_json() for seed in (0, 0, 1))
    assert first == again
    assert first["coherence"] == pytest.approx(other["coherence"], abs=0.1)
