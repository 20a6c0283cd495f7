"""What mending asks of training: rows that count more, a loss that leans on what is easy, and a last layer alone."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from torch import nn

from errata.core import InputError
from errata.tensors import state_fingerprint
from errata.train import fine_tune_head, fit, generalised_cross_entropy, network, outputs

PX = 16


def pictures(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Grey noise, in class 1 with a bright upper half."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(2, size=n)
    images = rng.integers(0, 120, size=(n, PX, PX, 3), dtype=np.uint8)
    images[labels == 1, : PX // 2] += 100
    return images, labels


class Linear(nn.Module):
    """The mean of each third of the picture, and a linear head: small enough for a gradient by hand."""

    def __init__(self, outputs: int = 2):
        super().__init__()
        self.pool, self.head = nn.AdaptiveAvgPool2d((3, 1)), nn.Linear(9, outputs)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.head(self.pool(x).flatten(1))
        return logits


def test_a_weight_multiplies_the_loss_of_its_row() -> None:
    """At the start every row's loss is log 2: the mean loss is log 2 times the mean weight."""
    images, labels = pictures(40, 0)
    for weights, mean in ((np.linspace(0, 3, 40), 1.5), (None, 1.0)):
        history = fit(Linear(), images, labels, epochs=1, batch=200, lr=1e-2, weights=weights)
        assert history[0].loss == pytest.approx(np.log(2) * mean, rel=1e-5)


def test_a_row_of_weight_two_is_a_row_given_twice() -> None:
    """In full batches, whose gradients then differ by one factor, which Adam takes out."""
    images, labels = pictures(40, 0)
    twice = np.arange(40) % 4 == 0
    ends = []
    for rows, weights in (
        (np.arange(40), np.where(twice, 2.0, 1.0)),
        (np.concatenate([np.arange(40), np.flatnonzero(twice)]), None),
        (np.arange(40), None),
    ):
        model = Linear()
        fit(model, images[rows], labels[rows], epochs=20, batch=200, lr=1e-2, weights=weights)
        ends.append(model.head.weight.detach())
    assert float((ends[0] - ends[1]).abs().max()) < 1e-4 < float((ends[0] - ends[2]).abs().max())


def test_rows_of_no_weight_teach_nothing() -> None:
    images, labels = pictures(200, 0)
    lied = np.where(np.arange(200) < 100, 1 - labels, labels)  # half of the labels are wrong, and do not count
    model = network("small", px=PX, seed=3)
    fit(model, images, lied, epochs=6, batch=32, lr=3e-3, weights=(np.arange(200) >= 100).astype(float))
    fresh, truth = pictures(100, 1)
    assert ((outputs(model, fresh)[0][:, 0] > 0) == truth).mean() > 0.95


@pytest.mark.parametrize(
    ("weights", "said"),
    [
        (np.ones(3), "one number for each of 40 rows; got shape"),
        (np.full(40, -1.0), "finite and not negative; got -1.0 in row 0"),
        (np.where(np.arange(40) == 7, np.nan, 1.0), "got nan in row 7"),
    ],
)
def test_weights_that_cannot_be_are_named(weights: np.ndarray, said: str) -> None:
    images, labels = pictures(40, 0)
    with pytest.raises(InputError, match=said):
        fit(network("small", px=PX), images, labels, epochs=1, batch=8, lr=1e-3, weights=weights)
    with pytest.raises(InputError, match=said):
        fine_tune_head(network("small", px=PX), images, labels, weights=weights)


def test_generalised_cross_entropy_is_its_formula() -> None:
    logits, targets = torch.tensor([[2.0, -1.0], [0.3, 0.9]]), torch.tensor([0, 0])
    p = torch.softmax(logits, dim=1)[:, 0]
    assert generalised_cross_entropy(0.7)(logits, targets).tolist() == pytest.approx(((1 - p**0.7) / 0.7).tolist())
    # q towards 0 is cross-entropy, q = 1 the mean absolute error.
    assert generalised_cross_entropy(1e-4)(logits, targets).tolist() == pytest.approx((-p.log()).tolist(), rel=1e-3)
    assert generalised_cross_entropy(1.0)(logits, targets).tolist() == pytest.approx((1 - p).tolist())
    one = torch.tensor([[0.8], [-0.4]])
    q = torch.sigmoid(one[:, 0])
    expected = [float((1 - q[0] ** 0.7) / 0.7), float((1 - (1 - q[1]) ** 0.7) / 0.7)]
    assert generalised_cross_entropy()(one, torch.tensor([1, 0])).tolist() == pytest.approx(expected)
    with pytest.raises(InputError, match="`q` must lie above 0"):
        generalised_cross_entropy(0)


def test_the_loss_that_is_asked_for_is_learnt_from() -> None:
    images, labels = pictures(40, 0)
    history = fit(Linear(), images, labels, epochs=1, batch=200, lr=1e-3, loss=generalised_cross_entropy(0.7))
    assert history[0].loss == pytest.approx((1 - 0.5**0.7) / 0.7, rel=1e-5)


def test_only_the_last_layer_moves() -> None:
    images, labels = pictures(200, 0)
    model = network("small", px=PX, seed=3)
    fit(model, images, labels, epochs=1, batch=32, lr=1e-3)
    before, modes = copy.deepcopy(model.state_dict()), [module.training for module in model.modules()]
    loss = fine_tune_head(model, images, 1 - labels, epochs=40, batch=64, lr=1e-2)
    moved = {name for name, value in model.state_dict().items() if not torch.equal(value, before[name])}
    assert moved == {"head.weight", "head.bias"}
    assert modes == [module.training for module in model.modules()]
    assert loss < 0.3
    assert ((outputs(model, images)[0][:, 0] > 0) == labels).mean() < 0.1  # it learnt the labels it was given


def test_the_head_repeats_itself_and_heeds_weights() -> None:
    images, labels = pictures(120, 0)
    odd = np.where(np.arange(120) < 60, labels, 1 - labels)
    start = network("small", px=PX, seed=3)
    fit(start, images, labels, epochs=2, batch=32, lr=3e-3)

    def tuned(seed: int, weights: np.ndarray | None = None) -> nn.Module:
        model = copy.deepcopy(start)
        fine_tune_head(model, images, odd, epochs=30, batch=32, lr=1e-2, seed=seed, weights=weights)
        return model

    assert state_fingerprint(tuned(1)) == state_fingerprint(tuned(1)) != state_fingerprint(tuned(2))
    first = (np.arange(120) < 60).astype(float)
    right = [((outputs(tuned(1, w), images)[0][:, 0] > 0) == labels).mean() for w in (first, 1 - first)]
    assert right[0] > 0.9
    assert right[1] < 0.1


def test_a_head_that_is_not_linear_is_named() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Conv2d(4, 2, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    with pytest.raises(InputError, match="the last layer is a Conv2d"):
        fine_tune_head(model, *pictures(8, 0))
