"""Is a slice worse than its reference by more than a margin? One exact-style test, its interval, its power.

A slice has m rows of which k are wrong. The reference has rate b, known as well as from `nref`
rows. Both m, k and nref may be fractional (effective counts). The reference rate is integrated
out: with one stratum and no margin the p-value is Fisher's exact one-sided p, and at a margin it
stays below its nominal level far into the tail, where a correction for many slices operates and
where Wilson-type tests reject up to twenty times too often.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy import special

from .blocks import Array

# Where the reference's Beta distribution is cut into pieces: its far upper tail can decide a small p.
PIECES = (1e-14, 0.1, 0.9, 0.999, 1 - 1e-6, 1 - 1e-10)
FAR = 1e-14  # the upper tail beyond the last piece
NODES = 48
TARGET_GAP = 0.20  # a gap of practical size: power is stated for it
TARGET_POWER = 0.80
MOST_ROWS_NEEDED = 1_000_000  # beyond which it is not said how many would be
MOST_TEETH = 2000  # rows that are looked at one by one: beyond 16,000, a few more or fewer change nothing


@dataclass(frozen=True)
class Counts:
    """m slice rows with k errors, against a reference rate b known as from nref rows.

    Attributes
    ----------
    m, k : float
        Rows of the slice, and those with a bad outcome; fractional where rows of one group count as fewer.
    b, nref : float
        The reference rate, and how many rows it is worth.
    """

    m: float
    k: float
    b: float
    nref: float

    @property
    def gap(self) -> float:
        """The slice's rate less the reference's."""
        return self.k / self.m - self.b

    def mirrored(self) -> Counts:
        """The same comparison of correct rows instead of wrong ones."""
        return Counts(self.m, self.m - self.k, 1 - self.b, self.nref)


@lru_cache(maxsize=1)
def _unit_nodes() -> tuple[Array, Array]:
    nodes, weights = np.polynomial.legendre.leggauss(NODES)
    return (nodes + 1) / 2, weights / 2


@lru_cache(maxsize=4096)
def _reference_grid(b: float, nref: float) -> tuple[Array, Array]:
    """Points and weights that integrate over x ~ Beta(b*nref + 1, (1-b)*nref)."""
    right = max((1 - b) * nref, 1e-9)
    wrong = max(b * nref, 0.0) + 1
    edges = np.array([special.betaincinv(wrong, right, u) for u in PIECES])
    edges = np.append(edges, special.betainccinv(wrong, right, FAR))
    widths = np.diff(edges)
    unit, unit_weights = _unit_nodes()
    x = np.clip((edges[:-1, None] + widths[:, None] * unit).ravel(), 1e-300, 1 - 1e-16)
    log_density = special.xlogy(wrong - 1, x) + special.xlog1py(right - 1, -x) - special.betaln(wrong, right)
    weights = np.exp(log_density) * (widths[:, None] * unit_weights).ravel()
    if right < 1:  # the density is infinite at 1, and the nodes miss mass there: put it where it belongs
        weights = np.append(weights, max(0.0, 1 - float(weights.sum())))
        x = np.append(x, 1.0)
    return x, weights


def binomial_tail(k: float, m: float, rate: Array) -> Array:
    """P(Binomial(m, rate) >= k), also for fractional k and m."""
    if k <= 0:
        return np.ones_like(rate)
    tail: Array = special.betainc(k, max(m - k + 1, 1e-9), np.clip(rate, 0, 1))
    return tail


def p_gap(counts: Counts, margin: float = 0.0) -> float:
    """One-sided p-value of "worse than the reference by no more than `margin`"."""
    if counts.k <= 0:
        return 1.0
    x, weights = _reference_grid(float(counts.b), float(counts.nref))
    return float(np.clip(weights @ binomial_tail(counts.k, counts.m, x + margin), FAR, 1.0))


def interval(counts: Counts, level: float) -> tuple[float, float]:
    """The gap's interval with error `level` on each side: the test, turned round.

    A slice's rate lies in [0, 1], so the gap cannot be beyond what the reference rate leaves; that matters
    where every row of the slice has the same outcome and the test itself has no bound on that side.
    """
    wrong = counts.b * counts.nref
    right = (1 - counts.b) * counts.nref
    highest_b = float(special.betainccinv(wrong + 1, max(right, 1e-9), level))
    lowest_b = float(special.betaincinv(max(wrong, 1e-9), right + 1, level))
    return max(_lower(counts, level), -highest_b), min(-_lower(counts.mirrored(), level), 1 - lowest_b)


def _lower(counts: Counts, level: float) -> float:
    """The margin at which the p-value is `level`; p grows with the margin."""
    low = -1.0
    high = 1.0
    if p_gap(counts, low) > level:
        return low
    for _ in range(40):
        middle = (low + high) / 2
        if p_gap(counts, middle) > level:
            high = middle
        else:
            low = middle
    return low


def critical_errors(m: float, b: float, nref: float, margin: float, level: float) -> float:
    """The fewest errors among m rows that would pass the test; infinity where none would."""
    low = 0
    high = int(np.floor(m)) + 1
    while high - low > 1:
        middle = (low + high) // 2
        if p_gap(Counts(m, middle, b, nref), margin) <= level:
            high = middle
        else:
            low = middle
    return float(high) if high <= m else float("inf")


def power(m: float, b: float, nref: float, margin: float, level: float, gap: float) -> float:
    """The chance that a slice of m rows, truly worse by `gap`, passes the test."""
    needed = critical_errors(m, b, nref, margin, level)
    if not np.isfinite(needed):
        return 0.0
    return float(binomial_tail(needed, m, np.array(min(1.0, b + gap))))


def target_gap(delta: float) -> float:
    """The gap of practical size at which power is stated: twice the margin, at least 20 points."""
    return max(TARGET_GAP, 2 * delta)


def visible_gap(m: float, b: float, nref: float, margin: float, level: float) -> float | None:
    """The smallest true gap that m rows would show with 80% power; None where none would."""
    needed = critical_errors(m, b, nref, margin, level)
    if not np.isfinite(needed):
        return None
    # The rate at which P(Binomial(m, rate) >= needed) is the target power, in closed form.
    rate = float(special.betaincinv(needed, max(m - needed + 1, 1e-9), TARGET_POWER))
    return rate - b if rate < 1 else None


def rows_needed(
    b: float, nref: float, margin: float, level: float, gap: float, most: int = MOST_ROWS_NEEDED
) -> int | None:
    """The fewest held-out rows that would show a true gap with 80% power; None, or more, beyond `most`."""
    if b + gap > 1:
        return None
    low = 0
    high = 8
    while power(high, b, nref, margin, level, gap) < TARGET_POWER:
        low = high
        high *= 2
        if low > most:
            return None
    while high - low > 1:
        middle = (low + high) // 2
        if power(middle, b, nref, margin, level, gap) < TARGET_POWER:
            low = middle
        else:
            high = middle
    # Power rises in saw teeth: step past the last tooth that dips under the target again.
    teeth = range(high, high + min(max(16, high // 8), MOST_TEETH))
    return max((m + 1 for m in teeth if power(m, b, nref, margin, level, gap) < TARGET_POWER), default=high)


def benjamini_hochberg(p_values: Array) -> Array:
    """q-values of Benjamini and Hochberg, reported beside the verdict and never deciding it."""
    p_values = np.asarray(p_values, dtype=np.float64)
    s = len(p_values)
    order = np.argsort(p_values, kind="stable")
    scaled = p_values[order] * s / np.arange(1, s + 1)
    q = np.empty(s)
    q[order] = np.minimum(1.0, np.minimum.accumulate(scaled[::-1])[::-1])
    return q


def wilson(errors: float, n: float, z: float = 1.959963984540054) -> tuple[float, float]:
    """Wilson's interval of a single rate, for drawing. Never for a verdict."""
    if n <= 0:
        return 0.0, 1.0
    rate = errors / n
    shrink = 1 + z * z / n
    centre = (rate + z * z / (2 * n)) / shrink
    half = z / shrink * np.sqrt(rate * (1 - rate) / n + z * z / (4 * n * n))
    low = max(0.0, float(centre - half)) if errors > 0 else 0.0  # exactly, not 2e-19
    high = min(1.0, float(centre + half)) if errors < n else 1.0
    return low, high
