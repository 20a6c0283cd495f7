"""Worlds of benchmarks/directions_many.py cut as the paper cuts them: in each class what errs most before any cut.

    python benchmarks/directions_chosen.py run -o CHOSEN.jsonl [--studies two twenty] [--seeds 10 11] [--minutes 60]
    python benchmarks/directions_chosen.py report CHOSEN.jsonl

A network is trained on all training rows; the subclass of each class on which it errs most, by validation rows, is the
one that is cut; then all that `directions_many.py` measures is measured of a network trained without it (Jain et al.
2023, section 3.2). Test rows have no say in what is cut, so nothing that is told of them is there by choice. One world
a seed. Wants what benchmarks/bridge.py wants.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from directions_many import STUDIES, World, measured, pictures
from directions_report import report


def worst(whole: World) -> tuple[int, ...]:
    """One subclass of each class. whole: nothing is cut."""
    validation = whole.evaluation("validation", "backbone")
    fine = whole.fine[validation.ids]
    rates = np.array([validation.errors[fine == c].mean() for c in range(len(whole.study.names))])
    classes = range(len(whole.study.classes))
    return tuple(int(max(np.flatnonzero(whole.study.class_of == k), key=lambda c: rates[c])) for k in classes)


def chosen(study: str, seed: int, folder: Path) -> dict[str, Any]:
    began = time.perf_counter()
    whole = World(pictures(str(folder)), STUDIES[study], seed, ())
    world = World(whole.pictures, whole.study, seed, worst(whole))
    facts = measured(world)
    return {"study": study, "turn": 0, **facts, "seconds": round(time.perf_counter() - began, 1)}


def run(asked: argparse.Namespace) -> None:
    import torch

    torch.set_num_threads(1)
    until = time.monotonic() + 60 * asked.minutes
    for study in asked.studies:
        for seed in asked.seeds:
            if time.monotonic() > until:
                print("stopped: the minutes are over", flush=True)
                return
            facts = chosen(study, seed, asked.cache)
            with asked.out.open("a") as file:
                file.write(json.dumps(facts) + "\n")
            print(f"{study}, seed {seed}: {', '.join(facts['cut'])}; {facts['seconds']} s", flush=True)


def what_was_cut(worlds: Sequence[dict[str, Any]]) -> None:
    for study in dict.fromkeys(world["study"] for world in worlds):
        counts = Counter(name for world in worlds if world["study"] == study for name in world["cut"])
        print(f"{study}: cut in so many worlds: {', '.join(f'{name} {count}' for name, count in counts.most_common())}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["run", "report"])
    parser.add_argument("worlds", type=Path, nargs="*", help="files to report")
    parser.add_argument("-o", "--out", type=Path, default=Path("directions-chosen.jsonl"))
    parser.add_argument("--studies", nargs="+", choices=list(STUDIES), default=["two", "twenty"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[10, 11])
    parser.add_argument("--minutes", type=float, default=600)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "errata-studies")
    asked = parser.parse_args()
    if asked.task == "run":
        run(asked)
        return
    worlds = [json.loads(line) for path in asked.worlds for line in path.read_text().splitlines()]
    what_was_cut(worlds)
    report(worlds)


if __name__ == "__main__":
    main()
