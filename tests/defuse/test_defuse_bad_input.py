"""What `errata defuse` is given and cannot use: one sentence at the door, in Python as in the command."""

from __future__ import annotations

import io
import shutil
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from PIL import Image

pytest.importorskip("torch", reason="torch is not installed: nothing is generated")

import torch
from torch import nn

import errata
from errata.core import InputError
from errata.defuse import DefuseSettings, defuse, normalisation, search
from errata.defuse.command import _settings
from errata.defuse.identify import Classifier, predict_classes
from errata.defuse.images import read_images
from errata.defuse.normalisation import check_normalisation
from errata.defuse.settings import FROM_DATA, KINDS, RANGES
from errata.defuse.stages import RunFolder
from errata.defuse.vae import Vae
from support import digits

# --- settings ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("centred=False", False),
        ("baseline=TRUE", True),
        ("epochs=100", 100),
        ("epochs=1e2", 100),
        ("tau=.5", 0.5),
        ("a=5", 5.0),
        ("strengths=[0.1, 1]", (0.1, 1.0)),
        ("strengths=0.1,1", (0.1, 1.0)),
        ("strengths=2", (2.0,)),
        ("selection=validation", "validation"),
        ('split="validation"', "validation"),
    ],
)
def test_a_setting_is_read_as_its_own_kind(text, value):
    found = getattr(_settings([text], published=True), text.partition("=")[0])
    assert (found, type(found)) == (value, type(value))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("centred=1", "`centred` must be true or false; got '1'"),
        ("epochs=1.5", "`epochs` must be a whole number, at least 1; got 1.5"),
        ("seed=-1", r"`seed` must be a whole number, in \[0, 4294967296\); got -1$"),
        ("tau=nan", "`tau` must be a finite number, above 0; got nan"),
        ("tau=wide", "`tau` must be a finite number, above 0; got 'wide'"),
        ("strengths=[]", r"`strengths` must be one or more finite numbers, at least 0 each; got '\[\]'"),
        ("strengths=1,x", "`strengths` must be .* got '1,x'"),
        ("selection=best", "`selection` must be `no-harm` or `validation`; got 'best'"),
        ("epochs=" + "9" * 5000, "got '9{59}…$"),
    ],
)
def test_a_setting_of_another_kind_is_refused(text, words):
    with pytest.raises(InputError, match=words):
        _settings([text], published=False)


def kinds(*types: type) -> list[str]:
    return [name for name, kind in KINDS.items() if kind in types]


@pytest.mark.parametrize("name", kinds(int, float))
def test_no_number_is_taken_that_is_none(name):
    for value in (float("nan"), float("inf"), -1, True, "1", 10**400, np.array([1.0])):
        with pytest.raises(InputError, match=f"`{name}` must be a .* number, "):
            DefuseSettings(**{name: value})
    if name not in FROM_DATA:
        with pytest.raises(InputError, match=f"`{name}` must be a .* number, "):
            DefuseSettings(**{name: None})


@pytest.mark.parametrize("value", ["False", 0, None, np.array([True])])
@pytest.mark.parametrize("name", kinds(bool))
def test_nothing_else_is_true_or_false(name, value):
    with pytest.raises(InputError, match=f"`{name}` must be true or false"):
        DefuseSettings(**{name: value})


def test_every_number_has_its_range_and_only_one():
    named = [name for _, _, names in RANGES for name in names.split()]
    assert sorted(named) == sorted([*kinds(int, float), "strengths"])


@pytest.mark.parametrize(
    "bad",
    [
        {"latent": 0}, {"anneal": 0.5}, {"epochs": 0}, {"batch": 1}, {"lr": 0}, {"a": 0}, {"b": 0}, {"scale": 0},
        {"q": 0}, {"cap": 0}, {"most": 0}, {"components": 0}, {"least": 1}, {"steps": 0}, {"tau": 0}, {"shown": 0},
        {"faithful": 1}, {"quorum": 0},
        {"rho": 1}, {"tuning": 0}, {"testing": 0}, {"strengths": ()}, {"strengths": 1.0}, {"strengths": "1"},
        {"strengths": [1, float("nan")]}, {"strengths": [-1]}, {"strengths": [True]}, {"strengths": None},
        {"tune_epochs": 0}, {"tune_batch": 1}, {"tune_lr": 0}, {"seed": 2**32}, {"split": ["train"]},
    ],
)  # fmt: skip
def test_what_a_stage_refuses_hours_later_is_refused_at_once(bad):
    with pytest.raises(InputError, match=f"^`{next(iter(bad))}` must be"):
        DefuseSettings(**bad)


