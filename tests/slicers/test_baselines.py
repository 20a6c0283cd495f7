"""high-loss, confusion and gmm against hand-made cases and scikit-learn."""

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

from errata.core import Evaluation
from errata.slicers import make
from errata.slicers.numerics import Gaussians, likeliest


def test_high_loss_takes_the_highest_losses():
    losses = np.arange(100.0)
    ev = Evaluation(losses=losses)
    weights = make("high-loss", options={"size": 0.05}).fit(ev).membership(ev)
    assert np.flatnonzero(weights[:, 0]).tolist() == [95, 96, 97, 98, 99]


def test_high_loss_within_labels_ranks_the_rows_of_each_by_what_the_true_class_lacks():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 400)
    positive = np.where(rng.random(400) < 0.8, labels, 1 - labels) * 0.6 + 0.4 * rng.random(400)
    ev = Evaluation(labels=labels, probs=np.stack([1 - positive, positive], axis=1))
    slicer = make("high-loss:within_label", options={"size": 0.1}).fit(ev)
    weights = slicer.membership(ev)
    lacks = 1 - ev.probs[np.arange(400), labels]
    assert {rule["scope"]["label"] for rule in slicer.rules_} == {0, 1}
    for j, rule in enumerate(slicer.rules_):
        own = labels == rule["scope"]["label"]
        np.testing.assert_allclose(weights[own, j], lacks[own], atol=1e-12)
        assert not weights[~own, j].any()
        assert (weights[:, j] >= slicer.thresholds_[j]).sum() == round(0.1 * own.sum())
    with pytest.raises(ValueError, match="needs `labels`"):
        make("high-loss", options={"scope": "label"}).fit(Evaluation(losses=lacks))


def test_confusion_cells_by_frequency():
    labels = np.array([0] * 5 + [1] * 5 + [2] * 5)
    predictions = np.array([0, 0, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2])
    ev = Evaluation(labels=labels, predictions=predictions)
    slicer = make("confusion").fit(ev)
    assert slicer.pairs_.tolist() == [[0, 1], [1, 2]]
    assert slicer.membership(ev).sum(axis=0).tolist() == [3, 1]


def test_confusion_needs_errors_not_numbers():
    ev = Evaluation(labels=np.array([0.5, 1.2, 3.0]), predictions=np.array([0.1, 1.0, 3.5]))
    with pytest.raises(ValueError, match="confusion"):
        make("confusion").fit(ev)


def blobs():
    rng = np.random.default_rng(0)
    centres = np.array([[0, 0], [8, 0], [0, 8]])
    cluster = rng.integers(0, 3, 900)
    X = centres[cluster] + rng.normal(size=(900, 2))
    return X, cluster, np.where(cluster == 2, 2.0, 0.1) + rng.random(900) / 10


def test_gmm_as_published_is_scikit_learns_mixture():
    X, _, losses = blobs()
    ev = Evaluation(losses=losses, representations={"e": X})
    slicer = make("gmm:as_published", options={"components": 3}).fit(ev)
    peer = GaussianMixture(3, random_state=0, reg_covar=1e-6 * X.var()).fit(X)
    ours = slicer.membership(ev).argmax(axis=1)
    theirs = peer.predict(X)
    pairs = {(a, b) for a, b in zip(ours, theirs, strict=True)}
    assert len(pairs) == 3  # the same clusters under other numbers


def test_gmm_posteriors_are_scikit_learns():
    X, _, losses = blobs()
    ev = Evaluation(losses=losses, representations={"e": X})
    slicer = make("gmm", options={"components": 3, "axes": None}).fit(ev)
    peer = GaussianMixture(3, random_state=0, reg_covar=1e-6 * X.var()).fit(X - X.mean(axis=0))
    ours = np.sort(slicer.membership(ev), axis=1)
    np.testing.assert_allclose(ours, np.sort(peer.predict_proba(X - X.mean(axis=0)), axis=1), atol=1e-6)


@pytest.mark.parametrize("shape", ["full", "diag"])
def test_gaussians_answer_as_scikit_learn_does(shape):
    """Also where a row lies so far off that no density is left of it."""
    X, _, _ = blobs()
    peer = GaussianMixture(3, covariance_type=shape, random_state=0).fit(X)
    ours = Gaussians(np.log(peer.weights_), peer.means_, peer.precisions_cholesky_)
    rows = np.concatenate([X, X[:5] + 1e6])
    np.testing.assert_allclose(ours.posterior(rows), peer.predict_proba(rows), atol=1e-9)
    np.testing.assert_array_equal(ours.assign(rows), peer.predict(rows))
    np.testing.assert_array_equal(likeliest(ours.posterior(rows)).argmax(axis=1), peer.predict(rows))
    assert likeliest(ours.posterior(rows)).sum(axis=1).tolist() == [1.0] * len(rows)


def test_gmm_puts_the_worst_cluster_first():
    X, cluster, losses = blobs()
    ev = Evaluation(losses=losses, representations={"e": X})
    slicer = make("gmm", options={"components": 3}).fit(ev)
    inside = slicer.membership(ev)[:, 0] >= slicer.thresholds_[0]
    assert (cluster[inside] == 2).mean() > 0.99
