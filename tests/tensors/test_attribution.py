"""What a lens shows of a feature is what the model itself has: its values, its maps, its gradient."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from errata.core import InputError
from errata.tensors import Attribution, Ball, as_pixels, capture_layer, evaluating
from errata.train import ResNet18, normalise_bytes, normalise_pixels

torch.set_num_threads(1)
WIDE = np.random.default_rng(0).random((5, 12, 20, 3), dtype=np.float32)  # wider than high


class Pooled(nn.Module):
    """The mean of each map is a feature; the last feature is never on."""

    def __init__(self, d: int = 6):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, d, 3))
        self.norm, self.head = nn.BatchNorm2d(d), nn.Linear(d, 3)
        self.norm.bias.data[-1] = -1e3

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.norm(self.body(x))).mean(dim=(2, 3)))


class Flat(nn.Module):
    """A hidden layer over all places of the maps: a feature is no map of its own."""

    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 4, 3, stride=4), nn.ReLU(), nn.Flatten())
        self.hidden, self.head = nn.Linear(4 * 3 * 5, 7, bias=False), nn.Linear(7, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.hidden(self.body(x)))


class Convolved(nn.Module):
    """The head is a convolution of size one, whose output is a map as well."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Conv2d(3, 6, 3, stride=2), nn.Conv2d(6, 2, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(torch.relu(self.body(x))).mean(dim=(2, 3))


def made(kind: type[nn.Module]) -> nn.Module:
    torch.manual_seed(0)
    return kind()


def penultimate(model: nn.Module, images: np.ndarray) -> np.ndarray:
    with evaluating(model), capture_layer(model) as capture:
        model(as_pixels(images))
        return capture.take(len(images)).numpy()


@pytest.mark.parametrize("kind", [Pooled, Flat, Convolved])
def test_features_are_what_a_tap_keeps(kind):
    model = made(kind)
    np.testing.assert_allclose(Attribution(model, batch=2).features(WIDE), penultimate(model, WIDE), atol=1e-6)


def test_heat_of_a_pooled_feature_is_its_own_map():
    model = made(Pooled)
    lens = Attribution(model, batch=2)
    maps, features = lens.maps(WIDE), lens.features(WIDE)
    assert maps.shape == (5, 6, 4, 8)
    for unit in range(5):
        heat = lens.heat(WIDE, unit)
        np.testing.assert_allclose(heat, np.maximum(maps[:, unit], 0) / 32, atol=1e-6)
        np.testing.assert_allclose(heat.sum(axis=(1, 2)), features[:, unit], atol=1e-5)


def test_the_standard_network_too():
    torch.manual_seed(1)
    model = ResNet18(outputs=2, px=16, widths=(4, 4, 4, 5)).eval()
    images = np.random.default_rng(1).integers(0, 256, (3, 16, 16, 3), dtype=np.uint8)
    lens = Attribution(model, prepare=normalise_pixels)
    with capture_layer(model) as capture, torch.no_grad():
        model(normalise_bytes(torch.from_numpy(images)))
        expected = capture.take(3)
    np.testing.assert_allclose(lens.features(images), expected, atol=1e-5)
    np.testing.assert_allclose(lens.maps(images).mean(axis=(2, 3)), lens.features(images), atol=1e-5)
    np.testing.assert_allclose(lens.heat(images, 3), lens.maps(images)[:, 3] / 4, atol=1e-6)


def test_heat_of_any_other_feature_adds_up_where_the_model_is_linear():
    model = made(Flat)
    weights = model.hidden.weight.detach().numpy()[2].reshape(4, 3, 5)
    lens = Attribution(model)
    expected = (lens.maps(WIDE).clip(0) * weights).sum(axis=1)
    np.testing.assert_allclose(lens.heat(WIDE, 2), np.maximum(expected, 0), atol=1e-5)


def test_maps_before_a_convolution_of_size_one_are_the_features_own():
    lens = Attribution(made(Convolved))
    assert lens.maps(WIDE).shape[1] == 6
    np.testing.assert_allclose(lens.maps(WIDE).clip(0).mean(axis=(2, 3)), lens.features(WIDE), atol=1e-5)


