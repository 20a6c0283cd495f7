"""Does an audit stay silent where there is nothing to find, and speak where there is?

    python benchmarks/null.py [--copies | --default] [--seeds 200] [--n 2000] [--jobs 2] [--method NAME ...]

1. Every registered method alone on the `random` world: audits with any confirmed slice.
2. All four worlds with spotlight and gmm: any confirmed (bounded on `random` only: elsewhere it is true), and any
   confirmed slice that is beyond both its class and the model's confidence.
3. `calibrated`, 20,000 rows, a tenth of the seeds: confirmed but explained in most audits, so the references act.
4. 5,000 rows with 5% planted 40 points worse, a fifth of the seeds: found means half of a confirmed slice is planted.
5. With --copies, instead: default audits of random errors in rows that stand five times (exactly, or with noise), and
   of patients, with and without a column that says whose rows they are (without one, nothing is bounded).
6. With --default, instead: default audits of the four worlds, which have columns too, and of a planted group.

Exits 1 where a bound is broken.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable
from functools import partial
from multiprocessing import get_context

from errata.bench.null_runs import (
    SEARCHERS,
    BoundedShare,
    audit_copied_world,
    audit_null_world,
    audit_patients_world,
    finds_planted,
    largest_share,
)
from errata.bench.null_worlds import WORLDS
from errata.slicers import registry

FOUND_AT_LEAST = 0.85
EXPLAINED_AT_LEAST = 0.50


def lines(pool, seeds: int, n: int, methods: Iterable[str]) -> Iterable[BoundedShare]:
    most = largest_share(seeds)
    for method in methods:
        results = pool.map(partial(audit_null_world, "random", n, (method,)), range(seeds), chunksize=4)
        yield BoundedShare(f"random, {method}: any confirmed", sum(r.confirmed for r in results), seeds, most)
    for kind in WORLDS:
        results = pool.map(partial(audit_null_world, kind, n, SEARCHERS), range(seeds), chunksize=4)
        bound = most if kind == "random" else None
        yield BoundedShare(
            f"{kind}, {' + '.join(SEARCHERS)}: any confirmed", sum(r.confirmed for r in results), seeds, bound
        )
        yield BoundedShare(
            f"{kind}, {' + '.join(SEARCHERS)}: beyond both", sum(r.beyond_both for r in results), seeds, most
        )
    few = max(1, seeds // 10)
    results = pool.map(partial(audit_null_world, "calibrated", 20_000, SEARCHERS), range(few), chunksize=1)
    explained = sum(r.confirmed and not r.beyond_both for r in results)
    yield BoundedShare(
        "calibrated, 20,000 rows: confirmed, none beyond both", explained, few, at_least=EXPLAINED_AT_LEAST
    )
    some = max(1, seeds // 5)
    found = sum(pool.map(partial(finds_planted, 5000, 0.05, 0.40), range(some), chunksize=1))
    yield BoundedShare("planted, 5,000 rows, 5%, 40 points: found", found, some, at_least=FOUND_AT_LEAST)


def copied_lines(pool, seeds: int, n: int) -> Iterable[BoundedShare]:
    """Worlds whose rows are not independent; seeds that no constant was chosen on."""
    which = range(5000, 5000 + seeds)
    most = largest_share(seeds)
    for noise in (0.0, 0.1, 0.2, 0.3, 0.5):
        results = pool.map(partial(audit_copied_world, n, noise), which, chunksize=1)
        bound = most if noise < 0.5 else None
        yield BoundedShare(
            f"rows five times, noise {noise}: any confirmed", sum(r.confirmed for r in results), seeds, bound
        )
    for column in (True, False):
        results = pool.map(partial(audit_patients_world, n, column), which, chunksize=1)
        bound = most if column else None
        what = "a column" if column else "no column"
        yield BoundedShare(f"patients, {what}: any confirmed", sum(r.confirmed for r in results), seeds, bound)


def default_lines(pool, seeds: int, n: int) -> Iterable[BoundedShare]:
    """The default audit, by embedding and columns; seeds that no constant was chosen on."""
    which = range(9000, 9000 + seeds)
    most = largest_share(seeds)
    for kind in WORLDS:
        results = pool.map(partial(audit_null_world, kind, n, None), which, chunksize=1)
        bound = most if kind == "random" else None
        yield BoundedShare(f"{kind}: any confirmed", sum(r.confirmed for r in results), seeds, bound)
        yield BoundedShare(f"{kind}: beyond both", sum(r.beyond_both for r in results), seeds, most)
    found = sum(pool.map(partial(finds_planted, 5000, 0.05, 0.40, methods=None), which, chunksize=1))
    yield BoundedShare("planted, 5,000 rows, 5%, 40 points: found", found, seeds)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--n", type=int, default=2000, help="rows of a null world")
    parser.add_argument("--copies", action="store_true", help="copies and patients instead")
    parser.add_argument("--default", action="store_true", help="default audits instead")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--method", action="append", help="instead of every registered method")
    given = parser.parse_args()
    start = time.perf_counter()
    broken = 0
    with get_context("spawn").Pool(given.jobs) as pool:
        wanted = lines(pool, given.seeds, given.n, given.method or sorted(registry()))
        if given.copies:
            wanted = copied_lines(pool, given.seeds, given.n)
        if given.default:
            wanted = default_lines(pool, given.seeds, given.n)
        for line in wanted:
            print(line, flush=True)
            broken += line.broken
    print(f"{time.perf_counter() - start:.0f} s; {broken} bounds broken")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
