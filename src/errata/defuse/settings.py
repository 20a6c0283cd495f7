"""The settings of a run of Defuse: every number that the paper prints, and a few that it leaves open."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from numbers import Real
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from ..core import InputError
from .sweep import STRENGTHS

# Settings of the correction: it can be made again with other values without another search.
CORRECTION = (
    "check_prepare",
    "faithful",
    "rho",
    "quorum",
    "tuning",
    "testing",
    "strengths",
    "tune_epochs",
    "tune_batch",
    "tune_lr",
    "selection",
    "baseline",
)
# Settings that are None until the data are known.
FROM_DATA = ("epochs", "batch", "anneal", "tune_epochs", "tune_batch")
VAE_STEPS = 8850  # of training a VAE, at most: 150 epochs of MNIST
MOST_EPOCHS = 150
LARGEST_BATCH = 1024
SMALLEST_BATCH = 32
BATCHES = 50  # of an epoch, where the data are few
FEWEST_EPOCHS = 10
ANNEAL = 500  # steps, or a tenth of all where those are fewer
TUNE_STEPS = 700  # of fine-tuning: three epochs of MNIST
TUNE_EPOCHS = (3, 20)
TUNE_BATCH = (32, 256)
TUNE_BATCHES = 20  # of an epoch, where the data are few

# The range of every number: what the stage that uses it takes, so that nothing is refused hours later.
RANGES: tuple[tuple[str, Callable[[float], bool], str], ...] = (
    ("at least 0", lambda x: x >= 0, "beta anneal strengths"),
    (
        "at least 1",
        lambda x: x >= 1,
        "latent epochs q cap most components steps shown quorum tuning testing tune_epochs",
    ),
    ("at least 2", lambda x: x >= 2, "batch tune_batch"),  # a single row has no variance to normalise by
    ("above 0", lambda x: x > 0, "lr tune_lr a b scale tau"),
    ("in [0, 1)", lambda x: 0 <= x < 1, "least rho faithful"),
    (f"in [0, {2**32})", lambda x: 0 <= x < 2**32, "seed"),  # the range of scikit-learn's k-means
)
KIND_NAMES = {int: "a whole number", float: "a finite number", bool: "true or false"}
REASONS = {"split": ", since the result is measured on test rows"}
LONGEST = 60  # characters of a wrong value that an error repeats


@dataclass(frozen=True)
class DefuseSettings:
    """Settings of `errata.defuse.defuse`.

    `as_published` has the paper's values, for MNIST. The defaults differ: the noise is centred, and regions are more
    and narrower.
    """

    latent: int = 10  # dimensions of a code of the VAE
    beta: float = 0.1  # weight of KL in the VAE's loss
    anneal: int | None = None  # steps until it counts in full. Default: 500, or a tenth of all steps if that is less
    epochs: int | None = None  # of training the VAE. Default: 150, or as many as make 8,850 steps, at least 10
    batch: int | None = None  # images of a step. Default: 1,024, or a fiftieth of all images if that is less
    lr: float = 1e-3
    a: float = 50.0  # of the noise: scale * (Beta(a, b) - its mean)
    b: float = 50.0
    scale: float = 2.0
    centred: bool = True  # False: without subtracting the mean
    split: Literal["train", "validation"] = "train"  # images that are searched around; never those of the test rows
    q: int = 100  # codes with noise that are tried for each image
    cap: int = 20  # mistakes that are kept of each image, the nearest first
    most: int = 50_000  # mistakes that are kept in all
    components: int = 100  # of the mixture: the most regions there can be
    least: float = 0.003  # weight of a component that is a region
    steps: int = 200  # of variational inference
    tau: float = 0.05  # share of a region's covariance that its samples are drawn with
    shown: int = 10  # samples of a region that are labelled
    check_prepare: bool = True  # refuse a classifier that is far better otherwise normalised; tell if a little
    faithful: float = 0.75  # share of reconstructions that must keep their class, or the run stops before its search
    quorum: int = 1  # people who must label a sample before it counts; somebody's final word and an oracle's do alone
    rho: float = 0.5  # share of labelled samples above which a region is misclassified
    tuning: int = 256  # samples of a region that the correction is trained on
    testing: int = 256  # samples of a region that the correction is measured on
    strengths: tuple[float, ...] = STRENGTHS  # weights of the regions' loss that are tried
    tune_epochs: int | None = None  # of fine-tuning at every strength. Default: as make 700 steps, from 3 to 20
    tune_batch: int | None = None  # rows of a step. Default: 256, or a twentieth of all rows, at least 32
    tune_lr: float = 1e-4
    selection: Literal["no-harm", "validation"] = "no-harm"  # how a strength is chosen; see `errata.defuse.sweep`
    baseline: bool = True  # also tune on single mistakes, where an oracle labels them
    seed: int = 0

    def __post_init__(self) -> None:
        for name in KINDS:
            object.__setattr__(self, name, _checked_value(name, getattr(self, name)))

    def for_data(self, n: int, stored: Mapping[str, Any] | None = None) -> DefuseSettings:
        """With the settings of both trainings filled in: as a run stored them, else from the number of images."""
        known = {name: (stored or {}).get(name) for name in FROM_DATA if getattr(self, name) is None}
        found = replace(self, **{name: value for name, value in known.items() if value is not None})
        batch = found.batch or min(LARGEST_BATCH, max(SMALLEST_BATCH, n // BATCHES))
        batches = math.ceil(n / batch)
        epochs = found.epochs or min(MOST_EPOCHS, max(FEWEST_EPOCHS, math.ceil(VAE_STEPS / batches)))
        anneal = min(ANNEAL, epochs * batches // 10) if found.anneal is None else found.anneal
        tune_batch = found.tune_batch or int(np.clip(n // TUNE_BATCHES, *TUNE_BATCH))
        tune_epochs = found.tune_epochs or int(np.clip(math.ceil(TUNE_STEPS / math.ceil(n / tune_batch)), *TUNE_EPOCHS))
        tuned = replace(found, tune_batch=tune_batch, tune_epochs=tune_epochs)
        return replace(tuned, batch=batch, epochs=epochs, anneal=anneal)

    def unfinished_annealing(self, n: int) -> str:
        """What to tell of a VAE trained on n images by settings `for_data`; nothing where KL counts in full at last."""
        steps = known(self.epochs) * math.ceil(n / known(self.batch))
        anneal = known(self.anneal)
        if anneal <= steps:
            return ""
        return (
            f"KL never counted in full: `anneal` asks for {anneal:,} steps and training had {steps:,}, so it ended at "
            f"{steps / anneal:.1%} of `beta`; in another folder lower `anneal` or leave it out"
        )

    def of_search(self) -> dict[str, Any]:
        """Settings up to the samples that are labelled."""
        return {name: value for name, value in asdict(self).items() if name not in CORRECTION}

    def of_correction(self) -> dict[str, Any]:
        """Settings that only matter once there are labels."""
        return {name: value for name, value in asdict(self).items() if name in CORRECTION}

    @classmethod
    def as_published(cls, **changes: Any) -> DefuseSettings:
        """The paper's settings for MNIST, with some changed."""
        paper: dict[str, Any] = {
            "beta": 4.0,
            "anneal": 500,
            "epochs": 800,
            "batch": 2048,
            "faithful": 0.0,
            "quorum": 5,
            "tune_epochs": 3,
            "tune_batch": 256,
            "scale": 1.0,
            "centred": False,
            "q": 500,
            "cap": 100,
            "least": 0.01,
            "steps": 100,
            "tau": 0.5,
            "tune_lr": 1e-3,
            "selection": "validation",
        }
        return cls(**{**paper, **changes})


