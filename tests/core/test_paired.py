"""The change of paired rows: against hand counts, scipy's exact tests, and simulated coverage."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from errata.core.paired import OutcomeChanges, binomial_interval, change_interval, count_changes


def test_rows_that_turned_are_counted():
    before, after = np.array([1, 1, 1, 0, 0, 1, 0]), np.array([0, 0, 1, 1, 0, 1, 0])
    seen = count_changes(before, after)
    assert (seen.n, seen.fixed, seen.broken) == (7, 2, 1)
    assert seen.change == pytest.approx(-1 / 7)
    assert seen.change == pytest.approx(after.mean() - before.mean())


@pytest.mark.parametrize(("k", "n"), [(0, 10), (3, 10), (10, 10), (1, 400)])
def test_the_binomial_interval_is_clopper_and_pearsons(k, n):
    exact = stats.binomtest(k, n).proportion_ci(0.95, method="exact")
    assert binomial_interval(k, n, 0.025) == pytest.approx((exact.low, exact.high))


def test_the_sign_is_mcnemars():
    """The interval leaves 0 out just where the exact test of the turned rows, at nine tenths of the level, does."""
    for fixed in range(0, 30):
        for broken in range(0, 12):
            low, high = change_interval(OutcomeChanges(500, fixed, broken), 0.02)
            p = stats.binomtest(fixed, fixed + broken, alternative="greater").pvalue if fixed + broken else 1.0
            assert (high < 0) == (p <= 0.018), (fixed, broken)
            assert low <= (broken - fixed) / 500 <= high


def test_both_sides_are_mirrored():
    low, high = change_interval(OutcomeChanges(200, 31, 9), 0.01)
    assert change_interval(OutcomeChanges(200, 9, 31), 0.01) == pytest.approx((-high, -low))


@pytest.mark.parametrize("rates", [(0.10, 0.02), (0.02, 0.02), (0.30, 0.01), (0.004, 0.0)])
@pytest.mark.parametrize("level", [0.05, 0.005])
def test_no_side_misses_more_often_than_it_says(rates, level):
    rng, n, draws = np.random.default_rng(7), 150, 4000
    counts = rng.multinomial(n, [*rates, 1 - sum(rates)], size=draws)
    true = rates[1] - rates[0]
    ends = np.array([change_interval(OutcomeChanges(n, f, b), level) for f, b, _ in counts])
    slack = 3 * np.sqrt(level / draws)
    assert (ends[:, 0] > true).mean() <= level + slack
    assert (ends[:, 1] < true).mean() <= level + slack


def test_the_interval_narrows_with_rows():
    widths = [np.diff(change_interval(OutcomeChanges(n, 0.1 * n, 0.02 * n), 0.025))[0] for n in (100, 1000, 10_000)]
    assert widths[0] > 2 * widths[1] > 4 * widths[2]
    assert widths[2] < 0.025  # 0.014 where the normal distribution is trusted


def test_rows_of_one_group_are_not_many():
    """Every patient's twenty rows turn together: the interval is that of the patients."""
    rng = np.random.default_rng(0)
    kind = rng.choice(3, p=[0.3, 0.1, 0.6], size=50)  # fixed, broken, neither
    before, after = np.repeat(kind == 0, 20).astype(int), np.repeat(kind == 1, 20).astype(int)
    groups = np.repeat(np.arange(50), 20)
    alone = change_interval(count_changes(before[::20], after[::20]), 0.025)
    together = change_interval(count_changes(before, after, groups), 0.025)
    careless = change_interval(count_changes(before, after), 0.025)
    assert np.diff(together)[0] > 0.9 * np.diff(alone)[0]
    assert np.diff(careless)[0] < 0.5 * np.diff(alone)[0]


def test_no_rows_say_nothing():
    assert change_interval(count_changes(np.empty(0), np.empty(0)), 0.05) == (-1, 1)
    low, high = change_interval(OutcomeChanges(1000, 0, 0), 0.05)
    assert -0.01 < low < 0 < high < 0.01
