"""The training room: the networks are what they say, and the loop learns, repeats itself and says no to bad input."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from errata.core import InputError
from errata.tensors import state_fingerprint
from errata.train import (
    NETWORKS,
    Epoch,
    ResNet18,
    SmallCNN,
    fine_tune_head,
    fit,
    network,
    normalise_bytes,
    outputs,
)

PX = 16


def pictures(n: int, seed: int, classes: int = 2) -> tuple[np.ndarray, np.ndarray]:
    """Grey noise; in class c, the c-th band of rows is bright."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(classes, size=n)
    images = rng.integers(0, 120, size=(n, PX, PX, 3), dtype=np.uint8)
    band = PX // classes
    for image, label in zip(images, labels, strict=True):
        image[label * band : (label + 1) * band] += 100
    return images, labels


def trained(seed: int = 0, **options: object) -> tuple[torch.nn.Module, tuple[Epoch, ...]]:
    images, labels = pictures(256, 0)
    model = network("small", px=PX, seed=3)
    asked = {"epochs": 3, "batch": 32, "lr": 3e-3, "seed": seed, "validation": pictures(100, 1), **options}
    return model, fit(model, images, labels, **asked)  # type: ignore[arg-type]


def test_resnet18_is_the_standard_network() -> None:
    assert sum(p.numel() for p in ResNet18(outputs=1000).parameters()) == 11_689_512


@pytest.mark.parametrize(("px", "side"), [(224, 7), (112, 4), (64, 8), (32, 4)])
def test_the_stem_follows_the_size(px: int, side: int) -> None:
    model = ResNet18(outputs=2, px=px).eval()
    with torch.no_grad():
        assert model.stages(model.stem(torch.zeros(1, 3, px, px))).shape == (1, 512, side, side)


@pytest.mark.parametrize("name", sorted(NETWORKS))
def test_a_network_is_drawn_from_its_seed_alone(name: str) -> None:
    before = torch.random.get_rng_state()
    one, same, other = (network(name, px=32, outputs=3, seed=seed) for seed in (1, 1, 2))
    assert torch.equal(before, torch.random.get_rng_state())
    assert state_fingerprint(one) == state_fingerprint(same) != state_fingerprint(other)
    assert one.eval()(torch.zeros(2, 3, 32, 32)).shape == (2, 3)


def test_an_unknown_network_is_named() -> None:
    with pytest.raises(InputError, match="unknown network `resnet19`; did you mean `resnet18`"):
        network("resnet19", px=32)


def test_pixels_are_spread_around_nothing() -> None:
    ends = normalise_bytes(torch.tensor([[[[0, 128, 255]]]], dtype=torch.uint8))
    assert ends.shape == (1, 3, 1, 1)
    assert ends.flatten().tolist() == pytest.approx([-2, 4 * 128 / 255 - 2, 2], abs=1e-5)
    batch = normalise_bytes(torch.zeros(2, 4, 4, 3, dtype=torch.uint8))
    assert batch.is_contiguous(memory_format=torch.channels_last)


def test_the_loop_learns() -> None:
    _, history = trained()
    assert [epoch.number for epoch in history] == [0, 1, 2]
    assert history[-1].loss < history[0].loss
    assert history[-1].validation_accuracy == 1.0


def test_noise_is_not_learnt() -> None:
    images, labels = pictures(256, 0)
    shuffled = np.random.default_rng(5).permutation(labels)
    model = network("small", px=PX, seed=3)
    history = fit(model, images, shuffled, epochs=3, batch=32, lr=3e-3, validation=pictures(200, 1))
    assert history[-1].validation_accuracy is not None
    assert history[-1].validation_accuracy < 0.75


def test_several_classes_use_several_logits() -> None:
    images, labels = pictures(320, 0, classes=4)
    model = network("small", px=PX, outputs=4)
    fit(model, torch.from_numpy(images), torch.from_numpy(labels), epochs=4, batch=32, lr=3e-3)
    fresh, truth = pictures(80, 1, classes=4)
    assert (outputs(model, fresh)[0].argmax(axis=1) == truth).mean() > 0.95


def test_the_same_seed_gives_the_same_weights() -> None:
    one, same, other = (state_fingerprint(trained(seed)[0]) for seed in (7, 7, 8))
    assert one == same != other


def test_progress_hears_every_epoch() -> None:
    epochs: list[Epoch] = []
    shares: list[tuple[str, float]] = []
    _, history = trained(on_epoch=epochs.append, progress=lambda *at: shares.append(at), validation=None)
    assert tuple(epochs) == history
    assert shares == [("train", (number + 1) / len(history)) for number in range(len(history))]
    assert history[0].validation_accuracy is None


@pytest.mark.parametrize("batch", [7, 64, 1000])
def test_outputs_are_what_a_hook_sees(batch: int) -> None:
    images, _ = pictures(65, 2)
    model = network("small", px=PX, seed=1)
    assert isinstance(model, SmallCNN)
    seen: list[torch.Tensor] = []
    handle = model.head.register_forward_hook(lambda module, given, out: seen.append(given[0]))
    model.eval()
    with torch.no_grad():
        expected = model(normalise_bytes(torch.from_numpy(images))).numpy()
    handle.remove()
    model.train()
    logits, penultimate = outputs(model, images, batch=batch)
    assert logits.shape == (65, 1)
    assert penultimate.dtype == logits.dtype == np.float32
    np.testing.assert_allclose(logits, expected, atol=1e-5)
    np.testing.assert_allclose(penultimate, seen[0].numpy(), atol=1e-5)
    assert model.training


