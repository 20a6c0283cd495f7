"""Nearest rows among reference rows: none is the row that asks, a copy of it, or of its group."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from hashlib import blake2b

import numpy as np

from ..core import Array
from .numerics import unconverged

CELLS = 128
CELL_SHARE = 1 / 8  # of the references that a row is compared with, where they are in cells
FEWEST_FOR_CELLS = 4096  # references; fewer are compared with every row
SPARE = 6  # candidates beyond the neighbours that are wanted: the row itself, and rows that rounding may swap


@dataclass(frozen=True, eq=False)
class References:
    """Rows that others are compared with.

    Attributes
    ----------
    coordinates
        (m, r) float32.
    keys
        (m,) rows that share a key are never neighbours: see `keys_of_rows`.
    """

    coordinates: Array
    keys: Array

    def nearest(self, queries: Array, keys: Array, count: int, among: Array | None = None) -> Array:
        """(n, count) positions of the nearest references with other keys, the nearest first; -1 where there are fewer.

        Parameters
        ----------
        queries
            (n, r) rows that ask.
        keys
            (n,) the key of each.
        count
            Neighbours wanted.
        among
            (m,) bool: the references that may be named. Default: all.
        """
        if not len(queries):
            return np.empty((0, count), dtype=np.int64)
        positions = np.arange(len(self.keys))
        if among is not None:
            positions = np.flatnonzero(among)
        if among is None and len(positions) >= FEWEST_FOR_CELLS:
            near = self._nearest_in_cells(queries, keys, count)
        else:
            near = self._nearest_others(queries, keys, count, positions)
        complete = min(count, len(positions))
        # Where many references share the row's key, the candidates were too few: those rows are searched again.
        short = near[:, complete - 1] < 0 if complete else np.zeros(len(near), dtype=bool)
        for key in np.unique(keys[short]):
            rows = np.flatnonzero(short & (keys == key))
            others = positions[self.keys[positions] != key]
            near[rows] = self._nearest_others(queries[rows], keys[rows], count, others)
        return near

    @cached_property
    def _cells(self) -> tuple[Array, list[Array]]:
        """(c, r) centres, and for each the positions of the references in the cells around it.

        A few of the nearest may lie in cells further away; with thousands of references no vote hangs on them.
        """
        from sklearn.cluster import KMeans

        with unconverged():
            clusters = KMeans(CELLS, n_init=1, max_iter=10, random_state=0).fit(self.coordinates)
        centres = clusters.cluster_centers_
        around = []
        for centre in centres:
            order = np.argsort(np.square(centres - centre).sum(axis=1), kind="stable")
            sizes = np.cumsum(np.bincount(clusters.labels_, minlength=len(centres))[order])
            enough = int(np.searchsorted(sizes, CELL_SHARE * len(self.keys))) + 1
            around.append(np.flatnonzero(np.isin(clusters.labels_, order[:enough])))
        return centres, around

    def _nearest_in_cells(self, queries: Array, keys: Array, count: int) -> Array:
        from sklearn.metrics import pairwise_distances_argmin

        centres, around = self._cells
        cells = pairwise_distances_argmin(queries.astype(np.float32), centres)
        near = np.full((len(queries), count), -1, dtype=np.int64)
        for cell in np.unique(cells):
            rows = np.flatnonzero(cells == cell)
            near[rows] = self._nearest_others(queries[rows], keys[rows], count, around[cell])
        return near

    def _nearest_others(self, queries: Array, keys: Array, count: int, positions: Array) -> Array:
        """Among `positions`, by distance in double precision; the first of those that are equally near."""
        from sklearn.neighbors import NearestNeighbors

        out = np.full((len(queries), count), -1, dtype=np.int64)
        if not len(positions):
            return out
        R = self.coordinates[positions]
        search = NearestNeighbors(n_neighbors=min(count + SPARE, len(R)), algorithm="brute").fit(R)
        near = np.sort(search.kneighbors(queries.astype(np.float32), return_distance=False), axis=1)
        away = R[near].astype(np.float64)
        away -= queries[:, None, :]
        distances = np.square(away).sum(axis=2)
        near = positions[near]
        distances[self.keys[near] == keys[:, None]] = np.inf
        order = np.argsort(distances, axis=1, kind="stable")[:, :count]
        nearest = np.take_along_axis(near, order, axis=1)
        absent = np.isinf(np.take_along_axis(distances, order, axis=1))
        out[:, : nearest.shape[1]] = np.where(absent, -1, nearest)
        return out


def keys_of_rows(X: Array) -> Array:
    """(n,) uint64 that depends on the values of a row alone: copies share one, in any file and order."""
    bits = np.ascontiguousarray(X, dtype=np.float32) + np.float32(0)  # minus zero is zero
    factors = np.random.default_rng(0).integers(1 << 62, size=bits.shape[1], dtype=np.uint64) | np.uint64(1)
    mixed: Array = (bits.view(np.uint32) * factors).sum(axis=1, dtype=np.uint64)
    mixed ^= mixed >> np.uint64(31)
    mixed *= np.uint64(0xBF58476D1CE4E5B9)  # a step of SplitMix64: every bit depends on all
    mixed ^= mixed >> np.uint64(32)
    return mixed


def keys_of_groups(groups: Array) -> Array:
    """(n,) uint64 that depends on the group of a row alone."""
    values, inverse = np.unique(groups, return_inverse=True)
    digests = [blake2b(str(value).encode(), digest_size=8).digest() for value in values]
    return np.array([int.from_bytes(digest, "big") for digest in digests], dtype=np.uint64)[inverse]
