"""Further training on rows and extra rows: the loss by hand, and which epoch the result is of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from errata.core import InputError
from errata.tensors import state_fingerprint
from errata.train import TuningEpoch, fine_tune, measure_accuracy, tuning
from errata.train.tuning import best_epoch

Set = tuple[np.ndarray, np.ndarray]


def linear(outputs: int = 3, seed: int = 0) -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return nn.Sequential(nn.Flatten(), nn.Linear(4, outputs))


def rows(n: int, seed: int, classes: int = 3) -> Set:
    rng = np.random.default_rng(seed)
    return rng.integers(256, size=(n, 2, 2), dtype=np.uint8), rng.integers(classes, size=n)


def gradient(weights: np.ndarray, bias: np.ndarray, given: Set) -> tuple[np.ndarray, np.ndarray]:
    """Of the mean cross-entropy of a linear model, with pixels 2 x - 1: (softmax - one-hot) x, averaged."""
    x = 2 * (given[0].reshape(len(given[0]), -1) / 255) - 1
    logits = x @ weights.T + bias
    probs = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    probs[np.arange(len(x)), given[1]] -= 1
    return probs.T @ x / len(x), probs.mean(axis=0)


@pytest.mark.parametrize("strength", [0.0, 0.3, 20.0])
def test_one_step_goes_down_the_sum_of_both_losses(strength, monkeypatch):
    """By plain descent in one batch, in which a step is the gradient; rows and others are not equally many."""
    monkeypatch.setattr(torch.optim, "Adam", lambda given, lr, fused: torch.optim.SGD(given, lr))
    model, own, others = linear(), rows(12, 0), rows(5, 1)
    weights, bias = (value.detach().double().numpy() for value in model.parameters())
    tuned, _ = fine_tune(
        model, own, others, strength=strength, validation=own, prepare=lambda x: 2 * x - 1, epochs=1, batch=64, lr=0.1
    )
    parts = [gradient(weights, bias, given) for given in (own, others)]
    for now, before, mine, theirs in zip(tuned.parameters(), (weights, bias), *parts, strict=True):
        np.testing.assert_allclose(now.detach().numpy(), before - 0.1 * (mine + strength * theirs), atol=1e-6)


def test_the_loss_that_is_told_is_that_sum_at_the_start():
    """Every loss is log 3 before anything is learnt."""
    model = linear()
    for value in model.parameters():
        nn.init.zeros_(value)
    told = fine_tune(model, rows(12, 0), rows(5, 1), strength=0.5, validation=rows(4, 2), epochs=1, batch=64)[1]
    assert told[0].loss == pytest.approx(1.5 * np.log(3), rel=1e-6)


def test_others_of_no_strength_do_not_matter_and_otherwise_they_do():
    for strength, equal in ((0.0, True), (0.1, False)):
        ends = [
            fine_tune(linear(), rows(40, 0), rows(9, seed), strength=strength, validation=rows(9, 3), batch=8)[0]
            for seed in (1, 2)
        ]
        assert (state_fingerprint(ends[0]) == state_fingerprint(ends[1])) is equal


def test_both_are_learnt_and_others_start_over_when_they_end():
    """Rows say that bright is 1; the others, that are few, that a bright corner alone is 1, which no row shows."""
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=200)
    own = (rng.integers(0, 90, (200, 2, 2)) + 150 * labels[:, None, None]).astype(np.uint8), labels
    others = np.tile(np.array([[255, 0], [0, 0]], np.uint8), (3, 1, 1)), np.ones(3, np.int64)
    model = linear(2)
    tuned, told = fine_tune(model, own, others, strength=1.0, validation=own, epochs=60, batch=20, lr=0.02)
    assert told[-1].extra_accuracy == measure_accuracy(tuned, others) == 1.0
    assert measure_accuracy(tuned, own) > 0.95


def test_one_logit_is_tuned_too():
    own = rows(60, 0, classes=2)
    own = own[0], (own[0].mean(axis=(1, 2)) > 127).astype(np.int64)
    tuned, told = fine_tune(linear(1), own, own, strength=1.0, validation=own, epochs=80, batch=20, lr=0.05)
    assert measure_accuracy(tuned, own) == max(one.validation_accuracy for one in told) > 0.9


class Story:
    """Stands for `_accuracy`: says what it was told to, of validation then of others, and keeps the weights it saw."""

    def __init__(self, *accuracies: float):
        self.accuracies, self.seen = list(accuracies), []  # type: list[float], list[str]

    def __call__(self, model: nn.Module, prepare: Any, given: Any) -> float:
        if len(given.labels) != 7:  # the others
            return 0.5
        self.seen.append(state_fingerprint(model))
        return self.accuracies[len(self.seen) - 1]


def told(monkeypatch: pytest.MonkeyPatch, *accuracies: float, **more: Any) -> tuple[nn.Module, Story, int]:
    story = Story(*accuracies)
    monkeypatch.setattr(tuning, "_accuracy", story)
    given = {"strength": 1.0, "validation": rows(7, 3), "batch": 8, "epochs": len(accuracies), **more}
    tuned, history = fine_tune(linear(), rows(20, 0), rows(5, 1), **given)
    assert [one.validation_accuracy for one in history] == list(accuracies[: len(history)])
    return tuned, story, len(history)


@pytest.mark.parametrize(
    ("accuracies", "best"), [((0.2, 0.9, 0.5, 0.8), 1), ((0.2, 0.4, 0.6), 2), ((0.9, 0.1), 0), ((0.5, 0.5, 0.4), 1)]
)
def test_the_network_is_as_it_was_after_its_best_epoch(accuracies, best, monkeypatch):
    """Of equal ones the last."""
    tuned, story, epochs = told(monkeypatch, *accuracies)
    assert epochs == len(accuracies)
    assert len(set(story.seen)) == epochs
    assert state_fingerprint(tuned) == story.seen[best]


def test_another_preference_keeps_another_epoch(monkeypatch):
    """Here the less accurate, the better; and of the epochs so far the last of the best is told."""
    tuned, story, _ = told(monkeypatch, 0.5, 0.2, 0.9, prefer=lambda one: -one.validation_accuracy)
    assert state_fingerprint(tuned) == story.seen[1]
    history = [TuningEpoch(j, 1.0, held, 0.5) for j, held in enumerate((0.4, 0.7, 0.7, 0.1))]
    assert best_epoch(history) == 2
    assert best_epoch(history, lambda one: 0) == 3
    assert told(monkeypatch, 0.1, 0.2, 0.3, prefer=lambda one: -one.number)[2] == 3


def test_without_extra_rows_it_is_trained_on_its_own_alone():
    """As with extra rows of strength 0, but for what a batch normalises by."""
    options: dict[str, Any] = {"validation": rows(9, 3), "batch": 8}
    alone, history = fine_tune(linear(), rows(40, 0), **options)
    beside, _ = fine_tune(linear(), rows(40, 0), rows(9, 1), strength=0.0, **options)
    for mine, theirs in zip(alone.parameters(), beside.parameters(), strict=True):
        torch.testing.assert_close(mine, theirs, atol=1e-6, rtol=0)
    assert {epoch.extra_accuracy for epoch in history} == {None}


class Moody(nn.Module):
    """Normalises by its batch and drops at random: it has a mode, buffers and a use for chance."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 3, 1), nn.BatchNorm2d(3), nn.Dropout(0.5), nn.Flatten(), nn.Linear(12, 3)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        logits: torch.Tensor = self.layers(x)
        return logits


