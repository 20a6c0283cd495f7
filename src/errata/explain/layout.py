"""Where each row is drawn on a map: near the rows that are near it in a representation.

Principal axes, then t-SNE of some rows (landmarks); every other row goes between its nearest landmarks. Rows are taken
in the order of their ids and chosen by a hash of them, on one thread: the same seed gives the same bytes, and an id the
same position, in whatever order the rows come.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import numpy as np
from threadpoolctl import threadpool_limits

from ..core import Array, Evaluation, InputError, Matrix, Progress, RowView, silent
from ..core.blocks import blocks

if TYPE_CHECKING:
    from sklearn.neighbors import NearestNeighbors

AXES = 50  # principal components that t-SNE and its neighbours read
AXES_ROWS = 20_000  # enough for 50 axes
WIDEST = 512  # columns; beyond it, axes are found by iteration instead of from the covariance
EXTRA_AXES = 10  # of that iteration
PASSES = 4
FEWEST = 30  # rows; with fewer, two principal components are the map
PERPLEXITY = 30.0
NEIGHBOURS = 5
JITTER = 0.004  # of the map's width: rows with the same neighbours would hide each other
BLOCK_BYTES = 1 << 24
STAGE = "map"


def lay_out(
    evaluation: Evaluation,
    representation: str | None = None,
    *,
    seed: int = 0,
    landmarks: int = 2000,
    progress: Progress = silent,
) -> Array:
    """(n, 2) float32 in [-1, 1]: a position for every row, both axes in one scale.

    evaluation: the rows. representation: its name; it may be left out where there is only one. seed: of the choice of
    landmarks and of t-SNE. landmarks: rows that t-SNE lays out. progress: gets "map" and the share done.

    200,000 memory-mapped rows of 128 columns took 21 and 29 s on one core of a busy machine, most of it t-SNE.
    """
    if landmarks < FEWEST:
        raise InputError(f"`landmarks` must be at least {FEWEST}; got {landmarks}")
    name = evaluation.representation(representation, "the map")
    ids = evaluation.row_ids
    order = np.argsort(ids, kind="stable")
    rows = RowView(evaluation.representations[name], order)
    xy = np.empty((len(ids), 2), dtype=np.float32)
    with threadpool_limits(limits=1):  # sums of several threads differ in their last bits, which t-SNE makes large
        xy[order] = _lay_out_sorted(rows, _keys(ids[order], seed), seed, landmarks, progress)
    progress(STAGE, 1.0)
    return xy


def _lay_out_sorted(rows: Matrix, keys: Array, seed: int, landmarks: int, progress: Progress) -> Array:
    """(n, 2) of rows in the order of their ids."""
    from sklearn.neighbors import NearestNeighbors

    centre, axes = _principal_axes(rows, _chosen(keys, AXES_ROWS), seed)
    progress(STAGE, 0.1)
    chosen = _chosen(keys, landmarks)
    anchors = (np.asarray(rows[chosen], dtype=np.float64) - centre) @ axes
    spread = float(np.sqrt(np.square(anchors).mean())) if anchors.size else 0.0
    if spread == 0:  # rows that are all alike have one position
        return np.zeros((len(rows), 2))
    if len(rows) < FEWEST:
        return _scaled(_two(anchors))
    anchors /= spread
    positions = _tsne(anchors, seed)
    progress(STAGE, 0.6)
    xy = np.empty((len(rows), 2))
    near = NearestNeighbors(n_neighbors=min(NEIGHBOURS, len(anchors)), algorithm="brute").fit(anchors)
    for part, block in blocks(rows, BLOCK_BYTES):
        xy[part] = _between(near, positions, (block - centre) @ axes / spread)
        progress(STAGE, 0.6 + 0.4 * part.stop / len(rows))
    xy += JITTER * np.ptp(positions, axis=0).max() * _jitter(keys)
    xy[chosen] = positions
    return _scaled(xy)


def _keys(ids: Array, seed: int) -> Array:
    """(n,) uint64: a number of each id, which differs from seed to seed."""
    named = (hashlib.blake2b(f"{seed}\0{name}".encode(), digest_size=8).digest() for name in ids.tolist())
    return np.frombuffer(b"".join(named), dtype="<u8")


def _chosen(keys: Array, most: int) -> Array:
    """Rows with the smallest keys, in the order of the rows."""
    return np.sort(np.argsort(keys, kind="stable")[:most])


def _jitter(keys: Array) -> Array:
    """(n, 2) in [-1, 1], from the bits of the keys."""
    halves = np.stack([keys & np.uint64(0xFFFFFFFF), keys >> np.uint64(32)], axis=1)
    return halves.astype(np.float64) / 2**31 - 1


def _principal_axes(rows: Matrix, chosen: Array, seed: int) -> tuple[Array, Array]:
    """(d,) mean and (d, axes) of the chosen rows, read a block at a time; columns without spread count for nothing."""
    some = RowView(rows, chosen)
    d = rows.shape[1]
    first = np.asarray(some[:1], dtype=np.float64)[0]  # what differs from it is summed: constant columns give zeros
    sums = [(block - first).sum(axis=0) for _, block in blocks(some, BLOCK_BYTES)]
    centre = first + np.sum(sums, axis=0) / len(some)

    def spread_along(basis: Array | None) -> Array:
        """The covariance times a basis (d, a); itself where there is none. Not divided by the number of rows."""
        width = d if basis is None else basis.shape[1]
        total = np.zeros((d, width))
        for _, block in blocks(some, BLOCK_BYTES):
            off = block - centre
            projected = off if basis is None else off @ basis
            total += off.T @ projected
        return total

    if d <= WIDEST:
        vectors = np.linalg.eigh(spread_along(None))[1]
    else:
        basis = np.random.default_rng(seed).normal(size=(d, AXES + EXTRA_AXES))
        for _ in range(PASSES):
            basis = np.linalg.qr(spread_along(basis))[0]
        vectors = basis @ np.linalg.eigh(basis.T @ spread_along(basis))[1]
    axes = vectors[:, ::-1][:, : min(AXES, d, len(some))]
    largest = axes[np.abs(axes).argmax(axis=0), np.arange(axes.shape[1])]
    return centre, axes * np.where(largest < 0, -1.0, 1.0)


def _two(reduced: Array) -> Array:
    """(n, 2): the first two columns; a second one of zeros where there is one only."""
    return np.pad(reduced[:, :2], ((0, 0), (0, 2 - min(2, reduced.shape[1]))))


def _tsne(anchors: Array, seed: int) -> Array:
    """(m, 2) positions of the landmarks, started from their two first components."""
    from sklearn.manifold import TSNE

    rng = np.random.default_rng(seed)
    start = _two(anchors) / max(float(anchors[:, 0].std()), 1e-12) + 0.01 * rng.normal(size=(len(anchors), 2))
    perplexity = min(PERPLEXITY, (len(anchors) - 1) / 3)
    tsne = TSNE(2, perplexity=perplexity, init=(1e-4 * start).astype(np.float32), random_state=seed, n_jobs=1)
    return np.asarray(tsne.fit_transform(anchors), dtype=np.float64)


def _between(near: NearestNeighbors, positions: Array, rows: Array) -> Array:
    """(n, 2) means of the positions of the nearest landmarks, the nearer the heavier."""
    distances, index = near.kneighbors(rows)
    # Relative to the farthest of them, so that a row on a landmark is not divided by zero.
    closeness = 1 / np.maximum(distances, 1e-6 * np.maximum(distances[:, -1:], 1e-12))
    closeness /= closeness.sum(axis=1, keepdims=True)
    return np.asarray((closeness[:, :, None] * positions[index]).sum(axis=1))


def _scaled(xy: Array) -> Array:
    """Into [-1, 1], the middle at zero, both axes by the same factor."""
    low = xy.min(axis=0)
    high = xy.max(axis=0)
    half = float((high - low).max()) / 2
    if half == 0:
        return np.zeros_like(xy)
    scaled: Array = np.clip((xy - (low + high) / 2) / half, -1, 1)
    return scaled
