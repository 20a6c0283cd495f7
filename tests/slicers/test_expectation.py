"""Mixtures that an engine fits are scikit-learn's, by threads and by tensors."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.mixture import GaussianMixture

from errata.engine import Local, parts_of
from errata.slicers.expectation import EmOptions, fit_gaussians, parameter_count

COVARIANCES = ("full", "diag")


def rows(n: int, seed: int = 0) -> Any:
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(6, 5)) * 3)[rng.integers(0, 6, n)] + rng.normal(size=(n, 5)) * [0.1, 0.5, 1, 1, 2]


@pytest.mark.parametrize("restarts", [1, 3])
@pytest.mark.parametrize("covariance", COVARIANCES)
def test_the_fit_is_scikit_learns(covariance: Any, restarts: int) -> None:
    Z = rows(3000)
    mixture, likelihood = fit_gaussians(Z, 8, EmOptions(covariance, 1e-6, restarts=restarts), Local())
    peer = GaussianMixture(8, covariance_type=covariance, reg_covar=1e-6, n_init=restarts, random_state=0).fit(Z)
    np.testing.assert_allclose(mixture.log_weights, np.log(peer.weights_), rtol=1e-8)
    np.testing.assert_allclose(mixture.means, peer.means_, rtol=1e-8, atol=1e-10)
    np.testing.assert_allclose(mixture.factors, peer.precisions_cholesky_, rtol=1e-8, atol=1e-8)
    assert likelihood == pytest.approx(peer.score(Z), rel=1e-10)
    bic = parameter_count(8, 5, covariance) * np.log(len(Z)) - 2 * len(Z) * likelihood
    assert bic == pytest.approx(peer.bic(Z), rel=1e-10)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_far_from_zero_and_without_spread(covariance: Any) -> None:
    """Moments about zero would lose every digit of a variance of 1e-4 at a distance of 1e4."""
    Z = rows(500) * 1e-2 + 1e4
    mixture, _ = fit_gaussians(Z, 2, EmOptions(covariance, 1e-8), Local())
    assert np.isfinite(mixture.factors).all()
    flat, _ = fit_gaussians(np.ones((40, 3)), 3, EmOptions(covariance), Local())
    np.testing.assert_allclose(flat.means[np.exp(flat.log_weights) > 0.5], 1.0, rtol=1e-9)
    if covariance == "full":
        peer = GaussianMixture(2, reg_covar=1e-8, random_state=0).fit(Z)
        np.testing.assert_allclose(mixture.factors, peer.precisions_cholesky_, rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("covariance", COVARIANCES)
def test_parts_and_tensors_give_the_same(covariance: Any) -> None:
    torch = pytest.importorskip("torch")
    from errata.engine.cuda import Cuda

    Z = rows(450_000)
    assert len(parts_of(Z)) > 1
    options = EmOptions(covariance, steps=3)
    here, likelihood = fit_gaussians(Z, 4, options, Local(threads=2))
    again, _ = fit_gaussians(Z, 4, options, Local(threads=1))
    there, other = fit_gaussians(Z, 4, options, Cuda(device=torch.device("cpu")))
    assert np.array_equal(here.means, again.means)
    np.testing.assert_allclose(there.means, here.means, rtol=1e-9, atol=1e-9)
    assert other == pytest.approx(likelihood, rel=1e-12)
