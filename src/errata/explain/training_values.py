"""How often groups of training rows have each value of a column: text as it is, numbers by value and by range.

A number of many digits is seldom the same in two rows: what tells rows apart is on which side of some number they lie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..core import Array
from ..core.columns import format_value, type_column
from ..core.rules.literals import BINS, CodedColumn, coarsen, encode


@dataclass(frozen=True, eq=False)
class CountedColumn:
    """The values of one column, with how many rows of each group have them.

    Parameters
    ----------
    column : str
        Its name.
    values : tuple of str
        v values; of numbers also ranges: "below 0.5".
    numeric : bool
        Whether it holds numbers, so that its values overlap: neighbouring ranges say much the same.
    counts : array
        (g, v) rows of each group that have each value.
    """

    column: str
    values: tuple[str, ...]
    numeric: bool
    counts: Array


def count_values(column: str, array: Array, groups: Sequence[Array]) -> CountedColumn:
    """Count the values of a column.

    Parameters
    ----------
    column, array
        Its name, and (n,) values.
    groups : list of array
        Numbers of rows, one array a group.
    """
    if type_column(column, array).kind == "number":
        return _count_numbers(column, array, groups)
    return count_texts(column, array.astype(str), groups)


def count_texts(column: str, array: Array, groups: Sequence[Array]) -> CountedColumn:
    """Count each text as it is, also where all are numbers, as the names of classes may be.

    Of two texts the one is counted that the first group has more often than the second: the other says the same again.
    Parameters as of `count_values`.
    """
    values, codes = np.unique(array, return_inverse=True)
    counts = np.stack([np.bincount(codes[rows], minlength=len(values)) for rows in groups])
    chosen = np.arange(len(values))
    if len(values) == 2:
        first, second = counts[:2]
        chosen = np.array([(first * len(groups[1]) - second * len(groups[0])).argmax()])
    return CountedColumn(column, tuple(str(values[j]) for j in chosen), False, counts[:, chosen])


def _count_numbers(column: str, array: Array, groups: Sequence[Array]) -> CountedColumn:
    coded = encode(column, array)
    if coded is None:  # one value alone
        return CountedColumn(column, (), True, np.empty((len(groups), 0), dtype=np.int64))
    counts = np.stack([np.bincount(coded.codes[rows], minlength=coded.size + 1) for rows in groups])
    masks = _list_ranges(coded)
    return CountedColumn(column, tuple(_range_words(coded, mask) for mask in masks), True, counts @ masks.T)


def _list_ranges(coded: CodedColumn) -> Array:
    """(v, size + 1) bool over bins: either side of thresholds, ranges between two, single values, missing ones."""
    table = coarsen(coded, BINS)
    last = int(table[-1]) - 1  # of the coarse bins that hold values
    present = np.arange(coded.size + 1) < coded.size
    wanted = [table <= place for place in range(last)]
    wanted += [(table > place) & present for place in range(last)]
    wanted += [table == place for place in range(last + 1)]
    if coded.values:
        wanted += list(np.eye(coded.size, coded.size + 1, dtype=bool))
    wanted.append(~present)
    distinct = {mask.tobytes(): mask for mask in wanted}
    held = np.bincount(coded.codes, minlength=coded.size + 1)
    return np.array([mask for mask in distinct.values() if 0 < held[mask].sum() < len(coded.codes)])


def _range_words(coded: CodedColumn, mask: Array) -> str:
    """A range as it follows "is": "below 30", "30 or more", "20 to below 30", "30", "missing"."""
    inside = np.flatnonzero(mask[:-1])
    if not len(inside):
        return "missing"
    assert coded.edges is not None
    start = int(inside[0])
    stop = int(inside[-1]) + 1
    if coded.values and stop - start == 1:
        return ", ".join(format_value(value) for value in coded.values[start])
    if start == 0:
        return f"below {format_value(float(coded.edges[stop]))}"
    if stop == coded.size:
        return f"{format_value(float(coded.edges[start]))} or more"
    low = format_value(float(coded.edges[start]))
    return f"{low} to below {format_value(float(coded.edges[stop]))}"
