"""Weighted sums on tensors are those of scikit-learn and numpy, whatever the chunks."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.cluster import KMeans
from sklearn.mixture import GaussianMixture

torch = pytest.importorskip("torch")

import errata  # noqa: E402
from errata.engine.cuda import Cuda  # noqa: E402
from errata.slicers import make  # noqa: E402
from errata.tensors.mixtures import (  # noqa: E402
    cluster_sums,
    gaussian_sums,
)
from errata.tensors.rows import TensorRows  # noqa: E402

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def X():
    rng = np.random.default_rng(0)
    return rng.normal(size=(5, 6))[rng.integers(0, 5, 2000)] * 3 + rng.normal(size=(2000, 6))


@pytest.mark.parametrize("covariance", ["diag", "full"])
@pytest.mark.parametrize("chunk", [2000, 300])
@pytest.mark.parametrize("resident", [True, False])
def test_an_e_step_is_scikit_learns(X, covariance, chunk, resident):
    mixture = GaussianMixture(5, covariance_type=covariance, random_state=0, max_iter=3, tol=0).fit(X)
    work = gaussian_sums(CPU, np.log(mixture.weights_), mixture.means_, mixture.precisions_cholesky_)
    mass, first, second, total = TensorRows((X,), CPU, resident).total(work, chunk)
    shares = mixture.predict_proba(X)
    origins = mixture.means_ if covariance == "full" else np.zeros_like(mixture.means_)
    offsets = X[:, None] - origins
    products = "ng,ngd,nge->gde" if covariance == "full" else "ng,ngd,ngd->gd"
    np.testing.assert_allclose(mass, shares.sum(axis=0), rtol=1e-10)
    np.testing.assert_allclose(first, np.einsum("ng,ngd->gd", shares, offsets), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(second, np.einsum(products, shares, offsets, offsets), rtol=1e-9, atol=1e-9)
    assert total == pytest.approx(mixture.score_samples(X).sum(), rel=1e-12)


def test_a_step_of_k_means_is_scikit_learns(X):
    start = X[:7]
    work = cluster_sums(CPU, start, 0.5 * np.square(start).sum(axis=1))
    mass, sums = TensorRows((X,), CPU).total(work, 300)
    clusters = KMeans(7, init=start, n_init=1, max_iter=1).fit(X)
    nearest = np.square(X[:, None] - start).sum(axis=2).argmin(axis=1)
    assert np.array_equal(mass, np.bincount(nearest, minlength=7))
    np.testing.assert_allclose(sums / mass[:, None], clusters.cluster_centers_, rtol=1e-9)


@pytest.mark.parametrize("preset", ["recommended", "as_published"])
def test_domino_finds_the_same_slices_on_a_device(X, preset):
    rng = np.random.default_rng(1)
    labels = rng.integers(0, 3, len(X))
    probs = rng.dirichlet(np.ones(3), len(X))
    ev = errata.Evaluation(labels=labels, probs=probs, representations={"e": X})
    here = make(f"domino:{preset}").fit(ev)
    there = make(f"domino:{preset}")
    there.engine = Cuda(device=CPU)
    there.fit(ev)
    np.testing.assert_allclose(there.membership(ev), here.membership(ev), atol=1e-6)
    np.testing.assert_allclose(there.log_likelihoods_, here.log_likelihoods_, rtol=1e-9)
