"""Worlds of benchmarks/directions_many.py cut as the paper cuts them: in each class what errs most before any cut.

    python benchmarks/directions_chosen.py run -o CHOSEN.jsonl [--studies two twenty] [--seeds 10 11] [--minutes 60]
    python benchmarks/directions_chosen.py report CHOSEN.jsonl
    python benchmarks/directions_chosen.py coarse --seeds 10 11   must a bridge tell the names apart to caption?

A network is trained on all training rows; the subclass of each class on which it errs most, by validation rows, is the
one that is cut; then all that `directions_many.py` measures is measured of a network trained without it (Jain et al.
2023, section 3.2). Test rows have no say in what is cut, so nothing that is told of them is there by choice. One world
a seed. `coarse`, of *two*: bridges fitted to fewer and fewer rows of a subclass, and one of ImageNet's names, each with
how often it gives an image the right one of the ten names, and how often the cut subclass's caption is the hardest.
Wants what benchmarks/bridge.py wants.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from bridge import said, table
from directions_many import STUDIES, World, caption, captioned, measured, pictures, place, zero_shot
from directions_near import ROWS, Coarse, fields_of, like
from directions_report import report
from errata.inputs import Bridge
from trained import over_runs

FEWER = (5, 10, 25, 50, 200)  # pool rows of a subclass that a bridge is fitted to
NAMES = "ImageNet's names"


@dataclass(frozen=True, eq=False)
class Fewer(World):
    """The same rows and network; `named` is fitted to some of the pool rows of each subclass."""

    fitted: int = FEWER[-1]

    @cached_property
    def named(self) -> Bridge:
        pool = self.roles["pool"]
        fine = self.fine[pool]
        rows = np.concatenate([pool[fine == c][: self.fitted] for c in range(len(self.study.names))])
        texts = np.stack([self.pictures.sentences[caption(name)] for name in self.study.names])
        bridge = Bridge.fit(self.pictures.features[rows], texts, self.fine[rows])
        return bridge.recentred(self.pictures.features[self.roles["validation"]])


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


# --- how well must a bridge tell names apart? ----------------------------------------------------------------


def coarse(asked: argparse.Namespace) -> None:
    """Of bridges that know the names less and less: top-1, and the place of the cut subclass's caption."""
    import torch

    torch.set_num_threads(1)
    found: dict[str, list[tuple[float, list[bool], list[int]]]] = {}
    for seed in asked.seeds:
        whole = World(pictures(str(asked.cache)), STUDIES["two"], seed, ())
        world = World(whole.pictures, whole.study, seed, worst(whole))
        bridges: dict[str, World] = {str(count): Fewer(**fields_of(world), fitted=count) for count in FEWER}
        bridges[NAMES] = Coarse(**fields_of(world))
        for name, other in bridges.items():
            like(world, other, (*ROWS, "first"))
            found.setdefault(name, []).append((zero_shot(other), errs_most(world), places(other)))
        print(f"seed {seed}", flush=True)
    rows = []
    for name, worlds in found.items():
        worst_too = np.concatenate([most for _, most, _ in worlds])
        order = np.concatenate([order for _, _, order in worlds])
        top = over_runs([accuracy for accuracy, _, _ in worlds])
        counts = [said(int((order[which] <= most).sum()), which.sum()) for which, most in cases(worst_too)]
        rows.append([name, top, *counts])
    told = [f"{kind}, {place_}" for kind in ("all cuts", "it errs most") for place_ in ("hardest", "among two")]
    table(["rows of a subclass", "right of ten names", *told], rows)


def cases(worst_too: Sequence[bool]) -> list[tuple[np.ndarray, int]]:
    """Which directions are counted, and up to which place."""
    errs = np.asarray(worst_too)
    return [(which, most) for which in (np.ones_like(errs), errs) for most in (0, 1)]


def errs_most(world: World) -> list[bool]:
    """Of each class: does the subclass that was cut err most, among test rows?"""
    test = world.evaluation("test", "backbone")
    fine = world.fine[test.ids]
    rates = np.array([test.errors[fine == c].mean() for c in range(len(world.study.names))])
    return [bool(rates[cut] == rates[world.study.class_of == k].max()) for k, cut in enumerate(world.cut)]


def places(world: World) -> list[int]:
    """Of each class the place of the cut subclass's caption, 0 where it is the hardest; last where it has none."""
    order = captioned(world, "correlation")
    found = [place(world, order.get(number, []), cut) for number, cut in enumerate(world.cut)]
    return [len(world.study.names) if number is None else number for number in found]


def what_was_cut(worlds: Sequence[dict[str, Any]]) -> None:
    for study in dict.fromkeys(world["study"] for world in worlds):
        counts = Counter(name for world in worlds if world["study"] == study for name in world["cut"])
        print(f"{study}: cut in so many worlds: {', '.join(f'{name} {count}' for name, count in counts.most_common())}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["run", "report", "coarse"])
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
    if asked.task == "coarse":
        coarse(asked)
        return
    worlds = [json.loads(line) for path in asked.worlds for line in path.read_text().splitlines()]
    what_was_cut(worlds)
    report(worlds)


if __name__ == "__main__":
    main()
