"""k-means by its definition, and what may be asked of any clusterer."""

import numpy as np
import pytest

from errata.core import InputError
from errata.slicers.infembed.clusters import NOISE, clusters_of, follow, lloyd, nearest_centre, unit


def by_definition(X, k, steps, seed):
    """k-means with centroids of length one, a row and a centroid at a time."""
    centres = [
        X[i] / np.linalg.norm(X[i]) for i in np.sort(np.random.default_rng(seed).choice(len(X), k, replace=False))
    ]
    for _ in range(steps):
        best = [max(range(k), key=lambda j: x @ centres[j]) for x in X]
        for j in range(k):
            mine = [x for x, own in zip(X, best, strict=True) if own == j]
            assert mine  # an empty one is another test
            mean = np.mean(mine, axis=0)
            centres[j] = mean / np.linalg.norm(mean)
    return np.array(centres)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("steps", [1, 2, 40])
def test_normalised_k_means_is_its_definition(seed, steps):
    X = np.random.default_rng(seed).standard_normal((60, 3)) * np.random.default_rng(9).exponential(2, (60, 1))
    found = lloyd(X, 4, spherical=True, steps=steps, seed=seed)
    np.testing.assert_allclose(found, by_definition(X, 4, steps, seed), atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(found, axis=1), 1)


def test_large_rows_steer_a_centroid_and_lengths_do_not_matter_for_where_a_row_goes():
    X = np.array([[10.0, 0], [1, 1], [-1, 0.1], [-1, -0.1]])
    near = lloyd(X, 2, spherical=True, steps=50, seed=1)
    right = near[near[:, 0].argmax()]
    np.testing.assert_allclose(right, np.array([11, 1]) / np.hypot(11, 1))
    rows = np.random.default_rng(0).standard_normal((50, 2))
    scales = np.random.default_rng(1).exponential(3, (50, 1))
    own, fit = nearest_centre(rows, near, spherical=True)
    assert np.array_equal(own, nearest_centre(rows * scales, near, spherical=True)[0])
    np.testing.assert_allclose(fit, (rows @ near.T).max(axis=1))


def test_nearest_is_by_distance_where_centroids_are_not_normalised():
    rng = np.random.default_rng(0)
    X, centres = rng.standard_normal((80, 4)), 2 * rng.standard_normal((5, 4))
    distances = ((X[:, None] - centres) ** 2).sum(axis=2)
    own, fit = nearest_centre(X, centres, spherical=False)
    assert np.array_equal(own, distances.argmin(axis=1))
    np.testing.assert_allclose(fit, 0.5 * ((X**2).sum(axis=1) - distances.min(axis=1)), atol=1e-12)


@pytest.mark.parametrize("spherical", [True, False])
def test_no_centroid_is_empty(spherical):
    rng = np.random.default_rng(0)
    for X in (np.ones((30, 3)), np.zeros((30, 3)), np.repeat(rng.standard_normal((2, 3)), 15, axis=0), X_of(rng)):
        for k in (1, 4, 100):
            centres = lloyd(X, k, spherical=spherical, steps=20, seed=0)
            assert len(np.unique(nearest_centre(X, centres, spherical=spherical)[0])) == len(centres) <= min(k, len(X))
            assert np.isfinite(centres).all()
    assert len(lloyd(X_of(rng), 9, spherical=spherical, steps=20, seed=0)) == 9  # an empty one is filled


def X_of(rng):
    """Most rows in one place: many starts coincide."""
    return np.concatenate([np.tile([5.0, 0, 0], (40, 1)), 3 * rng.standard_normal((20, 3))])


def test_unit_rows_and_the_nearest_known_row():
    assert unit(np.array([[3.0, 4.0], [0.0, 0.0]])).tolist() == [[0.6, 0.8], [0.0, 0.0]]
    known, clusters = np.array([[0.0], [10.0]]), np.array([4, NOISE])
    assert follow(np.array([[1.0], [6.0], [4.0]]), known, clusters).tolist() == [4, NOISE, 4]


class Answers:
    def __init__(self, answer):
        self.answer = answer

    def fit_predict(self, X):
        return self.answer


def test_answers_of_a_clusterer_that_are_none():
    for answer, words in ((np.zeros(3), r"shape \(5,\); got \(3,\)"), (["a"] * 5, "must number the clusters")):
        with pytest.raises(InputError, match=words):
            clusters_of(np.ones((5, 2)), np.ones(5), Answers(answer), count=2, radius=None, min_samples=1, seed=0)
