"""Mistakes of a classifier on generated images, and regions of them: Gaussians of codes that can be sampled again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..core.blocks import Array
from ..core.errors import InputError
from ..core.state import State

USES = ("show", "tune", "test")  # what samples are for: each has its own random numbers, so that none is used twice


@dataclass(frozen=True, eq=False)
class Regions:
    """Regions of codes, the heaviest first. Codes are what a generator decodes into images."""

    means: Array  # (r, z)
    covariances: Array  # (r, z, z)
    weights: Array  # (r,) of the mixture: shares of all mistakes
    sources: Array  # (r, k) how many of its codes come from images of each class
    predictions: Array  # (r, k) and how many the classifier assigns to each class

    def __len__(self) -> int:
        return len(self.means)

    @property
    def ids(self) -> tuple[str, ...]:
        """r1, r2, …"""
        return tuple(f"r{j + 1}" for j in range(len(self)))

    def names(self, classes: tuple[str, ...]) -> dict[str, str]:
        """Id -> the class that a region comes from and the one it is taken for; names may repeat, ids do not."""
        source = self.sources.argmax(axis=1)
        others = np.where(np.arange(len(classes)) == source[:, None], -1, self.predictions)
        pairs = zip(self.ids, source, others.argmax(axis=1), strict=True)
        return {id: f"{classes[a]} taken for {classes[b]}" for id, a, b in pairs}

    def sample(self, region: int, count: int, use: str, *, tau: float, seed: int = 0) -> Array:
        """(count, z) float32 from N(mean, tau * covariance): the same for the same region, use and seed."""
        if use not in USES:
            raise InputError(f"`use` must be one of {', '.join(USES)}; got {use!r}")
        if not tau > 0 or count < 0:
            raise InputError(f"`tau` must be above 0 and `count` not negative; got {tau} and {count}")
        rng = np.random.default_rng([seed, region, USES.index(use)])
        root = np.linalg.cholesky(tau * self.covariances[region].astype(np.float64))
        noise = rng.normal(size=(count, self.means.shape[1]))
        return np.asarray(self.means[region] + noise @ root.T, dtype=np.float32)

    def samples(self, chosen: Array, count: int, use: str, *, tau: float, seed: int = 0) -> Array:
        """(len(chosen) * count, z): one chosen region after the other."""
        none = np.empty((0, self.means.shape[1]), np.float32)
        return np.concatenate([none, *(self.sample(int(j), count, use, tau=tau, seed=seed) for j in chosen)])

    def to_state(self) -> State:
        """All arrays, to be saved."""
        return State("regions", {}, {name: getattr(self, name) for name in _ARRAYS})

    @classmethod
    def from_state(cls, state: State) -> Regions:
        """The regions that `to_state` describes."""
        return cls(**{name: np.asarray(state.arrays[name]) for name in _ARRAYS})


_ARRAYS = ("means", "covariances", "weights", "sources", "predictions")


@dataclass(frozen=True, eq=False)
class Mistakes:
    """Codes whose image the classifier assigns to another class than that of the image they come from."""

    codes: Array  # (m, z)
    rows: Array  # (m,) the image each comes from
    labels: Array  # (m,) of that image
    predictions: Array  # (m,)
    distances: Array  # (m,) from that image's own code
    facts: Mapping[str, int]  # numbers of images (pictures), codes tried, mistakes found, and kept

    def __len__(self) -> int:
        return len(self.codes)

    def to_state(self) -> State:
        """All arrays and facts, to be saved."""
        arrays = {name: getattr(self, name) for name in ("codes", "rows", "labels", "predictions", "distances")}
        return State("mistakes", dict(self.facts), arrays)

    @classmethod
    def from_state(cls, state: State) -> Mistakes:
        """The mistakes that `to_state` describes."""
        return cls(**state.arrays, facts={name: int(value) for name, value in state.facts.items()})
