"""Rows in the order of their ids, which decides wherever an order must not depend on how rows were given."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from .blocks import Array, Matrix, blocks
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


def positions_of(ids: Array, wanted: Iterable[str]) -> dict[str, int]:
    """Where ids stand, by their texts, as far as they are there.

    Nothing is kept for ids that nobody asks for: a table of five million takes a gigabyte, and longer than to look.
    """
    texts = sorted(set(wanted))
    asked = np.array(texts, dtype=np.str_)
    if ids.dtype.kind in "iu":
        asked = _numbers(texts, ids.dtype)
    found: dict[str, int] = {}
    if not len(asked):
        return found
    for rows, block in blocks(ids):
        if block.dtype.kind == "S":  # bytes, whose texts are another thing
            block = np.array([str(id) for id in block.tolist()])
        for i in np.flatnonzero(np.isin(block, asked)).tolist():
            found[str(block[i])] = rows.start + i
    return found


def _numbers(texts: Iterable[str], dtype: np.dtype[np.int64]) -> Array:
    """Those of some texts that are whole numbers, as an id is written, and that the type can hold."""
    numbers = [int(text) for text in texts if text.removeprefix("-").isdecimal() and text.isascii()]
    bounds = np.iinfo(dtype)
    written = set(texts)
    return np.array([i for i in numbers if str(i) in written and bounds.min <= i <= bounds.max], dtype=dtype)


def is_ascending(ids: Array) -> bool:
    """Whether no id is smaller than the one before."""
    overlapping = (ids[start : start + BLOCK_ROWS + 1] for start in range(0, len(ids), BLOCK_ROWS))
    return all(bool((block[1:] >= block[:-1]).all()) for block in overlapping)


def blocks_in_order(array: Matrix, order: Array | None) -> Iterator[Array]:
    """The rows of an array in an order, some at a time."""
    for start in range(0, len(array), BLOCK_ROWS):
        rows: slice | Array = slice(start, start + BLOCK_ROWS)
        if order is not None:
            rows = order[rows]
        yield np.asarray(array[rows])
