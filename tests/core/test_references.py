"""What a slice is compared with, on counts small enough to be done by hand."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

from errata.core import Evaluation
from errata.core.gaps import Counts, p_gap
from errata.core.references import (
    Reference,
    class_reference,
    compare,
    confidence_reference,
    effective_rows,
    rest_reference,
)


def _rows(*cells):
    """Strata, inside and outcome from (stratum, inside, rows, errors) cells."""
    strata = np.repeat([c[0] for c in cells], [c[2] for c in cells])
    inside = np.repeat([bool(c[1]) for c in cells], [c[2] for c in cells])
    outcome = np.concatenate([np.arange(c[2]) < c[3] for c in cells]).astype(float)
    return strata, inside, outcome


def _calibrated(n=400):
    """Three classes; a row is wrong as often as the model says."""
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), n)
    labels = (rng.random(n)[:, None] > probs.cumsum(axis=1)).sum(axis=1)
    return Evaluation(labels=labels, probs=probs)


def test_the_rest_is_every_row_outside():
    _, inside, outcome = _rows((0, True, 20, 6), (0, False, 180, 9))
    assert compare(rest_reference(200), inside, outcome) == Counts(20, 6, 0.05, pytest.approx(180))


def test_the_rest_without_an_error_is_still_worth_its_rows():
    _, inside, outcome = _rows((0, True, 20, 6), (0, False, 180, 0))
    assert compare(rest_reference(200), inside, outcome) == Counts(20, 6, 0.0, pytest.approx(180))


def test_the_class_reference_weighs_classes_as_the_slice_does():
    strata, inside, outcome = _rows((0, True, 6, 4), (1, True, 2, 1), (0, False, 10, 3), (1, False, 50, 5))
    counts = compare(Reference("class", strata, np.zeros(68)), inside, outcome)
    assert (counts.m, counts.k) == (8, 5)
    assert counts.b == pytest.approx(0.75 * 3 / 10 + 0.25 * 5 / 50)
    p0, p1 = 3.5 / 11, 5.5 / 51
    variance = 0.75**2 * p0 * (1 - p0) / 10 + 0.25**2 * p1 * (1 - p1) / 50
    steady = 0.75 * p0 + 0.25 * p1
    assert counts.nref == pytest.approx(steady * (1 - steady) / variance)
    assert counts.nref < 60


def test_a_class_reference_is_made_of_true_classes():
    evaluation = Evaluation(labels=[2, 0, 2, 1], predictions=[0, 0, 2, 2])
    reference = class_reference(evaluation)
    assert reference.strata.tolist() == [2, 0, 2, 1]
    assert not reference.expected.any()


@pytest.mark.parametrize(
    "given",
    [
        {"losses": np.arange(6.0)},
        {"labels": np.arange(6) + 0.5, "predictions": np.arange(6.0)},
        {"predictions": np.arange(6), "losses": np.arange(6.0)},
    ],
)
def test_rows_without_a_class_have_no_class_reference(given):
    assert class_reference(Evaluation(**given)) is None


def test_no_reference_is_worth_more_than_its_rows():
    """One class never wrong and one always: their mean is known better than 40 rows of a coin would tell."""
    strata, inside, outcome = _rows((0, True, 5, 1), (1, True, 5, 5), (0, False, 20, 0), (1, False, 20, 20))
    assert compare(Reference("class", strata, np.zeros(50)), inside, outcome) == Counts(10, 6, 0.5, 40)


def test_a_stratum_with_few_rows_outside_is_dropped():
    cells = (0, True, 8, 4), (0, False, 40, 4), (1, False, 4, 4)
    strata, inside, outcome = _rows(*cells, (1, True, 2, 2))
    counts = compare(Reference("class", strata, np.zeros(54)), inside, outcome)
    assert (counts.m, counts.k, counts.b) == (8, 4, pytest.approx(0.1))


@pytest.mark.parametrize(("outside", "compared"), [(4, False), (5, True)])
def test_a_slice_that_is_its_class_has_no_comparison(outside, compared):
    strata, inside, outcome = _rows((0, True, 7, 4), (0, False, 40, 4), (1, True, 3, 2), (1, False, outside, 0))
    counts = compare(Reference("class", strata, np.zeros(50 + outside)), inside, outcome)
    assert (counts is not None) == compared


def test_a_slice_without_rows_has_no_comparison():
    strata, inside, outcome = _rows((0, False, 40, 4))
    assert compare(Reference("class", strata, np.zeros(40)), inside, outcome) is None


def test_the_expected_error_shifts_the_rate_within_a_stratum():
    """One bin: the slice's rows were expected to be wrong .3 oftener than the rest of the bin."""
    strata, inside, outcome = _rows((0, True, 4, 3), (0, False, 20, 2))
    expected = np.where(inside, 0.5, 0.2)
    counts = compare(Reference("confidence", strata, expected), inside, outcome)
    assert counts.b == pytest.approx(0.5 + 2 / 20 - 0.2)


