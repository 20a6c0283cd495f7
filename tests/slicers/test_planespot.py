"""PlaneSpot against scikit-learn's mixtures, against hand numbers, and on planted slices."""

import json

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.mixture import GaussianMixture

from errata.core import Evaluation, MissingInput, State
from errata.slicers import make, restore
from errata.slicers.planespot import Planespot, between, scores
from support.planted import draw_errors, planted_world, ten_clusters


def world(seed: int = 0, n: int = 1000, k: int = 2, shuffled: bool = False) -> tuple[Evaluation, np.ndarray]:
    """Ten clusters, one of them bad; `shuffled`: as many errors, anywhere."""
    rng = np.random.default_rng(seed)
    cluster, X = ten_clusters(rng, n)
    bad = cluster == 0
    return planted_world(rng, X, draw_errors(rng, bad, 0.8, shuffled), k), bad


def first_precision(method: str, options: dict, **kind) -> float:
    """Share of the first slice's rows that are bad, over ten worlds."""
    found = []
    for seed in range(10):
        ev, bad = world(seed, **kind)
        slicer = make(method, options=options).fit(ev)
        found.append(bad[slicer.membership(ev)[:, 0] >= slicer.thresholds_[0]].mean())
    return float(np.mean(found))


@pytest.mark.parametrize("k", [2, 4])
def test_finds_a_planted_slice_and_none_among_shuffled_errors(k):
    options = {"advanced.stride": 11}
    assert first_precision("planespot", options, k=k) > 0.8
    assert first_precision("planespot", options, k=k, shuffled=True) < 0.3


def test_number_of_components_is_that_of_the_lowest_bic():
    ev, _ = world()
    options = {"advanced.min_components": 5, "advanced.max_components": 14}
    slicer = make("planespot:as_published", options=options).fit(ev)
    plane = PCA(2, random_state=0).fit_transform(ev.representations["e"])
    plane = (plane - plane.min(axis=0)) / plane.max(axis=0)
    features = np.column_stack([plane, 0.025 * ev.probs[:, 1]])
    np.testing.assert_allclose(np.abs(slicer._features(ev)), np.abs(features), atol=1e-6)
    features = slicer._features(ev)
    peers = [GaussianMixture(j, random_state=0).fit(features) for j in range(5, 15)]
    best = min(peers, key=lambda peer: peer.bic(features))
    assert len(slicer.means_) == best.n_components
    assert {p.n_components for p in peers if p.bic(features) > best.bic(features)}  # the choice was one
    error = 1 - ev.probs[np.arange(len(ev)), ev.labels]
    clusters = best.predict(features)
    by_hand = [np.sum(clusters == j) * error[clusters == j].mean() ** 2 for j in range(best.n_components)]
    order = np.argsort(-np.array(by_hand))[:10]
    np.testing.assert_array_equal(slicer.membership(ev), clusters[:, None] == order)


class Keep:
    """A reducer of the user's own: the first two columns."""

    fits = 0

    def fit(self, X):
        self.fits += 1

    def transform(self, X):
        return X[:, :2]


def test_published_scaling_divides_by_the_raw_maximum():
    X = np.array([[-4.0, 2.0, 9.0], [-2.0, 6.0, 9.0], [-1.0, 4.0, 9.0]])
    ev = Evaluation(labels=[0, 1, 1], probs=[[0.8, 0.2], [0.4, 0.6], [0.5, 0.5]], representations={"e": X})
    published = Planespot(Keep(), axes=2, advanced={"scaling": "published"}).fit(ev)._features(ev)
    # Column 0 has the maximum -1, so its sign turns; column 1 reaches 4/6 and not 1.
    np.testing.assert_allclose(published, [[0, 0, 0.005], [-2, 4 / 6, 0.015], [-3, 2 / 6, 0.0125]])
    minmax = Planespot(Keep(), axes=2).fit(ev)._features(ev)
    np.testing.assert_allclose(minmax[:, :2], [[0, 0], [2 / 3, 1], [1, 0.5]])


