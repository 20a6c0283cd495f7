"""Regions of a generator's codes in which a classifier was seen to err: Gaussians that can be sampled again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ..core.blocks import Array
from ..core.errors import InputError
from ..core.state import State

USES = ("show", "tune", "test")  # what samples are for: each has its own chance, so that none is seen twice


@dataclass(frozen=True, eq=False)
class Regions:
    """The heaviest first. Codes are what a generator draws pictures from."""

    means: Array  # (r, z)
    covariances: Array  # (r, z, z)
    weights: Array  # (r,) of the mixture: shares of all mistakes
    sources: Array  # (r, k) of how many of its codes came from pictures of each class
    predictions: Array  # (r, k) and what the classifier said of them

    def __len__(self) -> int:
        return len(self.means)

    @property
    def ids(self) -> tuple[str, ...]:
        return tuple(f"r{j + 1}" for j in range(len(self)))

    def names(self, classes: tuple[str, ...]) -> dict[str, str]:
        """What each was made from and taken for, by its id; two that say the same are told apart by their ids."""
        made_from = self.sources.argmax(axis=1)
        others = np.where(np.arange(len(classes)) == made_from[:, None], -1, self.predictions)
        pairs = zip(self.ids, made_from, others.argmax(axis=1), strict=True)
        return {id: f"{classes[a]} taken for {classes[b]}" for id, a, b in pairs}

    def sample(self, region: int, count: int, use: str, *, tau: float, seed: int = 0) -> Array:
        """(count, z) float32 from N(mean, tau * covariance): the same for the same region, use and seed."""
        if use not in USES:
            raise InputError(f"samples are for one of {', '.join(USES)}; got {use!r}")
        if not tau > 0 or count < 0:
            raise InputError(f"`tau` must be above 0 and `count` not negative; got {tau} and {count}")
        chance = np.random.default_rng([seed, region, USES.index(use)])
        root = np.linalg.cholesky(tau * self.covariances[region].astype(np.float64))
        noise = chance.normal(size=(count, self.means.shape[1]))
        return np.asarray(self.means[region] + noise @ root.T, dtype=np.float32)

    def samples(self, chosen: Array, count: int, use: str, *, tau: float, seed: int = 0) -> Array:
        """(len(chosen) * count, z): one chosen region after the other."""
        drawn = [self.sample(int(j), count, use, tau=tau, seed=seed) for j in chosen]
        return np.concatenate(drawn) if drawn else np.empty((0, self.means.shape[1]), np.float32)

    def to_state(self) -> State:
        return State("regions", {}, {name: getattr(self, name) for name in _ARRAYS})

    @classmethod
    def from_state(cls, state: State) -> Regions:
        return cls(**{name: np.asarray(state.arrays[name]) for name in _ARRAYS})


_ARRAYS = ("means", "covariances", "weights", "sources", "predictions")


@dataclass(frozen=True, eq=False)
class Mistakes:
    """Codes whose picture the classifier calls something else than what they were made from."""

    codes: Array  # (m, z)
    rows: Array  # (m,) the picture each came from
    labels: Array  # (m,) of that picture
    predictions: Array  # (m,)
    distances: Array  # (m,) from that picture's own code
    facts: Mapping[str, int]  # pictures, tried, found, kept

    def __len__(self) -> int:
        return len(self.codes)

    def to_state(self) -> State:
        arrays = {name: getattr(self, name) for name in ("codes", "rows", "labels", "predictions", "distances")}
        return State("mistakes", dict(self.facts), arrays)

    @classmethod
    def from_state(cls, state: State) -> Mistakes:
        return cls(**state.arrays, facts={name: int(value) for name, value in state.facts.items()})