def moody() -> nn.Module:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Moody().eval()


def test_the_given_network_is_untouched_and_its_mode_is_kept():
    model = moody()
    before = state_fingerprint(model)
    tuned, _ = fine_tune(model, rows(40, 0), rows(9, 1), strength=1.0, validation=rows(9, 2), batch=8)
    assert state_fingerprint(model) == before != state_fingerprint(tuned)
    assert not any(module.training for module in [*model.modules(), *tuned.modules()])


def test_a_network_that_is_frozen_for_its_audit_is_tuned_all_the_same():
    """Its copy is; the given one stays frozen."""
    model = linear().requires_grad_(False)
    before = state_fingerprint(model)
    tuned, _ = fine_tune(model, rows(40, 0), rows(9, 1), strength=1.0, validation=rows(9, 2), batch=8)
    assert state_fingerprint(model) == before
    assert not any(value.requires_grad for value in model.parameters())
    for now, then in zip(tuned.parameters(), model.parameters(), strict=True):
        assert not torch.equal(now, then)


def test_what_only_in_part_is_frozen_stays_so():
    model = linear()
    model[1].weight.requires_grad_(False)
    tuned, _ = fine_tune(model, rows(40, 0), rows(9, 1), strength=1.0, validation=rows(9, 2), batch=8)
    assert torch.equal(tuned[1].weight, model[1].weight)
    assert not torch.equal(tuned[1].bias, model[1].bias)


@pytest.mark.parametrize("make", [linear, moody])
def test_a_seed_decides_and_the_global_chance_is_left_alone(make: Callable[[], nn.Module]):
    def end(seed: int) -> str:
        given: dict[str, Any] = {"strength": 1.0, "validation": rows(9, 2), "batch": 8, "seed": seed}
        return state_fingerprint(fine_tune(make(), rows(40, 0), rows(9, 1), **given)[0])

    before = torch.get_rng_state()
    first = end(0)
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(3)
    assert end(0) == first != end(1)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"epochs": 0}, "1 epoch, batches of 2, strength >= 0; got 0, 256, 1.0"),
        ({"batch": 1}, "got 3, 1, 1.0"),
        ({"strength": -0.1}, "got 3, 256, -0.1"),
        ({"strength": float("inf")}, "got 3, 256, inf"),
        ({"extra": rows(0, 0)}, "`extra` needs one label per image, and one image; got 0, 0"),
        (
            {"validation": (rows(4, 0)[0], np.zeros(3))},
            "`validation` needs one label per image, and one image; got 3, 4",
        ),
        ({"rows": (np.zeros((4, 2, 2)), np.zeros(4))}, "`rows` must be bytes"),
    ],
)
def test_tuning_that_cannot_be_is_refused(more, words):
    given = {"rows": rows(9, 0), "extra": rows(9, 1), "validation": rows(9, 2), "strength": 1.0, **more}
    with pytest.raises(InputError, match=words):
        fine_tune(linear(), given.pop("rows"), given.pop("extra"), **given)


def test_a_network_without_weights_cannot_be_tuned():
    with pytest.raises(InputError, match="no weights that can be tuned; give one that has parameters"):
        fine_tune(nn.Flatten(), rows(9, 0), rows(9, 1), strength=1.0, validation=rows(9, 2))


def test_a_loss_that_runs_away_is_told():
    with pytest.raises(InputError, match=r"the loss at strength 1e\+38 is .* steps; use a smaller `lr` or strength"):
        fine_tune(linear(), rows(9, 0), rows(9, 1), strength=1e38, validation=rows(9, 2), batch=2, lr=1e30)
