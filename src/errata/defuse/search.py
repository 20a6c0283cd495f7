"""The first half of a run: a VAE, mistakes, regions, and samples of them to label. Each is done once, and kept."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import torch

from .. import report
from ..core import Array, InputError, State
from ..tensors import checked_pictures, device_of, evaluating, moved, pixels_of, state_fingerprint
from .distil import distil
from .identify import Classifier, Noise, identify, predicted
from .regions import Mistakes, Regions
from .settings import Settings
from .stages import Run, is_run
from .vae import Architecture, Vae, drawn, encoded, fitting, lower_bound, new_vae
from .vae_training import fit_vae

Pictures = tuple[Array, Array]  # (n, h, w) or (n, h, w, 3) bytes, and classes (n,)
Progress = Callable[[str, float], None]

STAGES = ("vae", "mistakes", "regions", "samples")
CHECKED = 5000  # training pictures on which classifier and VAE are tried


@dataclass(frozen=True, eq=False)
class Job:
    """What every stage needs."""

    run: Run
    classifier: Classifier
    images: Array  # (n, h, w, c) that the classifier learnt from
    labels: Array
    disturbed: Pictures  # the same, or those of another split
    names: tuple[str, ...]  # of the classes
    settings: Settings
    device: torch.device | str | None
    progress: Progress

    def predicted(self, images: Array) -> Array:
        return predicted(self.classifier, images, device=self.device)

    def drawn(self, vae: Vae, regions: Regions, which: Array, count: int, use: str) -> Array:
        """(len(which) * count, h, w, c) samples of some regions."""
        codes = regions.samples(which, count, use, tau=self.settings.tau, seed=self.settings.seed)
        return drawn(vae, codes, device=self.device)


def begin(
    folder: str | Path,
    classifier: Classifier,
    train: Pictures,
    settings: Settings,
    *,
    others: Iterable[tuple[str, Pictures | None]] = (),
    architecture: Architecture | None = None,
    vae: Vae | None = None,
    class_names: Sequence[str] | None = None,
    device: torch.device | str | None = None,
    progress: Progress,
) -> Job:
    """Check what would only fail after hours, or succeed and mean nothing; then begin the folder, or open it."""
    images, labels = checked_set("train", train)
    if not any(value.is_floating_point() for value in classifier.model.parameters()):
        raise InputError("the classifier has no weights that can be tuned; give a network that has parameters")
    device = device_of(classifier.model) if device is None else device  # the VAE works where the classifier does
    names = _classes(classifier, images, labels, class_names, device)
    sets = {"train": (images, labels)}
    for name, given in others:
        if given is not None:
            sets[name] = checked_set(name, given)
            _check_beside(name, sets[name], images, len(names))
    if settings.split not in sets:
        raise InputError(f"`split` is `{settings.split}`, and there are no such pictures; give `{settings.split}`")
    made = _shape(images.shape[1:], architecture, vae, settings.latent)
    settings = replace(settings, latent=made.latent)
    facts = {
        "settings": settings.of_search(), "architecture": asdict(made), "class_names": list(names),
        "model": state_fingerprint(classifier.model), "prepare": _prepared(classifier, images[:2], device),
        "data": fingerprint(images, labels), "disturbed": fingerprint(*sets[settings.split]),
        "vae": vae and state_fingerprint(vae),
    }  # fmt: skip
    run = Run.begin(folder, facts, {"correction": settings.of_correction()})
    return Job(run, classifier, images, labels, sets[settings.split], names, settings, device, progress)


def _shape(size: tuple[int, ...], architecture: Architecture | None, vae: Vae | None, latent: int) -> Architecture:
    """The VAE's: as it was given, or such that it fits."""
    if vae is not None and architecture not in (None, vae.architecture):
        raise InputError("`vae` has another architecture than `architecture`; give one of them")
    made = architecture or (fitting(size[0], size[1], size[2], latent) if vae is None else vae.architecture)
    if (made.height, made.width, made.colours) != size:
        raise InputError(
            f"the VAE is for pictures of {(made.height, made.width, made.colours)}, height, width and channels; "
            f"`train` has {size}"
        )
    return made


