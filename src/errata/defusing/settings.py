"""Every number that Defuse's paper prints, and a few that it leaves open."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

from ..core import InputError
from ..fix import STRENGTHS

# What only matters once there are labels: another value needs no other run.
LATER = ("rho", "tuning", "testing", "strengths", "tune_epochs", "tune_batch", "tune_lr", "patience", "selection",
         "baseline")  # fmt: skip


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
        object.__setattr__(self, "strengths", tuple(float(one) for one in self.strengths))
        for name in ("shown", "tuning", "testing"):
            if getattr(self, name) < 1:
                raise InputError(f"`{name}` must be at least 1; got {getattr(self, name)}")
        if not 0 <= self.rho < 1:
            raise InputError(f"`rho` must lie in [0, 1); got {self.rho}")
        if self.split not in ("train", "validation"):
            raise InputError(f"`split` is `train` or `validation`, since test rows prove; got {self.split!r}")
        if self.selection not in ("no-harm", "validation"):
            raise InputError(f"`selection` is `no-harm` or `validation`; got {self.selection!r}")

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
