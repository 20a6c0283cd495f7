"""Rows in the order of their ids, which decides wherever an order must not depend on how rows were given."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .blocks import Array, Matrix
from .scratch import BLOCK_ROWS


def id_order(ids: Array) -> Array | None:
    """(n,) row numbers in the order of their ids; None where they are in order, as most large files are."""
    if is_ascending(ids):
        return None
    return np.argsort(ids, kind="stable")


def draw_in_order(ids: Array, among: Array, most: int, rng: np.random.Generator) -> Array:
    """At most so many rows of a mask, at random, by their ids: the order in which rows are given does not matter."""
    rows = np.flatnonzero(among)
    order = np.argsort(ids[rows], kind="stable")
    drawn: Array = rows[order][np.sort(rng.permutation(len(rows))[:most])]
    return drawn


def is_ascending(ids: Array) -> bool:
    """Whether no id is smaller than the one before."""
    blocks = (ids[start : start + BLOCK_ROWS + 1] for start in range(0, len(ids), BLOCK_ROWS))
    return all(bool((block[1:] >= block[:-1]).all()) for block in blocks)


def blocks_in_order(array: Matrix, order: Array | None) -> Iterator[Array]:
    """The rows of an array in an order, some at a time."""
    for start in range(0, len(array), BLOCK_ROWS):
        rows: slice | Array = slice(start, start + BLOCK_ROWS)
        if order is not None:
            rows = order[rows]
        yield np.asarray(array[rows])
