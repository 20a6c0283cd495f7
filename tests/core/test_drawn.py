"""The exact test of a picked group's values, against counts of all draws, Fisher's test and draws at random."""

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from errata.core.drawn import comparisons, corrected_p_values, draw_p_values, least_p_values


def test_p_values_by_counting_every_draw():
    """Of 9 rows, 4 have the value; 3 are picked."""
    has = np.arange(9) < 4
    hits = np.array([has[list(picked)].sum() for picked in combinations(range(9), 3)])
    for k in range(4):
        by_hand = min(1, 2 * min((hits <= k).mean(), (hits >= k).mean()))
        assert draw_p_values(np.array([k]), 3, np.array([4]), 9)[0] == pytest.approx(by_hand)


def test_p_values_are_twice_fishers_smaller_side():
    for hits, drawn, carriers, total in ((2, 50, 300, 1000), (30, 50, 300, 1000), (50, 50, 800, 1000)):
        table = [[hits, drawn - hits], [carriers - hits, total - drawn - carriers + hits]]
        sides = [stats.fisher_exact(table, alternative=side).pvalue for side in ("less", "greater")]
        found = draw_p_values(np.array([hits]), drawn, np.array([carriers]), total)[0]
        assert found == pytest.approx(min(1, 2 * min(sides)))


def test_no_draw_has_a_smaller_p_value_than_the_least():
    carriers = np.array([1, 3, 40, 99])
    least = least_p_values(10, carriers, 100)
    for j, count in enumerate(carriers):
        possible = np.arange(max(0, 10 + count - 100), min(10, count) + 1)
        found = draw_p_values(possible, 10, np.full(len(possible), count), 100)
        assert least[j] == pytest.approx(found.min())


@pytest.mark.parametrize(
    ("least", "count"),
    [
        ([], 1),
        ([0.9] * 50, 1),  # nothing can be told, so nothing is corrected for
        ([1e-9] * 4, 4),  # all can: Bonferroni
        ([1e-9, 1e-9, 0.02, 0.02, 0.9], 3),  # of four that can at .05, two cannot at .05 / 3
    ],
)
def test_only_comparisons_that_could_be_told_count(least, count):
    assert comparisons(np.array(least), 0.05) == count


def test_p_values_are_corrected_over_all_picks_and_those_that_cannot_be_told_are_one():
    carriers = np.array([1, 300, 300])
    hits = np.array([[1, 30, 15], [0, 10, 16]])
    p_values, testable = corrected_p_values(hits, [50, 50], carriers, 1000, 0.05)
    assert testable.tolist() == [[False, True, True]] * 2
    plain = draw_p_values(hits[0], 50, carriers, 1000)
    np.testing.assert_allclose(p_values[0], [1, 4 * plain[1], 1])
    np.testing.assert_allclose(p_values[1], [1, min(1, 4 * draw_p_values(hits[1], 50, carriers, 1000)[1]), 1])
