"""Metrics on cases that can be counted by hand."""

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from errata.bench.metrics import (
    Rule,
    average_precision,
    best_precision_at,
    coherence,
    discovery,
    homogeneity,
    mean_and_error,
    precision_at,
    precision_matrix,
)


def sets(n, *members):
    out = np.zeros((n, len(members)), dtype=bool)
    for j, rows in enumerate(members):
        out[list(rows), j] = True
    return out


def test_precision_matrix_by_hand():
    h, b = sets(10, range(5), range(4, 8), []), sets(10, range(4), range(5, 10))
    np.testing.assert_allclose(precision_matrix(h, b), [[0.8, 0], [0, 0.75], [0, 0]])


def test_discovery_by_hand():
    b = sets(20, range(10), range(10, 20))
    h = sets(20, range(5), range(5, 10), range(8, 14), [19])
    rates = discovery(h, b)
    assert rates.dr == 0.5  # the first two together cover the first slice; the last is precise but covers a tenth
    assert rates.fdr == 0.25  # only the third is precise in nothing


def test_recall_joins_precise_hypotheses_only():
    b = sets(20, range(10))
    h = sets(20, range(7), [*range(7, 10), *range(10, 17)])  # the second covers the rest but is 30% precise
    assert discovery(h, b).dr == 0.0


def test_thresholds_are_inclusive_unless_strict():
    b, h = sets(20, range(10)), sets(20, [*range(8), 10, 11])
    assert discovery(h, b).dr == 1.0  # precision .8 and recall .8 exactly
    assert discovery(h, b, Rule(strict=True)).dr == 0.0
    assert discovery(h, b, Rule(precision=0.81)).dr == 0.0


def test_only_the_top_hypotheses_count():
    b, h = sets(20, range(10)), sets(20, [15], range(10))
    assert discovery(h, b, Rule(top=1)) == discovery(h[:, :1], b)
    assert discovery(h, b, Rule(top=2)).dr == 1.0


def test_scopes_of_false_discovery():
    b = sets(20, range(10))
    h = sets(20, range(10), [15], [16], [17])
    assert discovery(h, b).fdr == 0.75
    assert discovery(h, b, Rule(fdr_scope="prefix")).fdr == 0.0
    nothing = sets(20, [15], [16])
    assert discovery(nothing, b, Rule(fdr_scope="prefix")).fdr == 1.0  # never complete: all count


def test_empty_hypotheses_and_no_blindspots():
    b = sets(20, range(10))
    assert discovery(sets(20, []), b).dr == 0.0
    assert discovery(sets(20, []), b).fdr is None
    assert discovery(sets(20, [], range(10)), b, Rule(top=1)).dr == 1.0  # an empty one takes no place
    none = discovery(sets(20, range(5)), np.zeros((20, 0), dtype=bool))
    assert none.dr is None
    assert none.fdr == 1.0


def test_precision_at_breaks_ties_at_random_by_seed():
    scores, truth = np.ones(1000), np.arange(1000) < 100
    values = [precision_at(scores, truth, 10, seed) for seed in range(300)]
    assert np.mean(values) == pytest.approx(0.1, abs=0.02)  # by position it would be 1
    assert precision_at(scores, truth, 10, 3) == precision_at(scores, truth, 10, 3)
    assert precision_at(np.arange(1000.0)[::-1], truth, 10) == 1.0


def test_average_precision_is_scikit_learns():
    rng = np.random.default_rng(0)
    for _ in range(20):
        scores, truth = np.round(rng.random(200), 1), rng.random(200) < 0.2  # many ties
        assert average_precision(scores, truth) == pytest.approx(average_precision_score(truth, scores))
    assert average_precision(scores, np.zeros(200, dtype=bool)) == 0.0


def test_best_hypothesis_per_slice():
    b = sets(30, range(10), range(10, 20))
    weights = np.stack([np.arange(30) < 10, np.arange(30) >= 15], axis=1).astype(float)
    assert best_precision_at(weights, b, k=10).tolist()[0] == 1.0
    assert best_precision_at(weights, b, k=15).tolist() == [pytest.approx(2 / 3), pytest.approx(1 / 3)]
    assert best_precision_at(np.zeros((30, 0)), b).tolist() == [0.0, 0.0]


def test_homogeneity_and_coherence():
    labels = np.array([0] * 5 + [1] * 5)
    assert homogeneity(sets(10, range(5), range(3, 7)), labels) == pytest.approx(0.75)
    assert homogeneity(sets(10, []), labels) is None
    X = np.vstack([np.zeros((50, 2)), np.random.default_rng(0).normal(0, 5, (950, 2))])
    assert coherence(sets(1000, range(50)), X) == 1.0
    assert abs(coherence(sets(1000, range(100, 500)), X)) < 0.1
    assert coherence(sets(1000, [3]), X) is None


def test_standard_errors_over_configurations():
    mean, error = mean_and_error([0.0, 1.0, 1.0, None])
    assert mean == pytest.approx(2 / 3)
    assert error == pytest.approx(np.std([0, 1, 1], ddof=1) / np.sqrt(3))
    assert mean_and_error([None]) == (None, None)
    assert mean_and_error([0.5]) == (0.5, None)