def test_what_numpy_counts_with_is_a_number_too():
    found = DefuseSettings(
        epochs=np.int64(3), lr=np.float32(0.5), centred=np.False_, strengths=np.array([1, 2]), batch=64.0
    )
    assert (found.epochs, found.lr, found.centred, found.strengths, found.batch) == (3, 0.5, False, (1.0, 2.0), 64)
    assert [type(value) for value in (found.epochs, found.lr, found.centred, found.batch)] == [int, float, bool, int]


@pytest.mark.parametrize("settings", [errata.Settings(), {"epochs": 3}])
def test_settings_of_an_audit_are_refused(settings, tmp_path):
    got = type(settings).__name__
    refused(tmp_path, f"`settings` must be an errata.defuse.DefuseSettings; got a {got}", settings=settings)


@pytest.mark.usefixtures("quick_map")
def test_the_least_of_every_setting_is_enough_for_every_stage(tmp_path):
    """The run goes to its end; what has no least is near to it. Two mistakes are the fewest that make a region."""
    least: dict[str, Any] = {
        "latent": 1, "beta": 0, "anneal": 0, "epochs": 1, "batch": 2, "a": 1e-3, "b": 1e-3, "scale": 9, "q": 1,
        "cap": 1, "most": 2, "components": 1, "least": 0, "steps": 1, "shown": 1, "rho": 0, "tuning": 1, "testing": 1,
        "strengths": (0,), "tune_epochs": 1, "tune_batch": 2, "seed": 2**32 - 1, "faithful": 0,
    }  # fmt: skip
    found = digits.run_defuse(
        tmp_path / "run", settings=DefuseSettings(**least), oracle=lambda shown: np.zeros(len(shown), int)
    )
    assert found.stage in ("corrected", "nothing to correct")


# --- the classifier and what it is fed ---------------------------------------------------------------------------


class Odd(nn.Module):
    """The digits' classifier, whose answer is wrapped in something."""

    def __init__(self, answer: Any):
        super().__init__()
        self.inner, self.answer = digits.classifier(), answer

    def forward(self, x: torch.Tensor) -> Any:
        return self.answer(self.inner(x))


def refused(folder: Path, words: str, model: nn.Module | None = None, **more: Any) -> None:
    given: dict[str, Any] = {"train": digits.splits()[0], "settings": DefuseSettings(**digits.QUICK), **more}
    with pytest.raises(InputError, match=words):
        defuse(model or digits.classifier(), given.pop("train"), folder / "run", **given)
    assert not (folder / "run").exists()


@pytest.mark.parametrize(
    ("answer", "got"),
    [
        (lambda logits: (logits, None), "a tuple"),
        (lambda logits: SimpleNamespace(logits=logits), "a SimpleNamespace"),
        (lambda logits: logits[:, 0], r"\(2,\)"),
        (lambda logits: logits[:1], r"\(1, 10\)"),
        (lambda logits: logits[:, :0], r"\(2, 0\)"),
    ],
)
def test_an_answer_that_is_no_logits_is_told(answer, got, tmp_path):
    words = rf"must give logits \(2, k\) of images \(2, 1, 8, 8\); got {got}; wrap it in a module that does"
    refused(tmp_path, words, Odd(answer))


def larger(pixels: torch.Tensor) -> torch.Tensor:
    return nn.functional.interpolate(pixels, 16)


def test_pictures_of_a_size_that_it_does_not_take_are_told(tmp_path):
    fails = r"\(RuntimeError: mat1 and mat2 shapes cannot be multiplied .*\); give images as it was trained on$"
    refused(tmp_path, rf"cannot take images \(2, 1, 8, 8\) through `prepare` {fails}", prepare=larger)
    images, labels = digits.splits()[0]
    refused(tmp_path, rf"cannot take images \(2, 1, 8, 6\) {fails}", train=(images[:, :, :6], labels))


