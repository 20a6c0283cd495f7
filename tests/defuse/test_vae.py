"""The VAE: its bound by hand and where the answer is known, its shapes, and how it is trained and kept."""

from __future__ import annotations

import math
from itertools import product
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from errata.core import InputError, State
from errata.defuse.vae import (
    Architecture,
    Vae,
    decode_codes,
    divergence,
    encode_images,
    fit_vae,
    fitting_architecture,
    lower_bound,
    new_vae,
    published_architecture,
)
from errata.tensors import state_fingerprint

TINY = Architecture(8, 8, 1, latent=2, channels=4, hidden=16, down=1, up=2)


def bars(n: int = 64, seed: int = 0) -> np.ndarray:
    """A bright bar across a dark picture, at any height."""
    centre = np.random.default_rng(seed).uniform(1, 6, n)
    rows = np.exp(-((np.arange(8) - centre[:, None]) ** 2))
    return np.round(255 * rows)[:, :, None, None].repeat(8, axis=2).astype(np.uint8)


# --- the bound -------------------------------------------------------------------------------------------------


def test_the_divergence_from_the_prior_by_hand():
    """Half of mean^2 + variance - 1 - log variance: 1/2 and (4 + 4 - 1 - log 4) / 2; none at the prior itself."""
    mean, logvar = torch.tensor([[1.0, -2.0], [0.0, 0.0]]), torch.tensor([[0.0, math.log(4)], [0.0, 0.0]])
    assert divergence(mean, logvar).tolist() == pytest.approx([0.5 + 2.8068528194, 0.0])


@pytest.mark.parametrize(
    ("likelihood", "expected"),
    [
        # -log .75, -log .25, and half of each.
        ("bernoulli", [0.2876820724, 1.3862943611, 0.8369882168]),
        # (.25^2 / .01 + log(2 pi .01)) / 2 = (6.25 - 2.7672931196) / 2, with .75^2 for black, with .25^2 for grey.
        ("gaussian", [1.7413534402, 26.7413534402, 1.7413534402]),
    ],
)
def test_a_pixels_surprise_by_hand(likelihood, expected):
    """White, black and grey where the decoder's mean is .75."""
    vae = new_vae(Architecture(1, 3, 1, likelihood=likelihood, sigma=0.1, down=1, up=1))
    found = vae._pixel_losses(torch.tensor([[[[1.0, 0.0, 0.5]]]]), torch.full((1, 1, 1, 3), math.log(3)))
    assert found.flatten().tolist() == pytest.approx(expected, rel=1e-5)