def test_the_confidence_reference_by_hand():
    """Two levels of top probability and two predicted classes, all on discover rows but the last four."""
    top = np.repeat([0.6, 0.9, 0.6, 0.9, 0.6, 0.75, 0.9, 0.95], [10, 20, 10, 20, 1, 1, 1, 1])
    predicted = np.repeat([0, 0, 1, 1, 0, 1, 1, 1], [10, 20, 10, 20, 1, 1, 1, 1])
    wrong = np.concatenate([np.arange(rows) < errors for rows, errors in ((10, 6), (20, 4), (10, 2), (20, 0))])
    wrong = np.append(wrong, [True, True, True, True])
    probs = np.where(np.arange(2) == predicted[:, None], top[:, None], 1 - top[:, None])
    evaluation = Evaluation(labels=np.where(wrong, 1 - predicted, predicted), probs=probs)
    discover = np.arange(64) < 60
    expected = confidence_reference(evaluation, discover, wrong.astype(float)).expected
    at_60, at_90 = 8 / 20, 4 / 40
    foreseen = 10 * at_60 + 20 * at_90
    class_0, class_1 = (10 + 5) / (foreseen + 5), (2 + 5) / (foreseen + 5)
    by_hand = [class_0 * at_60, class_1 * (at_60 + at_90) / 2, class_1 * at_90, class_1 * at_90]
    assert expected[-4:] == pytest.approx(by_hand)
    assert expected[:10] == pytest.approx(class_0 * at_60)
    assert expected[40:60] == pytest.approx(class_1 * at_90)


def test_the_confidence_reference_is_a_decreasing_fit_in_twenty_bins():
    evaluation = _calibrated(2000)
    discover = np.arange(2000) < 1000
    wrong = evaluation.errors.astype(float)
    reference = confidence_reference(evaluation, discover, wrong)
    top = evaluation.probs.max(axis=1)
    fit = IsotonicRegression(increasing=False, out_of_bounds="clip").fit(top[discover], wrong[discover])
    plain = fit.predict(top)
    for c in range(3):
        mine, searched = evaluation.predictions == c, discover & (evaluation.predictions == c)
        factor = (wrong[searched].sum() + 5) / (plain[searched].sum() + 5)
        assert reference.expected[mine] == pytest.approx(np.clip(plain[mine] * factor, 0, 1))
    assert 10 < len(np.unique(reference.strata)) <= 20
    for bin_ in np.unique(reference.strata)[:-1]:
        here, above = reference.strata == bin_, reference.strata > bin_
        assert reference.expected[here].max() <= reference.expected[above].min()


def test_the_confidence_reference_never_reads_a_confirm_outcome():
    evaluation = _calibrated()
    discover = np.arange(400) < 200
    wrong = evaluation.errors.astype(float)
    flipped = np.where(discover, wrong, 1 - wrong)
    one, other = (confidence_reference(evaluation, discover, outcome) for outcome in (wrong, flipped))
    assert np.array_equal(one.expected, other.expected)
    assert np.array_equal(one.strata, other.strata)


