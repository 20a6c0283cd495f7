"""Does an audit stay silent where there is nothing to find, and speak where there is?

    python benchmarks/null.py [--seeds 200] [--n 2000] [--jobs 2] [--method NAME ...]

1. Every registered method alone on the `random` world: audits with any confirmed slice.
2. All four worlds with spotlight and gmm: any confirmed (bounded on `random` only: elsewhere it is true), and any
   confirmed slice that is beyond both its class and the model's confidence.
3. `calibrated`, 20,000 rows, a tenth of the seeds: confirmed but explained in most audits, so the references act.
4. 5,000 rows with 5% planted 40 points worse, a fifth of the seeds: found means half of a confirmed slice is planted.

Exits 1 where a bound is broken.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context

import numpy as np

import worlds
from errata.core import Audit
from errata.core.gaps import wilson
from errata.slicers import registry
from errata.workflow import audit

ALPHA = 0.05
FOUND_AT_LEAST = 0.85
EXPLAINED_AT_LEAST = 0.50
SEARCHERS = ("spotlight", "gmm")  # a search that reads no outcome of a row it places


@dataclass(frozen=True)
class Seen:
    """One audit in short."""

    confirmed: bool
    beyond_both: bool


@dataclass(frozen=True)
class Line:
    """A row of the table: how many audits did what, and whether that many may."""

    what: str
    times: int
    audits: int
    at_most: float | None = None
    at_least: float | None = None

    @property
    def broken(self) -> bool:
        share = self.times / self.audits
        too_many = self.at_most is not None and share > self.at_most
        return too_many or (self.at_least is not None and share < self.at_least)

    def __str__(self) -> str:
        low, high = wilson(self.times, self.audits)
        bounds = [f"<= {100 * self.at_most:.1f}%"] if self.at_most is not None else []
        bounds += [f">= {100 * self.at_least:.0f}%"] if self.at_least is not None else []
        verdict = "BROKEN" if self.broken else "ok" if bounds else "true, so not bounded"
        rate, interval = f"{100 * self.times / self.audits:5.1f}%", f"[{100 * low:.1f}, {100 * high:.1f}]"
        return f"{self.what:58} {self.times:4}/{self.audits:<4} {rate} {interval:14} {' '.join(bounds):9} {verdict}"


def look(kind: str, n: int, methods: tuple[str, ...], seed: int) -> Seen:
    return seen(audit(worlds.world(kind, n, seed), methods=methods, seed=seed))


def seen(result: Audit) -> Seen:
    both = any(item.beyond == ("class", "confidence") for item in result.confirmed)
    return Seen(bool(result.confirmed), both)


def finds(n: int, share: float, gap: float, seed: int) -> bool:
    evaluation, bad = worlds.planted(n, share, gap, seed)
    return finds_planted(audit(evaluation, methods=SEARCHERS, seed=seed), bad)


def finds_planted(result: Audit, bad: worlds.Array) -> bool:
    """Whether at least half of a confirmed slice is planted."""
    return any(bad[item.members].mean() >= 0.5 for item in result.confirmed)


def largest_share(audits: int) -> float:
    """Alpha and two standard errors of it."""
    return ALPHA + 2 * float(np.sqrt(ALPHA * (1 - ALPHA) / audits))


def lines(pool, seeds: int, n: int, methods: Iterable[str]) -> Iterable[Line]:
    most = largest_share(seeds)
    for method in methods:
        results = pool.map(partial(look, "random", n, (method,)), range(seeds), chunksize=4)
        yield Line(f"random, {method}: any confirmed", sum(r.confirmed for r in results), seeds, most)
    for kind in worlds.WORLDS:
        results = pool.map(partial(look, kind, n, SEARCHERS), range(seeds), chunksize=4)
        bound = most if kind == "random" else None
        yield Line(f"{kind}, {' + '.join(SEARCHERS)}: any confirmed", sum(r.confirmed for r in results), seeds, bound)
        yield Line(f"{kind}, {' + '.join(SEARCHERS)}: beyond both", sum(r.beyond_both for r in results), seeds, most)
    few = max(1, seeds // 10)
    results = pool.map(partial(look, "calibrated", 20_000, SEARCHERS), range(few), chunksize=1)
    explained = sum(r.confirmed and not r.beyond_both for r in results)
    yield Line("calibrated, 20,000 rows: confirmed, none beyond both", explained, few, at_least=EXPLAINED_AT_LEAST)
    some = max(1, seeds // 5)
    found = sum(pool.map(partial(finds, 5000, 0.05, 0.40), range(some), chunksize=1))
    yield Line("planted, 5,000 rows, 5%, 40 points: found", found, some, at_least=FOUND_AT_LEAST)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--n", type=int, default=2000, help="rows of a null world")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--method", action="append", help="instead of every registered method")
    given = parser.parse_args()
    start, broken = time.perf_counter(), 0
    with get_context("spawn").Pool(given.jobs) as pool:
        for line in lines(pool, given.seeds, given.n, given.method or sorted(registry())):
            print(line, flush=True)
            broken += line.broken
    print(f"{time.perf_counter() - start:.0f} s; {broken} bounds broken")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
