"""The same audit by threads of this process and by two Ray workers of which ten are killed on the way.

    python benchmarks/ray_audit.py [ROWS]

Rows of 64 numbers in a file, two groups of them with more errors. Every slice is compared: members, sizes, p-values,
verdict, all of them exactly.
"""

from __future__ import annotations

import os
import random
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np

import errata
from errata.core import silent
from errata.engine import Cluster, Engine, Local

KILLS = 10
COLUMNS = 64


def make_rows(folder: Path, n: int) -> errata.Evaluation:
    """An evaluation whose representation is a memory map."""
    rng = np.random.default_rng(0)
    X = np.lib.format.open_memmap(folder / "x.npy", mode="w+", dtype=np.float32, shape=(n, COLUMNS))
    for start in range(0, n, 100_000):
        X[start : start + 100_000] = rng.normal(size=(min(100_000, n - start), COLUMNS))
    X.flush()
    mapped = np.load(folder / "x.npy", mmap_mode="r", allow_pickle=False)
    bad = (mapped[:, 0] > 2) | ((mapped[:, 1] < -1.5) & (mapped[:, 2] > 1))
    labels = rng.integers(0, 2, n)
    wrong = rng.random(n) < np.where(bad, 0.4, 0.05)
    return errata.Evaluation(
        labels=labels, predictions=np.where(wrong, 1 - labels, labels), representations={"x": mapped}
    )


def kill_workers(cluster: Cluster, killed: list[int], done: threading.Event) -> None:
    """Whoever works, at random times, until ten are dead or the audit is done."""
    import ray

    rng = random.Random(0)
    while len(killed) < KILLS and not done.is_set():
        time.sleep(rng.uniform(0.5, 2.0))
        try:
            pid = ray.get(rng.choice(cluster.pool.slots).actor.process.remote(), timeout=60)
        except ray.exceptions.RayError:
            continue
        if pid not in killed and not done.is_set():
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)


def facts(audit: Any) -> list[tuple[Any, ...]]:
    slices = sorted(audit.slices, key=lambda slice_: slice_.id)
    return [(slice_.id, slice_.verdict, slice_.members.tobytes(), repr(slice_.confirm)) for slice_ in slices]


def run(evaluation: errata.Evaluation, engine: Engine) -> tuple[list[tuple[Any, ...]], float]:
    start = time.perf_counter()
    audit = errata.audit(evaluation, engine=engine, self_test=False, progress=silent)
    return facts(audit), time.perf_counter() - start


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    with tempfile.TemporaryDirectory() as folder, Cluster(workers=2) as cluster:
        evaluation = make_rows(Path(folder), n)
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {n:,} rows x {COLUMNS} float32 in a file")
        expected, seconds = run(evaluation, Local(threads=2))
        verdicts = [slice_[1] for slice_ in expected]
        print(f"local: {seconds:.0f} s, slices: {len(expected)}, confirmed: {verdicts.count('confirmed')}")
        assert cluster.pool.slots
        whole, seconds = run(evaluation, cluster)
        print(f"ray, two workers: {seconds:.0f} s, equal to local: {whole == expected}")
        killed: list[int] = []
        done = threading.Event()
        killer = threading.Thread(target=kill_workers, args=(cluster, killed, done))
        killer.start()
        while len(killed) < KILLS:
            same, seconds = run(evaluation, cluster)
            print(f"ray, {len(killed)} workers killed so far: {seconds:.0f} s, equal to local: {same == expected}")
        done.set()
        killer.join()


if __name__ == "__main__":
    main()
