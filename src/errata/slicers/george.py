"""`george`: clusters within each class, their number chosen by silhouettes, the bad ones cut out more finely.

Sohoni, Dunnmon, Angus, Gu and Ré, "No Subclass Left Behind", 2020. For each class the activations, scaled to unit
length, are reduced and clustered for k = 2..10; the k with the best unweighted mean over clusters of their mean
silhouette is kept. Over-clustering then splits each cluster in five and keeps the pieces that are better separated
than they were and lose at least as much as the cluster they come from.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.special import softmax

from ..core import Array, Evaluation, InputError
from ..core.blocks import blocks, unit
from .contract import BaseSlicer, check_columns
from .expectation import EmOptions, fit_gaussians
from .numerics import DIGITS, LEAST_ROWS, Gaussians, principal_components, unconverged
from .options import AT_LEAST_ONE, Interval

TIE = 1e-12


@dataclass(frozen=True)
class ClassClusters:
    """What one class was cut into. A cluster of which no piece stands out is one piece.

    Parameters
    ----------
    clusters
        (g,) of the class.
    pieces
        (a,) that the clusters were split in.
    cluster_of
        (a,) cluster of each piece.
    slice_of
        (a,) slice of each piece: its own where it stands out, else what is left of its cluster.
    """

    clusters: Gaussians
    pieces: Gaussians
    cluster_of: Array
    slice_of: Array


@dataclass(frozen=True)
class GeorgeAdvanced:
    """Options of `george` that are rarely set.

    Parameters
    ----------
    reduction
        `pca`, or `hardness`: one axis for each class, from the mean of the other classes to its own.
    unit_length
        Scale rows to length one first.
    clusterer
        `gmm` or `kmeans`.
    covariance
        Of a component: `full` or `diag`.
    restarts
        Fits of which the best is taken.
    min_clusters
        Fewest clusters of a class that are tried.
    separation
        Mean silhouette below which a class stays whole.
    pieces
        Pieces that each cluster is split in; 1 for none.
    piece_share
        Fewest rows of a piece that stands out, as a share of its class.
    piece_rows
        Fewest rows of a piece that stands out.
    silhouette_rows
        Rows of a class that are compared with each other at most.
    rank
        Order slices by the `errors` they hold, or by their `excess` over the mean rate.
    """

    reduction: Literal["pca", "hardness"] = "pca"
    unit_length: bool = True
    clusterer: Literal["gmm", "kmeans"] = "gmm"
    covariance: Literal["full", "diag"] = "diag"
    restarts: int = 1
    min_clusters: int = 2
    separation: float = 0.0
    pieces: int = 1
    piece_share: float = 0.005
    piece_rows: int = 25
    silhouette_rows: int = 1000
    rank: Literal["errors", "excess"] = "excess"


class George(BaseSlicer):
    """Clusters of the representation within each class, ordered by the errors they hold.

    Parameters
    ----------
    axes
        Principal axes that the representation is reduced to; null for all columns as they are.
    scope
        `label` limits a cluster to its class; `all` gives a row to the likeliest cluster of any class, so that no
        label is read.
    slices
        Slices to return at most.
    max_clusters
        Most clusters of a class that are tried.
    hard
        Give each row to its likeliest cluster instead of weighing it by the posterior.
    advanced
        Options that are rarely set.
    representation
        The representation that is searched. Default: the first.
    seed
        Of the clusterings and of the rows that silhouettes compare.
    """

    name = "george"
    needs = frozenset({"representations", "labels", "losses"})
    own_scopes: ClassVar = {"none": {"scope": "all"}, "label": {"scope": "label"}}
    presets: ClassVar = {
        "recommended": {},
        "as_published": {
            "axes": None,
            "scope": "label",
            "hard": True,
            "advanced": {
                "clusterer": "kmeans",
                "restarts": 3,
                "separation": -1.0,
                "pieces": 5,
                "silhouette_rows": 2000,
                "rank": "errors",
            },
        },
    }
    limits: ClassVar = {
        "axes": AT_LEAST_ONE,
        "slices": AT_LEAST_ONE,
        "max_clusters": Interval("min_clusters"),
        "min_clusters": Interval(2),
        "restarts": AT_LEAST_ONE,
        "pieces": AT_LEAST_ONE,
        "silhouette_rows": Interval(10),
    }
    advanced_type: ClassVar = GeorgeAdvanced
    renamed: ClassVar = {
        "dims": "axes",
        "within": "scope",
        "count": "slices",
        "least": "advanced.min_clusters",
        "most": "max_clusters",
        "over": "advanced.pieces",
    }
    fitted_arrays: ClassVar[tuple[str, ...]] = (
        "centre_",
        "axes_",
        "classes_",
        "class_of_",
        "log_weights_",
        "means_",
        "factors_",
        "cluster_of_",
        "slice_of_",
        "piece_log_weights_",
        "piece_means_",
        "piece_factors_",
        "kept_",
    )

    centre_: Array  # (d,) subtracted after scaling to unit length
    axes_: Array  # (d, r); no columns where nothing is reduced
    classes_: Array  # (c,)
    class_of_: Array  # (g,) position of each cluster's class in `classes_`
    log_weights_: Array  # (g,) with the class's share of the rows
    means_: Array  # (g, r)
    factors_: Array  # (g, r) or (g, r, r)
    cluster_of_: Array  # (a,)
    slice_of_: Array  # (a,)
    piece_log_weights_: Array  # (a,)
    piece_means_: Array  # (a, r)
    piece_factors_: Array  # (a, r) or (a, r, r)
    kept_: Array  # (s,) slices, the most important first

    def __init__(
        self,
        axes: int | None = 16,
        scope: Literal["all", "label"] = "all",
        slices: int = 10,
        max_clusters: int = 10,
        hard: bool = False,
        advanced: Mapping[str, Any] | None = None,
        representation: str | None = None,
        seed: int = 0,
    ):
        self.axes = axes
        self.scope = scope
        self.slices = slices
        self.max_clusters = max_clusters
        self.hard = hard
        self.advanced = advanced
        self.representation = representation
        self.seed = seed

    @property
    def reads(self) -> frozenset[str]:
        """The label, where a cluster is limited to its class."""
        return frozenset({"label"}) if self.scope == "label" else frozenset()

    @property
    def _rare(self) -> GeorgeAdvanced:
        return GeorgeAdvanced(**(self.advanced or {}))

    # --- learning --------------------------------------------------------------------------------------------

    def _fit(self, evaluation: Evaluation, train: Evaluation | None) -> None:
        if self._rare.reduction == "hardness" and self.scope != "label":
            raise InputError(
                "`george.advanced.reduction` = hardness has an axis for each class; set `george.scope` to `label`"
            )
        if evaluation.task != "classification":
            raise InputError(f"method `george` clusters within classes; this evaluation is one of {evaluation.task}")
        assert evaluation.labels is not None
        assert evaluation.losses is not None
        labels = evaluation.labels
        losses = evaluation.losses.astype(np.float64)
        self.classes_ = np.unique(labels)
        self._fit_axes(np.concatenate([self._scaled(block) for _, block in blocks(self.matrix(evaluation))]), labels)
        Z = self._reduced(self.matrix(evaluation))
        cuts = []
        for c, value in enumerate(self.classes_):
            rows = labels == value
            cuts.append(self._cut(self._view(Z, c)[rows], losses[rows]))
            self.report_progress(self.name, (c + 1) / len(self.classes_))
        self._join(cuts, np.array([(labels == value).mean() for value in self.classes_]))
        if evaluation.errors is None:
            errors = losses
        else:
            errors = evaluation.errors.astype(np.float64)
        self._order(self._weights(Z, evaluation), errors)

    def _fit_axes(self, X: Array, labels: Array) -> None:
        self.centre_ = X.mean(axis=0)
        if self._rare.reduction == "hardness":
            self.axes_ = np.stack([_hardness(X, labels == value) for value in self.classes_], axis=1)
        elif self.axes is None:
            self.axes_ = np.empty((X.shape[1], 0))
        else:
            self.axes_ = principal_components(X, self.axes, self.seed).components_.T

    def _cut(self, Z: Array, losses: Array) -> ClassClusters:
        """The clusters of one class, and the pieces of them that are worth a slice."""
        from scipy.spatial.distance import cdist

        rare = self._rare
        rng = np.random.default_rng(self.seed)
        some = np.sort(rng.permutation(len(Z))[: rare.silhouette_rows])
        distances = cdist(Z[some], Z[some])
        clusters = self._choose(Z, some, distances)
        old = clusters.assign(Z)
        parts = [self._split(Z[old == j], clusters, j) for j in range(len(clusters.means))]
        pieces = _stack(parts)
        cluster_of = np.repeat(np.arange(len(parts)), [len(part.means) for part in parts])
        new = _pieces_of(pieces, cluster_of, Z, old)
        fewest = max(rare.piece_share * len(Z), rare.piece_rows)
        before, after = (mean_silhouettes(distances, a[some], new[some], len(pieces.means)) for a in (old, new))
        standing = keep_pieces(old, new, cluster_of, losses, after > np.maximum(before, 0), fewest)
        return _merge_pieces(clusters, pieces, cluster_of, standing)

    def _choose(self, Z: Array, some: Array, distances: Array) -> Gaussians:
        """The clustering with the best silhouettes, the larger among equals; one cluster where none is good."""
        best = self._cluster(Z, 1)
        best_score = self._rare.separation
        for k in range(self._rare.min_clusters, min(self.max_clusters, len(Z) // LEAST_ROWS) + 1):
            clusters = self._cluster(Z, k)
            score = silhouette_score(distances, clusters.assign(Z[some]))
            if score >= best_score - TIE:
                best = clusters
                best_score = max(score, best_score)
        return best

    def _split(self, Z: Array, clusters: Gaussians, j: int) -> Gaussians:
        """Pieces of cluster j, or itself where it is too small to be split."""
        pieces = self._rare.pieces
        if pieces == 1 or len(Z) < pieces * LEAST_ROWS:
            itself = slice(j, j + 1)
            return Gaussians(clusters.log_weights[itself], clusters.means[itself], clusters.factors[itself])
        return self._cluster(Z, pieces)

    def _cluster(self, Z: Array, k: int) -> Gaussians:
        from sklearn.cluster import KMeans

        rare = self._rare
        spread = max(float(Z.var(axis=0).mean()), 1e-12)
        if rare.clusterer == "gmm":
            options = EmOptions(rare.covariance, 1e-6 * spread, restarts=rare.restarts, seed=self.seed)
            return fit_gaussians(Z, k, options, self.engine)[0]
        with unconverged():
            means = KMeans(k, n_init=rare.restarts, random_state=self.seed).fit(Z)
        variance = max(float(means.inertia_) / Z.size, 1e-9 * spread)
        return Gaussians(np.zeros(k), means.cluster_centers_, np.full((k, Z.shape[1]), variance**-0.5))

    def _join(self, cuts: list[ClassClusters], shares: Array) -> None:
        """All classes in one set of arrays."""
        sizes = [len(cut.clusters.means) for cut in cuts]
        slices = [int(cut.slice_of.max()) + 1 for cut in cuts]
        self.class_of_ = np.repeat(np.arange(len(cuts)), sizes)
        clusters = _stack([cut.clusters for cut in cuts])
        self.log_weights_ = clusters.log_weights
        if self._rare.clusterer == "gmm":
            self.log_weights_ = clusters.log_weights + np.log(shares)[self.class_of_]
        self.means_ = clusters.means
        self.factors_ = clusters.factors
        pieces = _stack([cut.pieces for cut in cuts])
        self.piece_log_weights_ = pieces.log_weights
        self.piece_means_ = pieces.means
        self.piece_factors_ = pieces.factors
        self.cluster_of_ = np.concatenate([cut.cluster_of + sum(sizes[:c]) for c, cut in enumerate(cuts)])
        self.slice_of_ = np.concatenate([cut.slice_of + sum(slices[:c]) for c, cut in enumerate(cuts)])

    def _order(self, weights: Array, errors: Array) -> None:
        base = errors.mean() if self._rare.rank == "excess" else 0.0
        self.kept_ = np.argsort(-((errors - base) @ weights), kind="stable")[: self.slices]
        self.rules_ = tuple(self._rule(int(j)) for j in self.kept_)

    def _rule(self, j: int) -> dict[str, Any]:
        cluster = int(self.cluster_of_[self.slice_of_ == j][0])
        value = int(self.classes_[self.class_of_[cluster]])
        rule: dict[str, Any] = {"kind": "component", "representation": self.representation_, "component": j}
        rule["found_in_class"] = value
        if self.scope == "label":
            rule["scope"] = {"label": value}
        return rule

    # --- new rows --------------------------------------------------------------------------------------------

    def membership(self, evaluation: Evaluation) -> Array:
        """(n, s) posteriors of the clusters, or 1 for the likeliest."""
        X = self.matrix(evaluation)
        check_columns(X, len(self.centre_), "method `george`")
        if self.scope == "label":
            evaluation.need(frozenset({"labels"}), "method `george` with scope=label")
        return self._weights(self._reduced(X), evaluation)[:, self.kept_]

    def _scaled(self, block: Array) -> Array:
        if self._rare.unit_length:
            return unit(block)
        return np.asarray(block, dtype=np.float64)

    def _reduced(self, X: Any) -> Array:
        """(n, r)"""
        parts = []
        for _, block in blocks(X):
            part = self._scaled(block) - self.centre_
            if self.axes_.shape[1]:
                part = part @ self.axes_
            parts.append(part)
        return np.concatenate(parts)

    def _view(self, Z: Array, c: int) -> Array:
        """What the clusters of a class look at: its own axis of hardness, or everything."""
        return Z[:, [c]] if self._rare.reduction == "hardness" else Z

    def _weights(self, Z: Array, evaluation: Evaluation) -> Array:
        """(n, slices) probability of each slice; 0 outside the row's own class where that is its scope."""
        joint = np.full((len(Z), len(self.means_)), -np.inf)
        rows = np.ones(len(Z), dtype=bool)
        for c, value in enumerate(self.classes_):
            of = self.class_of_ == c
            if self.scope == "label":
                rows = np.asarray(evaluation.labels == value)
            clusters = Gaussians(self.log_weights_[of], self.means_[of], self.factors_[of])
            joint[np.ix_(rows, of)] = clusters.log_joint(self._view(Z, c)[rows])
        cluster_weights = self._posterior(joint)
        weights = np.zeros((len(Z), int(self.slice_of_.max()) + 1))
        for a in range(len(self.means_)):
            of = self.cluster_of_ == a
            share = self._piece_shares(self._view(Z, int(self.class_of_[a])), of, cluster_weights[:, a])
            np.add.at(weights.T, self.slice_of_[of], share.T)
        return np.clip(np.round(weights, DIGITS), 0.0, 1.0)

    def _piece_shares(self, Z: Array, of: Array, weight: Array) -> Array:
        """(n, pieces of one cluster) its weight, divided among its pieces."""
        shares = np.zeros((len(Z), int(of.sum())))
        near = weight > 0
        pieces = Gaussians(self.piece_log_weights_[of], self.piece_means_[of], self.piece_factors_[of])
        shares[near] = self._posterior(pieces.log_joint(Z[near])) * weight[near, None]
        return shares

    def _posterior(self, joint: Array) -> Array:
        """(n, g) responsibilities, or 1 for the likeliest; all 0 for a row that no cluster may have."""
        able = np.isfinite(joint).any(axis=1)
        posterior = np.zeros_like(joint)
        if self.hard:
            posterior[able, joint[able].argmax(axis=1)] = 1.0
        else:
            posterior[able] = softmax(joint[able], axis=1)
        return posterior


