"""`george`: clusters within each class, their number chosen by silhouettes, the bad ones cut out more finely.

Sohoni, Dunnmon, Angus, Gu and Ré, "No Subclass Left Behind", 2020. For each class the activations, scaled to unit
length, are reduced and clustered for k = 2..10; the k with the best unweighted mean over clusters of their mean
silhouette is kept. Over-clustering then splits each cluster in five and keeps the pieces that are better separated
than they were and lose at least as much as the cluster they come from.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import softmax
from sklearn.cluster import KMeans
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.mixture import GaussianMixture

from ..core import Array, Evaluation, InputError
from ..core.blocks import blocks
from .contract import BaseSlicer, check_columns
from .gaussians import Gaussians

LEAST_ROWS = 4  # per cluster that is tried: a silhouette of single rows says nothing
TIE = 1e-12
DIGITS = 9  # the last bits of a product depend on which rows stand in one block; sets must not


@dataclass(frozen=True)
class ClassClusters:
    """What one class was cut into. A cluster without pieces that were kept is one piece."""

    clusters: Gaussians  # (g,)
    pieces: Gaussians  # (a,)
    cluster_of: Array  # (a,) cluster of each piece
    slice_of: Array  # (a,) slice of each piece: its own where it was kept, else what is left of its cluster


class George(BaseSlicer):
    """Clusters of the representation within each class, ordered by the errors they hold.

    reduction: "none", "pca" to `dims` axes, or "hardness", the projection on each class's mean less the others'.
    clusterer: "gmm" (`covariance` "full" or "diag") or "kmeans", `restarts` times. least, most: numbers of clusters
    tried. separation: the mean silhouette below which a class stays whole. over: pieces a cluster is split in; 1 for
    none. piece_share, piece_rows: the fewest rows of a piece that is kept. silhouette_rows: at most so many of a
    class are compared with each other. within: "label" limits a cluster to its class; "nearest" gives a row to the
    likeliest cluster of any class, so that no label is read. rank: by "errors", or by their "excess" over the mean
    rate. hard: one cluster a row instead of the posterior.
    """

    name = "george"
    needs = frozenset({"representations", "labels", "losses"})
    reads = frozenset({"label"})  # with `within="label"`; an instance knows better
    presets: ClassVar = {
        "recommended": {},
        "as_published": {
            "reduction": "none", "clusterer": "kmeans", "over": 5, "separation": -1.0, "within": "label",
            "rank": "errors", "hard": True, "silhouette_rows": 2000, "restarts": 3,
        },
    }  # fmt: skip
    learnt: ClassVar[tuple[str, ...]] = (
        "centre_", "axes_", "classes_", "class_of_", "log_weights_", "means_", "factors_", "cluster_of_", "slice_of_",
        "piece_log_weights_", "piece_means_", "piece_factors_", "kept_",
    )  # fmt: skip

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
        reduction: Literal["none", "pca", "hardness"] = "pca",
        dims: int = 16,
        unit_length: bool = True,
        clusterer: Literal["gmm", "kmeans"] = "gmm",
        covariance: Literal["full", "diag"] = "diag",
        restarts: int = 1,
        least: int = 2,
        most: int = 10,
        separation: float = 0.0,
        over: int = 1,
        piece_share: float = 0.005,
        piece_rows: int = 25,
        silhouette_rows: int = 1000,
        within: Literal["nearest", "label"] = "nearest",
        rank: Literal["errors", "excess"] = "excess",
        hard: bool = False,
        count: int = 10,
        representation: str | None = None,
        seed: int = 0,
    ):
        self.reduction, self.dims, self.unit_length = reduction, dims, unit_length
        self.clusterer, self.covariance, self.restarts = clusterer, covariance, restarts
        self.least, self.most, self.separation, self.over = least, most, separation, over
        self.piece_share, self.piece_rows, self.silhouette_rows = piece_share, piece_rows, silhouette_rows
        self.within, self.rank, self.hard, self.count = within, rank, hard, count
        self.representation, self.seed = representation, seed
        # The class says the most that is ever read; `vars` since types allow no instance to differ.
        vars(self)["reads"] = frozenset({"label"} if within == "label" else ())

    def _check(self, evaluation: Evaluation) -> None:
        limits = {
            "dims": (self.dims >= 1, "at least 1"),
            "restarts": (self.restarts >= 1, "at least 1"),
            "least": (self.least >= 2, "at least 2"),
            "most": (self.most >= self.least, "at least `least`"),
            "over": (self.over >= 1, "at least 1"),
            "silhouette_rows": (self.silhouette_rows >= 10, "at least 10"),
            "count": (self.count >= 1, "at least 1"),
        }
        for option, (good, want) in limits.items():
            if not good:
                raise InputError(f"`george.{option}` must be {want}; got {getattr(self, option)!r}")
        if self.reduction == "hardness" and self.within == "nearest":
            raise InputError("`george.reduction` = hardness has an axis for each class; it needs `within` = label")
        if evaluation.task != "classification":
            raise InputError(f"method `george` clusters within classes; this evaluation is one of {evaluation.task}")

    # --- learning --------------------------------------------------------------------------------------------

    def _fit(self, evaluation: Evaluation, train: Evaluation | None) -> None:
        self._check(evaluation)
        assert evaluation.labels is not None
        assert evaluation.losses is not None
        labels, losses = evaluation.labels, evaluation.losses.astype(np.float64)
        self.classes_ = np.unique(labels)
        self._fit_axes(np.concatenate([self._scaled(block) for _, block in blocks(self.matrix(evaluation))]), labels)
        Z = self._reduced(self.matrix(evaluation))
        found = []
        for c, value in enumerate(self.classes_):
            rows = labels == value
            found.append(self._cut(self._view(Z, c)[rows], losses[rows]))
            self.report_progress(self.name, (c + 1) / len(self.classes_))
        self._join(found, np.array([(labels == value).mean() for value in self.classes_]))
        errors = losses if evaluation.errors is None else evaluation.errors.astype(np.float64)
        self._order(self._weights(Z, labels if self.within == "label" else None), errors)

    def _fit_axes(self, X: Array, labels: Array) -> None:
        n, d = X.shape
        self.centre_ = X.mean(axis=0)
        if self.reduction == "none":
            self.axes_ = np.empty((d, 0))
        elif self.reduction == "hardness":
            self.axes_ = np.stack([_hardness(X, labels == value) for value in self.classes_], axis=1)
        else:
            keep = min(self.dims, d, n)
            solver = "randomized" if keep < min(n, d) / 2 else "full"
            with np.errstate(invalid="ignore"):  # rows that are all equal have no variance to explain
                self.axes_ = PCA(keep, svd_solver=solver, random_state=self.seed).fit(X).components_.T

    def _cut(self, Z: Array, losses: Array) -> ClassClusters:
        """The clusters of one class, and the pieces of them that are worth a slice."""
        rng = np.random.default_rng(self.seed)
        some = np.sort(rng.permutation(len(Z))[: self.silhouette_rows])
        distances = cdist(Z[some], Z[some])
        clusters = self._choose(Z, some, distances)
        old = clusters.assign(Z)
        parts = [self._split(Z[old == j], clusters, j) for j in range(len(clusters.means))]
        pieces = _stack(parts)
        cluster_of = np.repeat(np.arange(len(parts)), [len(part.means) for part in parts])
        new = _pieces_of(pieces, cluster_of, Z, old)
        least = max(self.piece_share * len(Z), self.piece_rows)
        before, after = (mean_silhouettes(distances, a[some], new[some], len(pieces.means)) for a in (old, new))
        kept = keep_pieces(old, new, cluster_of, losses, after > np.maximum(before, 0), least)
        return _merged(clusters, pieces, cluster_of, kept)

    def _choose(self, Z: Array, some: Array, distances: Array) -> Gaussians:
        """The clustering with the best silhouettes, the larger among equals; one cluster where none is good."""
        best, best_score = self._cluster(Z, 1), self.separation
        for k in range(self.least, min(self.most, len(Z) // LEAST_ROWS) + 1):
            clusters = self._cluster(Z, k)
            score = silhouette_score(distances, clusters.assign(Z[some]))
            if score >= best_score - TIE:
                best, best_score = clusters, max(score, best_score)
        return best

    def _split(self, Z: Array, clusters: Gaussians, j: int) -> Gaussians:
        """Pieces of cluster j, or itself where it is too small to be split."""
        if self.over == 1 or len(Z) < self.over * LEAST_ROWS:
            one = slice(j, j + 1)
            return Gaussians(clusters.log_weights[one], clusters.means[one], clusters.factors[one])
        return self._cluster(Z, self.over)

    def _cluster(self, Z: Array, k: int) -> Gaussians:
        spread = max(float(Z.var(axis=0).mean()), 1e-12)
        Z = np.repeat(Z, 2, axis=0) if len(Z) == 1 else Z  # scikit-learn fits nothing to a single row
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters is no harm here
            if self.clusterer == "kmeans":
                means = KMeans(k, n_init=self.restarts, random_state=self.seed).fit(Z)
                variance = max(float(means.inertia_) / Z.size, 1e-9 * spread)
                return Gaussians(np.zeros(k), means.cluster_centers_, np.full((k, Z.shape[1]), variance**-0.5))
            mixture = GaussianMixture(
                k, covariance_type=self.covariance, n_init=self.restarts, random_state=self.seed,
                reg_covar=1e-6 * spread,
            ).fit(Z)  # fmt: skip
        return Gaussians(np.log(mixture.weights_), mixture.means_, mixture.precisions_cholesky_)

    def _join(self, found: list[ClassClusters], shares: Array) -> None:
        """All classes in one set of arrays."""
        sizes = [len(one.clusters.means) for one in found]
        slices = [int(one.slice_of.max()) + 1 for one in found]
        self.class_of_ = np.repeat(np.arange(len(found)), sizes)
        clusters, pieces = _stack([one.clusters for one in found]), _stack([one.pieces for one in found])
        prior = np.log(shares)[self.class_of_] if self.clusterer == "gmm" else 0.0
        self.log_weights_ = clusters.log_weights + prior
        self.means_, self.factors_ = clusters.means, clusters.factors
        self.piece_log_weights_, self.piece_means_, self.piece_factors_ = (
            pieces.log_weights, pieces.means, pieces.factors,
        )  # fmt: skip
        self.cluster_of_ = np.concatenate([one.cluster_of + sum(sizes[:c]) for c, one in enumerate(found)])
        self.slice_of_ = np.concatenate([one.slice_of + sum(slices[:c]) for c, one in enumerate(found)])

    def _order(self, weights: Array, errors: Array) -> None:
        base = errors.mean() if self.rank == "excess" else 0.0
        self.kept_ = np.argsort(-((errors - base) @ weights), kind="stable")[: self.count]
        self.rules_ = tuple(self._rule(int(j)) for j in self.kept_)

    def _rule(self, j: int) -> dict[str, Any]:
        cluster = int(self.cluster_of_[self.slice_of_ == j][0])
        value = int(self.classes_[self.class_of_[cluster]])
        rule = {"kind": "component", "representation": self.representation_, "component": j, "found_in_class": value}
        return {**rule, "scope": {"label": value}} if self.within == "label" else rule

    # --- new rows --------------------------------------------------------------------------------------------

    def membership(self, evaluation: Evaluation) -> Array:
        X = self.matrix(evaluation)
        check_columns(X, len(self.centre_), "method `george`")
        if self.within == "label":
            evaluation.need(frozenset({"labels"}), "method `george` with within=label")
        return self._weights(self._reduced(X), evaluation.labels if self.within == "label" else None)[:, self.kept_]

    def _scaled(self, block: Array) -> Array:
        block = np.asarray(block, dtype=np.float64)
        if not self.unit_length:
            return block
        lengths = np.linalg.norm(block, axis=1, keepdims=True)
        return block / np.where(lengths > 0, lengths, 1.0)

    def _reduced(self, X: Any) -> Array:
        """(n, r)"""
        centred = (self._scaled(block) - self.centre_ for _, block in blocks(X))
        return np.concatenate([part if self.reduction == "none" else part @ self.axes_ for part in centred])

    def _view(self, Z: Array, c: int) -> Array:
        """What the clusters of a class look at: its own axis of hardness, or everything."""
        return Z[:, [c]] if self.reduction == "hardness" else Z

    def _weights(self, Z: Array, labels: Array | None) -> Array:
        """(n, slices) probability of each slice; no class but the row's own where labels are given."""
        joint = np.full((len(Z), len(self.means_)), -np.inf)
        for c, value in enumerate(self.classes_):
            of = self.class_of_ == c
            rows = np.ones(len(Z), dtype=bool) if labels is None else labels == value
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
    others = X[~own].mean(axis=0) if not own.all() else 0.0
    return np.asarray(X[own].mean(axis=0) - others)