class LinearGaussian(Vae):
    """x = W z + b + .1 noise, whose evidence and posterior are known; q(z|x) is what the test says."""

    W = 0.1 * torch.tensor([[1.0, 1], [1, -1], [1, 1], [1, -1]], dtype=torch.float64)  # (pixels, latent), orthogonal
    b = torch.tensor([0.4, 0.5, 0.6, 0.5], dtype=torch.float64)

    def __init__(self) -> None:
        super().__init__(Architecture(2, 2, 1, latent=2, hidden=4, down=1, up=1, likelihood="gaussian", sigma=0.1))
        self.q = (torch.zeros(2), torch.zeros(2))

    def encode(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.q[0].expand(len(x), 2), self.q[1].expand(len(x), 2)

    def logits(self, z: torch.Tensor) -> torch.Tensor:
        return torch.logit(z @ self.W.T + self.b).reshape(-1, 1, 2, 2)  # taken back by the sigmoid

    def elbo(self, x: torch.Tensor) -> float:
        """The integrand is a square in z: three points of Gauss-Hermite in each dimension are exact."""
        points, shares = np.polynomial.hermite_e.hermegauss(3)
        noise = torch.tensor(list(product(points, points)), dtype=torch.float64)
        weights = torch.tensor([a * b for a, b in product(shares, shares)]) / shares.sum() ** 2
        surprise, kl = self.terms(x.expand(9, -1, -1, -1), noise)
        return -float((weights * (surprise + kl)).sum())


def test_the_bound_is_the_evidence_at_the_posterior_and_below_it_by_the_divergence_elsewhere():
    """log p(x) = log N(x; b, W W' + s^2 I), and ELBO(q) = log p(x) - KL(q || posterior)."""
    vae, s2 = LinearGaussian(), 0.01
    x = vae.b + torch.tensor([0.15, -0.05, 0.1, 0.02], dtype=torch.float64)
    whole = torch.distributions.MultivariateNormal(vae.b, vae.W @ vae.W.T + s2 * torch.eye(4, dtype=torch.float64))
    evidence = float(whole.log_prob(x))
    variance = 1 / (1 + (vae.W**2).sum(dim=0) / s2)  # 1/5 in both dimensions
    mean = variance * (vae.W.T @ (x - vae.b)) / s2
    vae.q = mean, variance.log()
    assert vae.elbo(x.reshape(1, 1, 2, 2)) == pytest.approx(evidence, abs=1e-9)
    for shift, ratio in ((0.0, 2.0), (0.3, 1.0), (-0.2, 0.5)):
        vae.q = mean + shift, (ratio * variance).log()
        gap = 0.5 * (shift**2 / variance + ratio - 1 - math.log(ratio)).sum()
        assert vae.elbo(x.reshape(1, 1, 2, 2)) == pytest.approx(evidence - float(gap), abs=1e-9)
        assert gap > 0.1


def test_the_lower_bound_of_pictures_is_the_mean_of_its_terms():
    vae, images = new_vae(TINY), bars(20)
    noise = torch.randn(20, 2, generator=torch.Generator().manual_seed(3))
    with torch.no_grad():
        surprise, kl = vae.terms(torch.from_numpy(images).permute(0, 3, 1, 2) / 255, noise)
    told = lower_bound(vae, images, seed=3)
    assert told["reconstruction"] == pytest.approx(-float(surprise.mean()), rel=1e-5)
    assert told["kl"] == pytest.approx(float(kl.mean()), rel=1e-5)
    assert told["elbo"] == told["reconstruction"] - told["kl"]


# --- shapes ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "size", "latent", "channels", "down", "up"),
    [("mnist", (28, 28, 1), 10, 32, 3, 4), ("svhn", (32, 32, 3), 10, 64, 3, 4), ("signs", (64, 64, 3), 15, 64, 4, 5)],
)
def test_the_published_architectures(name, size, latent, channels, down, up):
    vae = new_vae(published_architecture(name, *size))
    convolutions = [layer for layer in vae.encoder if isinstance(layer, nn.Conv2d)]
    transposed = [layer for layer in vae.decoder if isinstance(layer, nn.ConvTranspose2d)]
    assert (len(convolutions), len(transposed)) == (down, up)
    assert {layer.out_channels for layer in convolutions} == {channels}
    assert [layer.out_channels for layer in transposed] == [channels] * (up - 1) + [size[2]]
    assert {(layer.kernel_size, layer.stride) for layer in convolutions + transposed} == {((4, 4), (2, 2))}
    assert [layer.out_features for layer in vae.encoder if isinstance(layer, nn.Linear)] == [256, 256, 2 * latent]
    assert vae.decode(torch.zeros(2, latent)).shape == (2, size[2], *size[:2])


@pytest.mark.parametrize(("name", "size"), [("mnist", (28, 28, 1)), ("svhn", (32, 32, 3))])
def test_what_fits_is_what_was_published(name, size):
    assert fitting_architecture(*size) == published_architecture(name, *size)


def test_what_was_never_published_is_named():
    with pytest.raises(InputError, match="no published architecture 'cifar'; there are mnist, svhn, signs"):
        published_architecture("cifar", 32, 32, 3)


