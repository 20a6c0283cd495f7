"""The gap test against Fisher, against integrals done another way, and against simulated slices."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats

from errata.core import gaps
from errata.core.gaps import Counts, interval, p_gap

# m, rows of the rest, rate of the rest, margin: the four rows of the table of sizes.
SIZES = [(20, 1000, 0.02, 0.0), (50, 2500, 0.10, 0.05), (200, 400, 0.10, 0.05), (500, 500, 0.30, 0.05)]

# 80% power at 15 slices: reference rate and margin -> gap -> confirm rows needed.
NEEDED = {
    (0.02, 0.01): {0.10: 94, 0.15: 52, 0.20: 35, 0.30: 16, 0.40: 12, 0.60: 6},
    (0.05, 0.025): {0.10: 228, 0.15: 94, 0.20: 53, 0.30: 25, 0.40: 16, 0.60: 7},
    (0.10, 0.05): {0.10: 816, 0.15: 212, 0.20: 98, 0.30: 41, 0.40: 24, 0.60: 10},
    (0.25, 0.05): {0.10: 1338, 0.15: 310, 0.20: 142, 0.30: 52, 0.40: 28, 0.60: 12},
}
LEVEL = 0.05 / 15


def _random_counts(rng, cases):
    """Slices with some errors, of many sizes and rates."""
    for _ in range(cases):
        m, n = int(rng.integers(5, 400)), int(rng.integers(20, 4000))
        wrong = int(rng.binomial(n, rng.uniform(0.01, 0.6)))
        k = int(rng.binomial(m, min(1, wrong / n + rng.uniform(-0.1, 0.4)) if wrong / n > 0.1 else rng.uniform(0, 0.5)))
        yield Counts(m, k, wrong / n, n)


def _draws(rng, m, rest, b, true_gap, draws):
    """Counts of simulated slices, each pair once, and the share of draws it stands for."""
    pairs = np.stack([rng.binomial(m, b + true_gap, draws), rng.binomial(rest, b, draws)], axis=1)
    unique, times = np.unique(pairs, axis=0, return_counts=True)
    return [Counts(m, int(k), z / rest, rest) for k, z in unique], times / draws


def test_without_a_margin_it_is_fishers_exact_test():
    rng = np.random.default_rng(0)
    compared = 0
    while compared < 300:
        m, n = (int(v) for v in rng.integers(3, 600, 2))
        k, wrong = int(rng.binomial(m, rng.uniform(0, 0.9))), int(rng.binomial(n, rng.uniform(0, 0.9)))
        exact = stats.fisher_exact([[k, m - k], [wrong, n - wrong]], alternative="greater").pvalue
        if exact <= 1e-8:
            continue
        assert p_gap(Counts(m, k, wrong / n, n)) == pytest.approx(exact, rel=0.01)
        compared += 1


@pytest.mark.parametrize(("m", "rest", "b", "margin"), SIZES)
def test_it_rejects_no_oftener_than_its_level_says(m, rest, b, margin):
    counts, shares = _draws(np.random.default_rng(1), m, rest, b, margin, 100_000)
    p_values = np.array([p_gap(c, margin) for c in counts])
    rejected = {level: shares[p_values <= level].sum() for level in (0.05, 0.005)}
    assert rejected[0.05] <= 1.05 * 0.05
    assert rejected[0.005] <= 1.05 * 0.005
    assert rejected[0.05] >= 0.3 * 0.05  # a test that never rejects has the right size too


def test_the_far_tail_agrees_with_an_integral_done_another_way():
    rng = np.random.default_rng(2)
    p_values = []
    vague = [Counts(2000, 1000, 0.1, 30), Counts(500, 450, 0.02, 50)]  # the reference's own tail decides
    for counts in [*_random_counts(rng, 40), *vague]:
        margin = float(rng.uniform(0, 0.1))
        reference = stats.beta(counts.b * counts.nref + 1, (1 - counts.b) * counts.nref)

        def risk(x, counts=counts, margin=margin, reference=reference):
            return reference.pdf(x) * stats.binom.sf(counts.k - 1, counts.m, min(1.0, x + margin))

        edges = [0.0, *reference.ppf([1e-9, 0.01, 0.5, 0.99, 1 - 1e-6]), reference.isf(1e-10), reference.isf(1e-13)]
        parts = [integrate.quad(risk, a, b, epsabs=0, epsrel=1e-9, limit=200)[0] for a, b in pairwise(edges)]
        exact = sum(parts) if counts.k else 1.0
        p_values.append(exact)
        assert p_gap(counts, margin) == pytest.approx(exact, rel=1e-4, abs=1e-11)
    assert min(p_values) < 1e-4  # the tail was visited


def test_fractional_counts_lie_between_their_whole_neighbours():
    whole = [p_gap(Counts(m, k, 0.1, 500), 0.05) for m, k in ((40, 10), (40, 11), (41, 10))]
    assert whole[1] < p_gap(Counts(40, 10.5, 0.1, 500), 0.05) < whole[0]
    assert whole[0] < p_gap(Counts(40.5, 10, 0.1, 500), 0.05) < whole[2]


def test_no_errors_are_no_evidence():
    assert p_gap(Counts(50, 0, 0.1, 1000)) == 1.0
    assert p_gap(Counts(50, 0, 0.0, 1000), 0.05) == 1.0


def test_the_p_value_passes_exactly_where_the_interval_does():
    rng = np.random.default_rng(3)
    passed = 0
    for counts in _random_counts(rng, 200):
        margin, level = float(rng.uniform(0, 0.1)), float(10 ** rng.uniform(-4, -1))
        low, high = interval(counts, level)
        passes = p_gap(counts, margin) <= level
        assert passes == (low >= margin) or abs(low - margin) < 1e-3
        assert low <= counts.gap <= high
        passed += passes
    assert 20 < passed < 180  # both answers were tried


@pytest.mark.parametrize(("m", "rest", "b", "gap"), [(50, 1000, 0.1, 0.2), (30, 200, 0.3, 0.0), (200, 400, 0.05, 0.1)])
def test_intervals_hold_the_true_gap(m, rest, b, gap):
    counts, shares = _draws(np.random.default_rng(4), m, rest, b, gap, 3_000)
    ends = np.array([interval(c, 0.05) for c in counts])
    below, above = shares[ends[:, 0] > gap].sum(), shares[ends[:, 1] < gap].sum()
    error = 3 * np.sqrt(0.05 * 0.95 / 3_000)
    assert below <= 0.05 + error
    assert above <= 0.05 + error
    assert below + above > 0.01  # and are no wider than they need be


@pytest.mark.parametrize(("m", "k"), [(12, 12), (50, 10)])
def test_nothing_is_worse_than_a_reference_that_is_always_wrong(m, k):
    assert stats.fisher_exact([[k, m - k], [200, 0]], alternative="greater").pvalue == 1
    assert p_gap(Counts(m, k, 1.0, 200)) == pytest.approx(1, rel=0.01)


@pytest.mark.parametrize(("b", "nref"), [(0.9, 1), (0.9, 1.5), (0.9999, 1000), (0.99999, 200)])
def test_the_reference_loses_no_mass_close_to_one(b, nref):
    """A slice that is all right but for one row: p is 1 but for the reference's share below 1/m or so."""
    assert p_gap(Counts(50, 1, b, nref)) == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize(
    ("b", "all_wrong"),
    [
        *[(b, wrong) for b in (0.02, 0.3, 0.9) for wrong in (True, False)],
        (0.0, True),
        (1.0, False),
        (1.0, True),
        (0.0, False),
    ],
)
def test_a_slice_of_one_outcome_keeps_to_what_the_reference_allows(b, all_wrong):
    m, rest = 12, 400
    low, high = interval(Counts(m, m if all_wrong else 0, b, rest), 0.01)
    highest_b = stats.beta.isf(0.01, b * rest + 1, max((1 - b) * rest, 1e-9))
    lowest_b = stats.beta.ppf(0.01, max(b * rest, 1e-9), (1 - b) * rest + 1)
    assert -highest_b - 1e-9 <= low <= high <= 1 - lowest_b + 1e-9
    if all_wrong:
        assert high == pytest.approx(1 - lowest_b)
    else:
        assert low == pytest.approx(-highest_b)


