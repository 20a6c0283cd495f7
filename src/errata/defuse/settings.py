"""Every number that Defuse's paper prints, and a few that it leaves open."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass
from numbers import Real
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np

from ..core import InputError
from .sweep import STRENGTHS

# What only matters once there are labels: another value needs no other run.
LATER = ("rho", "tuning", "testing", "strengths", "tune_epochs", "tune_batch", "tune_lr", "patience", "selection",
         "baseline")  # fmt: skip

# Where each number may lie: what the stage that uses it takes, so that nothing is refused hours later.
RANGES: tuple[tuple[str, Callable[[float], bool], str], ...] = (
    ("at least 0", lambda x: x >= 0, "beta anneal strengths"),
    ("at least 1", lambda x: x >= 1, "latent epochs q cap most components steps shown tuning testing"),
    ("at least 1", lambda x: x >= 1, "tune_epochs patience"),
    ("at least 2", lambda x: x >= 2, "batch tune_batch"),  # one row has no variance to normalise by
    ("above 0", lambda x: x > 0, "lr tune_lr a b scale tau"),
    ("in [0, 1)", lambda x: 0 <= x < 1, "least rho"),
    (f"in [0, {2**32})", lambda x: 0 <= x < 2**32, "seed"),  # scikit-learn's k-means takes no other
)
NAMED = {int: "a whole number", float: "a finite number", bool: "true or false"}
WHY = {"split": ", since test rows prove"}
LONGEST = 60  # characters of a wrong value that are told


@dataclass(frozen=True)
class Settings:
    """`as_published` has the paper's, for MNIST. Here the noise is centred, regions are more and narrower."""

    latent: int = 10
    beta: float = 0.1
    anneal: int = 500  # steps until KL counts in full
    epochs: int = 150
    batch: int = 1024
    lr: float = 1e-3
    a: float = 50.0  # of the noise: scale * (Beta(a, b) - its mean)
    b: float = 50.0
    scale: float = 2.0
    centred: bool = True
    split: Literal["train", "validation"] = "train"  # whose pictures are disturbed; test rows prove, so never they
    q: int = 100  # disturbed codes a picture,
    cap: int = 20  # of which so many mistakes are kept, the nearest first
    most: int = 50_000
    components: int = 100
    least: float = 0.003  # weight of a region
    steps: int = 200
    tau: float = 0.05  # of a region's covariance that its samples have
    shown: int = 10  # samples of a region that are labelled
    rho: float = 0.5
    tuning: int = 256  # samples of a region that are learnt from,
    testing: int = 256  # and that prove it
    strengths: tuple[float, ...] = STRENGTHS
    tune_epochs: int = 3
    tune_batch: int = 256
    tune_lr: float = 1e-4
    patience: int = 5  # epochs without a better one before tuning stops
    selection: Literal["no-harm", "validation"] = "no-harm"
    baseline: bool = True  # also tune on single mistakes, where an oracle labels them
    seed: int = 0

    def __post_init__(self) -> None:
        for name in KINDS:
            object.__setattr__(self, name, _checked(name, getattr(self, name)))

    def of_search(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name not in LATER}

    def of_correction(self) -> dict[str, Any]:
        return {name: value for name, value in asdict(self).items() if name in LATER}

    @classmethod
    def as_published(cls, **more: Any) -> Settings:
        paper: dict[str, Any] = {
            "beta": 4.0, "epochs": 800, "batch": 2048, "scale": 1.0, "centred": False, "q": 500, "cap": 100,
            "least": 0.01, "steps": 100, "tau": 0.5, "tune_lr": 1e-3, "selection": "validation",
        }  # fmt: skip
        return cls(**{**paper, **more})


KINDS = get_type_hints(Settings)


def value_of(name: str, text: str) -> Any:
    """A setting's value as it is typed; what cannot be one stays text, which `Settings` refuses."""
    kind, text = KINDS[name], text.strip().strip("\"'")
    try:
        if kind is bool:
            return {"true": True, "false": False}[text.lower()]
        if name == "strengths":
            return tuple(float(one) for one in text.strip("[]()").split(","))
        if kind in (int, float):
            return int(text) if text.lstrip("+-").isdecimal() else float(text)
    except (KeyError, ValueError):
        pass
    return text


def _checked(name: str, value: Any) -> Any:
    """The value as its own kind, where it is one and lies where it may; else a sentence."""
    kind = KINDS[name]
    if get_origin(kind) is Literal:
        choices = get_args(kind)
        if isinstance(value, str) and value in choices:
            return value
        raise _refusal(name, f"is {' or '.join(f'`{one}`' for one in choices)}{WHY.get(name, '')}", value)
    if kind is bool:
        if isinstance(value, bool | np.bool_):
            return bool(value)
        raise _refusal(name, f"must be {NAMED[bool]}", value)
    return _numbers(name, value) if name == "strengths" else _number(name, kind, value)


def _number(name: str, kind: Any, value: Any) -> Any:
    """An int or a float of the setting's range; 1e2 is whole, and True is no number."""
    words, lies = next((words, lies) for words, lies, names in RANGES if name in names.split())
    plain = isinstance(value, Real) and not isinstance(value, bool)
    if plain and _finite(value) and (kind is float or value == int(value)) and lies(value):
        return kind(value)
    raise _refusal(name, f"must be {NAMED[kind]}, {words}", value)


def _numbers(name: str, value: Any) -> tuple[float, ...]:
    given = [] if isinstance(value, str) or not np.iterable(value) else list(value)
    try:
        if given:
            return tuple(_number(name, float, one) for one in given)
    except InputError:
        pass  # all of them are told
    raise _refusal(name, "must be one or more finite numbers, at least 0 each", value)


def _finite(value: Any) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:  # a whole number beyond every float
        return False


def _refusal(name: str, must: str, value: Any) -> InputError:
    got = " ".join(repr(value).split())
    return InputError(f"`{name}` {must}; got {got if len(got) <= LONGEST else f'{got[:LONGEST]}…'}")
