"""Ways to cut rows into clusters, and to say which cluster a new row belongs to.

k-means with normalised centroids: each row goes to the centroid of largest product, a centroid is the mean of its
raw rows, scaled to length one. Rows with large gradients therefore steer it, and lengths do not matter for where a row
goes (InfEmbed, section 3.3, and the library its authors used).
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from ...core import Array, InputError
from ...core.blocks import Matrix, blocks, unit
from ...engine import Engine, Local, Totals
from ..numerics import unconverged

if TYPE_CHECKING:
    import torch

    from ...tensors.rows import TensorWork

NOISE = -1  # a row that belongs to no cluster
SPECTRAL_ROWS = 5000  # its matrix of neighbours is decomposed: more rows take minutes
NEIGHBOURS = 10


def lloyd(X: Array, k: int, *, spherical: bool, steps: int, seed: int, engine: Engine | None = None) -> Array:
    """(k', d) centroids, none of them empty: k-means, with centroids of length one where `spherical`."""
    k = min(k, len(X))
    if not spherical:
        return _plain_kmeans(X, k, steps, seed)
    rng = np.random.default_rng(seed)
    centres = unit(X[np.sort(rng.choice(len(X), k, replace=False))])
    before = np.zeros_like(centres)
    with (engine or Local()).hold(X) as held:
        for _ in range(steps):
            rows, sums = held.total(part_sums, centres, on_device=_on_device)
            if np.array_equal(sums, before):  # of the same rows: nobody moved
                break
            before = sums
            if not rows.all():
                sums = _sums(X, _filled(*nearest_centre(X, centres, spherical=True), k), k)
            centres = unit(sums)
        rows, _ = held.total(part_sums, centres, on_device=_on_device)
    return np.asarray(centres[rows > 0])


def part_sums(X: Matrix, centres: Array) -> Totals:
    """(k,) how many of some rows have each centroid, and (k, d) their sum."""
    rows = np.zeros(len(centres))
    sums = np.zeros_like(centres)
    for _, block in blocks(X):
        nearest = (block @ centres.T).argmax(axis=1)
        given = (nearest[:, None] == np.arange(len(centres))).astype(np.float64)
        rows += given.sum(axis=0)
        sums += given.T @ block
    return rows, sums


def _on_device(device: torch.device, centres: Array) -> TensorWork:
    from ...tensors.mixtures import cluster_sums

    return cluster_sums(device, centres, 0.0)


def _plain_kmeans(X: Array, k: int, steps: int, seed: int) -> Array:
    from sklearn.cluster import KMeans

    with unconverged():
        centres: Array = KMeans(k, random_state=seed, n_init=1, max_iter=steps).fit(X).cluster_centers_
    nearest, _ = nearest_centre(X, centres, spherical=False)
    return np.asarray(centres[np.unique(nearest)])


def nearest_centre(X: Matrix, centres: Array, *, spherical: bool) -> tuple[Array, Array]:
    """(n,) the centroid each row belongs to, and (n,) how well it fits there: a product, or minus half a distance²."""
    nearest = np.empty(len(X), dtype=np.int64)
    fit = np.empty(len(X))
    shift = 0.0 if spherical else 0.5 * (centres**2).sum(axis=1)
    for rows, block in blocks(X):
        scores = block.astype(np.float64) @ centres.T - shift
        nearest[rows] = scores.argmax(axis=1)
        fit[rows] = scores.max(axis=1)
    return nearest, fit


def _filled(nearest: Array, scores: Array, k: int) -> Array:
    """An empty cluster takes the row that fits worst where it is."""
    nearest = nearest.copy()
    worst = iter(np.argsort(scores, kind="stable"))
    for j in np.flatnonzero(np.bincount(nearest, minlength=k) == 0):
        nearest[next(worst)] = j
    return nearest


def _sums(X: Array, nearest: Array, k: int) -> Array:
    sums = np.zeros((k, X.shape[1]))
    np.add.at(sums, nearest, X)
    return sums


def to_cluster(X: Matrix, used: int, unit_length: bool) -> Array:
    """(n, used) float64."""
    whole = X if isinstance(X, np.ndarray) else np.asarray(X)
    first = np.asarray(whole[:, :used], dtype=np.float64)
    return unit(first) if unit_length else first


def clusters_of(
    X: Array, losses: Array, clusterer: Any, *, count: int, radius: float | None, min_samples: int, seed: int
) -> Array:
    """(n,) cluster of each row by DBSCAN, spectral clustering or anything with `fit_predict`; NOISE is none."""
    from sklearn.cluster import DBSCAN

    if clusterer == "dbscan":
        if radius is None:
            radius = _usual_radius(X, losses, min_samples)
        return np.asarray(DBSCAN(eps=max(radius, 1e-12), min_samples=min_samples).fit_predict(X))
    if clusterer == "spectral":
        return _spectral(X, count, seed)
    clusters = np.asarray(clusterer.fit_predict(X))
    if clusters.shape != (len(X),):
        raise InputError(
            f"`clusterer.fit_predict` must give one cluster a row, shape ({len(X)},); got {clusters.shape}"
        )
    if clusters.dtype.kind not in "iu":
        raise InputError(f"`clusterer.fit_predict` must number the clusters, from 0, -1 for none; got {clusters.dtype}")
    return clusters


def _usual_radius(X: Array, losses: Array, min_samples: int) -> float:
    """Three in four of the rows with more than the mean loss have `min_samples` others within it.

    The others lie near zero, closer together by orders of magnitude: their distances would tear errors apart.
    """
    from sklearn.neighbors import NearestNeighbors

    lossy = losses > losses.mean()
    rows = X[lossy] if lossy.any() else X
    distances, _ = NearestNeighbors(n_neighbors=min(min_samples + 1, len(X))).fit(X).kneighbors(rows)
    return float(np.quantile(distances[:, -1], 0.75))


def _spectral(X: Array, count: int, seed: int) -> Array:
    """Of at most SPECTRAL_ROWS rows; the others go where their nearest one went."""
    from sklearn.cluster import SpectralClustering

    some = np.sort(np.random.default_rng(seed).permutation(len(X))[:SPECTRAL_ROWS])
    neighbours = min(NEIGHBOURS, len(some) - 1)
    model = SpectralClustering(
        min(count, len(some) - 1),
        affinity="nearest_neighbors",
        n_neighbors=neighbours,
        random_state=seed,
        assign_labels="cluster_qr",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # neighbourhoods that do not touch are clusters too
        clusters = np.asarray(model.fit_predict(X[some]))
    return follow(X, X[some], clusters)


def follow(X: Matrix, known: Array, clusters: Array) -> Array:
    """(n,) the cluster of each row's nearest known row."""
    from sklearn.neighbors import NearestNeighbors

    index = NearestNeighbors(n_neighbors=1).fit(known)
    out = np.empty(len(X), dtype=np.int64)
    for rows, block in blocks(X):
        out[rows] = clusters[index.kneighbors(block.astype(np.float64), return_distance=False)[:, 0]]
    return out
