"""Projected ascent climbs, and never leaves the ball nor the range of pixels."""

from __future__ import annotations

import pytest
import torch

from errata.core import InputError
from errata.tensors import Ball, ascend, distances, project_to_ball
from hypothesis import given, settings
from hypothesis import strategies as st

SHAPE = (3, 5, 4)


def pixels(n: int, seed: int = 0, extreme: bool = False) -> torch.Tensor:
    """In the middle of [0, 1], or at its ends."""
    drawn = torch.rand((n, *SHAPE), generator=torch.Generator().manual_seed(seed))
    return drawn.round() if extreme else 0.3 + 0.4 * drawn


def slope(n: int, seed: int = 1) -> torch.Tensor:
    return torch.randn((n, *SHAPE), generator=torch.Generator().manual_seed(seed))


@settings(max_examples=60, deadline=None)
@given(
    radius=st.floats(0, 20),
    steps=st.integers(1, 6),
    step=st.one_of(st.none(), st.floats(0.01, 50)),
    at_random=st.booleans(),
    extreme=st.booleans(),
)
def test_the_radius_and_the_range_hold(radius, steps, step, at_random, extreme):
    """Whatever the objective, the number of steps, and a step far longer than the radius."""
    start, along = pixels(4, extreme=extreme), slope(4)
    chance = torch.Generator().manual_seed(2) if at_random else None
    wavy = lambda x: (torch.sin(9 * x) * along).flatten(1).sum(dim=1)  # noqa: E731  # short
    found = ascend(wavy, start, Ball(radius, steps, step), chance)
    assert float(distances(found, start).max()) <= radius * (1 + 1e-5) + 1e-6
    assert float(found.min()) >= 0
    assert float(found.max()) <= 1


def test_a_linear_function_is_climbed_to_the_edge_of_the_ball():
    start, along = pixels(5), slope(5)
    found = ascend(lambda x: (x * along).flatten(1).sum(dim=1), start, Ball(0.2, steps=10))
    best = start + 0.2 * along / along.flatten(1).norm(dim=1).view(-1, 1, 1, 1)
    torch.testing.assert_close(found, best, atol=1e-5, rtol=0)


def test_steps_have_one_length_whatever_the_gradient():
    start, along = pixels(2), slope(2)
    for scale in (1e-6, 1e6):
        found = ascend(lambda x, scale=scale: scale * (x * along).flatten(1).sum(dim=1), start, Ball(9.0, 1, 0.05))
        assert distances(found, start).tolist() == pytest.approx([0.05, 0.05], rel=1e-3)


def test_the_step_is_two_and_a_half_radii_over_the_steps_where_none_is_given():
    assert Ball(0.4, 5).stride == pytest.approx(0.2)
    assert Ball(0.4, 5, 0.3).stride == 0.3


def test_rows_do_not_touch_each_other():
    start, along = pixels(4), slope(4)
    together = ascend(lambda x: ((x**2) * along).flatten(1).sum(dim=1), start, Ball(0.5, 4))
    alone = [
        ascend(lambda x, i=i: ((x**2) * along[i : i + 1]).flatten(1).sum(dim=1), start[i : i + 1], Ball(0.5, 4))
        for i in range(4)
    ]
    torch.testing.assert_close(together, torch.cat(alone), atol=1e-6, rtol=0)


def test_a_row_without_a_gradient_stays_where_it_is():
    start = pixels(2)
    weight = torch.tensor([0.0, 1.0]).view(-1, 1, 1, 1)
    found = ascend(lambda x: (weight * x).flatten(1).sum(dim=1), start, Ball(0.5))
    assert torch.equal(found[0], start[0])
    assert float(distances(found, start)[1]) == pytest.approx(0.5, rel=1e-4)


def test_the_random_start_fills_the_ball_and_follows_its_seed():
    start = torch.full((4000, 1, 1, 2), 0.5)
    flat = lambda x: 0 * x.flatten(1).sum(dim=1)  # noqa: E731  # nothing to climb: the start is what is left
    one, same, other = (ascend(flat, start, Ball(0.4, 1), torch.Generator().manual_seed(s)) for s in (3, 3, 4))
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    share = (distances(one, start) / 0.4) ** 2  # of the ball's volume that lies further in: uniform
    assert float(share.mean()) == pytest.approx(0.5, abs=0.02)
    assert float((share < 0.25).float().mean()) == pytest.approx(0.25, abs=0.03)
    assert float((one - start).mean()) == pytest.approx(0, abs=0.01)


def test_nothing_is_left_on_the_graph_and_the_start_is_untouched():
    start = pixels(2)
    before = start.clone()
    with torch.no_grad():
        found = ascend(lambda x: x.flatten(1).sum(dim=1), start, Ball(0.1))
    assert torch.equal(start, before)
    assert not found.requires_grad
    assert not start.requires_grad


def test_points_inside_are_left_alone():
    start = pixels(3)
    near = (start + 0.01).clamp(0, 1)
    torch.testing.assert_close(project_to_ball(near, start, 1.0), near)


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"radius": -1.0}, "`radius` must be a length from 0 on"),
        ({"radius": float("nan")}, "`radius` must be a length"),
        ({"radius": 1.0, "steps": 0}, "`steps` must be an integer of at least 1; got 0"),
        ({"radius": 1.0, "step": 0.0}, "`step` must be a length above 0"),
    ],
)
def test_bad_balls_are_one_sentence(given, words):
    with pytest.raises(InputError, match=words):
        Ball(**given)
