"""Groups that are planted: their size, where they lie, and by how much their rate rises."""

from __future__ import annotations

import numpy as np
import pytest

from errata.bench.null_worlds import world
from errata.core import Evaluation
from errata.core.null_outcomes import permute_outcomes
from errata.core.planting import NEAR_SIZE, intraclass_correlation, is_bad, plant, region, rule

N = 6000
EVERYWHERE = np.ones(N, dtype=bool)
SECOND_HALF = np.arange(N) >= N // 2


def _rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def _rates(evaluation: Evaluation, gap: float, tolerance: float = 0.0, task: int = 0) -> tuple[float, float, float]:
    """The rate of the second half before and after, and how many outcomes of the first half changed."""
    changed = plant(evaluation, task, SECOND_HALF, gap, tolerance, _rng(1))
    old = [is_bad(view, tolerance) for _, view in evaluation.tasks()][task]
    new = [is_bad(view, tolerance) for _, view in changed.tasks()][task]
    return float(old[SECOND_HALF].mean()), float(new[SECOND_HALF].mean()), float((old ^ new)[~SECOND_HALF].mean())


@pytest.mark.parametrize("gap", [0.2, 0.4])
def test_the_rate_rises_by_the_gap_and_nowhere_else(gap):
    full = permute_outcomes(world("calibrated", N, 0), _rng())
    hard = Evaluation(labels=full.labels, predictions=full.predictions)
    one_label = Evaluation(labels=np.zeros(N, dtype=int), predictions=full.errors.astype(int))
    rng = _rng(3)
    several = Evaluation(labels=(rng.random((N, 3)) < 0.3).astype(int), predictions=np.zeros((N, 3), dtype=int))
    for evaluation in (full, hard, one_label):
        before, after, elsewhere = _rates(evaluation, gap)
        assert after - before == pytest.approx(gap, abs=0.03)
        assert elsewhere == 0
    before, after, elsewhere = _rates(several, gap, task=1)
    assert after - before == pytest.approx(gap, abs=0.03)
    assert elsewhere == 0
    losses = Evaluation(losses=rng.random(N))
    before, after, elsewhere = _rates(losses, gap, tolerance=0.9)
    assert after - before == pytest.approx(gap, abs=0.03)
    assert elsewhere == 0


def test_a_class_is_confused_with_what_it_is_confused_with_elsewhere():
    predictions = np.arange(N) % 3
    labels = predictions.copy()
    labels[::30] = 1  # predicted 0
    changed = plant(Evaluation(labels=labels, predictions=predictions), 0, SECOND_HALF, 0.5, 0.0, _rng())
    moved = changed.labels != labels
    assert set(changed.labels[moved & (predictions == 0)]) == {1}
    assert moved[predictions == 2].any()


def test_a_region_is_the_rows_nearest_to_one_of_them_in_most_coordinates():
    X = _rng().normal(size=(N, 8)).astype(np.float32)
    inside = region(X, 100, EVERYWHERE, _rng(4))
    assert inside.sum() == 100
    rng = _rng(4)
    some = np.sort(rng.choice(8, 6, replace=False))
    centre = X[int(rng.choice(np.arange(N)))][some]
    distances = np.square(X[:, some] - centre).sum(axis=1)
    assert distances[inside].max() <= distances[~inside].min()
    apart = region(X, 100, ~inside, _rng(4))
    assert apart.sum() == 100
    assert not (apart & inside).any()


def test_a_rule_has_about_the_wanted_size_and_holds_of_its_rows():
    rng = _rng(5)
    columns = {
        "age": rng.normal(40, 10, N),
        "site": np.array(["a", "b", "c"])[rng.integers(0, 3, N)],
        "name": np.array([f"row {i}" for i in range(N)]),
        "dose": np.where(rng.random(N) < 0.3, np.nan, rng.random(N)),
    }
    for seed in range(20):
        inside = rule(columns, 120, EVERYWHERE, _rng(seed))
        assert inside is not None
        assert 120 / NEAR_SIZE <= inside.sum() <= 120 * NEAR_SIZE
        alone = {name: inside.sum() / _hull(column, inside).sum() for name, column in columns.items()}
        joint = _hull(columns["age"], inside) & _hull(columns["site"], inside) & _hull(columns["dose"], inside)
        assert joint.sum() == inside.sum(), alone


def _hull(column: np.ndarray, inside: np.ndarray) -> np.ndarray:
    """The rows that no condition on the column which holds inside could leave out."""
    if column.dtype.kind != "f":
        return np.isin(column, column[inside])
    own = column[inside]
    if np.isnan(own).any():
        return np.isnan(column) | ~np.isnan(own).all()
    return (column >= own.min()) & (column <= own.max())


def test_no_rule_where_no_column_has_one_of_that_size():
    assert rule({"name": np.array([f"row {i}" for i in range(N)])}, 100, EVERYWHERE, _rng()) is None


def test_rows_of_a_group_change_as_alike_as_their_outcomes_are():
    groups = np.repeat(np.arange(N // 5), 5)
    alike = (_rng().random(N // 5) < 0.2)[groups]
    mixed = _rng().random(N) < 0.2
    found = []
    for wrong in (alike, mixed):
        evaluation = Evaluation(labels=np.zeros(N, dtype=int), predictions=wrong.astype(int), groups=groups)
        changed = plant(evaluation, 0, EVERYWHERE, 0.4, 0.0, _rng(6))
        found.append(intraclass_correlation(groups, changed.errors))
    assert found[0] == pytest.approx(1, abs=0.01)
    assert found[1] < 0.05


def test_intraclass_correlation_is_that_of_a_mixture():
    """Rows take their group's outcome with probability sqrt(.5), else one of their own: correlation .5."""
    rng = _rng(7)
    groups = np.repeat(np.arange(4000), 4)
    shared = (rng.random(4000) < 0.3)[groups]
    own = rng.random(16000) < 0.3
    bad = np.where(rng.random(16000) < np.sqrt(0.5), shared, own)
    assert intraclass_correlation(groups, bad) == pytest.approx(0.5, abs=0.03)
    assert intraclass_correlation(np.arange(10), np.arange(10) < 3) == 0
