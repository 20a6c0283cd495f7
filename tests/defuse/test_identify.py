"""Identification: the noise by its formulas, and what is found, by hand and whatever the batches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

from errata.core import InputError
from errata.defuse.identify import Classifier, Noise, identify, predict_classes
from errata.defuse.regions import Mistakes
from errata.defuse.vae import Architecture, Vae, new_vae

NOISE = Noise(5, 5, 4)  # sd .6


class TwoPixels(Vae):
    """A code is two numbers, a picture their sigmoids: all can be done by hand."""

    def __init__(self) -> None:
        super().__init__(Architecture(1, 2, 1, latent=2, channels=1, hidden=2, down=1, up=1))

    def encode(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        mean = 4 * x.flatten(1) - 2
        return mean, torch.zeros_like(mean)

    def logits(self, z: torch.Tensor) -> torch.Tensor:
        return z.reshape(-1, 1, 1, 2)


class Brighter(nn.Module):
    """Which of the two pixels is brighter; notes how many pictures come at once, and takes no more than `most`."""

    def __init__(self, most: int = 10**9, logits: int = 2):
        super().__init__()
        self.most, self.logits, self.seen = most, logits, []  # type: int, int, list[int]
        self.scale = nn.Parameter(torch.ones(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.append(len(x))
        if len(x) > self.most:
            raise torch.cuda.OutOfMemoryError
        pixels = self.scale * x.flatten(1)
        return pixels if self.logits == 2 else pixels[:, 1:] - pixels[:, :1]


def two_pixels(n: int = 12, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    images = np.random.default_rng(seed).integers(60, 196, (n, 1, 2, 1), dtype=np.uint8)
    return images, (images[:, 0, 1, 0] > images[:, 0, 0, 0]).astype(np.int64)


def found(model: nn.Module | None = None, given: Any = None, **more: Any) -> Mistakes:
    images, labels = given or two_pixels()
    return identify(TwoPixels(), Classifier(model or Brighter()), images, labels, **{"noise": NOISE, "q": 40, **more})


def same(a: Mistakes, b: Mistakes) -> None:
    """Codes to the last bits, which a batch of another size may round otherwise."""
    for name in ("rows", "labels", "predictions", "distances"):
        np.testing.assert_array_equal(getattr(a, name), getattr(b, name), err_msg=name)
    np.testing.assert_allclose(a.codes, b.codes, atol=1e-5)
    assert a.facts == b.facts


# --- noise -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("noise", "mean", "sd", "low", "high"),
    [
        (Noise(50, 50, 1, centred=False), 0.5, 0.049752, 0, 1),  # as published: sqrt(1 / (4 * 101))
        (Noise(75, 75, 1, centred=False), 0.5, 0.040689, 0, 1),  # sqrt(1 / (4 * 151))
        (Noise(50, 50, 2), 0, 0.099504, -1, 1),
        (Noise(2, 6, 8, centred=False), 2, 1.154701, 0, 8),  # 8 sqrt(12 / (64 * 9))
        (Noise(2, 6, 8), 0, 1.154701, -2, 6),
    ],
)
def test_noise_has_the_mean_the_spread_and_the_ends_of_its_formula(noise, mean, sd, low, high):
    """In each of five dimensions, of 100,000 draws: within five standard errors."""
    drawn = noise.draw(np.random.default_rng(0), (100_000, 5))
    assert (noise.mean, noise.sd) == (pytest.approx(mean), pytest.approx(sd, rel=1e-4))
    np.testing.assert_allclose(drawn.mean(axis=0), mean, atol=5 * sd / 100_000**0.5)
    np.testing.assert_allclose(drawn.std(axis=0), sd, rtol=0.02)
    assert low <= drawn.min() < drawn.max() <= high
    assert drawn.dtype == np.float32


def test_the_published_noise_is_nearly_one_shift_for_all():
    """Its length in ten dimensions is that of the shift, sqrt(10) / 2, and a tenth of it is chance."""
    drawn = Noise(50, 50, 1, centred=False).draw(np.random.default_rng(0), (1000, 10))
    shift = np.linalg.norm(drawn.mean(axis=0))
    rest = np.linalg.norm(drawn - drawn.mean(axis=0), axis=1).mean()
    assert shift == pytest.approx(10**0.5 / 2, rel=0.01)
    assert rest == pytest.approx(0.0498 * 10**0.5, rel=0.05)


@pytest.mark.parametrize("bad", [{"a": 0.0}, {"b": -1.0}, {"scale": 0.0}, {"a": float("nan")}])
def test_noise_that_cannot_be_is_refused(bad):
    with pytest.raises(InputError, match="`a`, `b` and `scale` of the noise must be above 0"):
        Noise(**bad)


# --- what is found ---------------------------------------------------------------------------------------------


def by_hand(images: np.ndarray, labels: np.ndarray, q: int, cap: int, seed: int = 0) -> list[tuple[int, int]]:
    """(picture, try) of all that is found, one picture at a time."""
    kept = []
    for row, (picture, label) in enumerate(zip(images, labels, strict=True)):
        eps = NOISE.draw(np.random.default_rng([seed, row]), (q, 2))
        z = 4 * (picture.ravel() / 255) - 2 + eps
        wrong = np.flatnonzero((z[:, 1] > z[:, 0]) != label)
        nearest = wrong[np.argsort(np.linalg.norm(eps[wrong], axis=1), kind="stable")][:cap]
        kept += [(row, int(one)) for one in nearest]
    return kept


def test_what_is_found_is_what_is_found_by_hand():
    images, labels = two_pixels()
    mistakes, pairs = found(cap=5, seed=3), by_hand(images, labels, 40, 5, seed=3)
    assert mistakes.rows.tolist() == [row for row, _ in pairs]
    eps = [NOISE.draw(np.random.default_rng([3, row]), (40, 2))[one] for row, one in pairs]
    own = 4 * (images[mistakes.rows].reshape(-1, 2) / 255) - 2
    np.testing.assert_allclose(mistakes.codes, own + eps, atol=1e-5)
    np.testing.assert_allclose(mistakes.distances, np.linalg.norm(eps, axis=1), rtol=1e-6)
    np.testing.assert_array_equal(mistakes.labels, labels[mistakes.rows])
    np.testing.assert_array_equal(mistakes.predictions, 1 - labels[mistakes.rows])
    every = len(by_hand(images, labels, 40, 40, seed=3))
    assert mistakes.facts == {"pictures": 12, "tried": 480, "found": every, "kept": len(pairs)}
    assert 20 < len(pairs) < every


@pytest.mark.parametrize("at_once", [1, 7, 40, 119, 10_000])
def test_batches_do_not_change_what_is_found(at_once):
    same(found(at_once=at_once, cap=6), found(cap=6))
    same(found(at_once=at_once, most=20), found(most=20))


def networks() -> tuple[Vae, Classifier, np.ndarray]:
    """Convolutions as they are used, with weights large enough that drawings differ."""
    vae, images = (
        new_vae(Architecture(8, 8, 1, latent=3, channels=4, hidden=16, down=1, up=2)),
        np.random.default_rng(0),
    )
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(1)
        for weight in vae.decoder.parameters():
            weight.mul_(4)
        model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.BatchNorm2d(4), nn.Flatten(), nn.Linear(144, 3))
    return vae, Classifier(model, lambda x: 10 * (x - 0.5)), images.integers(256, size=(9, 8, 8), dtype=np.uint8)


def test_convolutions_find_the_same_one_picture_at_a_time():
    vae, classifier, images = networks()
    given = {"noise": Noise(2, 2, 20), "q": 30, "cap": 8}
    labels = np.arange(9) % 3
    together = identify(vae, classifier, images, labels, **given)
    same(together, identify(vae, classifier, images, labels, at_once=1, **given))
    assert len(np.unique(together.predictions)) > 1
    assert 20 < together.facts["found"] < 270


def test_a_picture_is_searched_by_its_place_alone():
    """Fewer pictures, or others after it, change nothing; at another place it has another chance."""
    images, labels = two_pixels()
    others, their = two_pixels(seed=9)
    whole, first = found(), found(given=(images[:5], labels[:5]))
    mixed = found(given=(np.concatenate([images[:5], others]), np.concatenate([labels[:5], their])))
    for one in (whole, mixed):
        np.testing.assert_array_equal(one.rows[one.rows < 5], first.rows)
        np.testing.assert_allclose(one.codes[one.rows < 5], first.codes, atol=1e-5)
    moved = found(given=(images[::-1], labels[::-1]))
    assert whole.distances[whole.rows == 0].tolist() != moved.distances[moved.rows == 11].tolist()


def test_a_cap_keeps_the_nearest_of_each_picture():
    every, few = found(), found(cap=2)
    for row in np.unique(every.rows):
        distances = every.distances[every.rows == row]
        assert distances.tolist() == sorted(distances)
        assert few.distances[few.rows == row].tolist() == distances[:2].tolist()


def test_the_most_are_a_draw_among_all_of_them():
    """Those with the smallest keys, which come from each picture's own chance after its noise."""
    images, labels = two_pixels()
    pairs, keys = by_hand(images, labels, 40, 40), []
    for row, one in pairs:
        chance = np.random.default_rng([0, row])
        NOISE.draw(chance, (40, 2))
        keys.append(chance.random(40)[one])
    chosen = np.sort(np.argsort(keys)[:25])
    mistakes = found(most=25)
    assert mistakes.rows.tolist() == [pairs[j][0] for j in chosen]
    np.testing.assert_array_equal(mistakes.distances, found().distances[chosen])
    assert mistakes.facts == {**found().facts, "kept": 25}


