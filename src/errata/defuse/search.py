"""The first half of a run: a VAE, mistakes, regions, and samples of them to label. Each is computed once and saved."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch

from .. import report
from ..core import Array, InputError, Progress, State
from ..tensors import device_of, evaluating, on_device, state_fingerprint, to_pixels, validate_images
from .distil import distil
from .identify import Classifier, Noise, identify, predict_classes
from .normalisation import check_normalisation
from .regions import Mistakes, Regions
from .settings import DefuseSettings, known
from .stages import RunFolder, is_run
from .vae import (
    Architecture,
    Vae,
    check_training,
    decode_codes,
    encode_images,
    fit_vae,
    fitting_architecture,
    lower_bound,
    new_vae,
)

LabelledImages = tuple[Array, Array]  # (n, h, w) or (n, h, w, 3) bytes, and classes (n,)

STAGES = ("vae", "mistakes", "regions", "samples")
CHECKED = 5000  # training images on which classifier and VAE are checked
PREPARED = 1000  # training images on which `prepare` is checked
ALONE = 4  # of them that are also prepared one by one


@dataclass(frozen=True, eq=False)
class Job:
    """What every stage of a run needs."""

    run: RunFolder
    classifier: Classifier
    images: Array  # (n, h, w, c) that the classifier was trained on
    labels: Array
    searched: LabelledImages  # images that mistakes are searched around: the same, or those of another split
    names: tuple[str, ...]  # of the classes
    settings: DefuseSettings
    device: torch.device | str | None
    progress: Progress
    normalisation: str = ""  # what to tell of `prepare`

    def predict(self, images: Array) -> Array:
        """(n,) the audited classifier's classes."""
        return predict_classes(self.classifier, images, device=self.device)

    def decode_samples(self, vae: Vae, regions: Regions, which: Array, count: int, use: str) -> Array:
        """(len(which) * count, h, w, c) images of samples of some regions."""
        codes = regions.samples(which, count, use, tau=self.settings.tau, seed=self.settings.seed)
        return decode_codes(vae, codes, device=self.device)


def start(
    folder: str | Path,
    classifier: Classifier,
    train: LabelledImages,
    settings: DefuseSettings,
    *,
    others: Mapping[str, LabelledImages | None] | None = None,
    architecture: Architecture | None = None,
    vae: Vae | None = None,
    class_names: Sequence[str] | None = None,
    device: torch.device | str | None = None,
    progress: Progress,
) -> Job:
    """Check what would only fail after hours, or succeed and mean nothing; then create the folder, or open it."""
    if not isinstance(settings, DefuseSettings):
        raise InputError(f"`settings` must be an errata.defuse.DefuseSettings; got a {type(settings).__name__}")
    images, labels = check_labelled("train", train)
    if not any(value.is_floating_point() for value in classifier.model.parameters()):
        raise InputError("the classifier has no weights that can be tuned; give a network that has parameters")
    if device is None:
        device = device_of(classifier.model)  # the VAE runs where the classifier does
    names = _check_classifier(classifier, images, labels, class_names, device)
    normalisation = ""
    if settings.check_prepare:
        few = np.random.default_rng(0).permutation(len(images))[:PREPARED]
        normalisation = check_normalisation(classifier, images[few], labels[few], device)
    sets = _check_sets((images, labels), others or {}, len(names))
    if settings.split not in sets:
        raise InputError(f"`split` is `{settings.split}`, and there are no such images; give `{settings.split}`")
    shape = _vae_architecture(images.shape[1:], architecture, vae, settings.latent)
    stored = RunFolder(folder).about if is_run(folder) else {}
    settings = replace(settings, latent=shape.latent).for_data(
        len(images), {**stored.get("settings", {}), **stored.get("correction", {})}
    )
    if vae is None:
        training = known(settings.epochs), known(settings.batch)
        check_training(len(images), *training, settings.beta, known(settings.anneal))
    borrowed = None if vae is None else state_fingerprint(vae)
    facts: dict[str, Any] = {
        "settings": settings.of_search(),
        "architecture": asdict(shape),
        "class_names": list(names),
        "model": state_fingerprint(classifier.model),
        "prepare": _summary_of_prepare(classifier, images, device, stored.get("prepare")),
        "data": data_fingerprint(images, labels),
        "disturbed": data_fingerprint(*sets[settings.split]),
        "vae": borrowed,
    }
    run = RunFolder.create_or_open(folder, facts, {"correction": settings.of_correction()})
    searched = sets[settings.split]
    return Job(run, classifier, images, labels, searched, names, settings, device, progress, normalisation)