def test_the_other_side_is_the_same_test_turned_round():
    counts = Counts(40, 13, 0.2, 300)
    low, high = interval(counts, 0.02)
    mirrored_low, mirrored_high = interval(counts.mirrored(), 0.02)
    assert (mirrored_low, mirrored_high) == pytest.approx((-high, -low), abs=1e-6)
    assert counts.mirrored().gap == pytest.approx(-counts.gap)


@pytest.mark.parametrize("shape", NEEDED)
def test_rows_needed_are_those_of_the_table(shape):
    b, delta = shape
    for gap, rows in NEEDED[shape].items():
        ours = gaps.rows_needed(b, 5000, delta, LEVEL, gap)
        assert abs(ours - rows) <= max(3, 0.1 * rows), (b, gap)


def test_rows_needed_are_enough_and_one_fewer_are_not():
    shape = (5000, 0.05, LEVEL)
    rows = gaps.rows_needed(0.1, *shape, 0.2)
    assert all(gaps.power(m, 0.1, *shape, 0.2) >= 0.8 for m in range(rows, rows + 10))
    assert gaps.power(rows - 1, 0.1, *shape, 0.2) < 0.8


def test_rows_needed_are_none_where_no_slice_could_show_it():
    assert gaps.rows_needed(0.9, 5000, 0.05, LEVEL, 0.2) is None  # 110% errors
    assert gaps.rows_needed(0.3, 20, 0.05, LEVEL, 0.1) is None  # the reference itself is too vague


