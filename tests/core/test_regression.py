"""A model that did not change, measured on the rows that confirmed its slices: the correction leaves no bias."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from errata.core import Evaluation, Slice
from errata.core.confirm import Settings, SliceCandidate, SplitTask, count_against_rest
from errata.core.gaps import p_gap
from errata.core.regression import flattery, selected_excess

SIZES = (40, 60, 80, 120, 160, 240)
GAPS = (0.14, 0.2, 0.3)  # of each size one slice that is rarely confirmed, one half of the time, one nearly always
REST = 0.08
SEARCH = 400
OTHERS = 3000


def places() -> tuple[np.ndarray, np.ndarray]:
    """(n,) the slice of each row, -1 for none, and the risk of each row: search rows first."""
    slices = [(size, gap) for size in SIZES for gap in GAPS]
    slice_of = np.repeat(np.arange(len(slices)), [size for size, _ in slices])
    held_out = np.concatenate([slice_of, np.full(OTHERS, -1)])
    searched = np.arange(SEARCH) % (2 * len(slices))
    all_rows = np.concatenate([np.where(searched < len(slices), searched, -1), held_out])
    gaps = np.array([gap for _, gap in slices])
    return all_rows, REST + np.where(all_rows >= 0, gaps[all_rows], 0.0)


def draw(rng: np.random.Generator, slice_of: np.ndarray, risk: np.ndarray) -> list[tuple[int, float, float]]:
    """(slice, change, regression) of every slice that held-out rows confirm; the second model has the same risk."""
    n = len(risk)
    before = (rng.random(n) < risk).astype(int)
    after = (rng.random(n) < risk).astype(int)
    evaluation = Evaluation(labels=np.zeros(n, int), predictions=before, class_names=("right", "wrong"))
    split = SplitTask(evaluation, np.arange(n) < SEARCH, Settings(delta=0.04))
    count = slice_of.max() + 1
    lines = []
    for j in range(count):
        candidate = SliceCandidate("test", j, (slice_of == j).astype(float), 0.5, {})
        if p_gap(count_against_rest(split, candidate, None), split.delta) > split.settings.level / count:
            continue  # the test of an audit, without what it states beside its verdict, which takes a while
        slice_ = Slice("s1", "test", "", "confirmed", 0.5, {}, candidate.weights)
        inside = (slice_of == j) & split.confirm
        change = after[inside].mean() - before[inside].mean()
        lines.append((j, change, flattery(split, slice_, count)))
    return lines


def test_an_unchanged_model_looks_unchanged() -> None:
    rng = np.random.default_rng(3)
    slice_of, risk = places()
    lines = [line for _ in range(450) for line in draw(rng, slice_of, risk)]
    changes = np.array([change for _, change, _ in lines])
    corrected = changes + [regression for *_, regression in lines]
    error = corrected.std() / np.sqrt(len(corrected))
    assert len(lines) > 2000
    assert changes.mean() < -0.012  # the flattery: over a point, averaged over slices that mostly have enough rows
    assert abs(corrected.mean()) < 3 * error
    assert abs(corrected.mean()) < 0.25 * abs(changes.mean())


@pytest.mark.parametrize(("n", "needed"), [(40, 14), (100, 25), (300, 60), (1000, 150)])
@pytest.mark.parametrize("power", [0.3, 0.5, 0.7, 0.9, 0.99])
def test_the_expected_correction_is_the_expected_excess(n: int, needed: int, power: float) -> None:
    """Exactly, by summing over all counts: what is left is under a quarter of a standard deviation of the rate."""
    rates = np.linspace(0.01, 0.99, 9801)
    p = float(rates[np.argmin(np.abs(stats.binom.sf(needed - 1, n, rates) - power))])
    counts = np.arange(needed, n + 1)
    weights = stats.binom.pmf(counts, n, p)
    weights /= weights.sum()
    naive = weights @ counts / n - p
    left = naive - weights @ [selected_excess(k, n, needed) for k in counts] / n
    assert abs(left) < 0.25 * np.sqrt(p * (1 - p) / n)
    if power <= 0.5:
        assert abs(left) < 0.25 * naive


def test_what_was_not_selected_is_not_corrected() -> None:
    assert selected_excess(10, 100, np.inf) == 0
    assert selected_excess(10, 100, 20) == 0  # it would not have been confirmed
    assert selected_excess(90, 100, 20) < 1e-6  # far from the threshold
    assert 0 < selected_excess(20, 100, 20) <= 20
