"""Multiaccuracy against closed forms, against a round computed by hand with scikit-learn, and on planted slices."""

import numpy as np
import pytest
from scipy.special import expit, logit
from sklearn.linear_model import Ridge

from errata.core import Evaluation, MissingInput
from errata.slicers import make
from errata.slicers.multiaccuracy import ridge, slice_end, smoothed_slope
from support.planted import draw_errors, planted_world


def world(seed: int = 0, n: int = 1500, k: int = 2, shuffled: bool = False) -> tuple[Evaluation, np.ndarray]:
    """A tenth of the rows, far along one direction, is bad; `shuffled`: as many errors, anywhere."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 8))
    along = X @ rng.normal(size=8)
    bad = along >= np.quantile(along, 0.9)
    return planted_world(rng, X, draw_errors(rng, bad, 0.7, shuffled), k), bad


def precision(method: str, **kind) -> float:
    """Share of bad rows in the best of the first two slices, over five worlds."""
    found = []
    for seed in range(5):
        ev, bad = world(seed, **kind)
        slicer = make(method).fit(ev)
        inside = slicer.membership(ev) >= slicer.thresholds_
        found.append(max(bad[inside[:, j]].mean() for j in (0, 1)))
    return float(np.mean(found))


@pytest.mark.parametrize(
    ("method", "k"), [("multiaccuracy", 2), ("multiaccuracy", 4), ("multiaccuracy:as_published", 2)]
)
def test_finds_a_planted_slice_and_none_among_shuffled_errors(method, k):
    assert precision(method, k=k) > 0.8
    assert precision(method, k=k, shuffled=True) < 0.3


@pytest.mark.parametrize("shape", [(50, 4), (12, 30)])
def test_ridge_is_the_closed_form(shape):
    rng = np.random.default_rng(0)
    F, target = rng.normal(3, 1, shape), rng.normal(size=shape[0])
    slopes, height = ridge(F, 2.0)(target)
    centred = F - F.mean(axis=0)
    inverse = np.linalg.inv(centred.T @ centred + 2 * np.eye(shape[1]))
    np.testing.assert_allclose(slopes, inverse @ centred.T @ (target - target.mean()), atol=1e-9)
    peer = Ridge(alpha=2.0).fit(F, target)
    np.testing.assert_allclose(F @ slopes + height, peer.predict(F), atol=1e-8)


def test_slope_of_the_loss_goes_on_as_its_tangent():
    np.testing.assert_allclose(smoothed_slope(np.array([1.0, 0.5, 0.1, 0.05, 0.0])), [1, 2, 10, 15, 20])


def test_published_rounds_by_hand():
    """Two classes, from p(1): slopes 1 / p(label), and steps that move p(1) up in predicted 0, down in predicted 1."""
    ev, _ = world(n=600)
    rounds = 3
    slicer = make("multiaccuracy:as_published", options={"slices": rounds}).fit(ev)
    X, y, p = ev.representations["e"] - ev.representations["e"].mean(axis=0), ev.labels, ev.probs[:, 1].copy()
    predicted, train = ev.predictions, np.arange(600) < 540
    found = {}
    for j in range(rounds):
        happened = np.where(y == 1, p, 1 - p)
        target = np.where(happened >= 0.1, 1 / np.maximum(happened, 0.1), 20 - 100 * happened)
        offers = []
        for part in (0, 1, -1):
            rows = (predicted == part) | (part == -1)
            h = Ridge(alpha=1.0).fit(X[rows & train], target[rows & train])
            held = rows & ~train
            offers.append((np.mean(h.predict(X[held]) * np.abs(y - p)[held]), -len(offers), part, h, rows))
        _, _, part, h, rows = max(offers, key=lambda offer: offer[:2])
        found[j] = (part, h.coef_)
        p[rows] = expit(logit(p[rows]) + 0.1 * np.where(predicted[rows] == 1, -1, 1) * h.predict(X[rows]))
    for rule, part, slopes in zip(slicer.rules_, slicer.partitions_, slicer.slopes_, strict=True):
        assert part == found[rule["round"]][0]
        np.testing.assert_allclose(slopes, found[rule["round"]][1], atol=1e-8)
    assert not np.allclose(found[0][1], found[2][1])  # the rounds do differ


def test_a_slice_has_the_size_asked_for():
    ev, _ = world()
    for size in (0.02, 0.1):
        slicer = make("multiaccuracy", options={"size": size}).fit(ev)
        weights = slicer.membership(ev)
        np.testing.assert_allclose(weights.sum(axis=0), size * 1500, rtol=1e-6)
        assert ((weights >= slicer.thresholds_).sum(axis=0) == round(size * 1500)).all()


def test_slice_end_by_hand():
    h = np.repeat([0.0, 1.0], [7, 1])
    cut, edge = slice_end(h, 5.0)  # no more than a quarter of the rows: 2
    assert edge == pytest.approx(0.25 * h.std())
    assert expit((h - cut) / edge).sum() == pytest.approx(2)
    cut, edge = slice_end(np.full(10, 3.0), 2.0)
    assert expit((3.0 - cut) / edge) == pytest.approx(0.2, abs=1e-3)


def test_order_is_by_the_errors_of_a_slice():
    ev, _ = world(k=4)
    slicer = make("multiaccuracy").fit(ev)
    errors = (ev.errors @ slicer.membership(ev)).tolist()
    assert errors == sorted(errors, reverse=True)


def test_split_is_shuffled_unless_as_published():
    ours, published = make("multiaccuracy")._fitted_on(10), make("multiaccuracy:as_published")._fitted_on(10)
    assert published.tolist() == [True] * 9 + [False]
    assert ours.sum() == 7
    assert not ours[:7].all()
    assert (make("multiaccuracy", seed=1)._fitted_on(1000) != make("multiaccuracy")._fitted_on(1000)).any()


def test_rows_of_another_prediction_are_outside():
    ev, _ = world(k=4)
    slicer = make("multiaccuracy", options={"slices": 12}).fit(ev)
    weights = slicer.membership(ev)
    scoped = [(j, rule["scope"]["prediction"]) for j, rule in enumerate(slicer.rules_) if "scope" in rule]
    assert scoped
    for j, part in scoped:
        assert not weights[ev.predictions != part, j].any()
        assert weights[ev.predictions == part, j].any()


def test_new_rows_without_labels():
    ev, _ = world(k=4)
    slicer = make("multiaccuracy", options={"slices": 12}).fit(ev)
    blind = Evaluation(predictions=ev.predictions, representations=ev.representations)
    np.testing.assert_array_equal(slicer.membership(blind), slicer.membership(ev))
    with pytest.raises(MissingInput, match=r"multiaccuracy.*predictions"):
        slicer.membership(Evaluation(representations=ev.representations))


@pytest.mark.parametrize("method", ["multiaccuracy", "multiaccuracy:as_published"])
@pytest.mark.parametrize("step", [0.1, 50.0])
def test_probabilities_of_zero_and_one(method, step):
    ev, _ = world()
    sure = np.eye(2)[ev.predictions]
    ev = Evaluation(labels=ev.labels, probs=sure, representations=ev.representations)
    slicer = make(method, options={"advanced.step": step}).fit(ev)
    assert np.isfinite(slicer.membership(ev)).all()
    nearly = np.clip(sure, 1e-6, 1 - 1e-6)  # a logit of 1 would be infinite, and no step would move it
    peer = make(method, options={"advanced.step": step}).fit(
        Evaluation(labels=ev.labels, probs=nearly, representations=ev.representations)
    )
    np.testing.assert_allclose(slicer.slopes_, peer.slopes_)


@pytest.mark.parametrize("method", ["multiaccuracy", "multiaccuracy:as_published"])
def test_empty_and_tiny_partitions(method):
    ev, _ = world()
    probs = np.tile([0.9, 0.1], (1500, 1))
    one = make(method).fit(Evaluation(labels=ev.labels, probs=probs, representations=ev.representations))
    assert set(one.partitions_.tolist()) <= {0, -1}
    probs[:5] = [0.1, 0.9]
    few = make(method).fit(Evaluation(labels=ev.labels, probs=probs, representations=ev.representations))
    assert 1 not in few.partitions_
    tiny = ev.rows(np.arange(8))
    assert make(method).fit(tiny).membership(tiny).shape == (8, 0)


def test_bad_options_are_named():
    ev, _ = world(n=50)
    with pytest.raises(ValueError, match=r"`multiaccuracy\.alpha` must be a number above 0; got 0"):
        make("multiaccuracy", options={"alpha": 0}).fit(ev)