def silhouettes(distances: Array, clusters: Array) -> Array:
    """(n,) how much nearer each row is to its own cluster than to the next, in [-1, 1]; 0 for a lone row."""
    values, codes = np.unique(clusters, return_inverse=True)
    if len(values) < 2:
        return np.zeros(len(clusters))
    member = codes[:, None] == np.arange(len(values))
    sums, sizes = distances @ member, member.sum(axis=0)
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


def keep_pieces(old: Array, new: Array, cluster_of: Array, losses: Array, separated: Array, least: float) -> Array:
    """(a,) bool: pieces that are better separated than before, lose as much as their cluster and are large enough."""
    sizes = np.bincount(new, minlength=len(cluster_of))
    means = np.bincount(new, weights=losses, minlength=len(cluster_of)) / np.maximum(sizes, 1)
    clusters = int(cluster_of.max()) + 1
    totals = np.bincount(old, weights=losses, minlength=clusters)
    of_cluster = totals / np.maximum(np.bincount(old, minlength=clusters), 1)
    worse = means >= of_cluster[cluster_of]
    return np.asarray(separated & worse & (sizes >= least))


def _pieces_of(pieces: Gaussians, cluster_of: Array, Z: Array, clusters: Array) -> Array:
    """(n,) the likeliest piece of each row's own cluster."""
    joint = np.where(cluster_of == clusters[:, None], pieces.log_joint(Z), -np.inf)
    return np.asarray(joint.argmax(axis=1))


def _merged(clusters: Gaussians, pieces: Gaussians, cluster_of: Array, kept: Array) -> ClassClusters:
    """Pieces that were not kept go back to their cluster: to what is left of it."""
    rest = np.flatnonzero(np.bincount(cluster_of[~kept], minlength=len(clusters.means)))
    names = [("piece", int(a)) if kept[a] else ("rest", int(cluster_of[a])) for a in range(len(kept))]
    order = {name: i for i, name in enumerate([("rest", int(j)) for j in rest] + [n for n in names if n[0] == "piece"])}
    return ClassClusters(clusters, pieces, cluster_of, np.array([order[name] for name in names]))


def _stack(parts: list[Gaussians]) -> Gaussians:
    return Gaussians(
        np.concatenate([part.log_weights for part in parts]),
        np.concatenate([part.means for part in parts]),
        np.concatenate([part.factors for part in parts]),
    )
