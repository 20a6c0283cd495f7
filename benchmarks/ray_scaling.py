"""What two Ray workers take beside one, what is sent, and what a row costs. Prints a table for docs/scale.md.

    python benchmarks/ray_scaling.py [ROWS]

One pass of k-means (distances to 64 centres, sums by cluster) over rows of 64 numbers in a file. Passes by one and by
two workers are measured in turn, because others may use the machine; the CPU time of the workers says how much of the
wall time was theirs. The totals of both are compared with those of the local engine, bit for bit.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from errata.core import RowView
from errata.engine import Cluster, Local
from errata.engine.travel import narrow, pack

COLUMNS = 64
CENTRES = 64
PASSES = 5


def assign(block: Any, centres: Any) -> tuple[Any, ...]:
    """Sums and counts by the nearest centre, and the CPU seconds they took."""
    start = time.process_time()
    nearest = ((centres**2).sum(axis=1) - 2 * (block @ centres.T)).argmin(axis=1)
    one_hot = np.zeros((len(block), len(centres)), dtype=block.dtype)
    one_hot[np.arange(len(block)), nearest] = 1
    return one_hot.sum(axis=0), one_hot.T @ block, time.process_time() - start


def nothing(block: Any) -> tuple[int]:
    return (0,)


def measure(workers: int, X: Any, centres: Any) -> tuple[list[float], list[float], Any, float]:
    """Wall and CPU seconds of passes, the totals, and the seconds of a task that does nothing."""
    with Cluster(workers=workers) as engine, engine.hold(X) as rows:
        rows.total(assign, centres)  # workers start, files are opened
        walls = []
        cpus = []
        for _ in range(PASSES):
            start = time.perf_counter()
            *totals, cpu = rows.total(assign, centres)
            walls.append(time.perf_counter() - start)
            cpus.append(cpu)
        start = time.perf_counter()
        rows.total(nothing)
        return walls, cpus, totals, (time.perf_counter() - start) / len(rows.parts)


def message_bytes(value: Any) -> int:
    import ray.cloudpickle

    buffers: list[Any] = []
    head = ray.cloudpickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return len(head) + sum(buffer.raw().nbytes for buffer in buffers)


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000
    rng = np.random.default_rng(0)
    centres = rng.normal(size=(CENTRES, COLUMNS)).astype(np.float32)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "x.npy"
        X = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(n, COLUMNS))
        for start in range(0, n, 100_000):
            X[start : start + 100_000] = rng.normal(size=(min(100_000, n - start), COLUMNS))
        X.flush()
        mapped = np.load(path, mmap_mode="r", allow_pickle=False)
        print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {n:,} rows x {COLUMNS} float32")
        local = Local(threads=2).hold(mapped)
        expected = local.total(assign, centres)[:2]
        report(mapped, centres, expected)
        print(f"load at the end {os.getloadavg()[0]:.1f}")
        print_messages(mapped, centres, local.parts[0])


def report(mapped: Any, centres: Any, expected: Any) -> None:
    best = {}
    for workers in (1, 2, 2, 1):
        walls, cpus, totals, overhead = measure(workers, mapped, centres)
        same = all(np.array_equal(a, b) for a, b in zip(totals, expected, strict=True))
        rate = np.median(cpus) / len(mapped)
        best[workers] = min([*walls, best.get(workers, np.inf)])
        print(
            f"{workers} workers: pass {min(walls):.2f} s (median {np.median(walls):.2f}), "
            f"CPU {np.median(cpus):.2f} s, {rate * 1e9:.0f} CPU ns a row, an empty task {overhead * 1e3:.1f} ms, "
            f"equal to local: {same}"
        )
    print(f"two workers take {best[2] / best[1]:.2f} of the time of one (best passes)")


def print_messages(mapped: Any, centres: Any, part: slice) -> None:
    rows = part.stop - part.start
    view = RowView(mapped, np.arange(len(mapped)))
    print(f"a part has {rows:,} rows; sent of it, in bytes:")
    print(f"  from a file                     {message_bytes(pack(narrow(mapped, part))):>12,}")
    print(f"  some rows of a file             {message_bytes(pack(narrow(view, part))):>12,}")
    print(f"  from memory, once               {message_bytes(pack(narrow(mapped, part), copied=True)):>12,}")
    print(f"  function and centres, a pass    {message_bytes((assign, pack((centres,)))):>12,}")
    print(f"  result                          {message_bytes(assign(mapped[part], centres)):>12,}")


if __name__ == "__main__":
    main()
