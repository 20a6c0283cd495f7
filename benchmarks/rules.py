"""Rules over columns beside sliceline, DivExplorer and a matrix product: the same table, each in its own process.

python benchmarks/rules.py                                 Adult: 32,561 rows, 14 columns, support 1%, depth 3
python benchmarks/rules.py --peer-python VENV/bin/python   with peers from another environment
python benchmarks/rules.py --large                         one million rows, 30 columns, planted rules: the whole method

CPU seconds are those of the work alone, without imports; memory is the peak of the whole process, and what the work
added to it. `cells` are all conjunctions of up to three bins with enough rows, with the rows and the errors of each, as
the peers compute them. `search` is what the method does beyond: thresholds, ranges, groups, prices, refinement.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

SUPPORT = 0.01
DEPTH = 3


# --- the table ------------------------------------------------------------------------------------------------


def write_adult(path: Path) -> None:
    """Bins of the 14 columns, and the errors of gradient boosting that was trained on the other rows."""
    import pandas as pd
    from sklearn.ensemble import HistGradientBoostingClassifier

    from errata.core.rules.literals import coarsen, encode_all

    folder = Path(os.environ.get("ERRATA_DATA", "shared/data"))
    frame = pd.read_parquet(folder / "adult.parquet")
    labels = frame["income"].str.contains(">50K").to_numpy()
    columns = frame.drop(columns=["income", "split"])
    codes = columns.apply(lambda column: pd.factorize(column, sort=True)[0])
    inside = (frame["split"] == "train").to_numpy()
    model = HistGradientBoostingClassifier(random_state=0).fit(codes[~inside], labels[~inside])
    bad = model.predict(codes[inside]) != labels[inside]
    metadata = {}
    for name in columns:
        column = columns[name][inside]
        metadata[name] = column.to_numpy() if pd.api.types.is_numeric_dtype(column) else column.to_numpy(str)
    coded = encode_all(metadata)
    tables = [coarsen(column, 16) for column in coded]
    bins = np.stack([table[column.codes] for table, column in zip(tables, coded, strict=True)], axis=1)
    np.savez(path, bins=bins.astype(np.uint8), sizes=[int(table[-1]) + 1 for table in tables], bad=bad)
    np.savez(path.with_suffix(".columns.npz"), **{f"c{i}": array for i, array in enumerate(metadata.values())})


# --- one contender a process ----------------------------------------------------------------------------------


def cells(data: Any) -> dict[tuple[int, ...], tuple[int, int]]:
    """Ours: joint histograms."""
    from errata.core.rules.counts import frequent_cells

    bins = data["bins"]
    bad = data["bad"]
    least = int(np.ceil(SUPPORT * len(bins)))
    found = list(frequent_cells(list(bins.T), data["sizes"].tolist(), bad, DEPTH, least))
    return _listed(found)


def _listed(found: Any) -> Any:
    """The answer, as a function that writes it item by item: only the search is timed."""

    def write() -> dict[tuple[int, ...], tuple[int, int]]:
        items = {}
        for part in found:
            for bins, n, bad in zip(part.bins.tolist(), part.n.tolist(), part.bad.tolist(), strict=True):
                key = tuple(sorted(100 * column + value for column, value in zip(part.columns, bins, strict=True)))
                items[key] = (n, bad)
        return items

    return write


def search(data: Any) -> Any:
    """Ours: the whole search for rules, from the raw columns."""
    from errata.core.rules import to_text
    from errata.core.rules.literals import encode_all
    from errata.core.rules.search import find_rules

    with np.load(str(data["path"]).replace(".npz", ".columns.npz"), allow_pickle=False) as arrays:
        columns = encode_all({name: arrays[name] for name in arrays.files})
    bad = data["bad"]
    rules = find_rules(columns, bad, float(bad.mean()), depth=DEPTH, least=int(np.ceil(SUPPORT * len(bad))))
    first = rules[0]
    return f"{len(rules)} rules; the first: {to_text(first.conditions)}, {first.bad / first.n:.2f} of {first.n:,}"


def _frequent(values: Any, least: int) -> list[int]:
    return [int(value) for value in np.flatnonzero(np.bincount(values) >= least)]


def product(data: Any) -> Any:
    """The matrix product: for each value the rows that have it, and the co-occurrences among them."""
    bins = data["bins"]
    bad = data["bad"]
    least = int(np.ceil(SUPPORT * len(bins)))
    keys = [100 * j + v for j in range(bins.shape[1]) for v in _frequent(bins[:, j], least)]
    X = np.stack([bins[:, key // 100] == key % 100 for key in keys], axis=1).astype(np.float32)
    found = []
    for a in range(len(keys)):
        rows = np.flatnonzero(X[:, a])
        n = X[rows].T @ X[rows]
        wrong = X[rows[bad[rows]]]
        found.append((n, wrong.T @ wrong))

    def write() -> dict[tuple[int, ...], tuple[int, int]]:
        items = {}
        for a, (n, wrong) in enumerate(found):
            for b, c in np.argwhere(n >= least).tolist():
                if a <= b <= c and (a == b or b < c):
                    items[tuple(sorted({keys[a], keys[b], keys[c]}))] = (int(n[b, c]), int(wrong[b, c]))
        return {key: value for key, value in items.items() if len({k // 100 for k in key}) == len(key)}

    return write


def sliceline(data: Any) -> Any:
    """Exact enumeration with pruning, the twenty best."""
    from sliceline.slicefinder import Slicefinder

    least = int(np.ceil(SUPPORT * len(data["bins"])))
    finder = Slicefinder(alpha=0.95, k=20, max_l=DEPTH, min_sup=least, verbose=False)
    finder.fit(data["bins"].astype(np.int64) + 1, data["bad"].astype(np.float64))
    return f"{len(finder.top_slices_)} slices"


def divexplorer(data: Any) -> Any:
    """Frequent patterns, of any length: it has no limit to set."""
    import pandas as pd
    from divexplorer import DivergenceExplorer

    frame = pd.DataFrame(data["bins"], columns=[f"c{j}" for j in range(data["bins"].shape[1])])
    frame["error"] = data["bad"].astype(int)
    explorer = DivergenceExplorer(frame)
    table = explorer.get_pattern_divergence(min_support=SUPPORT, boolean_outcomes=["error"])
    return f"{len(table):,} patterns"


CONTENDERS: dict[str, Callable[[Any], Any]] = {
    "cells": cells,
    "search": search,
    "product": product,
    "sliceline": sliceline,
    "divexplorer": divexplorer,
}
PEERS = ("product", "sliceline", "divexplorer")
IMPORTS = {  # before the clock starts
    "cells": ("errata.core.rules.counts",),
    "search": ("errata.core.rules.search",),
    "sliceline": ("sliceline.slicefinder",),
    "divexplorer": ("pandas", "divexplorer"),
}


def peak_gigabytes() -> float:
    """Of this process: what `getrusage` says includes the parent that started it."""
    status = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(status.partition("VmHWM:")[2].split()[0]) / 2**20


def run_one(name: str, path: Path) -> dict[str, Any]:
    """CPU seconds, peak memory and the answer of one contender."""
    with np.load(path, allow_pickle=False) as arrays:
        data: dict[str, Any] = {key: arrays[key] for key in arrays.files}
    data["path"] = path
    for module in IMPORTS.get(name, ()):
        importlib.import_module(module)
    memory = peak_gigabytes()
    before = resource.getrusage(resource.RUSAGE_SELF)
    start = time.perf_counter()
    answer = CONTENDERS[name](data)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_SELF)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    facts: dict[str, Any] = {"cpu": cpu, "wall": wall, "gigabytes": peak_gigabytes()}
    facts["added"] = facts["gigabytes"] - memory
    if callable(answer):
        items = answer()
        facts["says"] = f"{len(items):,} itemsets"
        facts["digest"] = hashlib.sha256(json.dumps(sorted(items.items())).encode()).hexdigest()[:16]
    else:
        facts["says"] = answer
    return facts


def in_own_process(name: str, path: Path, python: str) -> dict[str, Any] | None:
    """The facts of one contender; None where it is not installed."""
    command = [python, __file__, "--one", name, "--table", str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        missing = "ModuleNotFoundError" in done.stderr
        print(f"{name:12} {'not installed' if missing else done.stderr.strip().splitlines()[-1]}; skipped", flush=True)
        return None
    facts: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return facts


def compare(peer_python: str) -> None:
    """Print all contenders on Adult."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "adult.npz"
        write_adult(path)
        results = {}
        for name in CONTENDERS:
            python = peer_python if name in ("sliceline", "divexplorer") else sys.executable
            facts = in_own_process(name, path, python)
            if facts is not None:
                results[name] = facts
                memory = f"{facts['gigabytes']:6.2f} GB ({facts['added']:.2f} added)"
                print(
                    f"{name:12} {facts['cpu']:7.2f} CPU s {facts['wall']:7.2f} s {memory}  {facts['says']}", flush=True
                )
        same = results["cells"]["digest"] == results["product"]["digest"]
        print(f"cells and product agree on every itemset, its rows and its errors: {same}")
        for name in PEERS:
            if name in results:
                for ours in ("cells", "search"):
                    ratio = results[name]["cpu"] / results[ours]["cpu"]
                    print(f"{name} takes {ratio:.1f} times the CPU time of {ours}")