def _vae_architecture(
    size: tuple[int, ...], architecture: Architecture | None, vae: Vae | None, latent: int
) -> Architecture:
    """The given one, or one that fits the size of images (height, width, channels)."""
    if vae is not None and architecture not in (None, vae.architecture):
        raise InputError("`vae` has another architecture than `architecture`; give one of them")
    if architecture is None and vae is not None:
        architecture = vae.architecture
    if architecture is None:
        architecture = fitting_architecture(size[0], size[1], size[2], latent)
    own = (architecture.height, architecture.width, architecture.colours)
    if own != size:
        raise InputError(f"the VAE is for images of {own}, height, width and channels; `train` has {size}")
    return architecture


def _summary_of_prepare(
    classifier: Classifier, images: Array, device: torch.device | str, stored: list[float] | None
) -> list[float] | None:
    """Statistics of what `prepare` makes of images, in few digits: another machine may differ in the last ones.

    stored: those of a run that is resumed; runs of before 0.5 have four, of their first two images.
    """
    if classifier.prepare is None:
        return None
    if stored is not None and len(stored) == 4:
        values = _prepared(classifier, images[:2], device).double()
        statistics = [values.mean(), values.std(correction=0), values.min(), values.max()]
        return _round_together([float(statistic) for statistic in statistics])
    some = images[np.random.default_rng(0).permutation(len(images))[:PREPARED]]
    values = _prepared(classifier, some, device)
    alone = torch.cat([_prepared(classifier, some[i : i + 1], device) for i in range(min(ALONE, len(some)))])
    if alone.shape[1:] != values.shape[1:] or not torch.allclose(alone, values[:ALONE], rtol=1e-3, atol=1e-3):
        raise InputError(
            "`prepare` makes something else of an image alone than of the same image in a batch; normalise by fixed "
            "numbers, those of training, not by the batch's own"
        )
    rows = values.double().flatten(1)
    levels = torch.quantile(rows.mean(dim=1), torch.tensor([0.1, 0.5, 0.9], dtype=torch.float64, device=rows.device))
    statistics = [rows.mean(), rows.std(correction=0), rows.min(), rows.max(), *levels]
    return _round_together([float(statistic) for statistic in statistics])


def _prepared(classifier: Classifier, images: Array, device: torch.device | str) -> torch.Tensor:
    """What `prepare` makes of images, checked."""
    assert classifier.prepare is not None
    values = classifier.prepare(to_pixels(torch.from_numpy(np.ascontiguousarray(images)).to(device)))
    if not isinstance(values, torch.Tensor) or not values.isfinite().all():
        got = "NaN or infinity" if isinstance(values, torch.Tensor) else f"a {type(values).__name__}"
        raise InputError(
            f"`prepare` must give a tensor of finite numbers; got {got} of {len(images)} images of `train`; "
            "where it divides by an image's own spread, that of a blank one is 0"
        )
    return values.detach().float()


def _round_together(values: list[float]) -> list[float]:
    """To about a thousandth of the largest: the digits of a mean near 0 are noise. The step changes at 0.63 and 6.3,
    where no value lies by design; at 1 lies the white of many a `prepare`."""
    largest = max(map(abs, values))
    digits = 3 - math.floor(math.log10(largest) + 0.2) if largest else 0
    return [round(value, digits) for value in values]


