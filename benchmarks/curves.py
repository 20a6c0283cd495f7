"""CPU time and memory of every method over n: a table, and docs/images/curves.svg.

    python benchmarks/curves.py                    all methods, n doubled from 1,000 as far as the time allows
    python benchmarks/curves.py gmm spotlight      some of them
    python benchmarks/curves.py --seconds 60 --most 1000000
    python benchmarks/curves.py --one george --options '{"advanced": {"silhouette_rows": 100000}}'   lines of one method

Each method is fitted in a process of its own, on one thread, to rows of 64 columns with planted groups (and metadata
columns, for `rules`), smallest n first; it stops before the n that would take it beyond its seconds. Time is CPU
seconds of `fit` and `membership`. Memory is the most that the process held by the end of an n, less what it held
before the first: rows, representation and result included. The rows themselves are drawn as a line.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
IMAGE = HERE.parent / "docs" / "images" / "curves.svg"
D = 64
FIRST = 1000
MOST = 64_000
SECONDS = 6.0  # CPU seconds of a method, all n together
SEED = 0


def rows_of(n: int) -> Any:
    """An Evaluation of n rows: ten classes, two planted groups of 5%, three columns."""
    import numpy as np
    from scipy.special import softmax

    from errata.bench.loss_problems import planted
    from errata.core import Evaluation, Source

    X, rate, cluster = planted(n, D, 40, {0.05: 0.5, 0.02: 0.6}, seed=SEED)
    rng = np.random.default_rng(SEED)
    probs = softmax(X @ rng.normal(size=(D, 10)) / D**0.5, axis=1)  # of a linear layer: influence reads its input
    predictions = probs.argmax(axis=1)
    labels = np.where(rng.random(n) < rate, (predictions + 1) % 10, predictions)
    metadata = {"site": np.array(list("abcdefgh"))[cluster % 8], "age": rng.gamma(2, 20, n), "count": rng.poisson(3, n)}
    foreign = {"x": Source(from_model=False)}
    representations = {"x": X.astype(np.float32)}
    return Evaluation(labels=labels, probs=probs, representations=representations, sources=foreign, metadata=metadata)


def peak_megabytes() -> float:
    """The most memory that this process has held: what `getrusage` says includes the parent that started it."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) / 2**10


def measure(method: str, seconds: float, most: int, options: dict[str, Any] | None = None) -> list[dict[str, float]]:
    """Lines of n, CPU seconds and megabytes, in this process."""
    from errata.inputs import add_influence
    from errata.slicers import make

    def once(n: int) -> float:
        rows = rows_of(n)
        if method.startswith("infembed"):
            rows = add_influence(rows)[0]
        start = time.process_time()
        make(method, seed=SEED, options=options).fit(rows).membership(rows)
        return time.process_time() - start

    once(200)  # what is imported on first use is no part of a curve
    before = peak_megabytes()
    lines: list[dict[str, float]] = []
    n = FIRST
    while n <= most:
        took = once(n)
        lines.append({"n": n, "seconds": took, "megabytes": peak_megabytes() - before})
        if sum(line["seconds"] for line in lines) + 2.5 * took > seconds:
            break
        n *= 2
    return lines


def in_own_process(method: str, seconds: float, most: int) -> list[dict[str, float]]:
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    command = [sys.executable, __file__, "--one", method, "--seconds", str(seconds), "--most", str(most)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **one}, check=False)
    if done.returncode:
        print(f"{method}: {done.stderr.strip().splitlines()[-1]}", file=sys.stderr, flush=True)
        return []
    lines: list[dict[str, float]] = json.loads(done.stdout.splitlines()[-1])
    return lines


def slope(lines: list[dict[str, float]], key: str) -> float:
    """How fast it grows at the end: 1 is linear. Of the last two doublings."""
    import numpy as np

    first, last = lines[max(0, len(lines) - 3)], lines[-1]
    return float(np.log(last[key] / first[key]) / np.log(last["n"] / first["n"]))


def table(curves: dict[str, list[dict[str, float]]]) -> str:
    """One line a method: the largest n, and how time grows there."""
    rows = ["| method | largest n | CPU s | MB beyond start | microseconds a row | growth of time |", "|---" * 6 + "|"]
    for method, lines in curves.items():
        last = lines[-1]
        growth = f"n^{slope(lines, 'seconds'):.2f}" if len(lines) > 2 else ""
        each = 1e6 * last["seconds"] / last["n"]
        cells = [
            f"`{method}`",
            f"{last['n']:,.0f}",
            f"{last['seconds']:.2f}",
            f"{last['megabytes']:.0f}",
            f"{each:.0f}",
        ]
        rows.append("| " + " | ".join([*cells, growth]) + " |")
    return "\n".join(rows)


def draw(curves: dict[str, list[dict[str, float]]], path: Path) -> None:
    """Time and memory over n, both by powers of ten, one line a method with its name at the end."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "errata"  # the same figures give the same file
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11, 5.2), layout="constrained")
    styles = ["-", "--", ":"]
    for axis, key, title in zip(axes, ("seconds", "megabytes"), ("CPU seconds", "MB beyond the start"), strict=True):
        for i, (method, lines) in enumerate(curves.items()):
            n = [line["n"] for line in lines]
            values = [max(line[key], 1e-3 if key == "seconds" else 0.1) for line in lines]
            axis.plot(n, values, styles[i // 10], color=f"C{i % 10}", marker="o", markersize=3, label=method)
        axis.set(xscale="log", yscale="log", xlabel="n, rows of 64 columns", title=title)
        axis.grid(alpha=0.3)
    ends = sorted({line["n"] for lines in curves.values() for line in lines})
    axes[1].plot(ends, [n * D * 4 / 2**20 for n in ends], color="black", linewidth=1, label="the rows themselves")
    figure.legend(*axes[1].get_legend_handles_labels(), loc="outside right center", frameon=False)
    figure.savefig(path, metadata={"Date": None})


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("methods", nargs="*", metavar="METHOD", help="default: all")
    parser.add_argument("--one", help="measure one method, here")
    parser.add_argument("--options", type=json.loads, default={}, help="of that method")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="CPU seconds of a method, all n together")
    parser.add_argument("--most", type=int, default=MOST, help="the largest n")
    parser.add_argument("--image", type=Path, default=IMAGE)
    given = parser.parse_args()
    if given.options and not given.one:
        parser.error("--options are those of one method; name it with --one")
    if given.one:
        print(json.dumps(measure(given.one, given.seconds, given.most, given.options)))
        return 0
    from errata.slicers import SLICERS

    curves = {}
    for method in given.methods or SLICERS:
        lines = in_own_process(method, given.seconds, given.most)
        if lines:
            curves[method] = lines
        print(f"{method}: {len(lines)} sizes", file=sys.stderr, flush=True)
    print(f"{os.cpu_count()} cores, one thread, load {os.getloadavg()[0]:.1f}; {D} columns; seed {SEED}\n")
    print(table(curves))
    draw(curves, given.image)
    return 0


if __name__ == "__main__":
    sys.exit(main())