def _hardness(X: Array, own: Array) -> Array:
    """(d,) from the other classes' mean to this one's; from the origin where there is one class only."""
    others = 0.0 if own.all() else X[~own].mean(axis=0)
    return np.asarray(X[own].mean(axis=0) - others)


def silhouettes(distances: Array, clusters: Array) -> Array:
    """(n,) how much nearer each row is to its own cluster than to the next, in [-1, 1]; 0 for a lone row."""
    values, codes = np.unique(clusters, return_inverse=True)
    if len(values) < 2:
        return np.zeros(len(clusters))
    member = codes[:, None] == np.arange(len(values))
    sums = distances @ member
    sizes = member.sum(axis=0)
    own = sums[member] / np.maximum(sizes[codes] - 1, 1)
    other = np.where(member, np.inf, sums / sizes).min(axis=1)
    score: Array = (other - own) / np.maximum(np.maximum(own, other), 1e-300)
    return np.where(sizes[codes] > 1, score, 0.0)


def silhouette_score(distances: Array, clusters: Array) -> float:
    """Mean over clusters of their mean silhouette, each cluster alike whatever its size; -1 for a single one."""
    if len(np.unique(clusters)) < 2:
        return -1.0
    each = silhouettes(distances, clusters)
    return float(np.mean([each[clusters == value].mean() for value in np.unique(clusters)]))


