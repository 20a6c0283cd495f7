"""Default audits from disk: time and memory over the number of rows.

    python benchmarks/out_of_core.py FOLDER [--rows 1000000 20000000] [--engine local]

Writes a world of that many rows and 64 columns to FOLDER as arrays (280 bytes a row), unless it is there, and audits it
in a process of its own, as `errata audit FOLDER --reference --no-map` would. Memory is what the process holds beyond
files (RssAnon), looked at fifty times a second: pages of memory-mapped files belong to the page cache.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

COLUMNS = 64
CLUSTERS = 40
CHUNK = 500_000


def write_world(folder: Path, n: int) -> None:
    """Forty clusters; the model fails in one of them, and in half of another."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(5)
    centres = 1.2 * rng.normal(size=(CLUSTERS, COLUMNS)).astype(np.float32)
    kinds = {"embedding": (np.float32, (n, COLUMNS)), "labels": (np.int16, (n,)), "probs": (np.float32, (n, 2))}
    files = {
        name: np.lib.format.open_memmap(folder / f"{name}.npy", mode="w+", dtype=kind, shape=shape)
        for name, (kind, shape) in kinds.items()
    }
    for start in range(0, n, CHUNK):
        rows = slice(start, min(start + CHUNK, n))
        m = rows.stop - rows.start
        cluster = rng.integers(0, CLUSTERS, m)
        x = centres[cluster] + rng.normal(size=(m, COLUMNS)).astype(np.float32)
        half = (cluster == 7) & (x[:, 0] > centres[7, 0])
        wrong = rng.random(m) < np.where(cluster == 3, 0.45, np.where(half, 0.35, 0.08))
        label = rng.integers(0, 2, m)
        sure = 0.55 + 0.44 * rng.random(m)
        positive = np.where(label ^ wrong, sure, 1 - sure)
        files["embedding"][rows] = x
        files["labels"][rows] = label
        files["probs"][rows] = np.stack([1 - positive, positive], axis=1)


class Watch:
    """The most memory beyond files that this process held."""

    def __init__(self) -> None:
        self.most = 0
        threading.Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        while True:
            lines = Path("/proc/self/status").read_text().splitlines()
            held = next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))
            self.most = max(self.most, held)
            time.sleep(0.02)


def audit_one(folder: Path, engine: str) -> None:
    """Audit, save, and print what it took."""
    watch = Watch()
    start = time.perf_counter()
    import errata

    audit = errata.audit(errata.inputs.read(folder), engine=engine)
    searched = time.perf_counter() - start
    with tempfile.TemporaryDirectory() as out:
        from errata import report, store

        store.save(audit, Path(out) / "audit", report=report.to_html(audit), reference={"path": str(folder)})
        whole = time.perf_counter() - start
    slices = [[one.verdict, one.confirm and one.confirm.n, one.confirm and one.confirm.errors] for one in audit.slices]
    facts = {"audit_s": searched, "whole_s": whole, "memory_gb": watch.most / 1e6, "slices": slices}
    print(json.dumps(facts), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000, 20_000_000])
    parser.add_argument("--engine", default="local")
    parser.add_argument("--one", action="store_true", help="audit FOLDER itself, in this process")
    given = parser.parse_args()
    if given.one:
        audit_one(given.folder, given.engine)
        return
    first: tuple[int, float] | None = None
    print(
        f"{'rows':>12} {'audit s':>8} {'saved s':>12} {'memory GB':>10} {'of linear':>10}  slices (verdict, n, errors)"
    )
    for n in given.rows:
        world = given.folder / f"rows-{n}"
        if not world.exists():
            write_world(world, n)
        words = [sys.executable, __file__, str(world), "--one", "--engine", given.engine]
        facts = json.loads(subprocess.run(words, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
        first = first or (n, facts["whole_s"])
        ratio = facts["whole_s"] / (first[1] * n / first[0])
        print(
            f"{n:12,} {facts['audit_s']:8.1f} {facts['whole_s']:12.1f} {facts['memory_gb']:10.2f} {ratio:10.2f}  "
            f"{facts['slices']}",
            flush=True,
        )


if __name__ == "__main__":
    main()