def test_a_share_that_may_be_chance_is_told_with_the_share_that_is_not(tmp_path):
    """Always the first class, which 61 of 100 pictures have: above one half."""
    model = nn.Sequential(nn.Flatten(), nn.Linear(64, 2))
    with torch.no_grad():
        model[1].weight.zero_()
        model[1].bias.copy_(torch.tensor([1.0, 0.0]))
    images, few = digits.splits()[0][0][:100], (np.arange(100) >= 61).astype(np.int64)
    words = r"right on 61.0% of 100 training images, and with 2 classes it must pass 62.5%, or it may be"
    refused(tmp_path, words, model, train=(images, few))


def standard(pixels: torch.Tensor) -> torch.Tensor:
    """Every picture by its own mean and spread."""
    return (pixels - pixels.mean((1, 2, 3), keepdim=True)) / pixels.std((1, 2, 3), keepdim=True)


def test_prepared_pictures_that_are_not_numbers_are_told(tmp_path):
    (images, labels), _, _ = digits.splits()
    model = digits.classifier()
    blank = np.concatenate([np.zeros_like(images[:1]), images]), np.concatenate([labels[:1], labels])
    words = r"`prepare` must give a tensor of finite numbers; got NaN or infinity of \d+ images of `train`"
    refused(tmp_path, words, model, train=blank, prepare=lambda x: x.where(x.amax((1, 2, 3), keepdim=True) > 0, x / x))


def marks(prepare: Any, seed: int = 0) -> list[float] | None:
    two = np.random.default_rng(seed).integers(256, size=(2, 64, 64, 3), dtype=np.uint8)
    two[0, 0, 0] = 255
    return search._summary_of_prepare(Classifier(nn.Flatten(), prepare), two, "cpu", None)


@pytest.mark.parametrize("prepare", [standard, lambda x: (x - 0.5) / 0.5, lambda x: x, lambda x: 0 * x])
def test_another_machine_agrees_on_what_prepare_makes(prepare):
    """It differs in the last bits of a float32: of a mean near 0, that is all of it; and 1 may be a little less."""

    def elsewhere(pixels: torch.Tensor) -> torch.Tensor:
        made = prepare(pixels)
        return made * (1 - 1e-7) + 1e-7 * made.abs().max()

    assert marks(prepare) == marks(elsewhere) == marks(lambda x: prepare(x) * (1 - 1e-6))


def test_another_prepare_is_another_mark():
    assert marks(None) is None
    ways = [lambda x: x, standard, lambda x: x - 0.5, lambda x: (x - 0.485) / 0.229, lambda x: (x - 0.49) / 0.229]
    found = [tuple(marks(way) or ()) for way in ways]
    assert len(set(found)) == len(ways)


def test_a_prepare_that_depends_on_the_batch_is_refused(tmp_path):
    """What it makes of a generated image would depend on the images beside it."""

    def by_batch(x):
        return (x - x.mean()) / x.std()

    words = "`prepare` makes something else of an image alone than of the same image in a batch"
    with pytest.raises(InputError, match=words):
        marks(by_batch)
    assert marks(standard) is not None


def test_a_network_that_does_better_without_prepare_is_told(tmp_path):
    """A prepare that normalises once more still passes chance, and everything after it would be of the blur."""
    model = digits.classifier()
    images, labels = digits.splits()[0]

    def once_more(x):
        return 0.25 * x + 0.5

    accuracy = [float((predict_classes(Classifier(model, way), images) == labels).mean()) for way in (None, once_more)]
    assert accuracy[0] > accuracy[1] + 0.05
    assert accuracy[1] > 0.2
    refused(tmp_path, r"through `prepare`, and on \d+\.\d% without it; leave `prepare` out", model, prepare=once_more)


class Coloured(nn.Module):
    """Class 1 where the first channel has about 1.3; blurred by `noise`."""

    def __init__(self, noise: float = 0.0):
        super().__init__()
        self.weight = nn.Parameter(torch.tensor([1.0, 0.0, 0.0]))
        self.noise = noise

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        level = (x.mean((2, 3)) * self.weight).sum(dim=1)
        chance = torch.randn(len(x), generator=torch.Generator().manual_seed(0))
        return torch.stack([torch.zeros_like(level), 1 - (level - 1.3).abs() + self.noise * chance], dim=1)