def test_a_single_last_row_does_no_harm() -> None:
    images, labels = pictures(33, 0)
    history = fit(network("resnet18", px=PX), images, labels, epochs=1, batch=32, lr=1e-3)
    assert np.isfinite(history[0].loss)


def test_read_only_pictures_may_be_learnt_from(recwarn: pytest.WarningsRecorder) -> None:
    images, labels = pictures(32, 0)
    images.setflags(write=False)
    fit(network("small", px=PX), images, labels, epochs=1, batch=16, lr=1e-3)
    assert not [warning for warning in recwarn if "writable" in str(warning.message)]


def test_the_device_is_used_and_the_model_comes_home() -> None:
    model, _ = trained(device="cpu", epochs=1)
    assert {p.device.type for p in model.parameters()} == {"cpu"}
    with pytest.raises(InputError, match="`device` must be one that torch knows"):
        trained(device="abacus")
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="finds no GPU"):
            outputs(model, pictures(4, 0)[0], device="cuda")


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_gpu_learns_too() -> None:
    model, history = trained(device="cuda", epochs=4)
    assert history[-1].validation_accuracy == 1.0
    here, there = (outputs(model, pictures(50, 1)[0], device=device)[0] for device in ("cpu", "cuda"))
    np.testing.assert_allclose(here, there, atol=0.05)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"labels": np.zeros(3)}, "`labels` has 3 rows and `images` 8"),
        ({"images": np.zeros((8, PX, PX, 3))}, "bytes .* got float64"),
        ({"images": np.zeros((8, 3, PX, PX), dtype=np.uint8)}, r"got uint8 \(8, 3, 16, 16\)"),
        ({"epochs": 0}, "`epochs` must be an integer of at least 1; got 0"),
        ({"epochs": 1.5}, "`epochs` must be an integer of at least 1; got 1.5"),
        ({"labels": np.full(8, "cat")}, "`labels` must be classes 0, 1, .* got values of type <U3"),
        ({"validation": (np.zeros(3),)}, "`validation` must be images and labels, in that order; got 1 values"),
        ({"batch": 1}, "batches of 2"),
        ({"labels": np.full(8, 2)}, "`labels` must be 0 or 1"),
        ({"outputs": 2, "labels": np.full(8, 2)}, "`labels` must be 0 to 1"),
    ],
)
def test_bad_input_is_one_sentence(change: dict[str, object], words: str) -> None:
    given = {"images": np.zeros((8, PX, PX, 3), dtype=np.uint8), "labels": np.zeros(8), "epochs": 1, "batch": 4}
    given |= change
    model = network("small", px=PX, outputs=given.pop("outputs", 1))  # type: ignore[arg-type]
    with pytest.raises(InputError, match=words):
        fit(model, given.pop("images"), given.pop("labels"), lr=1e-3, **given)  # type: ignore[arg-type]


def test_a_rate_that_explodes_is_said() -> None:
    with pytest.raises(InputError, match=r"the loss is .* use a smaller `lr`"):
        trained(lr=1e30)


def test_a_network_for_grey_images_is_trained_on_them() -> None:
    images, labels = pictures(256, 0)
    model = network("small", px=PX, seed=3, channels=1)
    options = {"epochs": 3, "batch": 32, "lr": 3e-3}
    history = fit(model, images[..., 0], labels, **options, validation=(images[..., 0], labels))  # type: ignore[arg-type]
    assert history[-1].validation_accuracy == 1.0
    assert np.array_equal(outputs(model, images[..., 0])[0], outputs(model, images[..., :1])[0])


def test_a_network_that_raises_without_words_is_one_sentence() -> None:
    class Unfinished(torch.nn.Linear):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise NotImplementedError

    images, labels = pictures(20, 0)
    with pytest.raises(InputError, match=r"does not take images of .*: NotImplementedError; give a network"):
        fit(Unfinished(2, 2), images, labels, epochs=1, batch=10, lr=1e-3)


def test_images_that_a_network_does_not_take_are_one_sentence() -> None:
    images, labels = pictures(20, 0)
    words = r"does not take images of 1 x 16 x 16 .*`network\(..., channels=1\)` for grey"
    with pytest.raises(InputError, match=words):
        fit(network("small", px=PX), images[..., 0], labels, epochs=1, batch=10, lr=1e-3)
    with pytest.raises(InputError, match=words):
        fine_tune_head(network("small", px=PX), images[..., 0], labels)
    with pytest.raises(InputError, match=r"must be bytes \(n, h, w, 3\) or \(n, h, w\); got uint8 \(20, 16, 16, 2\)"):
        fit(network("small", px=PX), images[..., :2], labels, epochs=1, batch=10, lr=1e-3)