# --- a large table --------------------------------------------------------------------------------------------

ROWS = 1_000_000
BASE = 0.08


def large_table(n: int, seed: int) -> tuple[dict[str, Any], Any, list[str], list[Any]]:
    """Thirty columns, mixed and with missing values; which rows are wrong; planted rules in words and as rows."""
    rng = np.random.default_rng(seed)
    columns: dict[str, Any] = {}
    for j in range(12):
        values = rng.gamma(2, 20, n).round(1) if j % 2 else rng.normal(0, 1, n)
        columns[f"number{j}"] = np.where(rng.random(n) < 0.05 * (j % 3), np.nan, values)
    for j in range(6):
        columns[f"count{j}"] = rng.poisson(2 + 2 * j, n)
    for j in range(12):
        names = np.array([f"value {i}" for i in range(3 + 5 * j)])
        weights = 1 / np.arange(1, len(names) + 1) ** 0.7
        column = rng.choice(names, n, p=weights / weights.sum())
        columns[f"text{j}"] = np.where(rng.random(n) < 0.04 * (j % 2), "", column)
    c = columns
    planted = {
        "number1 >= 80 and text2 = value 3": (c["number1"] >= 80) & (c["text2"] == "value 3"),
        "count2 < 4 and text1 = value 1 and number0 < 0": (c["count2"] < 4)
        & (c["text1"] == "value 1")
        & (c["number0"] < 0),
        "number2 is missing and text4 in (value 1, value 2)": np.isnan(c["number2"])
        & np.isin(c["text4"], ["value 1", "value 2"]),
        "text3 is missing and count0 >= 4": (c["text3"] == "") & (c["count0"] >= 4),
        "text11 = value 20": c["text11"] == "value 20",
    }
    rates = np.full(n, BASE)
    for rows in planted.values():
        rates[rows] = 0.35
    return columns, rng.random(n) < rates, list(planted), list(planted.values())


