"""Weighted sums on tensors are those of scikit-learn and numpy, whatever the chunks."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture

torch = pytest.importorskip("torch")

import errata  # noqa: E402
from errata.engine import Local  # noqa: E402
from errata.slicers import make  # noqa: E402
from errata.tensors.mixtures import (  # noqa: E402
    TensorRows,
    diagonal_densities,
    nearness,
    weighted_sums,
    with_squares,
)

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return rng.normal(size=(5, 6))[rng.integers(0, 5, 2000)] * 3 + rng.normal(size=(2000, 6))


@pytest.mark.parametrize("chunk", [2000, 300])
@pytest.mark.parametrize("resident", [True, False])
def test_an_e_step_is_scikit_learns(X, chunk, resident):
    mixture = GaussianMixture(5, covariance_type="diag", random_state=0, max_iter=3, tol=0).fit(X)
    densities = diagonal_densities(np.log(mixture.weights_), mixture.means_, mixture.covariances_, CPU)
    rows = TensorRows((X,), CPU, chunk, resident)
    mass, sums, total = weighted_sums(rows, densities, with_squares)
    shares = mixture.predict_proba(X)
    np.testing.assert_allclose(mass, shares.sum(axis=0), rtol=1e-10)
    np.testing.assert_allclose(sums, shares.T @ np.hstack([X, X**2]), rtol=1e-9, atol=1e-9)
    assert total == pytest.approx(mixture.score_samples(X).sum(), rel=1e-12)


def test_a_step_of_k_means_is_scikit_learns(X):
    start = X[:7]
    rows = TensorRows((X,), CPU, 300)
    mass, sums, total = weighted_sums(rows, nearness(start, CPU), lambda z: z.double(), hard=True)
    clusters = KMeans(7, init=start, n_init=1, max_iter=1).fit(X)
    nearest = np.square(X[:, None] - start).sum(axis=2).argmin(axis=1)
    assert np.array_equal(mass, np.bincount(nearest, minlength=7))
    np.testing.assert_allclose(sums / mass[:, None], clusters.cluster_centers_, rtol=1e-9)
    inertia = np.square(X).sum() - 2 * total
    assert inertia == pytest.approx(np.square(X - start[nearest]).sum(), rel=1e-10)


@pytest.mark.parametrize("preset", ["recommended", "as_published"])
def test_domino_finds_the_same_slices_on_a_device(X, preset):
    class Tensors(Local):
        device = CPU

    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, len(X))
    probs = rng.dirichlet(np.ones(3), len(X))
    ev = errata.Evaluation(labels=labels, probs=probs, representations={"e": X})
    here = make(f"domino:{preset}").fit(ev)
    there = make(f"domino:{preset}")
    there.engine = Tensors()
    there.fit(ev)
    np.testing.assert_allclose(there.membership(ev), here.membership(ev), atol=1e-6)
    np.testing.assert_allclose(there.log_likelihoods_, here.log_likelihoods_, rtol=1e-9)
