"""Outcomes without a pattern keep what a model is known to do, and lose everything else."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from errata.bench.null_worlds import planted_world, world
from errata.core import Evaluation
from errata.core.null_outcomes import FEWEST_IN_BIN, MOST_BINS, outcome_strata, permute_outcomes, shuffle_within
from errata.core.planting import intraclass_correlation
from errata.core.validate import FLOOR

N = 1500


def _rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def _confusion(evaluation: Evaluation) -> np.ndarray:
    counts = np.zeros((5, 5), dtype=int)
    np.add.at(counts, (evaluation.labels, evaluation.predictions), 1)
    return counts


def test_labels_and_the_confusion_matrix_are_kept_exactly():
    before = world("miscal", N, 1)
    after = permute_outcomes(before, _rng())
    assert (after.labels != before.labels).mean() > 0.05
    np.testing.assert_array_equal(np.bincount(after.labels), np.bincount(before.labels))
    np.testing.assert_array_equal(_confusion(after), _confusion(before))
    assert after.probs is before.probs
    assert after.predictions is before.predictions
    assert after.representations is before.representations


def test_losses_follow_from_each_rows_own_probabilities():
    after = permute_outcomes(world("calibrated", N, 2), _rng())
    expected = -np.log(np.maximum(after.probs[np.arange(N), after.labels], FLOOR))
    np.testing.assert_allclose(after.losses, expected)


def test_bins_have_enough_rows_and_are_ordered_by_confidence():
    evaluation = world("calibrated", N, 3)
    strata = outcome_strata(evaluation)
    for predicted in range(5):
        rows = evaluation.predictions == predicted
        bins, counts = np.unique(strata[rows], return_counts=True)
        assert len(bins) == min(MOST_BINS, rows.sum() // FEWEST_IN_BIN)
        assert counts.min() >= FEWEST_IN_BIN
        tops = [evaluation.probs[rows & (strata == b)].max(axis=1) for b in bins]
        assert all(low.max() <= high.min() for low, high in pairwise(tops))


def test_calibration_stays_and_a_planted_group_goes():
    evaluation, inside = planted_world(4000, 0.05, 0.4, 0)
    after = permute_outcomes(evaluation, _rng())
    assert evaluation.errors[inside].mean() > 0.45
    assert after.errors[inside].mean() < 0.25
    unsure = evaluation.probs.max(axis=1) < 0.6
    assert abs(evaluation.errors[unsure].mean() - after.errors[unsure].mean()) < 0.05


def test_hard_predictions_change_labels_within_the_prediction():
    full = world("calibrated", N, 4)
    before = Evaluation(labels=full.labels, predictions=full.predictions)
    after = permute_outcomes(before, _rng())
    np.testing.assert_array_equal(_confusion(after), _confusion(before))
    np.testing.assert_array_equal(after.losses, after.errors)


def test_losses_of_ones_own_go_with_the_error():
    full = world("calibrated", N, 4)
    losses = np.where(full.errors, 5.0, 1.0) + _rng().random(N)
    before = Evaluation(labels=full.labels, predictions=full.predictions, losses=losses)
    after = permute_outcomes(before, _rng())
    np.testing.assert_array_equal(after.losses > 4, after.errors)
    np.testing.assert_array_equal(np.sort(after.losses), np.sort(losses))


def test_with_one_label_predictions_move():
    wrong = _rng().random(N) < 0.2
    before = Evaluation(labels=np.zeros(N, dtype=int), predictions=wrong.astype(int))
    after = permute_outcomes(before, _rng())
    assert after.errors.sum() == wrong.sum()
    assert (after.errors != wrong).any()


def test_losses_and_residuals_move():
    losses = _rng().random(N)
    moved = permute_outcomes(Evaluation(losses=losses), _rng()).losses
    assert not np.array_equal(moved, losses)
    np.testing.assert_array_equal(np.sort(moved), np.sort(losses))
    predictions = 10 * _rng(1).random(N)
    before = Evaluation(labels=predictions + _rng(2).normal(size=N), predictions=predictions)
    after = permute_outcomes(before, _rng())
    np.testing.assert_allclose(np.square(after.labels - predictions), after.losses)
    np.testing.assert_allclose(np.sort(after.losses), np.sort(before.losses))


def test_each_label_of_several_moves_by_itself():
    rng = _rng(5)
    probs = rng.random((N, 3))
    before = Evaluation(labels=(rng.random((N, 3)) < probs).astype(int), probs=probs)
    after = permute_outcomes(before, _rng())
    np.testing.assert_array_equal(after.labels.sum(axis=0), before.labels.sum(axis=0))
    for (_, old), (_, new) in zip(before.tasks(), after.tasks(), strict=True):
        assert old.errors.sum() == new.errors.sum()
    moved = before.labels != after.labels
    assert 0 < (moved[:, 0] & moved[:, 1]).sum() < moved[:, 0].sum()


def test_outcomes_that_are_alike_in_a_group_still_are():
    """Copies share a stratum, so whole groups take the outcome of one; without groups, nothing is left of it."""
    groups = np.repeat(np.arange(N // 5), 5)
    wrong = (_rng().random(N // 5) < 0.3)[groups]
    evaluation = Evaluation(labels=np.zeros(N, dtype=int), predictions=wrong.astype(int), groups=groups)
    assert intraclass_correlation(groups, permute_outcomes(evaluation, _rng()).errors) == pytest.approx(1)
    alone = Evaluation(labels=np.zeros(N, dtype=int), predictions=wrong.astype(int))
    assert intraclass_correlation(groups, permute_outcomes(alone, _rng()).errors) < 0.1


def test_every_row_gives_once_within_its_stratum():
    strata = _rng().integers(0, 4, N)
    donors = shuffle_within(strata, _rng(1).integers(0, 50, N), _rng(2))
    np.testing.assert_array_equal(np.sort(donors), np.arange(N))
    np.testing.assert_array_equal(strata[donors], strata)