def coloured() -> tuple[np.ndarray, np.ndarray]:
    """Class 1 is a little red, class 0 a little blue."""
    rng = np.random.default_rng(0)
    labels = rng.integers(2, size=600)
    images = rng.integers(100, 156, size=(600, 6, 6, 3), dtype=np.uint8)
    images[labels == 1, :, :, 0] += 30
    images[labels == 0, :, :, 2] += 10
    return images, labels


def spread(x: torch.Tensor) -> torch.Tensor:
    return (x - 0.5) / 0.08


@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        (None, r"without `prepare`, and on \d+\.\d% of pixels that have mean 0 and spread 1 .*; give the `prepare`"),
        (lambda x: spread(x / 255), "through `prepare`, and on .* of pixels that have mean 0 and spread 1"),
        (lambda x: spread(x.flip(1)), "with the channels in reverse order; give images as red, green, blue"),
        (lambda x: spread(1 - x), "of images with light and dark exchanged; give the `prepare` that it was trained"),
    ],
)
def test_a_wrong_prepare_is_told_by_the_one_that_does_better(prepare, words):
    images, labels = coloured()
    assert check_normalisation(Classifier(Coloured(), spread), images, labels) == ""  # the right one
    with pytest.raises(InputError, match=rf"the classifier is right on \d+\.\d% of 600 training images .*{words}"):
        check_normalisation(Classifier(Coloured(), prepare), images, labels)


@pytest.mark.parametrize(
    ("n", "first", "second", "named"),
    [
        (600, 0.93, 0.99, "second"),
        (600, 0.98, 0.99, "first"),  # two standard errors are .011,
        (50, 0.74, 0.86, "second"),  # and .124 here: few images cannot tell them apart, and one is no better for it
        (20, 0.55, 0.75, "second"),
    ],
)
def test_the_best_normalisation_is_named_and_of_those_that_may_be_it_the_first(n, first, second, named, monkeypatch):
    given, one, other = (lambda x: x), (lambda x: x + 1), (lambda x: x + 2)
    accuracies = {given: 0.5, one: first, other: second}
    alternatives = [("by the first", "do this", one), ("by the second", "do that", other)]
    monkeypatch.setattr(normalisation, "_alternatives", lambda images, prepare: alternatives)
    monkeypatch.setattr(normalisation, "_accuracy", lambda classifier, *rest: accuracies[classifier.prepare])
    images, labels = coloured()
    with pytest.raises(InputError, match=f"by the {named}"):
        check_normalisation(Classifier(Coloured(), given), images[:n], labels[:n])


def test_the_check_of_prepare_is_a_setting(tmp_path):
    model = digits.classifier()
    given = {"prepare": lambda x: 0.25 * x + 0.5, "oracle": lambda shown: np.zeros(len(shown), int)}
    settings = DefuseSettings(**{**digits.QUICK, "epochs": 1, "check_prepare": False})
    assert defuse(model, digits.splits()[0], tmp_path / "run", settings=settings, **given).stage


def test_a_run_says_that_its_annealing_was_longer_than_its_training(tmp_path):
    settings = DefuseSettings(**{**digits.QUICK, "epochs": 1, "anneal": 5000, "faithful": 0.99})
    result = defuse(digits.classifier(), digits.splits()[0], tmp_path / "run", settings=settings)
    assert result.stage == "poor generator"
    assert "; KL never counted in full: `anneal` asks for 5,000 steps and training had" in result.words
    vae = Vae.from_state(RunFolder(tmp_path / "run").load("vae"))
    again = defuse(digits.classifier(), digits.splits()[0], tmp_path / "borrowed", settings=settings, vae=vae)
    assert "KL" not in again.words, "trained elsewhere"


def test_a_weak_classifier_with_the_right_prepare_is_not_refused():
    images, labels = coloured()
    weak = Classifier(Coloured(noise=3.0), spread)
    assert 0.55 < (predict_classes(weak, images) == labels).mean() < 0.75
    assert check_normalisation(weak, images, labels) == ""


def test_few_more_right_answers_are_no_better_normalisation():
    assert not normalisation._is_clearly_better(0.52, 0.40, 1000)  # a weak one that likes more contrast
    assert not normalisation._is_clearly_better(0.9, 0.7, 10)  # two images of ten
    assert normalisation._is_clearly_better(0.9, 0.7, 1000)