@pytest.mark.parametrize(
    ("m", "b", "delta", "gap"), [(40, 0.1, 0.05, 0.3), (100, 0.02, 0.01, 0.1), (60, 0.3, 0.05, 0.2)]
)
def test_power_is_how_often_a_true_slice_passes(m, b, delta, gap):
    draws, nref = 20_000, 5000
    errors = np.random.default_rng(5).binomial(m, b + gap, draws)
    passes = np.array([p_gap(Counts(m, k, b, nref), delta) <= LEVEL for k in range(m + 1)])
    share = gaps.power(m, b, nref, delta, LEVEL, gap)
    assert 0.05 < share < 0.999
    assert passes[errors].mean() == pytest.approx(share, abs=4 * np.sqrt(share * (1 - share) / draws))


def test_power_is_nothing_where_even_all_wrong_would_not_pass():
    assert gaps.critical_errors(2, 0.3, 1000, 0.05, LEVEL) == np.inf
    assert gaps.power(2, 0.3, 1000, 0.05, LEVEL, 0.6) == 0
    assert gaps.visible_gap(2, 0.3, 1000, 0.05, LEVEL) is None


@pytest.mark.parametrize(("m", "b", "delta"), [(30, 0.1, 0.05), (200, 0.02, 0.01), (80.5, 0.3, 0.05)])
def test_the_visible_gap_is_the_one_with_80_percent_power(m, b, delta):
    shape = (m, b, 2000, delta, LEVEL)
    gap = gaps.visible_gap(*shape)
    assert gaps.power(*shape, gap) == pytest.approx(0.8, abs=1e-6)
    assert gaps.power(*shape, gap - 0.01) < 0.8 < gaps.power(*shape, gap + 0.01)


def test_the_target_gap_is_twenty_points_or_twice_the_margin():
    assert gaps.target_gap(0.05) == 0.20
    assert gaps.target_gap(0.15) == 0.30


@pytest.mark.parametrize(
    "p_values",
    [
        [0.01, 0.02, 0.03, 0.5],
        [0.04, 0.04, 0.04],
        [1.0, 1.0],
        [0.2],
        [0.5, 0.001, 0.5, 0.04, 1.0],
        np.linspace(0, 1, 50),
    ],
)
def test_q_values_are_those_of_benjamini_and_hochberg(p_values):
    assert gaps.benjamini_hochberg(np.array(p_values)) == pytest.approx(stats.false_discovery_control(p_values))


def test_q_values_of_random_families_keep_their_places():
    rng = np.random.default_rng(6)
    for s in rng.integers(1, 60, 50):
        p_values = rng.choice([rng.random(s) ** 3, np.round(rng.random(s), 1)])
        assert gaps.benjamini_hochberg(p_values) == pytest.approx(stats.false_discovery_control(p_values))


def test_no_slices_have_no_q_values():
    assert len(gaps.benjamini_hochberg(np.array([]))) == 0


@pytest.mark.parametrize(("errors", "n"), [(0, 10), (3, 10), (10, 10), (120, 1000), (1, 1)])
def test_the_wilson_interval_is_the_usual_one(errors, n):
    usual = stats.binomtest(errors, n).proportion_ci(0.95, method="wilson")
    assert gaps.wilson(errors, n) == pytest.approx((usual.low, usual.high), abs=1e-12)


def test_the_wilson_interval_of_nothing_is_everything():
    assert gaps.wilson(0, 0) == (0.0, 1.0)


def test_the_interval_of_no_errors_starts_at_zero_and_of_errors_alone_ends_at_one():
    for n in range(1, 3000):
        assert gaps.wilson(0, n)[0] == 0
        assert gaps.wilson(n, n)[1] == 1
