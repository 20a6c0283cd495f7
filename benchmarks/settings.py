"""Slice settings: rare slices, correlations and noisy labels in CIFAR-10, UTKFace or painted scenes.

python benchmarks/settings.py cifar10 --model synthetic --folder runs/cifar10
python benchmarks/settings.py utkface --model trained --folder runs/utkface

Goes on from the files in the folder where it was stopped, and prints one markdown table: precision at 10 of the best
of the first five hypotheses for each true slice. The data folder is ERRATA_DATA, or ../shared/data beside the clone.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from errata.bench import settings, tables
from errata.bench.metrics import mean_and_error
from errata.core import ErrataError
from errata.slicers import registry

CLASSES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
ATTRIBUTES = {  # classes lie within the target: they can be rare or noisy, but not correlated with it
    "cifar10": {"rare": CLASSES, "noisy": CLASSES, "correlation": ("bright", "warm", "contrasty")},
}
# The stronger half of the published strengths, and for rare slices one share above them: a tenth of the published rows
# leaves too few members of a slice of 1% to find, or even to say that the model is worse there.
STRENGTHS = {"rare": (0.05, 0.1), "correlation": (0.6, 0.8), "noisy": (0.3, 0.4)}


def every_method() -> list[str]:
    """Both presets of every method where they differ."""
    return [
        name if preset == "recommended" else f"{name}:{preset}"
        for name, cls in sorted(registry().items())
        for preset, options in cls.presets.items()
        if preset == "recommended" or options
    ]


def table_of(given: argparse.Namespace) -> tables.Table:
    cache = given.cache or given.folder / "cache"
    if given.table == "cifar10":
        return tables.cifar10(rows=given.rows, cache=cache, positive=given.positive)
    if given.table == "utkface":
        return tables.utkface(rows=given.rows, cache=cache)
    return tables.from_scenes(given.rows or 3 * given.n)


def markdown(rows: list[dict[str, Any]], kinds: Sequence[str]) -> str:
    """Methods by kinds: precision at 10 with its standard error, average precision, difference to `confusion`."""
    by = {(f"{row['method']}:{row['preset']}", row["kind"]): row for row in rows}
    methods = list(dict.fromkeys(name for name, _ in by))
    counts = {kind: by[methods[0], kind] for kind in kinds}
    heads = [f"{kind}: P@10 | AP" for kind in kinds]
    lines = [f"| method | {' | '.join(heads)} | minus `confusion`, all settings | seconds | representation |"]
    lines.append("|---" * (2 * len(kinds) + 4) + "|")
    kept = " | ".join(f"{one['settings']} kept, {one['dropped']} dropped | " for one in counts.values())
    lines.append(f"| *settings* | {kept} | | | |")
    lines.append("| *chance* | " + " | ".join(f"{_number(one['base'])} | " for one in counts.values()) + " | | | |")
    for method in methods:
        ours = [by[method, kind] for kind in kinds]
        cells = [f"{_number(one['p10'])} ± {_number(one['p10_se'])} | {_number(one['ap'])}" for one in ours]
        seconds = np.mean([one["seconds"] for one in ours if one["seconds"] is not None])
        beside = _beside(ours, [by.get(("confusion:recommended", kind)) for kind in kinds])
        lines.append(f"| {method} | {' | '.join(cells)} | {beside} | {seconds:.2f} | {ours[0]['representation']} |")
    return "\n".join(lines)


def _beside(ours: list[dict[str, Any]], theirs: list[dict[str, Any] | None]) -> str:
    mine = [value for one, other in zip(ours, theirs, strict=True) if other for value in one["each"]]
    known = [value for other in theirs if other for value in other["each"]]
    mean, error = mean_and_error([a - b for a, b in zip(mine, known, strict=True)])
    return "" if mean is None else f"{mean:+.2f} ± {_number(error)}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table", choices=("cifar10", "utkface", "scenes"))
    parser.add_argument("--model", choices=("synthetic", "trained"), default="synthetic")
    parser.add_argument("--folder", type=Path, required=True, help="files to go on from")
    parser.add_argument("--cache", type=Path, help="decoded pictures and representations; by default in the folder")
    parser.add_argument("--positive", choices=("animal", "vehicle"), default="animal", help="of cifar10")
    parser.add_argument("--kinds", nargs="+", default=list(STRENGTHS), choices=list(STRENGTHS))
    parser.add_argument("--methods", nargs="+", default=every_method())
    parser.add_argument("--n", type=int, default=5000, help="rows of a setting")
    parser.add_argument(
        "--rows", type=int, default=25_000, help="of the data set; 40%% of them teach the representation"
    )
    parser.add_argument("--settings", type=int, default=4, help="of each kind to keep")
    parser.add_argument("--tries", type=int, default=20, help="models of each kind at most; sound ones are dropped")
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--foreign", action="store_true", help="read trained models by the table's representation")
    return parser.parse_args()


def main() -> int:
    given = arguments()
    try:
        table = table_of(given)
        train = settings.train_network(table.images, epochs=given.epochs, lr=2e-3) if given.model == "trained" else None
        plan = settings.Plan(
            n=given.n,
            settings=given.settings,
            tries=given.tries,
            seed=given.seed,
            own=not given.foreign,
            strengths=STRENGTHS,
            attributes=ATTRIBUTES.get(given.table, {}),
        )
        began = time.perf_counter()
        rows = settings.run(
            table, given.kinds, given.methods, given.folder, plan=plan, train=train,
            progress=lambda what: print(f"{time.perf_counter() - began:6.0f} s  {what}", file=sys.stderr, flush=True),
        )  # fmt: skip
    except ErrataError as error:
        print(error, file=sys.stderr)
        return 2
    print(markdown(rows, given.kinds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