def mean_silhouettes(distances: Array, clusters: Array, pieces: Array, count: int) -> Array:
    """(count,) mean over each piece's rows of their silhouette in a clustering; 0 for a piece without rows."""
    sums = np.bincount(pieces, weights=silhouettes(distances, clusters), minlength=count)
    return np.asarray(sums / np.maximum(np.bincount(pieces, minlength=count), 1))


def keep_pieces(old: Array, new: Array, cluster_of: Array, losses: Array, separated: Array, fewest: float) -> Array:
    """(a,) bool: pieces that are better separated than before, lose as much as their cluster and are large enough."""
    sizes = np.bincount(new, minlength=len(cluster_of))
    means = np.bincount(new, weights=losses, minlength=len(cluster_of)) / np.maximum(sizes, 1)
    clusters = int(cluster_of.max()) + 1
    totals = np.bincount(old, weights=losses, minlength=clusters)
    of_cluster = totals / np.maximum(np.bincount(old, minlength=clusters), 1)
    worse = means >= of_cluster[cluster_of]
    return np.asarray(separated & worse & (sizes >= fewest))


def _pieces_of(pieces: Gaussians, cluster_of: Array, Z: Array, clusters: Array) -> Array:
    """(n,) the likeliest piece of each row's own cluster."""
    joint = np.where(cluster_of == clusters[:, None], pieces.log_joint(Z), -np.inf)
    return np.asarray(joint.argmax(axis=1))


def _merge_pieces(clusters: Gaussians, pieces: Gaussians, cluster_of: Array, standing: Array) -> ClassClusters:
    """Pieces that do not stand out go back to their cluster: to what is left of it. Those are the first slices."""
    rest = np.flatnonzero(np.bincount(cluster_of[~standing], minlength=len(clusters.means)))
    slice_of = np.searchsorted(rest, cluster_of)
    slice_of[standing] = len(rest) + np.arange(np.count_nonzero(standing))
    return ClassClusters(clusters, pieces, cluster_of, slice_of)


def _stack(parts: list[Gaussians]) -> Gaussians:
    return Gaussians(
        np.concatenate([part.log_weights for part in parts]),
        np.concatenate([part.means for part in parts]),
        np.concatenate([part.factors for part in parts]),
    )