def test_a_reducer_of_the_users_own_is_copied_and_not_saved():
    ev, _ = world(n=300)
    own = Keep()
    slicer = make("planespot", options={"reducer": own, "advanced.stride": 11}).fit(ev)
    assert own.fits == 0
    assert slicer.reducer_.fits == 1
    assert slicer.membership(ev).shape == (300, 10)
    with pytest.raises(ValueError, match="cannot be saved; name `pca` or `tsne`"):
        slicer.to_state()
    with pytest.raises(ValueError, match=r"`planespot\.reducer` must be"):
        make("planespot", options={"reducer": "umap"})


def test_score_is_n_times_the_squared_mean_error():
    weights = np.array([[1, 0], [1, 0], [0, 1], [0.5, 0.5]])
    errors = np.array([0.2, 0.4, 0.9, 0.6])
    np.testing.assert_allclose(scores(weights, errors), [2.5 * (0.9 / 2.5) ** 2, 1.5 * (1.2 / 1.5) ** 2])


def test_the_probability_is_that_of_class_one_or_of_the_predicted_class():
    for k, p in ((2, lambda probs: probs[:, 1]), (4, lambda probs: probs.max(axis=1))):
        ev, _ = world(n=200, k=k)
        slicer = make("planespot", options={"advanced.stride": 22}).fit(ev)
        np.testing.assert_allclose(slicer._features(ev)[:, -1], 0.025 * p(ev.probs))


def test_new_rows_need_probabilities_but_no_labels():
    ev, _ = world(n=400)
    slicer = make("planespot", options={"advanced.stride": 22}).fit(ev)
    blind = Evaluation(probs=ev.probs, representations=ev.representations)
    np.testing.assert_array_equal(slicer.membership(blind), slicer.membership(ev))
    with pytest.raises(MissingInput, match=r"planespot.*predictions"):
        slicer.membership(Evaluation(representations=ev.representations))


def test_tsne_places_new_rows_between_their_neighbours_and_can_be_saved():
    ev, bad = world(n=300)
    slicer = make("planespot", options={"reducer": "tsne", "axes": 2, "advanced.max_components": 10}).fit(ev)
    inside = slicer.membership(ev)[:, 0] >= slicer.thresholds_[0]
    assert bad[inside].mean() > 0.8
    state = slicer.to_state()
    again = restore(State(state.name, json.loads(json.dumps(state.facts)), state.arrays))
    near = Evaluation(probs=ev.probs, representations={"e": ev.representations["e"] + 1e-7})
    np.testing.assert_array_equal(
        again.membership(near) >= again.thresholds_, slicer.membership(ev) >= slicer.thresholds_
    )


@pytest.mark.parametrize("value", [0.0, 7.0])
def test_tsne_of_equal_rows(value):
    ev = Evaluation(
        labels=np.arange(40) % 2, probs=np.full((40, 2), 0.5), representations={"e": np.full((40, 3), value)}
    )
    weights = make("planespot", options={"reducer": "tsne", "axes": 2}).fit(ev).membership(ev)
    assert np.isfinite(weights).all()


def test_between_by_hand():
    anchors, places = np.array([[0.0], [1.0]]), np.array([[10.0, 0.0], [20.0, 4.0]])
    rows = np.array([[0.0], [0.25], [0.5]])
    np.testing.assert_allclose(between(anchors, places, rows), [[10, 0], [12.5, 1], [15, 2]], atol=1e-4)


@pytest.mark.parametrize("preset", ["recommended", "as_published"])
@pytest.mark.parametrize("n", [2, 30])
def test_few_rows_and_a_single_class(preset, n):
    rng = np.random.default_rng(0)
    positive = rng.random(n)
    ev = Evaluation(
        labels=np.ones(n, dtype=int),
        probs=np.stack([1 - positive, positive], axis=1),
        representations={"e": rng.normal(size=(n, 3))},
    )
    slicer = make(f"planespot:{preset}").fit(ev)
    assert len(slicer.means_) == max(1, n // 4)
    assert np.isfinite(slicer.membership(ev)).all()


def test_bad_options_are_named():
    with pytest.raises(
        ValueError,
        match=r"`planespot\.advanced\.max_components` must be an integer of at least `min_components`; got 5",
    ):
        make("planespot", options={"advanced.max_components": 5})
