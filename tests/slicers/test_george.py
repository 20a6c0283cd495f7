"""GEORGE's rules on hand-made cases, against scikit-learn's silhouettes, and on planted slices."""

import numpy as np
import pytest
from scipy.spatial.distance import cdist
from sklearn.cluster import KMeans
from sklearn.metrics import silhouette_samples

from errata.core import Evaluation, MissingInput, Source
from errata.slicers import george, make
from errata.slicers.contract import knows_outcome
from errata.slicers.numerics import Gaussians
from support.planted import draw_errors, ten_clusters


def world(seed: int = 0, n: int = 1200, k: int = 2, shuffled: bool = False) -> tuple[Evaluation, np.ndarray]:
    """Ten clusters, each of one class, one of them bad; `shuffled`: as many errors, anywhere."""
    rng = np.random.default_rng(seed)
    cluster, X = ten_clusters(rng, n)
    bad = cluster == 0
    wrong = draw_errors(rng, bad, 0.7, shuffled)
    labels = cluster % k
    predictions = np.where(wrong, (labels + 1) % k, labels)
    return Evaluation(labels=labels, predictions=predictions, representations={"e": X}), bad


def first_precision(method: str, **kind) -> float:
    """Share of the first slice's rows that are bad, over ten worlds."""
    found = []
    for seed in range(10):
        ev, bad = world(seed, **kind)
        slicer = make(method, options={"advanced.restarts": 1}).fit(ev)
        found.append(bad[slicer.membership(ev)[:, 0] >= slicer.thresholds_[0]].mean())
    return float(np.mean(found))


@pytest.mark.parametrize("method", ["george", "george:as_published"])
def test_finds_a_planted_slice_and_none_among_shuffled_errors(method):
    assert first_precision(method) > 0.8
    assert first_precision(method, shuffled=True) < 0.3


def test_silhouettes_are_scikit_learns():
    rng = np.random.default_rng(0)
    X, clusters = rng.normal(size=(60, 3)), rng.integers(0, 4, 60)
    clusters[0] = 9  # a lone row
    ours = george.silhouettes(cdist(X, X), clusters)
    np.testing.assert_allclose(ours, silhouette_samples(X, clusters), atol=1e-12)


def test_score_counts_clusters_and_not_rows():
    X = np.array([0.0, 1.0, 10.0, 10.0, 10.0, 10.0])[:, None]
    clusters = np.array([0, 0, 1, 1, 1, 1])
    # By hand: rows 0 and 1 have a=1 and b=10, 9; the others a=0.
    small = (0.9 + 8 / 9) / 2
    assert george.silhouette_score(cdist(X, X), clusters) == pytest.approx((small + 1) / 2)
    assert george.silhouette_score(cdist(X, X), np.zeros(6)) == -1


def test_ties_go_to_the_larger_number_of_clusters(monkeypatch):
    monkeypatch.setattr(george, "silhouette_score", lambda distances, clusters: 0.4)
    ev, _ = world(n=400)
    slicer = make("george", options={"max_clusters": 6}).fit(ev)
    assert np.bincount(slicer.class_of_).tolist() == [6, 6]


@pytest.mark.parametrize("clusterer", ["gmm", "kmeans"])
def test_the_number_of_clusters_is_found(clusterer):
    rng = np.random.default_rng(0)
    centres = np.array([[10, 0], [0, 10], [10, 10], [-10, 5.0], [-10, -9]])
    cluster = np.repeat(np.arange(5), 60)
    labels = (cluster >= 3).astype(int)
    X = centres[cluster] + rng.normal(size=(300, 2)) / 5
    ev = Evaluation(labels=labels, losses=rng.random(300), representations={"e": X})
    slicer = make("george", options={"advanced.clusterer": clusterer}).fit(ev)
    assert np.bincount(slicer.class_of_).tolist() == [3, 2]


