"""The settings of a run of Defuse: every number that the paper prints, and a few that it leaves open."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from ..core import InputError
from .sweep import STRENGTHS

# Settings of the correction: it can be made again with other values without another search.
CORRECTION = ("rho", "tuning", "testing", "strengths", "tune_epochs", "tune_batch", "tune_lr", "selection", "baseline")

# The range of every number: what the stage that uses it takes, so that nothing is refused hours later.
RANGES: tuple[tuple[str, Callable[[float], bool], str], ...] = (
    ("at least 0", lambda x: x >= 0, "beta anneal strengths"),
    ("at least 1", lambda x: x >= 1, "latent epochs q cap most components steps shown tuning testing tune_epochs"),
    ("at least 2", lambda x: x >= 2, "batch tune_batch"),  # a single row has no variance to normalise by
    ("above 0", lambda x: x > 0, "lr tune_lr a b scale tau"),
    ("in [0, 1)", lambda x: 0 <= x < 1, "least rho"),
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
    anneal: int = 500  # steps until it counts in full
    epochs: int = 150  # of training the VAE
    batch: int = 1024
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
    rho: float = 0.5  # share of labelled samples above which a region is misclassified
    tuning: int = 256  # samples of a region that the correction is trained on
    testing: int = 256  # samples of a region that the correction is measured on
    strengths: tuple[float, ...] = STRENGTHS  # weights of the regions' loss that are tried
    tune_epochs: int = 3  # of fine-tuning at every strength
    tune_batch: int = 256
    tune_lr: float = 1e-4
    selection: Literal["no-harm", "validation"] = "no-harm"  # how a strength is chosen; see `errata.defuse.sweep`
    baseline: bool = True  # also tune on single mistakes, where an oracle labels them
    seed: int = 0

    def __post_init__(self) -> None:
        for name in KINDS:
            object.__setattr__(self, name, _checked_value(name, getattr(self, name)))

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
            "epochs": 800,
            "batch": 2048,
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


KINDS = get_type_hints(DefuseSettings)


def parse_setting(name: str, text: str) -> Any:
    """A setting's value from text; what is none stays text, which `DefuseSettings` refuses."""
    kind = KINDS[name]
    text = text.strip().strip("\"'")
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