def check_labelled(name: str, labelled: LabelledImages) -> LabelledImages:
    """Images (n, h, w, c) and classes (n,) as int64; an error where they are none."""
    images = validate_images(labelled[0], name)
    labels = np.asarray(labelled[1])
    if labels.shape != (len(images),) or labels.dtype.kind not in "iu" or not len(images):
        raise InputError(
            f"`{name}` needs one class number per image; got {labels.dtype} {labels.shape} for {len(images)}"
        )
    if labels.min() < 0:
        raise InputError(f"classes start at 0; `{name}` has {labels.min()} in row {labels.argmin()}")
    return images, labels.astype(np.int64)


def _check_sets(
    train: LabelledImages, others: Mapping[str, LabelledImages | None], classes: int
) -> dict[str, LabelledImages]:
    """The training images and those others that were given, by name."""
    sets = {"train": train}
    for name, labelled in others.items():
        if labelled is not None:
            sets[name] = check_labelled(name, labelled)
            _check_like_train(name, sets[name], train[0], classes)
    return sets


def _check_like_train(name: str, labelled: LabelledImages, images: Array, classes: int) -> None:
    """Other images must have the size of those of `train`, and its classes."""
    if labelled[0].shape[1:] != images.shape[1:]:
        raise InputError(f"`{name}` has images of {labelled[0].shape[1:]}, `train` of {images.shape[1:]}")
    if labelled[1].max() >= classes:
        raise InputError(
            f"`{name}` has class {labelled[1].max()} in row {labelled[1].argmax()}; "
            f"the classifier has {classes} classes, from 0 on"
        )


def _check_classifier(
    classifier: Classifier, images: Array, labels: Array, names: Sequence[str] | None, device: torch.device | str | None
) -> tuple[str, ...]:
    """Names of the classes; an error where the classifier is no better than chance, for then its input is wrong."""
    count = _count_classes(classifier, images[:2], device)
    _check_like_train("train", (images, labels), images, count)
    if names is None:
        names = [str(number) for number in range(count)]
    if len(names) != count:
        raise InputError(f"there are {len(names)} class names, and the classifier has {count} classes; name each")
    rows = np.random.default_rng(0).permutation(len(images))[:CHECKED]
    accuracy = float((predict_classes(classifier, images[rows], device=device) == labels[rows]).mean())
    chance = 1 / count
    enough = chance + 0.5 * chance * (1 - chance)  # 62% of two classes, 14% of ten
    if accuracy <= enough:
        raise InputError(
            f"the classifier is right on {accuracy:.1%} of {len(rows):,} training images, and with {count} classes "
            f"it must pass {enough:.1%}, or it may be no better than chance; "
            "give `prepare`, which normalises pixels as it was trained, and labels in its order"
        )
    return tuple(map(str, names))


def _count_classes(classifier: Classifier, two: Array, device: torch.device | str | None) -> int:
    """The number of logits, one being for two classes: the labels need not have all of them."""
    with on_device(classifier.model, device) as where, evaluating(classifier.model):
        pixels = to_pixels(torch.from_numpy(np.ascontiguousarray(two)).to(where))
        inputs = f"images {tuple(pixels.shape)}"
        if classifier.prepare is not None:
            inputs += " through `prepare`"
        try:
            logits = classifier.logits(pixels)
        except Exception as error:  # a network or `prepare` may raise anything
            words = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
            raise InputError(
                f"the classifier cannot take {inputs} ({words}); give images as it was trained on"
            ) from error
    if not isinstance(logits, torch.Tensor) or logits.ndim != 2 or len(logits) != len(two) or not logits.shape[1]:
        if isinstance(logits, torch.Tensor):
            got = tuple(logits.shape)
        else:
            got = f"a {type(logits).__name__}"
        raise InputError(
            f"the classifier must give logits ({len(two)}, k) of {inputs}; got {got}; wrap it in a module that does"
        )
    return max(2, logits.shape[1])