@pytest.mark.parametrize(
    ("given", "other", "said"),
    [
        (0.95, 0.995, "right on 95.0% of 600 training images through `prepare`, and on 99.5% by another"),
        (0.93, 1.0, "right on 93.0% of 600"),  # it may take images for too dark
        (0.95, 0.965, ""),  # not beyond .02
        (0.60, 0.66, ""),  # the odds are not twice as high
    ],
)
def test_a_normalisation_that_is_a_little_better_is_told(given, other, said, monkeypatch):
    """The study of MNIST: 27 of 28 regions were taken for an 8, since pixels were not normalised."""
    right, wrong = (lambda x: x + 1), (lambda x: x)
    accuracies = {wrong: given, right: other}
    monkeypatch.setattr(normalisation, "_alternatives", lambda images, prepare: [("by another", "do this", right)])
    monkeypatch.setattr(normalisation, "_accuracy", lambda classifier, *rest: accuracies[classifier.prepare])
    found = check_normalisation(Classifier(Coloured(), wrong), *coloured())
    assert said in found
    assert bool(found) == bool(said)
    assert not said or found.endswith(
        "; if it was trained with that normalisation, regions may be an effect of the pixels alone: do this"
    )


def test_the_sentence_of_a_run_has_the_note_of_its_normalisation(tmp_path, monkeypatch):
    monkeypatch.setattr(search, "check_normalisation", lambda *given: "pixels are too dark")
    settings = DefuseSettings(**{**digits.QUICK, "epochs": 1, "faithful": 0.99})
    result = defuse(digits.classifier(), digits.splits()[0], tmp_path / "run", settings=settings)
    assert result.words.endswith("; pixels are too dark")
    assert RunFolder(tmp_path / "run").read("stage")["notes"][-1] == "pixels are too dark"
    html = (tmp_path / "run" / "report.html").read_text()
    assert '<p class="note">Pixels are too dark.</p>' in html
    assert html.count("ixels are too dark") == 1


class Picky(Coloured):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert x.shape[2] == 8, "8 pixels only"
        return super().forward(x)


def test_a_network_that_takes_only_prepared_images_is_not_asked_about_others():
    images, labels = coloured()
    check_normalisation(Classifier(Picky(), lambda x: nn.functional.interpolate(spread(x), 8)), images, labels)


@pytest.mark.parametrize(
    "error", [torch.OutOfMemoryError("too much"), RuntimeError("DefaultCPUAllocator: not enough memory"), MemoryError()]
)
def test_a_normalisation_that_ran_out_of_memory_is_not_passed_over(error, monkeypatch):
    """It would go unsaid that the check was not made."""

    def runs_out(x: torch.Tensor) -> torch.Tensor:
        raise error

    alternatives = [("by another", "do this", runs_out)]
    monkeypatch.setattr(normalisation, "_alternatives", lambda images, prepare: alternatives)
    with pytest.raises(type(error)):
        check_normalisation(Classifier(Coloured(), spread), *coloured())


def test_a_run_of_before_is_resumed_by_its_own_mark():
    two = np.random.default_rng(0).integers(256, size=(9, 8, 8, 1), dtype=np.uint8)
    classifier = Classifier(nn.Flatten(), lambda x: x - 0.5)
    pixels = two[:2] / 255 - 0.5
    stored = search._round_together([pixels.mean(), pixels.std(), pixels.min(), pixels.max()])
    assert search._summary_of_prepare(classifier, two, "cpu", stored) == stored
    assert len(search._summary_of_prepare(classifier, two, "cpu", None)) == 7


# --- files -------------------------------------------------------------------------------------------------------

IMAGES, LABELS = np.arange(12 * 20, dtype=np.uint8).reshape(12, 5, 4), np.arange(12)


def npz(folder: Path, images: np.ndarray = IMAGES, labels: Any = LABELS) -> Path:
    np.savez(folder / "x.npz", images=images, labels=labels)
    return folder / "x.npz"


def parquet(folder: Path, images: Any = IMAGES, labels: Any = LABELS) -> Path:
    blobs = []
    for picture in images:
        Image.fromarray(picture).save(file := io.BytesIO(), "PNG")
        blobs.append(file.getvalue())
    pd.DataFrame({"image": blobs, "label": labels}).to_parquet(folder / "x.parquet")
    return folder / "x.parquet"


