"""Every literal of one column on its fine bins, by sums: how a rule is refined, one literal at a time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..blocks import Array
from .literals import BINS, KINDS, CodedColumn, count_ranges, log_choose


@dataclass(frozen=True, eq=False)
class Options:
    """Sets of fine bins with their counts: runs of an order, or of a ranking; each may be negated."""

    order: Array  # bins in the order of which runs are taken
    start: Array
    stop: Array
    n: Array
    bad: Array
    size: int  # bins with that of missing values
    negated: Array  # of bool: all other values instead

    def mask(self, i: int) -> Array:
        """(size,) bool."""
        mask = np.zeros(self.size, dtype=bool)
        mask[self.order[self.start[i] : self.stop[i]]] = True
        if self.negated[i]:
            mask = ~mask
            mask[-1] = False
        return mask


def fine_literals(column: CodedColumn, n: Array, bad: Array, base: float) -> tuple[Options, Array]:
    """Every range of fine bins of numbers; every value, its negation and every group by rate of text; and their prices.

    Parameters
    ----------
    column : CodedColumn
        Says whether bins have an order.
    n, bad : array
        (size + 1,) rows and bad rows of each bin, of the rows that the other literals of a rule hold.
    base : float
        The rate to which those of bins with few rows are drawn, before they are put in order.
    """
    if column.ordered:
        return _ranges(column, n, bad)
    return _groups(n, bad, base)


def _ranges(column: CodedColumn, n: Array, bad: Array) -> tuple[Options, Array]:
    size = column.size
    start, stop = np.triu_indices(size + 1, k=1)
    kept = ~((start == 0) & (stop == size))
    start = np.append(start[kept], size)  # the last is that of missing values
    stop = np.append(stop[kept], size + 1)
    sums = np.concatenate([[0], np.cumsum(n)])
    bad_sums = np.concatenate([[0], np.cumsum(bad)])
    bins = min(size, BINS)
    one_sided = (start == 0) | (stop == size)
    held = np.concatenate([[0], np.cumsum(np.bincount(column.codes, minlength=size + 1))])
    shares = (held[stop] - held[start]) / max(int(held[size]), 1)
    prices = np.log(KINDS * count_ranges(shares, bins))
    prices[one_sided] = np.log(KINDS * 2 * max(bins - 1, 1))
    if column.values:
        prices[(stop == start + 1) & ~one_sided] = np.log(KINDS * size)
    prices[-1] = np.log(KINDS)
    plain = np.zeros(len(start), dtype=bool)
    order = np.arange(size + 1)
    options = Options(order, start, stop, sums[stop] - sums[start], bad_sums[stop] - bad_sums[start], size + 1, plain)
    return options, prices


def _groups(n: Array, bad: Array, base: float) -> tuple[Options, Array]:
    size = len(n)
    rates = np.where(n > 0, (bad + base) / (n + 1), -1.0)
    order = np.argsort(-rates, kind="stable")
    held = int((n > 0).sum())
    k = np.arange(2, held)
    ones = np.arange(held)
    values = ones[order[:held] != size - 1]  # of missing values the negation is another literal
    start = np.concatenate([np.zeros(len(k), dtype=np.intp), ones, values])
    stop = np.concatenate([k, ones + 1, values + 1])
    negated = np.zeros(len(start), dtype=bool)
    negated[len(k) + held :] = True
    sums = np.concatenate([[0], np.cumsum(n[order])])
    bad_sums = np.concatenate([[0], np.cumsum(bad[order])])
    n_in = sums[stop] - sums[start]
    bad_in = bad_sums[stop] - bad_sums[start]
    n_in = np.where(negated, n[:-1].sum() - n_in, n_in)
    bad_in = np.where(negated, bad[:-1].sum() - bad_in, bad_in)
    grouped = [log_choose(held, int(i)) for i in k]
    prices = np.log(KINDS) + np.concatenate([grouped, np.full(len(ones) + len(values), np.log(max(held, 1)))])
    return Options(order, start, stop, n_in, bad_in, size, negated), prices
