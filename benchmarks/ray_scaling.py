"""What two Ray workers take beside one, what is sent, and what a row costs. Prints what docs/scale.md says.

    python benchmarks/ray_scaling.py [ROWS]

One pass of k-means (distances to 256 centres, sums by cluster) over rows of 64 numbers in a file. Passes by one and by
two workers take turns, because others may use the machine, and medians are compared; the CPU time of the workers says
how much of the wall time was theirs: that of the busier of two beside that of one is what a machine without other
work would show. All totals are compared with those of the local engine, bit for bit.
"""

from __future__ import annotations

import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from errata.core import RowView
from errata.engine import Cluster, Local
from errata.engine.travel import narrow, pack

COLUMNS = 64
CENTRES = 256
PASSES = 7


def assign(block: Any, centres: Any) -> tuple[Any, ...]:
    """Sums and counts by the nearest centre, and the CPU seconds they took, by worker."""
    start = time.process_time()
    nearest = ((centres**2).sum(axis=1) - 2 * (block @ centres.T)).argmin(axis=1)
    one_hot = np.zeros((len(block), len(centres)), dtype=block.dtype)
    one_hot[np.arange(len(block)), nearest] = 1
    return one_hot.sum(axis=0), one_hot.T @ block, Counter({os.getpid(): time.process_time() - start})


def nothing(block: Any) -> tuple[int]:
    return (0,)


def report(mapped: Any, centres: Any, expected: Any) -> None:
    walls: dict[int, list[float]] = {1: [], 2: []}
    cpus: dict[int, list[float]] = {1: [], 2: []}
    same = True
    with Cluster(workers=2) as engine, engine.hold(mapped) as rows:
        both = engine.pool.slots
        rows.total(assign, centres)  # workers start, files are opened
        for _ in range(PASSES):
            for workers in (1, 2):
                engine.pool.slots = both[:workers]
                start = time.perf_counter()
                *totals, cpu = rows.total(assign, centres)
                walls[workers].append(time.perf_counter() - start)
                cpus[workers].append(max(cpu.values()))
                same &= all(np.array_equal(a, b) for a, b in zip(totals, expected, strict=True))
        start = time.perf_counter()
        rows.total(nothing)
        overhead = (time.perf_counter() - start) / len(rows.parts)
    for workers, seconds in walls.items():
        listed = " ".join(f"{value:.2f}" for value in seconds)
        print(f"{workers} workers: median {np.median(seconds):.2f} s of {listed}; ", end="")
        print(f"CPU of the busiest {np.median(cpus[workers]):.2f} s")
    for name, times in (("wall time", walls), ("CPU time of the busiest", cpus)):
        ratios = np.array(times[2]) / np.array(times[1])
        print(f"{name}: two workers take {np.median(times[2]) / np.median(times[1]):.2f} of one (medians), ", end="")
        print(f"in turns {ratios.min():.2f} to {ratios.max():.2f}")
    print(f"CPU {np.median(cpus[1]) / len(mapped) * 1e9:.0f} ns a row; equal to local: {same}")
    print(f"a task that does nothing takes {overhead * 1e3:.1f} ms")


def message_bytes(value: Any) -> int:
    import ray.cloudpickle

    buffers: list[Any] = []
    head = ray.cloudpickle.dumps(value, protocol=5, buffer_callback=buffers.append)
    return len(head) + sum(buffer.raw().nbytes for buffer in buffers)


def main() -> None:
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
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
