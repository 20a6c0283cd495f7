"""`infembed`: clusters of influence embeddings (Wang et al., 2023), so that the errors of a slice have one cause."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from ...core import Array, Evaluation, InputError, State
from ...core.membership import excess_order
from ..contract import BaseSlicer, check_columns
from .clusters import NOISE, clusters_of, columns_used, follow, lloyd, nearest_centre, to_cluster

KNOWN = ("normalised", "kmeans", "dbscan", "spectral")
GRADE = 1e-4  # that weights of one cluster differ by at most: enough to rank its rows, and all of them are members


class Infembed(BaseSlicer):
    """Clusters of influence embeddings: rows whose loss the same training rows raise or lower.

    count: K, the number of clusters. clusterer: `normalised` (k-means with centroids of length one, as published),
    `kmeans`, `dbscan` (within `radius`, or a usual distance to the `least`-th neighbour), `spectral`, or an object
    with `fit_predict`. dims_a_class: leading columns of the embedding for each class; null: all, as published.
    unit: embeddings of length one first. An embedding reads its row's label, so an audit measures approximations.
    """

    name = "infembed"
    needs = frozenset({"representations", "losses"})
    presets: ClassVar = {
        "recommended": {},
        "as_published": {"count": 25, "clusterer": "normalised", "rounds": 25, "dims_a_class": None},
    }
    learnt: ClassVar[tuple[str, ...]] = ("centres_", "clusters_", "columns_", "scale_")

    centres_: Array  # (c, d) centroids, or the rows that were clustered
    clusters_: Array  # (c,) the slice of each; NOISE is none
    columns_: Array  # (1,) of the embedding that it was fitted on
    scale_: Array  # (1,) of how well rows fit

    def __init__(
        self,
        count: int = 10,
        clusterer: Any = "kmeans",
        dims_a_class: int | None = 4,
        unit: bool = False,
        rounds: int = 100,
        radius: float | None = None,
        least: int = 5,
        representation: str = "influence",
        seed: int = 0,
    ):
        self.count, self.clusterer, self.dims_a_class = count, clusterer, dims_a_class
        self.unit, self.rounds = unit, rounds
        self.radius, self.least, self.representation, self.seed = radius, least, representation, seed

    def _fit(self, evaluation: Evaluation, train: Evaluation | None) -> None:
        self._check()
        E = self.matrix(evaluation)
        X = to_cluster(E, columns_used(evaluation, E.shape[1], self.dims_a_class), self.unit)
        if self.clusterer in ("normalised", "kmeans"):
            self.centres_ = lloyd(X, self.count, spherical=self._spherical, rounds=self.rounds, seed=self.seed)
            self.clusters_ = np.arange(len(self.centres_))
        else:
            self.centres_ = X
            assert evaluation.losses is not None
            self.clusters_ = clusters_of(
                X, evaluation.losses, self.clusterer,
                count=self.count, radius=self.radius, least=self.least, seed=self.seed,
            )  # fmt: skip
        self._order(evaluation, X)

    def _check(self) -> None:
        if self.dims_a_class is not None and self.dims_a_class < 1:
            raise InputError(f"`infembed.dims_a_class` must be at least 1, or null for all; got {self.dims_a_class}")
        if self.count < 1 or self.rounds < 1 or self.least < 1:
            raise InputError(
                "`infembed.count`, `.rounds` and `.least` must be at least 1; "
                f"got {self.count}, {self.rounds}, {self.least}"
            )
        if self.radius is not None and not self.radius > 0:
            raise InputError(f"`infembed.radius` is a distance and must be above 0; got {self.radius}")
        if self.clusterer not in KNOWN and not hasattr(self.clusterer, "fit_predict"):
            raise InputError(
                f"`infembed.clusterer` must be one of {', '.join(KNOWN)}, or an object with `fit_predict`; "
                f"got {self.clusterer!r}"
            )

    @property
    def _spherical(self) -> bool:
        return bool(self.clusterer == "normalised")

    def _order(self, evaluation: Evaluation, X: Array) -> None:
        """Slices by excess loss, numbered in that order."""
        found = [cluster for cluster in np.unique(self.clusters_) if cluster != NOISE]
        assert evaluation.losses is not None
        own, fits = self._assigned(X)
        self.columns_ = np.array([self.matrix(evaluation).shape[1]])
        self.scale_ = np.array([1.0 if fits is None else max(float(np.abs(fits).mean()), 1e-12)])
        hard = own[:, None] == np.array(found, dtype=np.int64)
        new = {found[j]: i for i, j in enumerate(excess_order(hard, evaluation.losses))}
        self.clusters_ = np.array([new.get(cluster, NOISE) for cluster in self.clusters_], dtype=np.int64)
        name = self.clusterer if isinstance(self.clusterer, str) else type(self.clusterer).__name__
        self.rules_ = tuple(
            {"kind": "component", "representation": self.representation_, "component": i, "clusterer": name}
            for i in range(len(found))
        )

    def _assigned(self, X: Array) -> tuple[Array, Array | None]:
        """(n,) the cluster of each row, and (n,) how well it fits there; None where a clusterer does not say."""
        if isinstance(self.clusterer, str) and self.clusterer in ("normalised", "kmeans"):
            nearest, fits = nearest_centre(X, self.centres_, spherical=self._spherical)
            return self.clusters_[nearest], fits
        return follow(X, self.centres_, self.clusters_), None

    def membership(self, evaluation: Evaluation) -> Array:
        X = self.matrix(evaluation)
        check_columns(X, int(self.columns_[0]), f"method `{self.name}`")
        own, fits = self._assigned(to_cluster(X, self.centres_.shape[1], self.unit))
        inside: Array = own[:, None] == np.arange(len(self.rules_))
        weights: Array = inside.astype(np.float64)
        if fits is not None:
            weights *= 1 - GRADE * (0.5 - 0.5 * fits / (np.abs(fits) + self.scale_[0]))[:, None]
        return weights

    def to_state(self) -> State:
        """An object of the user's is saved by its name: what it found is all that new rows need."""
        state = super().to_state()
        facts = dict(state.facts)
        if not isinstance(self.clusterer, str):
            facts["params"] = {**facts["params"], "clusterer": type(self.clusterer).__name__}
        return State(state.name, facts, state.arrays)