def cut(path: Path, count: int) -> Path:
    path.write_bytes(path.read_bytes()[:count])
    return path


def single(folder: Path) -> Path:
    with open(folder / "x.npz", "wb") as file:
        np.save(file, IMAGES)
    return folder / "x.npz"


GAP = pd.array([None if i == 3 else i for i in range(12)], dtype="Int64")
ODD = [picture[:3] if row == 7 else picture for row, picture in enumerate(IMAGES)]
COLOURED = [picture[..., None].repeat(3, axis=2) if row == 7 else picture for row, picture in enumerate(IMAGES)]


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda at: cut(npz(at), 500), r"cannot be read as .npz \(File is not a zip file\); write it again"),
        (lambda at: cut(npz(at), 0), r"cannot be read as .npz \(No data left in file\)"),
        (single, "cannot be read as .npz"),
        (lambda at: npz(at, IMAGES[:0], LABELS[:0]), r"and one of them; got \(0, 5, 4\)"),
        (lambda at: npz(at, IMAGES.reshape(12, 20)), r"must have images \(n, h, w\) .* got \(12, 20\)"),
        (lambda at: npz(at, labels=LABELS + 0.5), "has the label 0.5 in row 0; give whole numbers, or names as text"),
        (lambda at: npz(at, labels=np.where(LABELS == 3, np.nan, LABELS)), "has the label nan in row 3"),
        (lambda at: npz(at, labels=np.where(LABELS == 3, np.inf, LABELS)), "has the label inf in row 3"),
        (lambda at: cut(parquet(at), 500), "cannot be read as parquet"),
        (lambda at: cut(parquet(at), 0), "cannot be read as parquet"),
        (lambda at: parquet(at, IMAGES[:0], LABELS[:0]), "and one of them; got"),
        (lambda at: parquet(at, ODD), r"row 7 of .* is \(3, 4\), that in row 0 \(5, 4\); give all in one size"),
        (lambda at: parquet(at, COLOURED), r"row 7 of .* is \(5, 4, 3\), that in row 0 \(5, 4\)"),
        (lambda at: parquet(at, labels=np.where(LABELS == 3, np.nan, LABELS)), "has no label in row 3"),
        (lambda at: parquet(at, labels=GAP), "has no label in row 3"),
        (lambda at: parquet(at, labels=[None, *"abcdefghijk"]), "no label in row 0; give one, or leave the row out"),
    ],
)
def test_a_file_that_has_no_pictures_says_so_with_its_name(make, words, tmp_path):
    path = make(tmp_path)
    with pytest.raises(InputError, match=words) as told:
        read_images(path)
    assert f"`{path}`" in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("write", [npz, parquet])
@pytest.mark.parametrize("labels", [LABELS, LABELS.astype(np.float32), LABELS.astype(np.uint8)])
def test_whole_labels_are_numbers_however_they_were_kept(write, labels, tmp_path):
    """As names, 10.0 would come before 2.0."""
    images, found, names = read_images(write(tmp_path, labels=labels))
    assert (found.dtype, names) == (np.int64, None)
    np.testing.assert_array_equal(found, LABELS)
    np.testing.assert_array_equal(images, IMAGES)


def test_names_and_numbers_of_a_table_keep_their_kind(tmp_path):
    assert read_images(parquet(tmp_path, labels=[*"cab"] * 4))[2] == ("a", "b", "c")
    for kept in (pd.array(LABELS, dtype="Int64"), pd.Categorical(LABELS)):
        _, found, names = read_images(parquet(tmp_path, labels=kept))
        assert names is None
        np.testing.assert_array_equal(found, LABELS)


def test_a_broken_file_of_a_run_is_told(digits_run, tmp_path):
    shutil.copytree(digits_run, tmp_path / "run")
    path = tmp_path / "run" / "regions.safetensors"
    path.write_bytes(b"\xff" * 8 + path.read_bytes()[8:])
    with pytest.raises(InputError, match=r"regions.safetensors` cannot be read \(its header would have .* bytes"):
        RunFolder(tmp_path / "run").load("regions")
