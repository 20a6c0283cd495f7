"""The mixture is scikit-learn's, faster; regions are its components that weigh enough."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import BayesianGaussianMixture

from errata.core import InputError
from errata.defuse.distil import distil
from errata.defuse.mixture import fit_mixture
from errata.defuse.regions import Mistakes


def clouds(n: int, d: int, centres: int, seed: int = 0, spread: float = 0.7) -> np.ndarray:
    """Gaussian clouds, each stretched in its own way."""
    rng = np.random.default_rng(seed)
    which = rng.integers(centres, size=n)
    stretch = rng.normal(size=(centres, d, d)) * spread
    return np.einsum("nd,nde->ne", rng.normal(size=(n, d)), stretch[which]) + 3 * rng.normal(size=(centres, d))[which]


def theirs(rows: np.ndarray, components: int, steps: int, seed: int) -> BayesianGaussianMixture:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return BayesianGaussianMixture(n_components=components, max_iter=steps, random_state=seed).fit(rows)


@pytest.mark.parametrize(
    ("n", "d", "centres", "components", "steps", "shift"),
    [
        (300, 2, 3, 3, 200, 0),
        (300, 2, 3, 20, 200, 0),  # more components than are needed
        (120, 1, 2, 4, 50, 0),
        (400, 10, 5, 12, 100, 0),
        (60, 4, 2, 30, 60, 0),  # two rows a component
        (200, 3, 2, 5, 3, 0),  # stopped on its way
        (200, 3, 2, 5, 100, 1000),  # far from the origin
        (50, 3, 1, 1, 100, 0),
    ],
)
def test_the_mixture_is_that_of_scikit_learn(n, d, centres, components, steps, shift):
    rows = clouds(n, d, centres) + shift
    ours, other = fit_mixture(rows, components, steps=steps, seed=4), theirs(rows, components, steps, 4)
    np.testing.assert_allclose(ours.weights, other.weights_, atol=1e-6)
    np.testing.assert_allclose(ours.means, other.means_, atol=1e-6)
    np.testing.assert_allclose(ours.covariances, other.covariances_, atol=1e-6)
    np.testing.assert_array_equal(ours.belongs, other.predict(rows))
    assert ours.steps == other.n_iter_
    assert ours.weights.sum() == pytest.approx(1)


def test_a_mixture_stops_when_it_no_longer_moves():
    rows = clouds(300, 2, 3)
    assert 5 < fit_mixture(rows, 8, steps=500).steps < 500
    assert fit_mixture(rows, 8, steps=5).steps == 5


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_gives_the_same_mixture():
    rows = clouds(400, 10, 5)
    cpu, gpu = (fit_mixture(rows, 12, device=device) for device in ("cpu", "cuda"))
    np.testing.assert_allclose(gpu.means, cpu.means, atol=1e-6)
    np.testing.assert_array_equal(gpu.belongs, cpu.belongs)


# --- regions ---------------------------------------------------------------------------------------------------


def mistakes(codes: np.ndarray, labels: object = 0, predictions: object = 1) -> Mistakes:
    n = len(codes)
    whole = [np.broadcast_to(np.asarray(values), n).astype(np.int64) for values in (labels, predictions)]
    return Mistakes(codes.astype(np.float32), np.arange(n), whole[0], whole[1], np.zeros(n), {})


def three_clouds() -> tuple[np.ndarray, np.ndarray]:
    """Of 30, 120 and 50 codes, far apart, and which is which."""
    which = np.repeat([0, 1, 2], [30, 120, 50])
    centres = np.array([[0.0, 9], [9, 0], [-9, -9]])
    return centres[which] + np.random.default_rng(0).normal(size=(200, 2)) * 0.3, which


def test_regions_are_the_clouds_the_heaviest_first():
    codes, which = three_clouds()
    labels, predictions = which, (which + 1 + (np.arange(200) % 10 == 0)) % 3  # of each a tenth is taken for another
    regions = distil(mistakes(codes, labels, predictions), classes=3, components=10, least=0.05)
    assert regions.ids == ("r1", "r2", "r3")
    np.testing.assert_allclose(regions.weights, [0.6, 0.25, 0.15], atol=0.03)
    np.testing.assert_allclose(regions.means, [[9, 0], [-9, -9], [0, 9]], atol=0.5)
    assert regions.sources.tolist() == [[0, 120, 0], [0, 0, 50], [30, 0, 0]]
    assert regions.predictions.tolist() == [[12, 0, 108], [45, 5, 0], [0, 27, 3]]
    named = {"r1": "b taken for c", "r2": "c taken for a", "r3": "a taken for b"}
    assert regions.names(("a", "b", "c")) == named


def test_no_class_is_taken_for_itself():
    """Two classes that cross in one place: most are called b, and most are b; of b it is told what it is taken for."""
    labels = np.repeat([0, 1, 1], [40, 30, 15])
    predictions = np.repeat([1, 0, 2], [40, 30, 15])
    codes = np.random.default_rng(0).normal(size=(85, 2))
    regions = distil(mistakes(codes, labels, predictions), classes=3, components=1)
    assert regions.sources.tolist() == [[40, 45, 0]]
    assert regions.predictions.tolist() == [[30, 40, 15]]
    assert regions.names(("a", "b", "c")) == {"r1": "b taken for a"}


def test_regions_weigh_more_than_the_least():
    codes, _ = three_clouds()
    assert [len(distil(mistakes(codes), classes=2, components=10, least=least)) for least in (0.2, 0.4, 0.9)] == [
        2,
        1,
        0,
    ]
    every = distil(mistakes(codes), classes=2, components=10, least=0)
    assert len(every) == 10
    assert (np.diff(every.weights) <= 0).all()
    assert every.sources.sum() == 200
    exactly = float(every.weights[1])
    assert len(distil(mistakes(codes), classes=2, components=10, least=exactly)) == 1  # above it, not at it


@pytest.mark.parametrize("n", [0, 1])
def test_too_few_codes_are_no_region(n):
    regions = distil(mistakes(np.zeros((n, 3))), classes=4)
    assert len(regions) == 0
    assert regions.means.shape == (0, 3)
    assert regions.covariances.shape == (0, 3, 3)
    assert regions.sources.shape == regions.predictions.shape == (0, 4)
    assert regions.samples(np.arange(0), 5, "show", tau=1).shape == (0, 3)


def test_equal_codes_are_one_narrow_region():
    codes = np.tile([1.0, -2.0, 0.5], (40, 1))
    regions = distil(mistakes(codes), classes=2)
    assert regions.weights.tolist() == [1.0]
    np.testing.assert_allclose(regions.sample(0, 50, "show", tau=0.05), codes[:50][[0] * 50], atol=0.01)
    assert regions.sources.tolist() == [[40, 0]]


@pytest.mark.parametrize("different", [2, 3])
def test_fewer_codes_than_components_are_enough(different):
    codes = np.eye(3)[:different].repeat(5, axis=0)
    regions = distil(mistakes(codes), classes=2, components=100, least=0.0)
    assert len(regions) == different
    assert regions.sources.sum() == len(codes)
    assert np.isfinite(regions.sample(0, 5, "show", tau=0.5)).all()


@pytest.mark.parametrize("bad", [{"components": 0}, {"least": 1.0}, {"least": -0.1}, {"steps": 0}])
def test_a_distillation_that_cannot_be_is_refused(bad):
    with pytest.raises(InputError, match=r"`components` and `steps` must be at least 1, `least` in \[0, 1\); got"):
        distil(mistakes(np.eye(3)), classes=2, **bad)


def test_codes_of_a_generator_that_diverged_are_refused():
    """Their spread is of rank one but for rounding, so that no covariance is positive definite."""
    rng = np.random.default_rng(0)
    lengths = rng.gamma(2, 1e11, size=(400, 1))
    codes = (lengths * np.sign(rng.normal(size=10)) * (1 + 1e-7 * rng.normal(size=(400, 10)))).astype(np.float32)
    with pytest.raises(InputError, match=r"codes of 400 mistakes spread by 1.\de\+11.*train it with a smaller `lr`"):
        distil(mistakes(codes), classes=2, steps=20)


def test_codes_on_a_line_are_refused_with_another_cure():
    """Noise that is too narrow leaves them there; a smaller `lr` would change nothing."""
    codes = 0.01 * np.random.default_rng(0).normal(size=(400, 1)).repeat(10, axis=1)
    with pytest.raises(InputError, match=r"spread by 0.01 and lie nearly on a line .* a larger `scale`$") as caught:
        distil(mistakes(codes), classes=2, steps=20)
    assert "`lr`" not in str(caught.value)
    noisy = codes + 0.05 * np.random.default_rng(1).normal(size=codes.shape)
    assert len(distil(mistakes(noisy), classes=2, steps=20))
