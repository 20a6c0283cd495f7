"""Training against an adversary: the attack stays in its ball, and the network learns to stand it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import torch

from errata.core import InputError
from errata.tensors import Ball, distances, state_fingerprint
from errata.train import (
    Epoch,
    adversarial,
    fit,
    fit_robust,
    network,
    normalise_bytes,
    normalise_pixels,
    outputs,
    robust_accuracy,
)
from errata.train.adversarial import _Adversary, shift_randomly

torch.set_num_threads(1)
PX = 16
RADIUS = 0.5


def pictures(n: int, seed: int, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Noise; in class c, the c-th band of rows is a little brighter: easy to learn, and easy to disturb."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=n)
    images = rng.integers(90, 166, size=(n, PX, PX, 3), dtype=np.uint8)
    band = PX // classes
    for image, label in zip(images, labels, strict=True):
        image[label * band : (label + 1) * band] += 12
    return images, labels


def pixels(images: np.ndarray) -> torch.Tensor:
    return torch.from_numpy(images).permute(0, 3, 1, 2).float() / 255


TRAIN, TEST = pictures(600, 0), pictures(200, 1)


def robust(seed: int = 0, **options: object) -> tuple[torch.nn.Module, tuple[Epoch, ...]]:
    model = network("small", px=PX, seed=3)
    asked = {"radius": RADIUS, "steps": 3, "epochs": 1, "batch": 50, "lr": 3e-3, "seed": seed, **options}
    return model, fit_robust(model, *TRAIN, **asked)  # type: ignore[arg-type]


def test_scaled_is_prepared_in_other_units() -> None:
    images = torch.from_numpy(TRAIN[0][:4])
    torch.testing.assert_close(
        normalise_pixels(images.permute(0, 3, 1, 2) / 255), normalise_bytes(images), atol=1e-5, rtol=0
    )


def test_a_robust_network_stands_an_attack_that_a_plain_one_does_not() -> None:
    plain = network("small", px=PX, seed=3)
    fit(plain, *TRAIN, epochs=5, batch=50, lr=3e-3)
    model, history = robust(epochs=5, validation=TEST)
    clean = [robust_accuracy(one, *TEST, 0.0) for one in (plain, model)]
    attacked = [robust_accuracy(one, *TEST, RADIUS) for one in (plain, model)]
    assert min(clean) > 0.9
    assert attacked[1] > attacked[0] + 0.2
    assert history[-1].validation_accuracy == pytest.approx(clean[1])
    assert history[-1].robust_accuracy == pytest.approx(attacked[1], abs=0.1)


@pytest.mark.parametrize("radius", [0.1, 3.0])
def test_what_is_learnt_from_lies_in_the_ball_and_is_worse(radius: float) -> None:
    """Lengths are of [0, 1] pixels, whatever the network sees."""
    model = network("small", px=PX, seed=1)
    model.train()
    x, targets = pixels(TRAIN[0][:40]), torch.from_numpy(TRAIN[1][:40])
    found = _Adversary(model, Ball(radius, 4), 0, 0, False, normalise_pixels).attacked(x, targets)
    gone = distances(found, x)
    assert float(gone.max()) <= radius * (1 + 1e-4)
    assert float(gone.median()) > radius / 2
    assert float(found.min()) >= 0
    assert float(found.max()) <= 1
    model.eval()
    with torch.no_grad():
        before, after = (adversarial.loss_of(model(normalise_pixels(batch)), targets) for batch in (x, found))
    assert after > before


def test_the_adversary_follows_its_seed() -> None:
    model = network("small", px=PX, seed=1)
    x, targets = pixels(TRAIN[0][:8]), torch.from_numpy(TRAIN[1][:8])
    one, same, other = (
        _Adversary(model, Ball(1.0, 1), seed, 0, False, normalise_pixels).attacked(x, targets) for seed in (3, 3, 4)
    )
    assert torch.equal(one, same)
    assert not torch.equal(one, other)


def test_the_attack_leaves_no_trace_in_the_network() -> None:
    model = network("small", px=PX, seed=1)
    model.train()
    before = state_fingerprint(model)
    x, targets = pixels(TRAIN[0][:40]), torch.from_numpy(TRAIN[1][:40])
    _Adversary(model, Ball(0.5, 2), 0, 0, False, normalise_pixels).attacked(x, targets)
    assert state_fingerprint(model) == before  # running means too
    assert all(module.training for module in model.modules())
    assert all(parameter.grad is None for parameter in model.parameters())


def test_no_radius_is_no_attack_and_more_of_it_breaks_more() -> None:
    model = network("small", px=PX, seed=3)
    fit(model, *TRAIN, epochs=2, batch=50, lr=3e-3)
    clean = ((outputs(model, TEST[0])[0][:, 0] > 0) == TEST[1]).mean()
    found = [robust_accuracy(model, *TEST, radius) for radius in (0.0, 0.2, 0.4, 1.5)]
    assert found[0] == pytest.approx(clean)
    assert found == sorted(found, reverse=True)
    assert found[-1] < 0.2
    several = robust_accuracy(model, *TEST, 0.4, restarts=3)
    assert several <= found[2]
    assert robust_accuracy(model, *TEST, 0.4, batch=33) == pytest.approx(found[2], abs=0.05)


def test_what_is_broken_stays_broken() -> None:
    """Every attack sees only the rows that stood all before."""
    model = network("small", px=PX, seed=3)
    fit(model, *TRAIN, epochs=2, batch=50, lr=3e-3)
    seen: list[int] = []
    handle = model.register_forward_pre_hook(lambda module, args: seen.append(len(args[0])))
    left = robust_accuracy(model, *TEST, 0.4, steps=2, restarts=3)
    handle.remove()
    sizes = seen[2::3]  # the first of each attack, after the check of two rows and the clean pass
    assert len(seen) == 2 + 3 * 3
    assert seen[:2] == [2, 200]
    assert sizes == sorted(sizes, reverse=True)
    assert 200 >= sizes[0] > sizes[1] >= round(200 * left) > 0


def test_several_classes() -> None:
    images, labels = pictures(300, 0, classes=4)
    model = network("small", px=PX, outputs=4)
    history = fit_robust(
        model, torch.from_numpy(images), torch.from_numpy(labels), radius=0.1, steps=2, epochs=4, batch=50, lr=3e-3,
        validation=pictures(100, 1, classes=4),
    )  # fmt: skip
    assert history[-1].robust_accuracy is not None
    assert history[-1].validation_accuracy is not None
    assert 0.6 < history[-1].robust_accuracy <= history[-1].validation_accuracy


def test_the_same_seed_gives_the_same_weights() -> None:
    one, same, other = (state_fingerprint(robust(seed, shift=1, flip=True)[0]) for seed in (7, 7, 8))
    assert one == same != other


def test_progress_hears_both_accuracies_and_few_rows_are_attacked(monkeypatch: pytest.MonkeyPatch) -> None:
    attacked = []
    monkeypatch.setattr(adversarial, "ATTACKED_ROWS", 20)
    true = adversarial.robust_accuracy
    monkeypatch.setattr(
        adversarial, "robust_accuracy", lambda model, images, *rest, **more: attacked.append(len(images))
        or true(model, images, *rest, **more),
    )  # fmt: skip
    epochs: list[Epoch] = []
    shares: list[float] = []
    _, history = robust(
        epochs=2, validation=TEST, on_epoch=epochs.append, progress=lambda stage, share: shares.append(share)
    )
    assert tuple(epochs) == history
    assert shares == [0.5, 1.0]
    assert [epoch.number for epoch in history] == [0, 1]
    assert attacked == [20, 20]
    assert all(epoch.robust_accuracy is not None for epoch in history)
    assert robust()[1][0].robust_accuracy is None


def test_pictures_are_shifted_by_whole_pixels_and_black_comes_in() -> None:
    images = torch.arange(1, 1 + 6 * 30, dtype=torch.float32).reshape(6, 1, 5, 6)
    found = shift_randomly(images, 2, torch.Generator().manual_seed(0))
    assert found.shape == images.shape
    offsets = set()
    for before, after in zip(images[:, 0], found[:, 0], strict=True):
        padded = torch.nn.functional.pad(before, (2, 2, 2, 2))
        fits = [(y, x) for y in range(5) for x in range(5) if torch.equal(padded[y : y + 5, x : x + 6], after)]
        assert len(fits) == 1
        offsets.add(fits[0])
    assert all(len(set(along)) > 1 for along in zip(*offsets, strict=True))


def test_flips_mirror_about_half_of_the_pictures() -> None:
    adversary = _Adversary(network("small", px=PX), Ball(0.0, 1), 0, 0, True, normalise_pixels)
    x = pixels(TRAIN[0][:100])
    found = adversary.attacked(x, torch.from_numpy(TRAIN[1][:100]))
    same = (found - x).abs().flatten(1).amax(dim=1) < 1e-4
    mirrored = (found - x.flip(3)).abs().flatten(1).amax(dim=1) < 1e-4
    assert bool((same ^ mirrored).all())
    assert 30 < int(mirrored.sum()) < 70


def test_the_slim_network_is_small_enough_to_ship() -> None:
    model = network("resnet18-slim", px=32, outputs=10)
    assert 2 * sum(value.numel() for value in model.state_dict().values()) < 5e6
    assert model.eval()(torch.zeros(2, 3, 32, 32)).shape == (2, 10)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_learns_too() -> None:
    model, history = robust(epochs=5, validation=TEST, device="cuda")
    assert history[-1].robust_accuracy is not None
    assert history[-1].robust_accuracy > 0.5
    assert {parameter.device.type for parameter in model.parameters()} == {"cpu"}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"radius": -0.5}, "`radius` must be a length from 0 on"),
        ({"radius": "0.5"}, "`radius` must be a length from 0 on.* got '0.5'"),
        ({"steps": 0}, "`steps` must be an integer of at least 1; got 0"),
        ({"steps": 2.5}, "`steps` must be an integer of at least 1; got 2.5"),
        ({"step": "long"}, "`step` must be a length above 0; got 'long'"),
        ({"shift": 16}, r"`shift` must be less than the width .* got 16"),
        ({"shift": -1}, "`shift` must be an integer of at least 0; got -1"),
        ({"epochs": 0}, "`epochs` must be an integer of at least 1; got 0"),
        ({"epochs": 1.5}, "`epochs` must be an integer of at least 1; got 1.5"),
        ({"epochs": True}, "`epochs` must be an integer of at least 1; got True"),
        ({"batch": 1}, "training needs 2 images and batches of 2; got 600 and 1"),
        ({"seed": "a"}, "`seed` must be an integer of at least 0; got 'a'"),
        ({"lr": 1e30}, "use a smaller `lr`"),
        ({"lr": -1}, "`lr` must be a number of at least 0; got -1"),
        ({"lr": float("nan")}, "`lr` must be a number of at least 0; got nan"),
        ({"prepare": 5}, r"`prepare` must be a function of pixels in \[0, 1\]; got 5"),
        ({"validation": (TEST[0],)}, "`validation` must be images and labels, in that order; got 1 values"),
        ({"validation": (*TEST, None)}, "`validation` must be images and labels, in that order; got 3 values"),
        ({"validation": (TEST[0], TEST[1] + 5)}, "`labels` must be 0 or 1"),
    ],
)
def test_bad_input_is_one_sentence(change: dict[str, object], words: str) -> None:
    with pytest.raises(InputError, match=words):
        robust(**change)


@pytest.mark.parametrize(
    ("images", "labels", "options", "words"),
    [
        (TEST[0].astype(float), TEST[1], {}, "bytes .* got float64"),
        (TEST[0], TEST[1][:3], {}, "`labels` has 3 rows"),
        (TEST[0], TEST[1] + 5, {}, "`labels` must be 0 or 1"),
        (TEST[0], TEST[1].astype(str), {}, "`labels` must be classes 0, 1, .* got values of type <U21"),
        (TEST[0], TEST[1] + 0.7, {}, "`labels` must be 0 or 1 for 1 logits; got [01].7 in row 0"),
        (TEST[0], TEST[1][:, None], {}, r"`labels` must be classes \(n,\).* got shape \(200, 1\)"),
        ([], TEST[1], {}, "`images` must be an array or tensor of bytes .* got a list"),
        (TEST[0][:0], TEST[1][:0], {}, "needs 1 image"),
        (TEST[0], TEST[1], {"restarts": 0}, "`restarts` must be an integer of at least 1; got 0"),
        (TEST[0], TEST[1], {"batch": 0}, "`batch` must be an integer of at least 1; got 0"),
    ],
)
def test_bad_attacks_are_one_sentence(
    images: np.ndarray, labels: np.ndarray, options: dict[str, int], words: str
) -> None:
    with pytest.raises(InputError, match=words):
        robust_accuracy(network("small", px=PX), images, labels, 0.5, **options)  # type: ignore[arg-type]


class Normalising(torch.nn.Module):
    """A network that takes pixels in [0, 1] and normalises them itself, as public robust checkpoints do."""

    def __init__(self, inner: torch.nn.Module):
        super().__init__()
        self.inner = inner

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(normalise_pixels(x))


def as_they_are(x: torch.Tensor) -> torch.Tensor:
    return x


def test_a_network_that_normalises_itself_is_measured_as_it_is() -> None:
    """Normalised twice it was measured at less, and nobody was told."""
    inner = network("small", px=PX, seed=3)
    fit(inner, *TRAIN, epochs=3, batch=50, lr=3e-3)
    wrapped = Normalising(inner)
    with pytest.raises(InputError, match=r"`Normalising` is no network of errata\.train: say with `prepare`"):
        robust_accuracy(wrapped, *TEST, 0.0)
    with pytest.raises(InputError, match="`Normalising` is no network"):
        fit_robust(wrapped, *TRAIN, radius=0.5, epochs=1, lr=1e-3)
    for radius in (0.0, 0.2):
        own = robust_accuracy(wrapped, *TEST, radius, prepare=as_they_are, steps=3)
        assert own == pytest.approx(robust_accuracy(inner, *TEST, radius, steps=3), abs=0.011)
    assert robust_accuracy(wrapped, *TEST, 0.0, prepare=as_they_are) > 0.9
    assert robust_accuracy(wrapped, *TEST, 0.0, prepare=normalise_pixels) < 0.8  # what happened without being said


def loader(rows: tuple[np.ndarray, np.ndarray], batch: int = 50) -> torch.utils.data.DataLoader:
    data = torch.utils.data.TensorDataset(pixels(rows[0]), torch.from_numpy(rows[1]))
    return torch.utils.data.DataLoader(data, batch_size=batch, shuffle=False)


def test_a_loader_trains_and_measures_as_its_arrays_do() -> None:
    model = network("small", px=PX, seed=3)
    history = fit_robust(
        model, loader(TRAIN), radius=RADIUS, steps=3, epochs=5, lr=3e-3, flip=True, validation=loader(TEST)
    )
    assert history[-1].validation_accuracy == pytest.approx(robust_accuracy(model, *TEST, 0.0))
    assert history[-1].validation_accuracy > 0.9
    by_loader = robust_accuracy(model, loader(TEST), radius=RADIUS, steps=3)
    assert by_loader == pytest.approx(robust_accuracy(model, *TEST, RADIUS, steps=3, batch=50), abs=0.02)
    whole = [((pixels(TEST[0]) * 255).round().to(torch.uint8), torch.from_numpy(TEST[1]))]
    assert robust_accuracy(model, whole) == pytest.approx(robust_accuracy(model, *TEST, 0.0))


def test_grey_pictures_are_trained_on_and_attacked() -> None:
    grey = TRAIN[0][..., 0], TRAIN[1]
    torch.manual_seed(0)
    layers = [torch.nn.Conv2d(1, 8, 3, 2, 1), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 64, 1)]
    model = torch.nn.Sequential(*layers)
    fit_robust(model, *grey, radius=0.2, steps=2, epochs=4, batch=50, lr=3e-3, prepare=normalise_pixels)
    fresh = TEST[0][..., 0]
    clean = robust_accuracy(model, fresh, TEST[1], 0.0, prepare=normalise_pixels)
    assert clean > 0.8
    assert robust_accuracy(model, fresh[..., None], TEST[1], 0.0, prepare=normalise_pixels) == clean
    assert robust_accuracy(model, fresh, TEST[1], 0.4, prepare=normalise_pixels) < clean


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([(4 * pixels(TEST[0][:8]) - 2, torch.zeros(8))], r"floats in \[0, 1\]; got -\d.* give it as `prepare`"),
        ([pixels(TEST[0][:8])], "a batch must be images and classes, in that order; got a Tensor"),
        ([(torch.zeros(8, 16, 16, 3), torch.zeros(8))], r"got \(8, 16, 16, 3\) and \(8,\)"),
        (iter([]), "a loader that knows its number of batches; got a list_iterator"),
        ([(pixels(TEST[0][:8]), torch.full((8,), 7))], "`labels` must be 0 or 1 for 1 logits; got 7 in row 0"),
        ([(pixels(TEST[0][:8]), np.array(["cat"] * 8))], "`labels` must be classes 0, 1, .* got values of type <U3"),
        ([(pixels(TEST[0][:8]), torch.full((8,), 0.7))], "`labels` must be 0 or 1 .* got 0.69.* in row 0 of batch 0"),
        ([("a.png", torch.zeros(8))], "a batch's images must be an array or a tensor; got a str"),
        ([(pixels(TEST[0][:0]), torch.zeros(0))], r"got \(0, 3, 16, 16\) and \(0,\)"),
    ],
)
def test_a_loader_that_cannot_be_meant_is_one_sentence(rows: object, words: str) -> None:
    with pytest.raises(InputError, match=words):
        robust_accuracy(network("small", px=PX), rows, radius=0.5)  # type: ignore[arg-type]


def test_classes_of_every_batch_are_checked() -> None:
    """Beyond the first batch they counted as wrong, and nobody was told."""
    x = pixels(TEST[0][:20])
    batches = [(x[:10], torch.zeros(10)), (x[10:], torch.tensor([0, 0, 0, 5, 0, 0, 0, 0, 0, 0]))]
    words = "`labels` must be 0 or 1 for 1 logits; got 5 in row 3 of batch 1"
    with pytest.raises(InputError, match=words):
        robust_accuracy(network("small", px=PX), batches, radius=0.0)
    with pytest.raises(InputError, match=words):
        fit_robust(network("small", px=PX), batches, radius=0.0, epochs=1, lr=1e-3)
    with pytest.raises(InputError, match=words):
        fit_robust(network("small", px=PX), batches[:1], radius=0.0, epochs=1, lr=1e-3, validation=batches)


class Rows(torch.utils.data.IterableDataset):  # type: ignore[type-arg]
    """Rows that come one after the other; the same with a length below."""

    def __iter__(self) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        return iter(zip(pixels(TEST[0][:20]), torch.from_numpy(TEST[1][:20]), strict=True))


class CountedRows(Rows):
    """Says a length, which may be wrong."""

    def __init__(self, length: int):
        self.length = length

    def __len__(self) -> int:
        return self.length


def test_a_loader_over_an_iterable_needs_the_right_length() -> None:
    def measured(dataset: Rows) -> float:
        batches = torch.utils.data.DataLoader(dataset, batch_size=10)
        return robust_accuracy(network("small", px=PX), batches, radius=0.0)

    with pytest.raises(InputError, match=r"got a DataLoader without a length; .* where the dataset has `__len__`"):
        measured(Rows())
    assert 0 <= measured(CountedRows(20)) <= 1
    with pytest.raises(InputError, match="gives 2 batches and its length is 3"):
        measured(CountedRows(30))
    with pytest.raises(InputError, match="gives more batches than its length, 1"):
        measured(CountedRows(10))


def test_a_last_batch_of_one_row_is_put_to_the_one_before() -> None:
    """It has no variance to normalise by, and training ended with an error of torch after an epoch."""
    model = network("small", px=PX)
    sizes: list[int] = []
    model.register_forward_pre_hook(lambda module, args: sizes.append(len(args[0])) if module.training else None)
    fit_robust(model, loader((TRAIN[0][:41], TRAIN[1][:41]), 20), radius=0.1, steps=1, epochs=2, lr=1e-3)
    assert sizes == [20, 21, 20, 21]
    with pytest.raises(InputError, match=r"needs batches of 2 images; batch 0 of the loader has 1; .*`batch_size`"):
        fit_robust(model, loader((TRAIN[0][:4], TRAIN[1][:4]), 1), radius=0.1, epochs=1, lr=1e-3)


@pytest.mark.parametrize("name", ["small", "resnet18-slim"])
def test_a_network_for_grey_pictures_is_trained_and_measured(name: str) -> None:
    model = network(name, px=PX, outputs=2, channels=1)
    fit_robust(model, TRAIN[0][:60, ..., 0], TRAIN[1][:60], radius=0.2, steps=1, epochs=1, batch=30, lr=3e-3)
    assert 0 <= robust_accuracy(model, TEST[0][:20, ..., 0], TEST[1][:20], 0.2, steps=1) <= 1


def test_pictures_that_a_network_does_not_take_are_one_sentence() -> None:
    model = network("small", px=PX, outputs=2)
    grey = TRAIN[0][..., 0], TRAIN[1]
    with pytest.raises(
        InputError, match=r"does not take images of 1 x 16 x 16 .*`network\(..., channels=1\)` for grey"
    ):
        fit_robust(model, *grey, radius=0.2, epochs=1, lr=3e-3)
    with pytest.raises(InputError, match="does not take images of 1 x 16 x 16"):
        robust_accuracy(model, *grey, 0.2)
    with pytest.raises(InputError, match="`channels` must be an integer of at least 1; got 0"):
        network("small", px=PX, channels=0)
    with pytest.raises(InputError, match=r"`channels` must be an integer of at least 1; got 1\.5"):
        network("small", px=PX, channels=1.5)  # type: ignore[arg-type]


@pytest.mark.parametrize("words", ["DefaultCPUAllocator: can't allocate memory: you tried to", "std::bad_alloc"])
def test_too_little_memory_is_not_told_as_pictures_that_do_not_fit(words: str) -> None:
    """On a CPU it is a RuntimeError, as a shape that does not fit is."""

    def runs_out(x: torch.Tensor) -> torch.Tensor:
        raise RuntimeError(words)

    model = network("small", px=PX)
    with pytest.raises(RuntimeError, match=words) as raised:
        robust_accuracy(model, *TEST, 0.2, prepare=runs_out)
    assert not isinstance(raised.value, InputError)


@pytest.mark.parametrize("radius", [0.5, 1, np.float32(0.5)])
def test_a_radius_in_the_place_of_labels_is_one_sentence(radius: float) -> None:
    loader = [(pixels(TEST[0][:20]), torch.from_numpy(TEST[1][:20]))]
    model = network("small", px=PX)
    with pytest.raises(InputError, match=f"`labels` must be classes.*got {radius}; .* `radius={radius}`"):
        robust_accuracy(model, loader, radius)
    assert 0 <= robust_accuracy(model, loader, radius=float(radius), steps=1) <= 1