def test_a_class_without_clusters_stays_whole():
    X = np.random.default_rng(0).normal(size=(400, 8))
    ev = Evaluation(labels=np.zeros(400, dtype=int), losses=np.ones(400), representations={"e": X})
    options = {"advanced.unit_length": False, "advanced.separation": 0.3}
    assert len(make("george", options=options).fit(ev).means_) == 1
    assert len(make("george", options={**options, "advanced.separation": -1.0}).fit(ev).means_) >= 2


def test_keep_rule_by_hand():
    old = np.repeat([0, 1], [60, 40])
    new = np.repeat([0, 1, 2, 3], [30, 30, 30, 10])  # pieces 0, 1 of cluster 0; 2, 3 of cluster 1
    cluster_of = np.array([0, 0, 1, 1])
    losses = np.repeat([1.0, 3.0, 2.0, 6.0], [30, 30, 30, 10])  # clusters lose 2 and 3
    separated = np.array([True, True, True, True])
    kept = george.keep_pieces(old, new, cluster_of, losses, separated, 25)
    # Piece 0 and 2 lose less than their clusters; 3 is too small.
    assert kept.tolist() == [False, True, False, False]
    assert george.keep_pieces(old, new, cluster_of, losses, separated, 10).tolist() == [False, True, False, True]
    assert not george.keep_pieces(old, new, cluster_of, losses, ~separated, 10).any()


def test_pieces_that_are_not_kept_merge_back():
    clusters = Gaussians(np.zeros(2), np.zeros((2, 1)), np.ones((2, 1)))
    pieces = Gaussians(np.zeros(5), np.zeros((5, 1)), np.ones((5, 1)))
    cluster_of = np.array([0, 0, 0, 1, 1])
    kept = np.array([False, True, False, True, True])
    merged = george._merge_pieces(clusters, pieces, cluster_of, kept)
    assert merged.slice_of.tolist() == [0, 1, 0, 2, 3]  # cluster 1 has nothing left of its own


def test_over_clustering_cuts_out_the_bad_piece():
    """Two clusters; one holds a small crowd with high loss, which silhouettes of two do not see."""
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 0.6, (300, 2)), rng.normal((0, 12), 0.6, (300, 2))])
    X[:50] = rng.normal((4, 0), 0.2, (50, 2))
    bad = np.arange(600) < 50
    ev = Evaluation(labels=np.zeros(600, dtype=int), losses=bad + 0.1, representations={"e": X})
    options = {
        "advanced.unit_length": False,
        "max_clusters": 2,
        "scope": "label",
        "advanced.clusterer": "kmeans",
    }
    whole = make("george", options=options).fit(ev)
    cut = make("george", options={**options, "advanced.pieces": 5}).fit(ev)
    assert bad[whole.membership(ev)[:, 0] >= whole.thresholds_[0]].mean() < 0.3
    inside = cut.membership(ev)[:, 0] >= cut.thresholds_[0]
    assert bad[inside].mean() == 1
    assert inside.sum() == 50
    together = cut._weights(cut._reduced(ev.representations["e"]), ev).sum(axis=1)
    np.testing.assert_allclose(together, 1)  # every row is in one slice or another


def test_published_clusters_are_those_of_k_means():
    ev, _ = world()
    slicer = make(
        "george:as_published",
        options={"advanced.pieces": 1, "advanced.min_clusters": 4, "max_clusters": 4, "slices": 99},
    ).fit(ev)
    X = ev.representations["e"] / np.linalg.norm(ev.representations["e"], axis=1, keepdims=True)
    X = X - X.mean(axis=0)
    for c in (0, 1):
        rows = ev.labels == c
        peer = KMeans(4, n_init=3, random_state=0).fit(X[rows]).labels_
        ours = slicer.membership(ev)[rows].argmax(axis=1)
        assert len(set(zip(ours, peer, strict=True))) == 4  # the same clusters under other numbers