def test_without_probabilities_confidence_is_the_predicted_class():
    evaluation = Evaluation(labels=[0, 1, 1, 0], predictions=[1, 1, 0, 1])
    reference = confidence_reference(evaluation, np.array([True, True, False, False]), np.zeros(4))
    assert reference.strata.tolist() == [1, 1, 0, 1]
    assert not reference.expected.any()


@pytest.mark.parametrize(
    "given",
    [
        {"labels": np.ones(6, int), "probs": np.full((6, 2), 0.5)},  # one class: the prediction is the outcome
        {"losses": np.arange(6.0)},
        {"losses": np.arange(6.0), "predictions": np.arange(6) + 0.5},
        {"labels": np.arange(6) + 0.5, "predictions": np.arange(6.0)},
        {"labels": np.arange(6), "predictions": np.ones(6, int), "task": "regression"},
    ],
)
def test_where_confidence_says_nothing_it_is_not_applicable(given):
    assert confidence_reference(Evaluation(**given), np.arange(6) < 3, np.zeros(6)) is None


def test_rows_that_go_their_own_way_count_in_full():
    rng = np.random.default_rng(1)
    outcome = (np.arange(10) % 2).astype(float)
    pairs = np.repeat(np.arange(5), 2)  # one of each outcome in every group: less than binomial variance
    assert effective_rows(outcome, pairs) == 10
    many = rng.random(5000) < 0.3
    assert effective_rows(many.astype(float), np.arange(5000)) == pytest.approx(5000, rel=0.001)


def test_rows_that_go_together_count_as_one():
    groups = np.repeat(np.arange(40), 5)
    outcome = np.repeat((np.arange(40) % 4 == 0).astype(float), 5)
    assert effective_rows(outcome, groups) == pytest.approx(40 * 39 / 40)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_rows_of_one_outcome_count_as_their_groups(value):
    assert effective_rows(np.full(30, value), np.repeat(np.arange(6), 5)) == 6
    assert effective_rows(np.full(30, value), np.zeros(30)) == 1
    assert effective_rows(np.full(0, value), np.zeros(0)) == 0


def test_groups_shrink_both_the_slice_and_its_reference():
    strata, inside, outcome = _rows((0, True, 40, 12), (0, False, 200, 20))
    groups = np.concatenate([np.arange(40) // 4, 100 + np.arange(200) // 4])  # errors come first, so in whole groups
    counts = compare(Reference("rest", strata, np.zeros(240)), inside, outcome, groups)
    plain = compare(Reference("rest", strata, np.zeros(240)), inside, outcome)
    assert counts.m == pytest.approx(effective_rows(outcome[inside], groups[inside]))
    assert counts.m < 11
    assert counts.k / counts.m == pytest.approx(plain.k / plain.m)
    assert counts.b == plain.b
    assert counts.nref == pytest.approx(plain.nref * effective_rows(outcome[~inside], groups[~inside]) / 200)


def test_with_groups_the_test_keeps_its_level_and_without_it_does_not():
    """Groups of five, correlation .5, slice and rest equally wrong."""
    rng = np.random.default_rng(2)
    rows, sized, rate, draws = 600, 5, 0.2, 2000
    groups = np.repeat(np.arange(rows // sized), sized)
    inside = np.arange(rows) < 100
    reference = rest_reference(rows)
    ours = naive = 0
    for _ in range(draws):
        shared = rng.random(rows // sized) < rate
        follows = rng.random(rows) < np.sqrt(0.5)
        outcome = np.where(follows, shared[groups], rng.random(rows) < rate).astype(float)
        ours += p_gap(compare(reference, inside, outcome, groups)) <= 0.05
        naive += p_gap(compare(reference, inside, outcome)) <= 0.05
    assert naive > 2 * 0.05 * draws
    assert ours <= 1.05 * 0.05 * draws