def test_a_seed_decides_and_more_tries_find_more():
    same(found(seed=1), found(seed=1))
    assert found(seed=1).distances.tolist() != found(seed=2).distances.tolist()
    assert found(q=80).facts["found"] > 1.5 * found().facts["found"]


def test_one_logit_is_two_classes():
    same(found(Brighter(logits=1)), found())


def test_nothing_found_is_empty_and_has_its_shape():
    """The noise is too small to turn any picture."""
    images = np.array([[[0, 255]]] * 3, np.uint8)
    mistakes = found(given=(images, np.ones(3, np.int64)), noise=Noise(50, 50, 0.1))
    assert mistakes.facts == {"pictures": 3, "tried": 120, "found": 0, "kept": 0}
    assert len(mistakes) == 0
    assert mistakes.codes.shape == Mistakes.from_state(mistakes.to_state()).codes.shape == (0, 2)


def test_mistakes_are_kept_as_they_are():
    mistakes = found()
    same(Mistakes.from_state(mistakes.to_state()), mistakes)


def test_memory_that_does_not_do_halves_what_is_drawn_at_once():
    """40 do not fit, nor 20, nor 10; 5 do, and no more is tried afterwards."""
    model = Brighter(most=7)
    same(found(model, at_once=40), found())
    assert model.seen[:4] == [40, 20, 10, 5]
    assert set(model.seen[3:]) == {5}
    with pytest.raises(torch.cuda.OutOfMemoryError):
        found(Brighter(most=0), at_once=40)