def _prepared(classifier: Classifier, two: Array, device: torch.device | str) -> list[float] | None:
    """What `prepare` makes of two pictures, in few digits: another machine may differ in the last ones."""
    if classifier.prepare is None:
        return None
    made = classifier.prepare(pixels_of(torch.from_numpy(np.ascontiguousarray(two)).to(device)))
    if not isinstance(made, torch.Tensor) or not made.isfinite().all():
        got = "NaN or infinity" if isinstance(made, torch.Tensor) else f"a {type(made).__name__}"
        raise InputError(
            f"`prepare` must give a tensor of finite numbers; got {got} of the first two of `train`; "
            "where it divides by a picture's own spread, that of a blank one is 0"
        )
    made = made.detach().double()
    return _few_digits([float(one) for one in (made.mean(), made.std(correction=0), made.min(), made.max())])


def _few_digits(values: list[float]) -> list[float]:
    """To a thousandth of the largest, or about: the digits of a mean near 0 are noise. Where the step changes, at 0.63
    or 6.3, no value lies by design; at 1 the white of many a `prepare` does."""
    largest = max(map(abs, values))
    digits = 3 - math.floor(math.log10(largest) + 0.2) if largest else 0
    return [round(one, digits) for one in values]


def checked_set(name: str, given: Pictures) -> Pictures:
    images, labels = checked_pictures(given[0], name), np.asarray(given[1])
    if labels.shape != (len(images),) or labels.dtype.kind not in "iu" or not len(images):
        raise InputError(
            f"`{name}` needs one class number a picture; got {labels.dtype} {labels.shape} for {len(images)}"
        )
    if labels.min() < 0:
        raise InputError(f"classes start at 0; `{name}` has {labels.min()} in row {labels.argmin()}")
    return images, labels.astype(np.int64)


def _check_beside(name: str, given: Pictures, images: Array, classes: int) -> None:
    """Other pictures must be as those of `train` are, and of its classes."""
    if given[0].shape[1:] != images.shape[1:]:
        raise InputError(f"`{name}` has pictures of {given[0].shape[1:]}, `train` of {images.shape[1:]}")
    if given[1].max() >= classes:
        raise InputError(
            f"`{name}` has class {given[1].max()} in row {given[1].argmax()}; "
            f"the classifier tells {classes} apart, from 0 on"
        )


def _classes(
    classifier: Classifier, images: Array, labels: Array, names: Sequence[str] | None, device: torch.device | str | None
) -> tuple[str, ...]:
    """Names of the classes; a classifier no better than chance is fed what it was not trained on."""
    count = _told_apart(classifier, images[:2], device)
    _check_beside("train", (images, labels), images, count)
    if names is not None and len(names) != count:
        raise InputError(f"there are {len(names)} class names, and the classifier tells {count} apart; name each")
    known = tuple(map(str, names if names is not None else range(count)))
    some = np.random.default_rng(0).permutation(len(images))[:CHECKED]
    right = float((predicted(classifier, images[some], device=device) == labels[some]).mean())
    enough = _by_chance(len(known))
    if right <= enough:
        raise InputError(
            f"the classifier is right on {right:.1%} of {len(some):,} training pictures, and with {len(known)} classes "
            f"it must pass {enough:.1%}, or it may be no better than chance; "
            "give `prepare`, which normalises pixels as it was trained, and labels in its order"
        )
    return known


def _by_chance(classes: int) -> float:
    """Half of the way that a rate by chance has to spare: 62% of two classes, 14% of ten."""
    chance = 1 / classes
    return chance + 0.5 * chance * (1 - chance)


def _told_apart(classifier: Classifier, two: Array, device: torch.device | str | None) -> int:
    """How many classes there are: one logit is for two. Those that were seen so far may not be all."""
    with moved(classifier.model, device) as where, evaluating(classifier.model):
        pixels = pixels_of(torch.from_numpy(np.ascontiguousarray(two)).to(where))
        given = f"pictures {tuple(pixels.shape)}{'' if classifier.prepare is None else ' through `prepare`'}"
        try:
            logits = classifier.logits(pixels)
        except Exception as error:  # in any of the ways a network or `prepare` may fail
            words = f"{type(error).__name__}: {str(error).partition(chr(10))[0]}"
            raise InputError(f"the classifier cannot take {given} ({words}); give such as it was trained on") from error
    if not isinstance(logits, torch.Tensor) or logits.ndim != 2 or len(logits) != len(two) or not logits.shape[1]:
        got = tuple(logits.shape) if isinstance(logits, torch.Tensor) else f"a {type(logits).__name__}"
        raise InputError(
            f"the classifier must give logits ({len(two)}, k) of {given}; got {got}; wrap it in a module that does"
        )
    return max(2, logits.shape[1])