@pytest.mark.parametrize("size", [(28, 28, 1), (33, 47, 1), (64, 64, 3), (3, 5, 1), (1, 1, 3)])
def test_pictures_of_any_size_come_back_in_that_size(size):
    vae, images = new_vae(fitting_architecture(*size, latent=3)), np.zeros((2, *size), np.uint8)
    codes = encode_images(vae, images)
    assert codes.shape == (2, 3)
    assert codes.dtype == np.float32
    assert decode_codes(vae, codes).shape == images.shape
    assert decode_codes(vae, codes).dtype == np.uint8
    assert math.isfinite(lower_bound(vae, images)["elbo"])


def test_batches_do_not_matter_and_nothing_is_nothing():
    vae, images = new_vae(TINY), bars(7)
    codes = encode_images(vae, images)
    np.testing.assert_allclose(encode_images(vae, images[..., 0], batch=3), codes, atol=1e-6)  # grey
    assert np.abs(decode_codes(vae, codes, batch=2).astype(int) - decode_codes(vae, codes)).max() <= 1
    assert decode_codes(vae, encode_images(vae, images[:0])).shape == (0, 8, 8, 1)


@pytest.mark.parametrize("shape", [(2, 9, 8, 1), (2, 8, 8, 3)])
def test_a_picture_of_another_size_is_refused(shape):
    with pytest.raises(InputError, match=r"takes images of \(1, 8, 8\): channels, height, width; got"):
        encode_images(new_vae(TINY), np.zeros(shape, np.uint8))


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"latent": 0}, "`latent` of the VAE must be at least 1; got 0"),
        ({"down": -1}, "`down` of the VAE must be at least 1"),
        ({"likelihood": "poisson"}, "must be bernoulli or gaussian and `sigma` above 0; got poisson"),
        ({"sigma": 0.0}, "and `sigma` above 0; got bernoulli, 0.0"),
        ({"sigma": math.nan}, "and `sigma` above 0"),
    ],
)
def test_an_architecture_that_cannot_be_is_refused(more: dict[str, Any], words: str):
    with pytest.raises(InputError, match=words):
        Architecture(8, 8, 1, **more)


def test_what_is_kept_draws_the_same_pictures():
    vae = new_vae(TINY, seed=5)
    again, codes = Vae.from_state(vae.to_state()), np.random.default_rng(0).normal(size=(9, 2))
    np.testing.assert_array_equal(decode_codes(again, codes), decode_codes(vae, codes))
    np.testing.assert_array_equal(encode_images(again, bars(5)), encode_images(vae, bars(5)))
    assert again.architecture == TINY


@pytest.mark.parametrize("change", ["one less", "another shape", "one more"])
def test_weights_of_another_architecture_are_refused(change):
    state = new_vae(TINY).to_state()
    arrays = dict(state.arrays)
    name = next(iter(arrays))
    if change == "one less":
        del arrays[name]
    else:
        arrays[name if change == "another shape" else "more"] = np.zeros((1, 2), np.float32)
    with pytest.raises(InputError, match="does not have the weights of its architecture; train it again"):
        Vae.from_state(State("vae", state.facts, arrays))


# --- training --------------------------------------------------------------------------------------------------