def run_large(n: int, seed: int) -> None:
    """The whole method on a large table: time, memory, and how well each planted rule is found."""
    from errata.core import Evaluation
    from errata.core.membership import jaccard
    from errata.core.rules import read_rule, to_text
    from errata.slicers import make

    columns, wrong, names, planted = large_table(n, seed)
    labels = np.random.default_rng(seed + 1).integers(0, 2, n)
    rows = Evaluation(labels=labels, predictions=labels ^ wrong, metadata=columns)
    before = resource.getrusage(resource.RUSAGE_SELF)
    start = time.perf_counter()
    slicer = make("rules").fit(rows)
    wall = time.perf_counter() - start
    after = resource.getrusage(resource.RUSAGE_SELF)
    members = slicer.membership(rows) >= 0.5
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print(f"{n:,} rows, {len(columns)} columns: {wall:.1f} s, {cpu:.1f} CPU s, {peak_gigabytes():.2f} GB at most")
    for name, truth in zip(names, planted, strict=True):
        overlaps = [jaccard(truth, members[:, j]) for j in range(members.shape[1])]
        best = int(np.argmax(overlaps))
        rule = slicer.rules_[best]
        print(f"{name} ({truth.mean():.2%}): {overlaps[best]:.2f} by {to_text(read_rule(rule))} {rule['scope'] or ''}")
    for rule in slicer.rules_:
        print("   ", to_text(read_rule(rule))[:150], rule["scope"] or "")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--one", choices=sorted(CONTENDERS), help="run one contender, here")
    parser.add_argument("--table", type=Path, help="of --one")
    parser.add_argument(
        "--peer-python", default=sys.executable, help="the interpreter that has sliceline and divexplorer"
    )
    parser.add_argument("--large", action="store_true", help="a million rows of thirty columns instead")
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    if arguments.one:
        print(json.dumps(run_one(arguments.one, arguments.table)))
    elif arguments.large:
        run_large(arguments.rows, arguments.seed)
    else:
        compare(arguments.peer_python)


if __name__ == "__main__":
    main()