@pytest.mark.parametrize("method", ["george", "george:as_published"])
@pytest.mark.parametrize("sizes", [(1, 2, 3, 200), (5,), (1,), (40, 1)])
def test_tiny_classes_and_a_single_class(method, sizes):
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(len(sizes)), sizes)
    X = rng.normal(size=(len(labels), 4))
    ev = Evaluation(labels=labels, losses=rng.random(len(labels)), representations={"e": X})
    slicer = make(method, options={"slices": 99}).fit(ev)
    weights = slicer.membership(ev)
    np.testing.assert_allclose(weights.sum(axis=1), 1)
    for c, size in enumerate(sizes):
        assert (slicer.class_of_ == c).sum() >= 1
        if size < 8:
            assert (slicer.class_of_ == c).sum() == 1


def test_what_is_read_depends_on_the_scope():
    ev, _ = world(n=300)
    nearest = make("george").fit(ev)
    label = make("george", options={"scope": "label"}).fit(ev)
    assert not nearest.reads
    assert label.reads == {"label"}
    assert not knows_outcome(nearest, ev)
    assert knows_outcome(label, ev)  # on the model's own representation
    foreign = Evaluation(labels=ev.labels, representations=ev.representations, sources={"e": Source(from_model=False)})
    assert not knows_outcome(label, foreign)
    assert all(rule["scope"] == {"label": rule["found_in_class"]} for rule in label.rules_)
    assert not any("scope" in rule for rule in nearest.rules_)


def test_new_rows_without_labels():
    ev, _ = world(n=300)
    blind = Evaluation(representations=ev.representations)
    nearest, label = make("george").fit(ev), make("george:as_published").fit(ev)
    np.testing.assert_array_equal(nearest.membership(blind), nearest.membership(ev))
    with pytest.raises(MissingInput, match=r"george.*labels"):
        label.membership(blind)


def test_a_row_of_an_unknown_class_is_in_no_slice():
    ev, _ = world(n=300)
    slicer = make("george:as_published").fit(ev)
    strange = Evaluation(labels=np.full(300, 7), representations=ev.representations)
    assert not slicer.membership(strange).any()


def test_hardness_looks_along_the_difference_of_class_means():
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1], 300)
    X = rng.normal(0, 5, (600, 3)) * [0, 1, 1]
    X[:, 0] = 4 * labels + rng.normal(0, 0.1, 600)
    X[:60, 0] = 4  # class 0 where class 1 lies
    X[:, 1:] -= np.stack([X[labels == c, 1:].mean(axis=0) for c in (0, 1)])[labels]
    hard = np.arange(600) < 60
    ev = Evaluation(labels=labels, losses=hard.astype(float), representations={"e": X})
    options = {
        "advanced.reduction": "hardness",
        "scope": "label",
        "advanced.unit_length": False,
        "max_clusters": 2,
    }
    slicer = make("george", options=options).fit(ev)
    inside = slicer.membership(ev)[:, 0] >= slicer.thresholds_[0]
    np.testing.assert_array_equal(inside, hard)


def test_hardness_of_a_single_class_looks_from_the_origin():
    X = np.random.default_rng(0).normal(3, 1, (80, 3))
    ev = Evaluation(labels=np.zeros(80, dtype=int), losses=X[:, 0], representations={"e": X})
    options = {"advanced.reduction": "hardness", "scope": "label", "advanced.unit_length": False}
    slicer = make("george", options=options).fit(ev)
    np.testing.assert_allclose(slicer.axes_[:, 0], X.mean(axis=0))
    assert np.isfinite(slicer.membership(ev)).all()


def test_what_cannot_be_is_refused():
    ev, _ = world(n=100)
    with pytest.raises(ValueError, match=r"hardness has an axis for each class; set `george\.scope` to `label`"):
        make("george", options={"advanced.reduction": "hardness"}).fit(ev)
    with pytest.raises(ValueError, match=r"`george\.advanced\.min_clusters` must be an integer of at least 2; got 1"):
        make("george", options={"advanced.min_clusters": 1})
    ratings = Evaluation(labels=[0.5, 1.5], predictions=[0.4, 1.0], representations={"e": np.eye(2)})
    with pytest.raises(ValueError, match="clusters within classes; this evaluation is one of regression"):
        make("george").fit(ratings)
