"""Columns as codes, and the literals that a rule may take from each: thresholds, ranges, values, groups, missing.

A column becomes bins: each distinct value its own where there are few, quantiles of numbers and the most frequent texts
where there are many; rows without a value are one more bin. A literal is a set of bins. Its price is the logarithm of
how many literals of its kind a column offers: a group of values costs what it takes to name it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from ..blocks import Array
from ..columns import as_text, present_values, type_column
from .conditions import Condition, Value

FINE = 254  # bins of a column at most; with that of missing values they fit into a byte
DISTINCT = 0.5  # share of rows with a text of their own from which a column is taken for an identifier
BINS = 16  # coarse bins of a column at most
KINDS = 4  # thresholds, ranges, values, groups
WINDOWS = 8.0  # over the share of a narrow range: how many of its width there are to choose from

Offer = Callable[[Array, float], None]  # takes a set of bins, and of how many of its kind it is one


@dataclass(frozen=True, eq=False)
class CodedColumn:
    """A metadata column as bins.

    Parameters
    ----------
    name : str
        Of the column.
    codes : array
        (n,) uint8: the bin of each row; `size` where its value is missing.
    size : int
        Bins that hold values.
    edges : array, optional
        (size,) the least number of each bin; None for text.
    values : tuple
        The values of each bin: of text always, of numbers where each distinct one has a bin. An empty tuple is the
        bin of all values that are too rare for their own.
    """

    name: str
    codes: Array
    size: int
    edges: Array | None
    values: tuple[tuple[Value, ...], ...]

    @property
    def ordered(self) -> bool:
        """Whether bins have an order, so that thresholds and ranges make sense."""
        return self.edges is not None

    def rows(self, index: Array) -> CodedColumn:
        """Some of the rows."""
        return CodedColumn(self.name, self.codes[index], self.size, self.edges, self.values)

    def condition(self, mask: Array) -> Condition:
        """The condition that a set of bins, (size + 1,) bool, stands for; the last is that of missing values."""
        inside = np.flatnonzero(mask[:-1])
        missing = bool(mask[-1])
        if not len(inside):
            return Condition(self.name, values=self._no_values, missing=missing)
        if len(inside) == self.size:
            return Condition(self.name, values=self._no_values, negated=True, missing=missing)
        contiguous = inside[-1] - inside[0] + 1 == len(inside)
        if self.edges is not None and contiguous and (len(inside) > 1 or not self.values or self._at_an_end(inside)):
            return self._interval(int(inside[0]), int(inside[-1]) + 1, missing)
        outside = np.flatnonzero(~mask[:-1])
        rest = [i for i in range(self.size) if not self.values[i]]
        negated = bool(mask[rest].any()) or (not rest and len(outside) < min(len(inside), 3))
        named = outside if negated else inside
        values = tuple(value for i in named for value in self.values[i])
        return Condition(self.name, values=values, negated=negated, missing=missing)

    @property
    def _no_values(self) -> tuple[Value, ...] | None:
        return None if self.ordered else ()

    def _at_an_end(self, inside: Array) -> bool:
        """Whether a single number is better told by a threshold: the last of many."""
        return self.size > 2 and inside[0] in (0, self.size - 1)

    def _interval(self, start: int, stop: int, missing: bool) -> Condition:
        assert self.edges is not None
        low = None if start == 0 else float(self.edges[start])
        high = None if stop == self.size else float(self.edges[stop])
        return Condition(self.name, low, high, missing=missing)


@dataclass(frozen=True, eq=False)
class Literals:
    """Sets of bins of one column, with their prices.

    Parameters
    ----------
    masks : array
        (l, b) bool over bins; the last is that of missing values.
    prices : array
        (l,) what each costs.
    """

    masks: Array
    prices: Array

    def keep(self, rows: Array) -> Literals:
        """Some of them."""
        return Literals(self.masks[rows], self.prices[rows])


def encode(name: str, array: Array) -> CodedColumn | None:
    """A column as bins; None where it says nothing (one value alone) or is an identifier (text of its own a row)."""
    present = present_values(array)
    column = type_column(name, array)
    coded = _encode_numbers(name, column.values) if column.kind == "number" else _encode_text(name, array, present)
    if coded is None:
        return None
    bins = coded.size + int((coded.codes == coded.size).any())
    return coded if bins > 1 else None


def encode_all(metadata: Mapping[str, Array]) -> list[CodedColumn]:
    """The columns that can be searched. Parameters as of `Evaluation.metadata`."""
    coded = [encode(name, np.asarray(array)) for name, array in metadata.items()]
    return [column for column in coded if column is not None]


def _encode_numbers(name: str, numbers: Array) -> CodedColumn | None:
    present = np.isfinite(numbers)
    distinct, counts = np.unique(numbers[present], return_counts=True)
    if not len(distinct):
        return None
    if len(distinct) <= FINE:
        edges = _readable_values(distinct)
        values: tuple[tuple[Value, ...], ...] = tuple((float(value),) for value in distinct)
    else:
        edges = _readable(_quantile_edges(distinct, counts), distinct)
        values = ()
    codes = np.searchsorted(edges, numbers, side="right") - 1
    codes = np.where(present, np.maximum(codes, 0), len(edges)).astype(np.uint8)
    return CodedColumn(name, codes, len(edges), edges, values)


def _quantile_edges(distinct: Array, counts: Array) -> Array:
    """At most `FINE` of the distinct numbers, so that bins hold about as many rows; frequent numbers have their own."""
    heavy = counts > counts.sum() / FINE
    starts = np.zeros(len(distinct), dtype=bool)
    starts[0] = True
    starts[heavy] = True
    starts[1:] |= heavy[:-1]
    light = np.where(heavy, 0, counts)
    budget = max(FINE - int(starts.sum()), 1)
    level = np.cumsum(light) * budget // max(int(light.sum()), 1)
    starts[1:] |= (level[1:] > level[:-1]) & ~heavy[1:]
    return distinct[np.flatnonzero(starts)[:FINE]]


def _readable(edges: Array, distinct: Array) -> Array:
    """Edges with few digits: each the shortest number between the middles of its bin and of the one before."""
    wholes = bool((distinct == np.floor(distinct)).all())
    if wholes:
        return edges
    below = np.concatenate([[-np.inf], (edges[:-1] + edges[1:]) / 2])
    above = np.concatenate([(edges[:-1] + edges[1:]) / 2, [distinct[-1]]])
    short = [_shortest(*bounds) for bounds in zip(edges.tolist(), below.tolist(), above.tolist(), strict=True)]
    return np.array([edges[0], *short[1:]])


def _readable_values(distinct: Array) -> Array:
    """Edges with few digits that part the same numbers: 0.039 or 0.04 for 0.03999999999999998 after 0.03."""
    if bool((distinct == np.floor(distinct)).all()):
        return distinct
    above = np.nextafter(distinct, np.inf)
    pairs = zip(distinct[1:].tolist(), distinct[:-1].tolist(), above[1:].tolist(), strict=True)
    return np.array([distinct[0], *(_shortest(*bounds) for bounds in pairs)])


def _shortest(edge: float, below: float, above: float) -> float:
    """The number with fewest digits between two bounds, near an edge; the edge itself where none is shorter."""
    for digits in range(1, 16):
        rounded = float(f"{edge:.{digits}g}")
        step = 10.0 ** (np.floor(np.log10(abs(edge))) - digits + 1) if edge else 0.0
        for candidate in (rounded, float(f"{rounded - step:.{digits}g}")):
            if below < candidate < above:
                return candidate
    return edge


def _encode_text(name: str, array: Array, present: Array) -> CodedColumn | None:
    """Texts that differ in case or in spaces around them are one value, as in hypotheses."""
    texts = as_text(array).tolist()
    counts: dict[str, int] = dict.fromkeys(texts, 0)
    for text in texts:
        counts[text] += 1
    spellings: dict[str, list[str]] = {}
    for text in sorted(counts):
        spellings.setdefault(text.strip().lower(), []).append(text)
    spellings.pop("", None)
    if len(spellings) > 20 and len(spellings) > DISTINCT * present.sum():
        return None
    sizes = {key: sum(counts[text] for text in written) for key, written in spellings.items()}
    ranked = sorted(spellings, key=lambda key: (-sizes[key], key))
    own = sorted(ranked)
    if len(ranked) > FINE:
        own = sorted(ranked[: FINE - 1])
    values: list[tuple[Value, ...]] = [tuple(spellings[key]) for key in own]
    if set(own) <= {"true", "false"}:
        values = [(key == "true",) for key in own]
    if len(own) < len(ranked):
        values.append(())  # what is too rare for a bin of its own
    size = len(values)
    bins = dict.fromkeys(counts, size - 1)
    bins |= {text: i for i, key in enumerate(own) for text in spellings[key]}
    bins |= {text: size for text in counts if not text.strip()}
    codes = np.fromiter(map(bins.__getitem__, texts), dtype=np.uint8, count=len(texts))
    return CodedColumn(name, codes, size, None, tuple(values))


def coarsen(column: CodedColumn, bins: int) -> Array:
    """(size + 1,) the coarse bin of each bin, at most `bins` beside that of missing values, which stays the last.

    Neighbours are joined so that coarse bins hold about as many rows; of text, all but the most frequent are joined.
    """
    counts = np.bincount(column.codes, minlength=column.size + 1)[: column.size]
    if column.size <= bins:
        table = np.arange(column.size)
    elif column.ordered:
        table = _join_neighbours(counts, bins)
    else:
        own = np.sort(np.argsort(-counts, kind="stable")[: bins - 1])
        table = np.full(column.size, bins - 1)
        table[own] = np.arange(bins - 1)
    return np.append(table, table.max() + 1)


def _join_neighbours(counts: Array, bins: int) -> Array:
    """Coarse bins in order. Tails are cut finer, since much of what goes wrong is extreme."""
    middle = (np.cumsum(counts) - counts / 2) / max(int(counts.sum()), 1)
    levels = np.linspace(0, 1, bins - 1)[1:-1]
    if bins >= 6:
        step = levels[0]
        levels = np.concatenate([[step / 3], levels, [1 - step / 3]])
    place = np.searchsorted(levels, middle)
    return np.unique(place, return_inverse=True)[1]


def list_literals(column: CodedColumn, table: Array, n: Array, bad: Array, base: float, lean: bool) -> Literals:
    """The literals of a column over the coarse bins of `table`.

    Parameters
    ----------
    column : CodedColumn
        Says whether bins have an order.
    table : array
        (size + 1,) the coarse bin of each bin.
    n, bad : array
        (b,) rows and bad rows of each coarse bin, the last of missing values.
    base : float
        The rate to which those of bins with few rows are drawn, before they are put in order.
    lean : bool
        Leave out ranges of several bins: too many for triples.
    """
    count = int(table[-1])
    whole = np.zeros(count + 1, dtype=bool)
    offered: dict[bytes, tuple[Array, float]] = {}

    def offer(mask: Array, options: float) -> None:
        price = float(np.log(KINDS * max(options, 1.0)))
        known = offered.get(mask.tobytes())
        if mask.any() and not mask.all() and (known is None or price < known[1]):
            offered[mask.tobytes()] = (mask.copy(), price)

    whole[-1] = True
    offer(whole, 1)
    offer(~whole, 1)
    if column.ordered:
        _offer_ordered(offer, n[:-1], lean)
    _offer_values(offer, column, table)
    if not column.ordered:
        _offer_groups(offer, n, bad, base)
    masks = np.array([mask for mask, _ in offered.values()]).reshape(-1, count + 1)
    return Literals(masks, np.array([price for _, price in offered.values()]))


def _offer_ordered(offer: Offer, n: Array, lean: bool) -> None:
    count = len(n)
    for start in range(count):
        for stop in range(start + 1, count + 1):
            mask = np.zeros(count + 1, dtype=bool)
            mask[start:stop] = True
            if start == 0 or stop == count:
                offer(mask, 2 * (count - 1))
            elif not lean or stop == start + 1:
                offer(mask, float(count_ranges(n[start:stop].sum() / max(n.sum(), 1), count)))


def count_ranges(share: Array | float, bins: int) -> Array:
    """How many ranges there are of a share of the rows: all over the bins, or more if it is a narrow window."""
    return np.maximum(max(bins * (bins - 1) / 2, 1.0), WINDOWS / np.maximum(share, 1e-9))


def _offer_values(offer: Offer, column: CodedColumn, table: Array) -> None:
    """Single values and their negation, where a coarse bin is one value."""
    count = int(table[-1])
    for place in range(count):
        if not column.values or (table == place).sum() > 1:
            continue
        mask = np.zeros(count + 1, dtype=bool)
        mask[place] = True
        offer(mask, column.size)
        mask = ~mask
        mask[-1] = False
        offer(mask, column.size)


def _offer_groups(offer: Offer, n: Array, bad: Array, base: float) -> None:
    """The bins with the highest rates: no other group of as many is better for a 0/1 outcome (Breiman et al., 1984)."""
    held = np.flatnonzero(n > 0)
    rates = (bad[held] + base) / (n[held] + 1)
    ranked = held[np.argsort(-rates, kind="stable")]
    for k in range(2, len(ranked)):
        mask = np.zeros(len(n), dtype=bool)
        mask[ranked[:k]] = True
        offer(mask, np.exp(log_choose(len(ranked), k)))


def log_choose(total: int, k: int) -> float:
    """Logarithm of how many groups of k values there are."""
    return float(gammaln(total + 1) - gammaln(k + 1) - gammaln(total - k + 1))


def bin_counts(codes: Array, size: int, bad: Array) -> tuple[Array, Array]:
    """(size,) rows and bad rows of each bin."""
    both = np.bincount(codes.astype(np.intp) * 2 + bad, minlength=2 * size).reshape(size, 2)
    return both.sum(axis=1), both[:, 1]


def common(codes: Sequence[Array], masks: Sequence[Array]) -> Array:
    """(n,) bool: the rows whose bins lie in all sets, one a column."""
    inside: Array = masks[0][codes[0]]
    for own, mask in zip(codes[1:], masks[1:], strict=True):
        inside &= mask[own]
    return inside
