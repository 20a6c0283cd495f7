"""How far generated mistakes lie from known ones, against every pair by itself."""

from __future__ import annotations

import numpy as np
import pytest

from errata.core import InputError
from errata.defuse import novelty as room
from errata.defuse.novelty import novelty


def pictures(n: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(256, size=(n, 5, 4, 3), dtype=np.uint8)


def between(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """(n, m) of every pair, of pixels in [0, 1]."""
    flat = [one.reshape(len(one), -1) / 255 for one in (a, b)]
    return np.linalg.norm(flat[0][:, None] - flat[1][None], axis=2)


@pytest.mark.parametrize("block", [1, 20, 10**6])
def test_distances_are_those_of_every_pair(block, monkeypatch):
    """Whatever is compared at once."""
    monkeypatch.setattr(room, "BLOCK", block)
    made, known = pictures(9, 0), pictures(7, 1)
    found, every = novelty(made, known), between(made, known)
    np.testing.assert_array_equal(found.nearest, every.argmin(axis=1))
    np.testing.assert_allclose(found.distances, every.min(axis=1), rtol=1e-5)
    own = between(known, known)
    np.fill_diagonal(own, np.inf)
    np.testing.assert_allclose(found.usual, own.min(axis=1), rtol=1e-5)
    assert found.farther == (every.min(axis=1) > np.median(own.min(axis=1))).mean()


def test_what_is_known_already_is_not_new():
    """Bright pictures, whose squares are large: the difference must not drown in them."""
    known = np.full((3, 40, 40, 3), 255, np.uint8)
    known[1, 0, 0], known[2, 0, 1] = 254, 250
    found = novelty(known[::-1], known)
    assert found.nearest.tolist() == [2, 1, 0]
    assert found.distances.tolist() == [0, 0, 0]
    np.testing.assert_allclose(found.usual[:2], 3**0.5 / 255, rtol=1e-4)
    assert found.farther == 0.0


def test_as_far_as_usual_is_not_farther():
    """Three steps apart, and one is generated in the same distance."""
    dark = np.zeros((4, 1, 1, 3), np.uint8)
    dark[1], dark[2], dark[3] = 10, 20, 30
    found = novelty(dark[3:], dark[:3])
    assert found.distances.tolist() == found.usual[:1].tolist()
    assert found.farther == 0.0


def test_equal_known_mistakes_are_next_to_each_other():
    found = novelty(pictures(4, 0), np.concatenate([pictures(1, 1)] * 2))
    assert found.usual.tolist() == [0, 0]
    assert found.farther == 1.0


def test_without_known_mistakes_all_is_infinitely_new():
    found = novelty(pictures(4, 0), pictures(0, 0))
    assert found.distances.tolist() == [np.inf] * 4
    assert found.usual.shape == (0,)
    assert found.farther is None


def test_one_known_mistake_has_no_usual_distance():
    made, known = pictures(4, 0), pictures(1, 1)
    found = novelty(made, known)
    assert found.nearest.tolist() == [0] * 4
    np.testing.assert_allclose(found.distances, between(made, known)[:, 0], rtol=1e-5)
    assert found.usual.shape == (0,)
    assert found.farther is None


def test_nothing_generated_is_no_share():
    found = novelty(pictures(0, 0), pictures(3, 1))
    assert found.distances.shape == (0,)
    assert found.usual.shape == (3,)
    assert found.farther is None


def test_pictures_of_two_sizes_are_refused():
    with pytest.raises(InputError, match=r"must have one size; got \(5, 4, 3\) and \(4, 5, 3\)"):
        novelty(pictures(2, 0), pictures(2, 1).reshape(2, 4, 5, 3))
