"""Does the self-test keep its promise, and what does it cost?

    python benchmarks/self_test.py promise [--method consensus] [--sets 20] [--n 2000] [--plantings 2] [--jobs 1]
    python benchmarks/self_test.py cost [--n 50000] [--d 512]
    python benchmarks/self_test.py many

promise: null worlds, each tested by itself; then one group at a time is planted in the world as it is, with other
seeds, and the same search is run. Found as often as the self-test said? Both rates by size and gap, and the self-test
with one group a run in place of three. cost: an audit with self-test and null run, CPU seconds and peak memory.
many: the sentences of an audit of two hundred groups of which six are bad, in more rows than are tested by default.
"""

from __future__ import annotations

import argparse
import resource
import time
from dataclasses import replace
from multiprocessing import get_context

import numpy as np

import errata
from errata.bench.many import make_groups
from errata.bench.null_worlds import WORLDS, world
from errata.core import Evaluation
from errata.core.confirm import Settings
from errata.core.gaps import wilson
from errata.core.ownership import settle_sources
from errata.core.planting import plant, region
from errata.core.split import discover_mask
from errata.workflow import self_test
from errata.workflow.methods import build_slicers
from errata.workflow.self_test import FOUND, GAPS, SHARES, RepeatedSearch, run_self_test

FRESH = 1_000_000  # seeds of groups that are planted afterwards: no self-test has them


def search_of(evaluation: Evaluation, method: str) -> RepeatedSearch:
    """The search of an audit with one method."""
    discover = discover_mask(evaluation)
    evaluation, _ = settle_sources(evaluation, discover)
    slicers = build_slicers([method], {}, 0, "auto")
    return RepeatedSearch(evaluation, discover, slicers, Settings()).by_id()


def planted_afterwards(search: RepeatedSearch, share: float, gap: float, seed: int) -> bool:
    """Whether one group, planted in the rows as they are, is found."""
    rng = np.random.default_rng([FRESH, seed, round(100 * gap), round(1000 * share)])
    rows = search.evaluation
    name = next(iter(rows.representations))
    inside = region(rows.representations[name], round(share * len(rows)), np.ones(len(rows), dtype=bool), rng)
    slices = search.run(plant(rows, 0, inside, gap, 0.0, rng), search.discover).slices
    return any(slice_.verdict == "confirmed" and inside[slice_.members].mean() >= FOUND for slice_ in slices)


def alone(search: RepeatedSearch, repeats: int) -> dict[tuple[float, float], int]:
    """How many groups are found where each run has one of them; nothing where that is not asked for."""
    found: dict[tuple[float, float], int] = {}
    if not repeats:
        return found
    for share in SHARES:
        self_test.SHARES = (share,)
        result = run_self_test(search, repeats=repeats)
        self_test.SHARES = SHARES
        found |= {(share, cell.gap): cell.found for cell in result.cells}
    return found


def one_set(given: tuple[int, str, int, int, int]) -> dict:
    """Said, found afterwards, and found one at a time, for one world."""
    i, method, n, plantings, single = given
    rows = replace(world(WORLDS[i % len(WORLDS)], n, 500 + i), metadata={})  # regions alone
    search = search_of(rows, method)
    said = run_self_test(search)
    cells = {(cell.share, cell.gap): (cell.found, cell.trials) for cell in said.cells}
    afterwards = {
        (share, gap): sum(planted_afterwards(search, share, gap, 100 * i + j) for j in range(plantings))
        for share in SHARES
        for gap in GAPS
    }
    return {"said": cells, "afterwards": afterwards, "alone": alone(search, single)}


def promise(method: str, sets: int, n: int, plantings: int, single: int, jobs: int) -> None:
    start = time.perf_counter()
    results = []
    with get_context("spawn").Pool(jobs) as pool:
        for result in pool.imap(one_set, [(i, method, n, plantings, single) for i in range(sets)]):
            results.append(result)
            print(f"set {len(results)}: {time.perf_counter() - start:.0f} s", flush=True)
            if len(results) % 5 == 0:
                compare(results, n, plantings)


def compare(results: list[dict], n: int, plantings: int) -> None:
    """What was said beside what was found, by size and gap, all sets together."""
    total = len(results) * plantings
    for gap in GAPS:
        for share in SHARES:
            key = (share, gap)
            said = sum(r["said"][key][0] for r in results)
            trials = sum(r["said"][key][1] for r in results)
            times = sum(r["afterwards"][key] for r in results)
            single = sum(r["alone"].get(key, 0) for r in results)
            low, high = wilson(times, total)
            print(
                f"{share:.0%} of {n:,} rows, {100 * gap:.0f} points: said {said}/{trials} ({said / trials:.2f}), "
                f"found afterwards {times}/{total} ({times / total:.2f}, {low:.2f} to {high:.2f}); "
                f"found one a run {single}"
            )


def cost(n: int, d: int) -> None:
    rng = np.random.default_rng(0)
    classes = 10
    X = rng.standard_normal((n, d), dtype=np.float32) * 1.5
    X += rng.normal(size=(60, d)).astype(np.float32)[rng.integers(60, size=n)]
    logits = X @ rng.normal(size=(d, classes)).astype(np.float32)
    logits *= 6 / logits.std()
    probs = np.exp(logits - logits.max(axis=1, keepdims=True))
    probs /= probs.sum(axis=1, keepdims=True)
    labels = (probs.cumsum(axis=1) < rng.random(n)[:, None]).sum(axis=1).clip(0, classes - 1)
    evaluation = Evaluation(labels=labels, probs=probs, representations={"x": X})
    for tested in (False, True):
        start = time.perf_counter()
        cpu = time.process_time()
        result = errata.audit(evaluation, self_test=tested)
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        seconds = time.perf_counter() - start
        print(
            f"self_test={tested}: {time.process_time() - cpu:.0f} CPU s, {seconds:.0f} s, peak {peak:.2f} GB",
            flush=True,
        )
    print(result.silence)


def many(n: int = 60_000) -> None:
    result = errata.audit(make_groups(n, 0).evaluation, self_test=None)
    print(f"{len(result.confirmed)} confirmed\n{result.silence}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("part", choices=("promise", "cost", "many"))
    parser.add_argument("--method", default="consensus")
    parser.add_argument("--sets", type=int, default=20)
    parser.add_argument("--n", type=int)
    parser.add_argument("--d", type=int, default=512)
    parser.add_argument("--plantings", type=int, default=2)
    parser.add_argument("--single", type=int, default=0, help="repeats of the self-test with one group a run")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args()
    if given.part == "promise":
        promise(given.method, given.sets, given.n or 2000, given.plantings, given.single, given.jobs)
    elif given.part == "cost":
        cost(given.n or 50_000, given.d)
    else:
        many(given.n or 60_000)


if __name__ == "__main__":
    main()
