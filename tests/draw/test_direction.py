"""From a caption to a direction: by hand, by what must hold, and with a direction that was fitted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import errata
from errata.core import Evaluation, InputError, Source
from errata.draw import normal_of, slerp, walk
from hypothesis import given
from hypothesis import strategies as st

X, Y, Z = np.eye(3)


def test_slerp_by_hand():
    np.testing.assert_allclose(slerp(X, Y, 0.5), (X + Y) / 2**0.5)
    np.testing.assert_allclose(slerp(X, Y, 1 / 3), [3**0.5 / 2, 0.5, 0])  # 30 of 90 degrees
    # The angle is 60 degrees, and half of it 30: (sin 30 x + sin 30 v) / sin 60.
    other = np.array([0.5, 3**0.5 / 2, 0])
    np.testing.assert_allclose(slerp(X, other, 0.5), [3**0.5 / 2, 0.5, 0])
    # More than a right angle: 120 degrees, a quarter of them 30.
    np.testing.assert_allclose(slerp(X, np.array([-0.5, 0, 3**0.5 / 2]), 0.25), [3**0.5 / 2, 0, 0.5])


def test_lengths_do_not_matter_and_the_ends_are_the_ends():
    a, b = np.array([1.0, 2, 2]), np.array([0.0, 3, -4])
    np.testing.assert_allclose(slerp(a, b, 0), a / 3)
    np.testing.assert_allclose(slerp(a, b, 1), b / 5, atol=1e-15)
    np.testing.assert_allclose(slerp(a, b, 0.3), slerp(7 * a, 0.1 * b, 0.3))


vectors = st.lists(st.floats(-3, 3), min_size=4, max_size=4).map(np.array).filter(lambda v: np.linalg.norm(v) > 0.1)


@given(vectors, vectors, st.floats(0, 1))
def test_slerp_turns_by_a_share_of_the_angle(a, b, alpha):
    cosine = a @ b / np.linalg.norm(a) / np.linalg.norm(b)
    if cosine < -0.999:
        return
    turned, angle = slerp(a, b, alpha), np.arccos(np.clip(cosine, -1, 1))
    assert np.linalg.norm(turned) == pytest.approx(1)
    assert turned @ a / np.linalg.norm(a) == pytest.approx(np.cos(alpha * angle), abs=1e-6)
    assert turned @ b / np.linalg.norm(b) == pytest.approx(np.cos((1 - alpha) * angle), abs=1e-6)
    np.testing.assert_allclose(turned, slerp(b, a, 1 - alpha), atol=1e-6)


def test_parallel_vectors_stay_where_they_are_and_nearly_parallel_ones_are_exact():
    np.testing.assert_allclose(slerp(X, 4 * X, 0.3), X)
    for angle in (1e-4, 1e-7, 1e-11):
        turned = slerp(X, np.cos(angle) * X + np.sin(angle) * Y, 0.5)
        np.testing.assert_allclose(turned, [1, angle / 2, 0], atol=1e-11)


@pytest.mark.parametrize(
    ("reference", "direction", "alpha", "words"),
    [
        (X, -2 * X, 0.1, "`direction` is the opposite of `reference`"),
        (np.zeros(3), X, 0.1, "`reference` is all zeros and points nowhere"),
        (X, np.zeros(3), 0.1, "`direction` is all zeros and points nowhere"),
        (X, np.array([1, np.nan, 0]), 0.1, "`direction` has NaN or infinity"),
        (X, np.ones(4), 0.1, "`direction` has 4 columns where `reference` has 3; take both from the same space"),
        (X[None], Y, 0.1, r"`reference` must be one embedding, shape \(d,\); got shape \(1, 3\)"),
        (X, Y, 1.1, "`alpha` must be from 0 to 1, a share of the angle; got 1.1"),
        (X, Y, -0.1, "`alpha` must be from 0 to 1"),
        (X, Y, float("nan"), "`alpha` must be from 0 to 1"),
    ],
)
def test_what_cannot_be_turned_is_refused(reference, direction, alpha, words):
    with pytest.raises(InputError, match=words):
        slerp(reference, direction, alpha)


def test_a_walk_goes_to_the_hard_side_which_is_minus_the_normal():
    np.testing.assert_allclose(walk(X, Y, (0, 1 / 3, 1)), [X, [3**0.5 / 2, -0.5, 0], -Y], atol=1e-15)
    np.testing.assert_allclose(walk(X, Y, (0, 1 / 3, 1), side="easy"), [X, [3**0.5 / 2, 0.5, 0], Y], atol=1e-15)
    np.testing.assert_allclose(walk(X, Y), [[np.cos(np.pi / 20), -np.sin(np.pi / 20), 0]])  # .1 of a right angle


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"side": "wrong"}, '`side` must be "hard" or "easy"; got \'wrong\''),
        ({"alphas": ()}, "`alphas` must be a list of shares, at least one"),
        ({"alphas": 0.1}, r"`alphas` must be a list of shares, at least one; got shape \(\)"),
        ({"alphas": (0.1, 2)}, "`alpha` must be from 0 to 1, a share of the angle; got 2.0"),
    ],
)
def test_bad_walks_are_refused(more, words):
    with pytest.raises(InputError, match=words):
        walk(X, Y, **more)


# --- a fitted direction ----------------------------------------------------------------------------------------

HARD = np.eye(6)[2]  # errors lie along this column


def audited(**options: Any) -> Any:
    """Rows far from the origin, columns of several spreads; those with much of the third column are got wrong."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(900, 6)) * [1, 4, 1, 1, 0.2, 1] + [3, 0, 0, 0, 0, 0]
    labels = rng.integers(0, 2, 900)
    wrong = rng.random(900) < np.where(rows[:, 2] > 0.8, 0.9, 0.02)
    evaluation = Evaluation(
        labels=labels, predictions=np.where(wrong, 1 - labels, labels), representations={"clip": rows},
        sources={"clip": Source(from_model=False)},
    )  # fmt: skip
    given = {"permutations": 2, **options}
    return errata.audit(evaluation, methods=["directions"], options={"directions": given})


def test_a_direction_fitted_in_the_space_itself_points_from_hard_to_easy():
    audit = audited(standardise=False)
    for found in audit.slices:
        normal = normal_of(audit, found)
        assert np.linalg.norm(normal) == pytest.approx(1)
        assert normal @ HARD < -0.9
        assert walk(np.eye(6)[0], normal, (0.2,))[0] @ HARD > 0.2
    columns = [found.column for found in audit.slices]
    np.testing.assert_array_equal(
        np.stack([normal_of(audit, found) for found in audit.slices]),
        audit.slicers[audit.slices[0].slicer].directions_[columns],
    )
    assert len(set(columns)) == 2


def test_a_standardised_direction_and_a_slice_without_one_are_refused():
    audit = audited()
    found = audit.slices[0]
    with pytest.raises(InputError, match=rf"slice `{found.id}` was fitted to standardised columns.* standardise=False"):
        normal_of(audit, found)
    ball = replace(found, rule={"kind": "ball"})
    with pytest.raises(InputError, match=rf"slice `{found.id}` is no side of a direction .* 'ball'"):
        normal_of(audit, ball)