def test_a_dead_feature_has_no_heat_and_cannot_be_raised():
    lens = Attribution(made(Pooled))
    assert not lens.heat(WIDE, 5).any()
    found, before, after, gone = lens.attack(WIDE, 5, Ball(1.0, 3))
    assert not before.any()
    assert not after.any()
    assert not gone.any()
    np.testing.assert_allclose(found, WIDE, atol=1e-6)


def test_an_attack_raises_the_feature_within_its_radius():
    lens = Attribution(made(Pooled), batch=2)
    found, before, after, gone = lens.attack(WIDE, 1, Ball(0.5, 8))
    assert found.shape == WIDE.shape
    assert (after > before).all()
    np.testing.assert_allclose(before, lens.features(WIDE)[:, 1], atol=1e-6)
    np.testing.assert_allclose(after, lens.features(found)[:, 1], atol=1e-5)
    moved = np.linalg.norm((found - WIDE).reshape(5, -1), axis=1)
    np.testing.assert_allclose(moved, gone, rtol=1e-3)
    assert moved.max() <= 0.5 + 1e-5
    assert found.min() >= 0
    assert found.max() <= 1
    further = lens.attack(WIDE, 1, Ball(2.0, 8))[2]
    assert (further > after).all()


def test_a_named_layer_and_named_maps():
    model = made(Pooled)
    lens = Attribution(model, layer="body.0", maps="body.2")
    assert lens.features(WIDE).shape == (5, 8 * 12 * 20)
    assert Attribution(model, maps="body.2").maps(WIDE).shape == (5, 8, 6, 10)
    heat = Attribution(model, layer="body.3").heat(WIDE, 9)  # channel 0, row 1, column 1 of (4, 8)
    assert np.count_nonzero(heat) <= heat.size
    assert (np.delete(heat.reshape(5, -1), 9, axis=1) == 0).all()


def test_the_model_is_left_as_it_was():
    model = made(Pooled).train()
    model.head.weight.requires_grad_(False)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    Attribution(model).attack(WIDE, 0, Ball(0.5, 2))
    Attribution(model).heat(WIDE, 0)
    assert model.training
    assert not model.head.weight.requires_grad
    assert all(parameter.grad is None for parameter in model.parameters())
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_hooks_go_also_after_an_error():
    model = made(Pooled)
    with pytest.raises(RuntimeError):
        Attribution(model).heat(WIDE[..., :1], 0)
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


def test_pixels_from_bytes_floats_and_grey():
    grey = np.array([[[0, 51, 255]]], dtype=np.uint8)
    assert as_pixels(grey).shape == (1, 1, 1, 3)
    assert as_pixels(grey).flatten().tolist() == pytest.approx([0, 0.2, 1])
    assert as_pixels(WIDE).shape == (5, 3, 12, 20)


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda: as_pixels(np.zeros((2, 3, 8, 8))), r"channels last; got \(2, 3, 8, 8\)"),
        (lambda: as_pixels(np.zeros((2, 8, 8, 3), dtype=int)), "bytes, or floats"),
        (lambda: as_pixels(np.full((1, 2, 2, 3), 1.5)), r"must lie in \[0, 1\]; undo the normalisation"),
        (lambda: as_pixels(np.full((1, 2, 2, 3), np.nan)), r"must lie in \[0, 1\]"),
        (lambda: Attribution(made(Pooled), layer="bodi").features(WIDE), "unknown layer `bodi`; did you mean `body`"),
        (lambda: Attribution(made(Pooled), maps="head").maps(WIDE), "gives maps"),
        (lambda: Attribution(nn.Sequential(nn.Flatten(), nn.Linear(720, 2))).heat(WIDE, 0), "gives maps"),
        (lambda: Attribution(nn.Sequential(nn.Conv2d(3, 2, 3))).features(WIDE), "no linear layer ran"),
    ],
)
def test_bad_input_is_one_sentence(act, words):
    with pytest.raises(InputError, match=words):
        act()
