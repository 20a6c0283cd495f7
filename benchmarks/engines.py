"""The same audits by two engines: slices, members, verdicts and times.

    python benchmarks/engines.py [--engine cuda] [--rows 1000000] [--worlds FOLDER]

One audit of ROWS x 64 in memory (a world of `out_of_core.py`), and one of every world in FOLDER, which
`errata bench spotcheck -o FOLDER` has prepared: the small exam. Beside the default search run those methods whose fits
the engines run. Exits 1 where a slice or a verdict differs; members of soft slices may differ by a row in a thousand,
where a weight is at its threshold to rounding.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

import errata
from errata.bench.spotcheck import read_world
from errata.engine import Engine, Local, open_engine
from errata.engine.cuda import Cuda
from out_of_core import write_world

METHODS = ["consensus", "domino", "gmm"]
WORLD_METHODS = [*METHODS, "planespot", "george", "infembed", "spotlight:as_published"]
# The published search, but few steps at a high rate: over thousands of its own steps it amplifies rounding, so that
# neither two engines nor two starts that differ by 1e-12 end at the same place.
OPTIONS = {
    "spotlight": {
        "slices": 3,
        "advanced.steps": 60,
        "advanced.learning_rate": 0.1,
        "advanced.initial_precision": 0.01,
    }
}
DIFFERENT_MEMBERS = 1e-3


def run(evaluation: errata.Evaluation, methods: list[str], engine: Engine) -> tuple[Any, float]:
    start = time.perf_counter()
    options = {name: value for name, value in OPTIONS.items() if any(name in method for method in methods)}
    result = errata.audit(evaluation, methods=methods, options=options, engine=engine)
    return result, time.perf_counter() - start


def compare(evaluation: errata.Evaluation, methods: list[str], engine: Engine) -> dict[str, Any]:
    """What both say of the same rows."""
    there, seconds_there = run(evaluation, methods, engine)
    here, seconds_here = run(evaluation, methods, Local())
    verdicts = [{one.id: one.verdict for one in result.slices} for result in (here, there)]
    members = {one.id: one.members for one in there.slices}
    moved = [float(np.mean(one.members != members[one.id])) for one in here.slices if one.id in members]
    return {
        "rows": len(evaluation),
        "slices": len(here.slices),
        "confirmed": len(here.confirmed),
        "same_verdicts": verdicts[0] == verdicts[1],
        "most_members_moved": max(moved, default=0.0),
        "local_s": round(seconds_here, 2),
        f"{engine.name}_s": round(seconds_there, 2),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--engine", default="cuda")
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--worlds", type=Path)
    parser.add_argument("--device", help="another device of torch's, with `--engine local`, where there is no GPU")
    parser.add_argument("--json", type=Path, help="where the figures go, as they come")
    given = parser.parse_args()
    engine = open_engine(given.engine)
    if given.device:
        engine = Cuda(device=torch.device(given.device))
    found: dict[str, dict[str, Any]] = {}

    def show(name: str, evaluation: errata.Evaluation, methods: list[str]) -> None:
        found[name] = compare(evaluation, methods, engine)
        print(name, json.dumps(found[name]), flush=True)
        if given.json:
            given.json.write_text(json.dumps(found, indent=1))

    for path in sorted(given.worlds.glob("world-*.npz")) if given.worlds else []:
        show(path.stem, read_world(path, both=True)[0], WORLD_METHODS)
    with tempfile.TemporaryDirectory() as folder:
        write_world(Path(folder) / "rows", given.rows)
        show("rows", errata.inputs.read(Path(folder) / "rows"), METHODS)
    same = all(one["same_verdicts"] and one["most_members_moved"] <= DIFFERENT_MEMBERS for one in found.values())
    print("the same slices and verdicts everywhere:", same)
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
