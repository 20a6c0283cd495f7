"""Joint histograms: rows and bad rows of every cell over the bins of up to three columns, each by one pass."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from ..blocks import Array


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of some columns that hold enough rows.

    Parameters
    ----------
    columns : tuple of int
        Which columns.
    bins : array
        (m, c) the bin of each cell in each of them.
    n, bad : array
        (m,) rows and bad rows of each cell.
    """

    columns: tuple[int, ...]
    bins: Array
    n: Array
    bad: Array


def join(index: Array, codes: Array, size: int) -> Array:
    """(n,) the cell of each row in one more column of `size` bins, given its cell in those before."""
    return index * size + codes


def count(index: Array, shape: tuple[int, ...]) -> Array:
    """(2, ...) rows that are not bad, and bad ones, of each cell; an index starts with whether a row is bad."""
    cells = 2 * int(np.prod(shape))
    return np.bincount(index, minlength=cells).reshape(2, *shape)


def frequent_cells(codes: Sequence[Array], sizes: Sequence[int], bad: Array, depth: int, least: int) -> Iterator[Cells]:
    """Every conjunction of up to three values, of different columns, that at least `least` rows meet.

    Parameters
    ----------
    codes : sequence of array
        (n,) bins of each column.
    sizes : sequence of int
        How many bins each has.
    bad : array
        (n,) bool.
    depth : int
        Values of a conjunction at most: 1, 2 or 3.
    least : int
        Rows at least.
    """
    first = bad.astype(np.intp)
    wide = [column.astype(np.intp) for column in codes]
    for a in range(len(codes)):
        index = join(first, wide[a], sizes[a])
        yield _frequent((a,), count(index, (sizes[a],)), least)
    for a, b in combinations(range(len(codes) * (depth > 1)), 2):
        index = join(join(first, wide[a], sizes[a]), wide[b], sizes[b])
        yield _frequent((a, b), count(index, (sizes[a], sizes[b])), least)
        for c in range(b + 1, len(codes) * (depth > 2)):
            shape = (sizes[a], sizes[b], sizes[c])
            yield _frequent((a, b, c), count(join(index, wide[c], sizes[c]), shape), least)


def _frequent(columns: tuple[int, ...], counts: Array, least: int) -> Cells:
    n = counts.sum(axis=0)
    bins = np.nonzero(n >= least)
    return Cells(columns, np.stack(bins, axis=1), n[bins], counts[1][bins])