def test_progress_ends_with_all_of_it():
    shares: list[float] = []
    found(at_once=80, progress=lambda stage, share: shares.append(share))
    assert shares == pytest.approx([2 / 12, 4 / 12, 6 / 12, 8 / 12, 10 / 12, 1])


def test_networks_are_left_as_they_were():
    vae, classifier, images = networks()
    vae.train(), classifier.model.train()
    identify(vae, classifier, images, np.zeros(9, np.int64), q=3)
    assert vae.training
    assert all(module.training for module in classifier.model.modules())


def test_pixels_are_prepared_before_they_are_classified():
    images, labels = two_pixels()
    np.testing.assert_array_equal(predict_classes(Classifier(Brighter()), images, batch=5), labels)
    np.testing.assert_array_equal(predict_classes(Classifier(Brighter(), lambda x: 1 - x), images), 1 - labels)
    assert predict_classes(Classifier(Brighter()), images[:0]).shape == (0,)
    turned = identify(TwoPixels(), Classifier(Brighter(), lambda x: 1 - x), images, 1 - labels, noise=NOISE, q=40)
    np.testing.assert_array_equal(turned.rows, found().rows)


@pytest.mark.parametrize(
    ("more", "words"),
    [
        ({"q": 0}, "`q`, `cap` and `most` must be at least 1; got 0, 100, 50000"),
        ({"cap": 0}, "must be at least 1; got 40, 0, 50000"),
        ({"most": 0}, "must be at least 1; got 40, 100, 0"),
        ({"given": (two_pixels()[0], np.zeros(3))}, "`labels` has 3 rows and `images` 12; give one label per image"),
        ({"given": (two_pixels()[0][:0], np.zeros(0))}, "`images` is empty; give at least one"),
    ],
)
def test_a_search_that_cannot_be_is_refused(more, words):
    with pytest.raises(InputError, match=words):
        found(**more)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_finds_what_the_cpu_finds():
    """But for codes on the boundary; networks come home, and a VAE goes where the classifier is."""
    vae, classifier, images = networks()
    given: dict[str, Any] = {"noise": Noise(2, 2, 20), "q": 200}
    runs = [identify(vae, classifier, images, np.arange(9) % 3, device=device, **given) for device in ("cpu", "cuda")]
    assert next(vae.parameters()).device.type == next(classifier.model.parameters()).device.type == "cpu"
    classifier.model.cuda()
    runs.append(identify(vae, classifier, images, np.arange(9) % 3, **given))
    assert next(vae.parameters()).device.type == "cpu"
    cpu, *others = [set(zip(one.rows.tolist(), one.distances.tolist(), strict=True)) for one in runs]
    for other in others:
        assert len(cpu & other) > 0.99 * len(cpu | other)