def known(value: int | None) -> int:
    """A setting that follows from the data, once `for_data` has filled it in."""
    assert value is not None
    return value


KINDS = {**get_type_hints(DefuseSettings), **dict.fromkeys(FROM_DATA, int)}


def parse_setting(name: str, text: str) -> Any:
    """A setting's value from text; what is none stays text, which `DefuseSettings` refuses."""
    kind = KINDS[name]
    text = text.strip().strip("\"'")
    if name in FROM_DATA and text == "auto":
        return None
    try:
        if kind is bool:
            return {"true": True, "false": False}[text.lower()]
        if name == "strengths":
            return tuple(float(number) for number in text.strip("[]()").split(","))
        if kind in (int, float):
            return int(text) if text.lstrip("+-").isdecimal() else float(text)
    except (KeyError, ValueError):
        pass
    return text


def _checked_value(name: str, value: Any) -> Any:
    """The value as the setting's own type; an error where it has another, or lies outside its range."""
    if value is None and name in FROM_DATA:
        return None
    kind = KINDS[name]
    if get_origin(kind) is Literal:
        choices = get_args(kind)
        if isinstance(value, str) and value in choices:
            return value
        words = " or ".join(f"`{choice}`" for choice in choices)
        raise _refusal(name, f"must be {words}{REASONS.get(name, '')}", value)
    if kind is bool:
        if isinstance(value, bool | np.bool_):
            return bool(value)
        raise _refusal(name, f"must be {KIND_NAMES[bool]}", value)
    if name == "strengths":
        return _numbers(name, value)
    return _number(name, kind, value)


def _number(name: str, kind: Any, value: Any) -> Any:
    """An int or a float in the setting's range; 1e2 is whole, and True is no number."""
    words, in_range = next((words, in_range) for words, in_range, names in RANGES if name in names.split())
    is_number = isinstance(value, Real) and not isinstance(value, bool)
    if is_number and _is_finite(value) and (kind is float or value == int(value)) and in_range(value):
        return kind(value)
    raise _refusal(name, f"must be {KIND_NAMES[kind]}, {words}", value)


def _numbers(name: str, value: Any) -> tuple[float, ...]:
    numbers = []
    if np.iterable(value) and not isinstance(value, str):
        numbers = list(value)
    try:
        if numbers:
            return tuple(_number(name, float, number) for number in numbers)
    except InputError:
        pass  # the error below names all of them
    raise _refusal(name, "must be one or more finite numbers, at least 0 each", value)


def _is_finite(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond every float
        return False


def _refusal(name: str, requirement: str, value: Any) -> InputError:
    got = " ".join(repr(value).split())
    if len(got) > LONGEST:
        got = f"{got[:LONGEST]}…"
    return InputError(f"`{name}` {requirement}; got {got}")
