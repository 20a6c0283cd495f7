"""The search for conjunctions of literals that tell bad rows from others, for any 0/1 outcome.

One joint histogram of two or three columns holds the counts of every box over their bins: sums along its axes, a small
matrix product for each column, give the rows and the bad rows of all conjunctions of literals, so that the search is
exhaustive over bins. What is found on coarse bins is then refined one literal at a time on finer ones, and a literal
that adds less evidence than it costs is dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from math import comb
from typing import Literal

import numpy as np
from scipy.special import gammaln

from ..blocks import Array
from .conditions import Condition
from .counts import count, join
from .fine import fine_literals
from .literals import BINS, CodedColumn, Literals, bin_counts, coarsen, common, list_literals

Aim = Literal["rate", "split"]
CELLS = 4e7  # conjunctions of three literals that are looked at, about
PER_SET = (4, 3, 2)  # rules that a set of one, two, three columns offers; their boxes do not overlap
POOL = 400  # rules that are compared with each other, those of most value
COMPARED = 20_000  # rows on which near-copies are recognised
NEAR_COPY = 0.8  # Jaccard index
SWEEPS = 3  # over the literals of a rule, when it is refined
SMALL = 5000  # rows below which fewer bins are cut
FEWER_BINS = 10
LEAST_BINS = 5
MOST_IN_PAIRS = 100  # columns that are joined by two, and by three: all sets of more would take minutes
MOST_IN_TRIPLES = 32
ODDS = (1.0, 2.0, 4.0)  # of the rates that rules must exceed, as multiples of those of the base rate
SAME = 0.9  # Jaccard index of refined rules that are told once


@dataclass(frozen=True, eq=False)
class Rule:
    """A conjunction with what the searched rows say of it.

    Parameters
    ----------
    conditions : tuple of Condition
        At least one, of different columns.
    columns : tuple of int
        Which of the searched columns they are about.
    masks : tuple of array
        (size + 1,) bool: the bins of each column that meet its condition.
    n, bad : int
        How many of the searched rows meet all of them, and how many of these are bad.
    evidence : float
        Logarithm of the Bayes factor against the base rate.
    price : float
        Its description length: the logarithm of how many rules as short as this there are.
    """

    conditions: tuple[Condition, ...]
    columns: tuple[int, ...]
    masks: tuple[Array, ...]
    n: int
    bad: int
    evidence: float
    price: float

    @property
    def value(self) -> float:
        """Evidence after the price."""
        return self.evidence - self.price

    def matches(self, codes: Sequence[Array]) -> Array:
        """(n,) bool: the rows that meet all conditions, given the bins of rows in each of the searched columns."""
        return common([codes[j] for j in self.columns], self.masks)


@dataclass(frozen=True, eq=False)
class Conjunction:
    """Sets of bins of some columns, while a rule is searched."""

    columns: tuple[int, ...]
    masks: tuple[Array, ...]  # (size + 1,) bool over the fine bins of each
    prices: tuple[float, ...]
    value: float


class Scores:
    """Evidence of counts by table: all arguments are whole numbers of rows.

    Parameters
    ----------
    total, bad
        All rows, and how many of them are bad.
    base
        The rate that a rule must exceed.
    least, largest
        The fewest rows of a rule, and the most.
    aim
        `rate`: rows of the rule against the base rate. `split`: rows outside of it too, so that a rule that leaves
        many bad rows out is worth less.
    """

    def __init__(self, total: int, bad: int, base: float, least: int, largest: int, aim: Aim):
        self.total = total
        self.bad = bad
        self.base = float(np.clip(base, 1e-6, 1 - 1e-6))
        self.least = max(least, 1)
        self.largest = largest
        self.aim = aim
        self._log_factorial = gammaln(np.arange(total + 3) + 1.0)

    def evidence(self, n: Array, bad: Array) -> Array:
        """As `core.evidence.log_evidence`; minus infinity for fewer rows than the least and more than the most."""
        n = np.rint(n).astype(np.intp)
        bad = np.rint(bad).astype(np.intp)
        values = np.full(n.shape, -np.inf)
        worse = np.flatnonzero((n >= self.least) & (n <= self.largest) & (bad > self.base * n))
        n = n.ravel()[worse]
        bad = bad.ravel()[worse]
        found = self._factor(n, bad)
        if self.aim == "split":
            found += self._factor(self.total - n, self.bad - bad)
        values.ravel()[worse] = found
        return values

    def _factor(self, n: Array, bad: Array) -> Array:
        table = self._log_factorial
        factor: Array = table[bad] + table[n - bad] - table[n + 1]
        factor -= bad * np.log(self.base)
        factor -= (n - bad) * np.log1p(-self.base)
        return factor


def find_rules(
    columns: Sequence[CodedColumn],
    bad: Array,
    base: float,
    *,
    depth: int = 3,
    least: int = 20,
    largest: int | None = None,
    most: int = 100,
    aim: Aim = "rate",
) -> list[Rule]:
    """The conjunctions of most value, near-copies left out.

    Parameters
    ----------
    columns : sequence of CodedColumn
        The columns of the searched rows, see `literals.encode_all`.
    bad : array
        (n,) bool: what a rule should tell; errors, or membership in a slice that is to be described.
    base : float
        The rate that a rule must exceed.
    depth : int
        Literals of a rule at most: 1, 2 or 3.
    least, largest : int
        Rows of a rule at least, and at most; None for all.
    most : int
        Rules that are returned at most.
    aim : str
        `rate` for rows that are worse than others, `split` for the best description of the bad rows.

    Returns
    -------
    list of Rule
        Those of most value first; none where no conjunction is worse than `base`.
    """
    bad = np.asarray(bad, dtype=bool)
    if not len(bad) or not columns:
        return []
    if largest is None:
        largest = len(bad)
    search = _Search(columns, bad, _levels(bad, base, least, largest, aim))
    found = search.candidates(depth)
    refined: list[Conjunction] = []
    for level, conjunctions in enumerate(found):
        conjunctions.sort(key=lambda conjunction: -conjunction.value)
        kept = search.without_copies(conjunctions[:POOL], NEAR_COPY)[:most]
        refined += [search.refine(conjunction, level) for conjunction in kept]
    valued = [search.value_of(conjunction) for conjunction in refined]
    valued.sort(key=lambda conjunction: -conjunction.value)
    return [
        search.rule(conjunction) for conjunction in search.without_copies(valued, SAME) if conjunction.value > -np.inf
    ]


def _levels(bad: Array, base: float, least: int, largest: int, aim: Aim) -> list[Scores]:
    """What is searched for: rows worse than `base`; then sharper ones, with twice and four times its odds.

    The widest rule has most evidence against `base` alone, and would hide the worst part of it.
    """
    rates = [base]
    if aim == "rate":
        rates = [odds * base / (1 + (odds - 1) * base) for odds in ODDS]
    return [Scores(len(bad), int(bad.sum()), rate, least, largest, aim) for rate in rates]


class _Search:
    """One outcome of some rows, in coded columns.

    Parameters
    ----------
    columns, bad
        As of `find_rules`.
    levels
        How rules are scored; one list of rules is searched for each. Values are those of the first.
    """

    def __init__(self, columns: Sequence[CodedColumn], bad: Array, levels: Sequence[Scores]):
        self.columns = list(columns)
        self.bad = bad
        self.outcome = bad.astype(np.intp)
        self.levels = levels
        self.base = levels[0].base
        self.price_of_column = float(np.log(len(self.columns)))

    def candidates(self, depth: int) -> list[list[Conjunction]]:
        """The best boxes of each set of columns: of one, of two, of three; a list for each level."""
        bins = BINS
        if len(self.bad) < SMALL:
            bins = FEWER_BINS
        found: list[list[Conjunction]] = [[] for _ in self.levels]
        self._singles(found)
        if depth >= 2:
            columns = self._outstanding(found, MOST_IN_PAIRS)
            self._pairs([_Coarse(self, j, bins, lean=False) for j in columns], found)
        if depth >= 3:
            columns = self._outstanding(found, MOST_IN_TRIPLES)
            bins = self._bins_of_triples(len(columns), bins)
            self._triples([_Coarse(self, j, bins, lean=True) for j in columns], found)
        return found

    def _outstanding(self, found: list[list[Conjunction]], most: int) -> list[int]:
        """All columns, or of many those that are part of the best so far."""
        best = np.full(len(self.columns), -np.inf)
        for conjunctions in found:
            for conjunction in conjunctions:
                for j in conjunction.columns:
                    best[j] = max(best[j], conjunction.value)
        return sorted(np.argsort(-best, kind="stable")[:most].tolist())

    def _bins_of_triples(self, columns: int, bins: int) -> int:
        """As many as keep the work within `CELLS`: a column of b bins offers about 3 b literals."""
        budget = CELLS * min(len(self.bad) / 50_000, 1.0)
        return int(np.clip((budget / max(comb(columns, 3), 1)) ** (1 / 3) / 3, LEAST_BINS, bins))

    def _singles(self, found: list[list[Conjunction]]) -> None:
        for j, column in enumerate(self.columns):
            bins = BINS if column.ordered else column.size
            one = _Coarse(self, j, bins, lean=False)
            n, bad = bin_counts(one.codes, one.size, self.bad)
            masks = one.literals.masks
            self._collect([one], masks @ n, masks @ bad, one.prices, found)

    def _pairs(self, coarse: Sequence[_Coarse], found: list[list[Conjunction]]) -> None:
        for a, b in combinations(coarse, 2):
            index = join(join(self.outcome, a.codes, a.size), b.codes, b.size)
            counts = count(index, (a.size, b.size)).astype(np.float32)
            boxes = a.matrix @ (counts @ b.matrix.T)
            self._collect([a, b], boxes[0] + boxes[1], boxes[1], a.prices[:, None] + b.prices, found)

    def _triples(self, coarse: Sequence[_Coarse], found: list[list[Conjunction]]) -> None:
        for i, j in combinations(range(len(coarse)), 2):
            a = coarse[i]
            b = coarse[j]
            index = join(join(self.outcome, a.codes, a.size), b.codes, b.size)
            for c in coarse[j + 1 :]:
                boxes = _box_counts(join(index, c.codes, c.size), a, b, c)
                prices = a.prices[:, None, None] + b.prices[:, None] + c.prices
                self._collect([a, b, c], boxes[0] + boxes[1], boxes[1], prices, found)

    def _collect(
        self, parts: Sequence[_Coarse], n: Array, bad: Array, prices: Array, found: list[list[Conjunction]]
    ) -> None:
        """Add the boxes of most value that do not overlap, at each level."""
        if not prices.size:
            return
        for scores, conjunctions in zip(self.levels, found, strict=True):
            values = scores.evidence(n, bad) - prices
            for _ in range(PER_SET[len(parts) - 1]):
                place = np.unravel_index(int(np.argmax(values)), values.shape)
                value = float(values[place])
                if value == -np.inf:
                    break
                masks = [part.literals.masks[i] for part, i in zip(parts, place, strict=True)]
                conjunctions.append(
                    Conjunction(
                        tuple(part.column for part in parts),
                        tuple(mask[part.table] for part, mask in zip(parts, masks, strict=True)),
                        tuple(float(part.prices[i]) for part, i in zip(parts, place, strict=True)),
                        value,
                    )
                )
                meets = [(part.literals.masks & mask).any(axis=1) for part, mask in zip(parts, masks, strict=True)]
                values[np.ix_(*meets)] = -np.inf

    def members(self, conjunction: Conjunction) -> Array:
        """(n,) bool: the searched rows of a conjunction."""
        return common([self.columns[j].codes for j in conjunction.columns], conjunction.masks)

    def without_copies(self, found: Sequence[Conjunction], overlap: float) -> list[Conjunction]:
        """Leave out what holds mostly the rows of one before it."""
        if not found:
            return []
        step = max(1, len(self.bad) // COMPARED)
        codes = [column.codes[::step] for column in self.columns]
        sets = np.array([common([codes[j] for j in c.columns], c.masks) for c in found], dtype=np.float32)
        shared = sets @ sets.T
        sizes = np.diag(shared)
        alike = shared > overlap * (sizes[:, None] + sizes - shared)
        kept: list[int] = []
        for i in range(len(found)):
            if not alike[i, kept].any():
                kept.append(i)
        return [found[i] for i in kept]

    def refine(self, conjunction: Conjunction, level: int) -> Conjunction:
        """Choose each literal afresh on fine bins, the others fixed, and drop those that do not pay."""
        scores = self.levels[level]
        for _ in range(SWEEPS):
            before = conjunction.value
            conjunction = self._drop(conjunction, scores)
            for i in range(len(conjunction.columns)):
                conjunction = self._replace(conjunction, i, scores)
            if conjunction.value <= before + 1e-9:
                break
        return self._drop(conjunction, scores)

    def _drop(self, conjunction: Conjunction, scores: Scores) -> Conjunction:
        """Without its literals that add less than they cost."""
        while len(conjunction.columns) > 1:
            shorter = [self._valued(_without(conjunction, i), scores) for i in range(len(conjunction.columns))]
            best = max(shorter, key=lambda candidate: candidate.value)
            if best.value < conjunction.value:
                break
            conjunction = best
        return conjunction

    def value_of(self, conjunction: Conjunction) -> Conjunction:
        """With its value at the first level."""
        return self._valued(conjunction, self.levels[0])

    def _valued(self, conjunction: Conjunction, scores: Scores) -> Conjunction:
        inside = self.members(conjunction)
        evidence = scores.evidence(np.array([inside.sum()]), np.array([self.bad[inside].sum()]))
        return replace(conjunction, value=float(evidence[0]) - sum(conjunction.prices))

    def _replace(self, conjunction: Conjunction, i: int, scores: Scores) -> Conjunction:
        """The i-th literal chosen afresh among those of its column on fine bins."""
        column = self.columns[conjunction.columns[i]]
        rows = np.ones(len(self.bad), dtype=bool)
        if len(conjunction.columns) > 1:
            rows = self.members(_without(conjunction, i))
        n, bad = bin_counts(column.codes[rows], column.size + 1, self.bad[rows])
        options, prices = fine_literals(column, n, bad, scores.base)
        prices = prices + self.price_of_column
        others = sum(conjunction.prices) - conjunction.prices[i]
        values = scores.evidence(options.n, options.bad) - prices - others
        best = int(np.argmax(values))
        if values[best] <= conjunction.value + 1e-9:
            return conjunction
        masks = list(conjunction.masks)
        masks[i] = options.mask(best)
        new_prices = list(conjunction.prices)
        new_prices[i] = float(prices[best])
        return Conjunction(conjunction.columns, tuple(masks), tuple(new_prices), float(values[best]))

    def rule(self, conjunction: Conjunction) -> Rule:
        """What is returned of a conjunction: conditions in the order of columns."""
        members = self.members(conjunction)
        pairs = zip(conjunction.columns, conjunction.masks, strict=True)
        price = sum(conjunction.prices)
        return Rule(
            tuple(self.columns[j].condition(mask) for j, mask in pairs),
            conjunction.columns,
            conjunction.masks,
            int(members.sum()),
            int(self.bad[members].sum()),
            conjunction.value + price,
            price,
        )


class _Coarse:
    """A column over coarse bins, with the literals that can be part of a rule."""

    def __init__(self, search: _Search, column: int, bins: int, lean: bool):
        coded = search.columns[column]
        self.column = column
        self.table = coarsen(coded, bins)
        self.size = int(self.table[-1]) + 1
        self.codes = self.table[coded.codes]
        n, bad = bin_counts(self.codes, self.size, search.bad)
        literals = list_literals(coded, self.table, n, bad, search.base, lean)
        held = literals.masks @ n
        self.literals: Literals = literals.keep((held >= search.levels[0].least) & (held < len(search.bad)))
        self.prices = self.literals.prices + search.price_of_column
        self.matrix = self.literals.masks.astype(np.float32)


def _box_counts(index: Array, a: _Coarse, b: _Coarse, c: _Coarse) -> Array:
    """(2, literals of a, of b, of c) rows that are not bad, and bad ones, of each conjunction."""
    counts = count(index, (a.size, b.size, c.size)).astype(np.float32)
    by_third = counts.reshape(-1, c.size) @ c.matrix.T
    by_second = b.matrix @ by_third.reshape(2 * a.size, b.size, len(c.prices))
    boxes = a.matrix @ by_second.reshape(2, a.size, -1)
    return boxes.reshape(2, len(a.prices), len(b.prices), len(c.prices))


def _without(conjunction: Conjunction, i: int) -> Conjunction:
    keep = [j for j in range(len(conjunction.columns)) if j != i]
    return Conjunction(
        tuple(conjunction.columns[j] for j in keep),
        tuple(conjunction.masks[j] for j in keep),
        tuple(conjunction.prices[j] for j in keep),
        -np.inf,
    )
