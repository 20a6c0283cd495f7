"""`infembed`: clusters of influence embeddings (Wang et al., 2023), so that the errors of a slice have one cause."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, Protocol, runtime_checkable

import numpy as np

from ...core import Array, Evaluation, State
from ...core.influence import AXES, columns_used
from ...core.membership import excess_order
from ..contract import BaseSlicer, check_columns
from ..options import AT_LEAST_ONE, POSITIVE
from .clusters import NOISE, clusters_of, follow, lloyd, nearest_centre, to_cluster

GRADE = 1e-4  # that weights of one cluster differ by at most: enough to rank its rows, and all of them are members


@runtime_checkable
class Clusterer(Protocol):
    """Anything like a scikit-learn clusterer."""

    def fit_predict(self, X: Any) -> Any:
        """(n,) the number of each row's cluster, -1 for none."""


@dataclass(frozen=True)
class InfembedAdvanced:
    """Options of `infembed` that are rarely set.

    Parameters
    ----------
    steps
        Steps of k-means at most.
    radius
        Of neighbourhoods for `dbscan`; null for a usual distance to the neighbour number `min_samples`.
    min_samples
        Rows within the radius that make a row part of a cluster, for `dbscan`.
    """

    steps: int = 100
    radius: float | None = None
    min_samples: int = 5


class Infembed(BaseSlicer):
    """Clusters of influence embeddings: rows whose loss the same training rows raise or lower.

    An embedding reads its row's label, so an audit measures approximations.

    Parameters
    ----------
    slices
        Clusters, the paper's K; each is a slice. `dbscan` finds the number itself.
    clusterer
        `normalised` (k-means with centroids of length one, as published), `kmeans`, `dbscan`, `spectral`, or an
        object with `fit_predict`.
    axes
        Leading columns of the embedding that are clustered, for each class; null for all, as published.
    unit_length
        Scale embeddings to length one first.
    advanced
        Options that are rarely set.
    representation
        The representation that is searched.
    seed
        Of the clustering.
    """

    name = "infembed"
    needs = frozenset({"representations", "losses"})
    presets: ClassVar = {
        "recommended": {},
        "as_published": {"slices": 25, "clusterer": "normalised", "axes": None, "advanced": {"steps": 25}},
    }
    limits: ClassVar = {
        "slices": AT_LEAST_ONE,
        "axes": AT_LEAST_ONE,
        "steps": AT_LEAST_ONE,
        "radius": POSITIVE,
        "min_samples": AT_LEAST_ONE,
    }
    advanced_type: ClassVar = InfembedAdvanced
    renamed: ClassVar = {
        "count": "slices",
        "dims_a_class": "axes",
        "unit": "unit_length",
        "rounds": "advanced.steps",
        "least": "advanced.min_samples",
    }
    fitted_arrays: ClassVar[tuple[str, ...]] = ("centres_", "clusters_", "columns_", "scale_")

    centres_: Array  # (c, d) centroids, or the rows that were clustered
    clusters_: Array  # (c,) the slice of each; NOISE is none
    columns_: Array  # (1,) of the embedding that it was fitted on
    scale_: Array  # (1,) of how well rows fit

    def __init__(
        self,
        slices: int = 10,
        clusterer: Literal["normalised", "kmeans", "dbscan", "spectral"] | Clusterer = "kmeans",
        axes: int | None = AXES,
        unit_length: bool = False,
        advanced: Mapping[str, Any] | None = None,
        representation: str = "influence",
        seed: int = 0,
    ):
        self.slices = slices
        self.clusterer = clusterer
        self.axes = axes
        self.unit_length = unit_length
        self.advanced = advanced
        self.representation = representation
        self.seed = seed

    @property
    def _rare(self) -> InfembedAdvanced:
        return InfembedAdvanced(**(self.advanced or {}))

    def _fit(self, evaluation: Evaluation, train: Evaluation | None) -> None:
        rare = self._rare
        E = self.matrix(evaluation)
        X = to_cluster(E, columns_used(evaluation, E.shape[1], self.axes), self.unit_length)
        if self.clusterer in ("normalised", "kmeans"):
            self.centres_ = lloyd(
                X, self.slices, spherical=self._spherical, steps=rare.steps, seed=self.seed, engine=self.engine
            )
            self.clusters_ = np.arange(len(self.centres_))
        else:
            self.centres_ = X
            assert evaluation.losses is not None
            self.clusters_ = clusters_of(
                X,
                evaluation.losses,
                self.clusterer,
                count=self.slices,
                radius=rare.radius,
                min_samples=rare.min_samples,
                seed=self.seed,
            )
        self._order(evaluation, X)

    @property
    def _spherical(self) -> bool:
        return bool(self.clusterer == "normalised")

    def _order(self, evaluation: Evaluation, X: Array) -> None:
        """Slices by excess loss, numbered in that order."""
        numbers = [cluster for cluster in np.unique(self.clusters_) if cluster != NOISE]
        assert evaluation.losses is not None
        own, fits = self._assigned(X)
        self.columns_ = np.array([self.matrix(evaluation).shape[1]])
        self.scale_ = np.ones(1)
        if fits is not None:
            self.scale_ = np.array([max(float(np.abs(fits).mean()), 1e-12)])
        hard = own[:, None] == np.array(numbers, dtype=np.int64)
        new = {numbers[j]: i for i, j in enumerate(excess_order(hard, evaluation.losses))}
        self.clusters_ = np.array([new.get(cluster, NOISE) for cluster in self.clusters_], dtype=np.int64)
        self.rules_ = tuple(
            {
                "kind": "component",
                "representation": self.representation_,
                "component": i,
                "columns": X.shape[1],
                "clusterer": self._clusterer_name,
            }
            for i in range(len(numbers))
        )

    @property
    def _clusterer_name(self) -> str:
        if isinstance(self.clusterer, str):
            return self.clusterer
        return type(self.clusterer).__name__

    def _assigned(self, X: Array) -> tuple[Array, Array | None]:
        """(n,) the cluster of each row, and (n,) how well it fits there; None where a clusterer does not say."""
        if isinstance(self.clusterer, str) and self.clusterer in ("normalised", "kmeans"):
            nearest, fits = nearest_centre(X, self.centres_, spherical=self._spherical)
            return self.clusters_[nearest], fits
        return follow(X, self.centres_, self.clusters_), None

    def membership(self, evaluation: Evaluation) -> Array:
        """(n, s) nearly 1 for the rows of a cluster, a little less the worse they fit there."""
        X = self.matrix(evaluation)
        check_columns(X, int(self.columns_[0]), f"method `{self.name}`")
        own, fits = self._assigned(to_cluster(X, self.centres_.shape[1], self.unit_length))
        inside: Array = own[:, None] == np.arange(len(self.rules_))
        weights: Array = inside.astype(np.float64)
        if fits is not None:
            weights *= 1 - GRADE * (0.5 - 0.5 * fits / (np.abs(fits) + self.scale_[0]))[:, None]
        return weights

    def to_state(self) -> State:
        """What is saved; a clusterer of the user's own by its name, since its clusters are all that new rows need."""
        state = super().to_state()
        params = {**state.facts["params"], "clusterer": self._clusterer_name}
        return State(state.name, {**state.facts, "params": params}, state.arrays)