def fingerprint(images: Array, labels: Array) -> str:
    digest = hashlib.blake2b(digest_size=16)
    for array in (images, labels):
        digest.update(f"{array.dtype}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def handed_in(folder: str | Path) -> Vae | None:
    """The generator of another run that this one was begun with."""
    if not is_run(folder):
        return None
    run = Run(folder)
    return Vae.from_state(run.load("vae")) if run.about.get("vae") and run.has("vae") else None


def check_stages(job: Job) -> None:
    """What came of a stage is of no use without it: done anew, it may differ, and labels would be of other pictures."""
    for first, then in pairwise(STAGES):
        if job.run.has(then) and not job.run.has(first):
            raise InputError(
                f"`{job.run.folder}` has {then} and not the {first} that they came from; put it back, or begin another"
            )


def trained_vae(job: Job, vae: Vae | None = None) -> Vae:
    """The run's own, or one that is trained already."""
    if job.run.has("vae"):
        return Vae.from_state(job.run.load("vae"))
    vae = vae or _new_vae(job)
    some = job.images[np.random.default_rng(0).permutation(len(job.images))[:CHECKED]]
    again = drawn(vae, encoded(vae, some, device=job.device), device=job.device)
    kept = float((job.predicted(again) == job.predicted(some)).mean())
    bound = lower_bound(vae, some, device=job.device)
    job.run.write("vae-told", {**bound, "same_class": kept, "pictures": len(some)})
    prior = drawn(vae, np.random.default_rng(0).normal(size=(20, vae.architecture.latent)), device=job.device)
    job.run.picture("vae.png", report.sheet([some[:10], again[:10], prior[:10], prior[10:]]))
    job.run.save("vae", vae.to_state())
    return vae


def _new_vae(job: Job) -> Vae:
    given = job.settings
    vae = new_vae(Architecture(**job.run.about["architecture"]), given.seed)
    fit_vae(
        vae, job.images, latent=vae.architecture.latent, epochs=given.epochs, batch=given.batch, lr=given.lr,
        beta=given.beta, anneal=given.anneal, device=job.device, seed=given.seed,
        progress=lambda epoch: job.progress("train the VAE", (epoch.number + 1) / given.epochs),
    )  # fmt: skip
    return vae


def found_mistakes(job: Job, vae: Vae) -> Mistakes:
    if job.run.has("mistakes"):
        return Mistakes.from_state(job.run.load("mistakes"))
    given = job.settings
    found = identify(
        vae, job.classifier, *job.disturbed,
        noise=Noise(given.a, given.b, given.scale, given.centred), q=given.q, cap=given.cap, most=given.most,
        device=job.device, seed=given.seed, progress=lambda share: job.progress("identify mistakes", share),
    )  # fmt: skip
    job.run.save("mistakes", found.to_state())
    return found


def distilled(job: Job, mistakes: Mistakes) -> Regions:
    if job.run.has("regions"):
        return Regions.from_state(job.run.load("regions"))
    given = job.settings
    job.progress("distil regions", 0.0)
    found = distil(
        mistakes, classes=len(job.names), components=given.components, least=given.least, steps=given.steps,
        seed=given.seed, device=job.device,
    )  # fmt: skip
    job.progress("distil regions", 1.0)
    job.run.save("regions", found.to_state())
    return found


def shown(job: Job, vae: Vae, regions: Regions) -> tuple[Array, Array]:
    """(r, s, h, w, c) samples to label, and (r, s) what the classifier says of them."""
    if not job.run.has("samples"):
        pictures = job.drawn(vae, regions, np.arange(len(regions)), job.settings.shown, "show")
        shape = (len(regions), job.settings.shown)
        arrays = {
            "pictures": pictures.reshape(*shape, *pictures.shape[1:]),
            "predictions": job.predicted(pictures).reshape(shape).astype(np.int64),
        }
        job.run.save("samples", State("samples", {"names": regions.names(job.names)}, arrays))
    kept = job.run.load("samples").arrays
    return kept["pictures"], kept["predictions"]