def data_fingerprint(images: Array, labels: Array) -> str:
    """Of images and classes: types, shapes and bytes."""
    digest = hashlib.blake2b(digest_size=16)
    for array in (images, labels):
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def borrowed_vae(folder: str | Path) -> Vae | None:
    """The VAE of another run that this one was created with; None where it trained its own, or is new."""
    if not is_run(folder):
        return None
    run = RunFolder(folder)
    if not run.about.get("vae") or not run.has("vae"):
        return None
    return Vae.from_state(run.load("vae"))


def check_stages(job: Job) -> None:
    """An error where a stage is missing before one that is there: computed anew it may differ, and labels would be of
    other images."""
    for first, then in pairwise(STAGES):
        if job.run.has(then) and not job.run.has(first):
            raise InputError(
                f"`{job.run.folder}` has {then} and not the {first} that they came from; restore it, or start in "
                "another folder"
            )


def make_vae(job: Job, vae: Vae | None = None) -> Vae:
    """The stage `vae`: the saved one, the given one, or one that is trained now."""
    if job.run.has("vae"):
        return Vae.from_state(job.run.load("vae"))
    settings = job.settings
    if vae is None:
        vae = new_vae(Architecture(**job.run.about["architecture"]), settings.seed)
        fit_vae(
            vae,
            job.images,
            epochs=known(settings.epochs),
            batch=known(settings.batch),
            lr=settings.lr,
            beta=settings.beta,
            anneal=known(settings.anneal),
            device=job.device,
            seed=settings.seed,
            progress=job.progress,
        )
    some = job.images[np.random.default_rng(0).permutation(len(job.images))[:CHECKED]]
    reconstructed = decode_codes(vae, encode_images(vae, some, device=job.device), device=job.device)
    same_class = float((job.predict(reconstructed) == job.predict(some)).mean())
    bound = lower_bound(vae, some, device=job.device)
    job.run.write("vae-told", {**bound, "same_class": same_class, "pictures": len(some)})
    prior = decode_codes(vae, np.random.default_rng(0).normal(size=(20, vae.architecture.latent)), device=job.device)
    job.run.write_bytes("vae.png", report.sheet([some[:10], reconstructed[:10], prior[:10], prior[10:]]))
    job.run.save("vae", vae.to_state())
    return vae


def make_mistakes(job: Job, vae: Vae) -> Mistakes:
    """The stage `mistakes`."""
    if job.run.has("mistakes"):
        return Mistakes.from_state(job.run.load("mistakes"))
    settings = job.settings
    mistakes = identify(
        vae,
        job.classifier,
        *job.searched,
        noise=Noise(settings.a, settings.b, settings.scale, settings.centred),
        q=settings.q,
        cap=settings.cap,
        most=settings.most,
        device=job.device,
        seed=settings.seed,
        progress=job.progress,
    )
    job.run.save("mistakes", mistakes.to_state())
    return mistakes


def make_regions(job: Job, mistakes: Mistakes) -> Regions:
    """The stage `regions`."""
    if job.run.has("regions"):
        return Regions.from_state(job.run.load("regions"))
    settings = job.settings
    job.progress("distil regions", 0.0)
    regions = distil(
        mistakes,
        classes=len(job.names),
        components=settings.components,
        least=settings.least,
        steps=settings.steps,
        seed=settings.seed,
        device=job.device,
    )
    job.progress("distil regions", 1.0)
    job.run.save("regions", regions.to_state())
    return regions


def make_samples(job: Job, vae: Vae, regions: Regions) -> tuple[Array, Array]:
    """The stage `samples`: (r, s, h, w, c) images to label, and (r, s) the classifier's classes of them."""
    if not job.run.has("samples"):
        images = job.decode_samples(vae, regions, np.arange(len(regions)), job.settings.shown, "show")
        shape = (len(regions), job.settings.shown)
        arrays = {
            "pictures": images.reshape(*shape, *images.shape[1:]),
            "predictions": job.predict(images).reshape(shape).astype(np.int64),
        }
        job.run.save("samples", State("samples", {"names": regions.names(job.names)}, arrays))
    saved = job.run.load("samples").arrays
    return saved["pictures"], saved["predictions"]