class Slope(nn.Module):
    """Surprise has no slope and KL one of 1: the gradient is what KL counts."""

    def __init__(self) -> None:
        super().__init__()
        self.architecture = TINY
        self.p, self.counted = nn.Parameter(torch.zeros(())), []  # type: nn.Parameter, list[float]
        self.p.register_hook(lambda grad: self.counted.append(float(grad)))

    def terms(self, x: torch.Tensor, noise: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return torch.ones(len(x)), self.p.expand(len(x))


@pytest.mark.parametrize(
    ("beta", "anneal", "counted", "shares"),
    [
        (2.0, 4, [0.5, 1.0, 1.5, 2.0, 2.0, 2.0], [0.5, 1.0, 1.0]),
        (2.0, 0, [2.0] * 6, [1.0] * 3),
        (0.0, 4, [0.0] * 6, [0.5, 1.0, 1.0]),
    ],
)
def test_kl_counts_more_with_every_step_until_it_counts_in_full(beta, anneal, counted, shares):
    """Two steps an epoch, three epochs."""
    model = Slope()
    history = fit_vae(model, bars(10), epochs=3, batch=5, beta=beta, anneal=anneal)
    assert model.counted == pytest.approx(counted)
    assert [epoch.share for epoch in history] == pytest.approx(shares)


def trained(seed: int) -> Vae:
    vae = new_vae(TINY, seed=1)
    fit_vae(vae, bars(), epochs=2, batch=16, seed=seed)
    return vae


def test_a_seed_decides_and_the_global_chance_is_left_alone():
    before = torch.get_rng_state()
    assert state_fingerprint(trained(0)) == state_fingerprint(trained(0)) != state_fingerprint(trained(1))
    assert state_fingerprint(new_vae(TINY, 1)) == state_fingerprint(new_vae(TINY, 1))
    assert state_fingerprint(new_vae(TINY, 1)) != state_fingerprint(new_vae(TINY, 2))
    assert torch.equal(torch.get_rng_state(), before)


def test_a_vae_learns_a_toy_set():
    vae, images = new_vae(TINY), bars(128)
    shares: list[float] = []
    before = lower_bound(vae, bars(50, seed=1))["elbo"]
    history = fit_vae(
        vae,
        images,
        epochs=40,
        batch=32,
        lr=5e-3,
        beta=0.5,
        anneal=20,
        progress=lambda stage, share: shares.append(share),
    )
    losses = [epoch.reconstruction + epoch.kl for epoch in history]
    assert shares == [(number + 1) / 40 for number in range(40)]
    assert [epoch.number for epoch in history] == list(range(40))
    assert losses[-1] < 0.7 * losses[0]
    assert lower_bound(vae, bars(50, seed=1))["elbo"] > before + 10  # nats, on pictures it did not see
    error = np.abs(decode_codes(vae, encode_images(vae, images)).astype(float) - images).mean()
    assert error < 0.5 * np.abs(images - images.mean(axis=0)).mean()  # half of what one picture for all would leave


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"epochs": 0}, "2 images, 1 epoch and batches of 2; got 64, 0, 2048"),
        ({"batch": 1}, "batches of 2; got 64, 1, 1"),
        ({"beta": -1.0}, "`beta` and `anneal` must not be negative; got -1.0 and 500"),
        ({"beta": math.nan}, "`beta` and `anneal` must not be negative"),
        ({"anneal": -1}, "`beta` and `anneal` must not be negative; got 1.0 and -1"),
    ],
)
def test_training_that_cannot_be_is_refused(more, words):
    with pytest.raises(InputError, match=words):
        fit_vae(new_vae(TINY), bars(), **{"epochs": 1, **more})
    with pytest.raises(InputError, match="2 images, 1 epoch and batches of 2; got 1, 1, 2048"):
        fit_vae(new_vae(TINY), bars(1), epochs=1)


def test_a_loss_that_runs_away_is_told_and_so_are_pictures_that_are_none():
    with pytest.raises(InputError, match=r"the VAE's loss in epoch .* is .* steps; use a smaller `lr`"):
        fit_vae(new_vae(TINY), bars(), epochs=5, batch=16, lr=1e20)
    with pytest.raises(InputError, match=r"must be bytes .* channels last; got float64 \(4, 8, 8, 1\)"):
        fit_vae(new_vae(TINY), np.zeros((4, 8, 8)), epochs=1)
    with pytest.raises(InputError, match=r"channels last; got uint8 \(4, 3, 8, 8\)"):
        encode_images(new_vae(TINY), np.zeros((4, 3, 8, 8), np.uint8))
