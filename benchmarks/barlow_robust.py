"""All studies of robust features on one GPU, together: networks, planted causes, SpotCheck-like worlds, tables.

    python benchmarks/barlow_robust.py OUT [--minutes 9] [--at-once 6]        about nine minutes on one H200
    python benchmarks/barlow_robust.py OUT --tables                           the tables alone, from what is there

What matters most is started first; what would not end in time is left out, and said. OUT/results.json has every
number, OUT/*.npz the features and weights of seed 0. Tables: the paper's table 1 and ALER - BER (section 7), for a
standard and a robust network by the robust one's features; trees are grown on half of the held-out rows and counted
on both halves.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import softmax

from barlow_factors import DEPTHS, GROUPS, numbers, observations, table
from errata import Evaluation, Source, audit
from errata.core.leaves import Leaves
from errata.slicers import make
from errata.slicers.barlow.slicer import tree_statistics
from errata.slicers.barlow.tree import leaf_paths

HERE = Path(__file__).parent
KEPT = ("cifar10-0.5-0", "cifar10-0-0", "utkface-1-0", "utkface-0-0")  # features that are kept
WEIGHTS = ("cifar10-0.5-0", "utkface-1-0")
WORLDS = 4  # a process
CIFAR = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
SPANS = ("0-3", "4-12", "13-20", "21-27", "28-35", "36-45", "46-59", "60-")


@dataclass(eq=False)
class Task:
    """One process; `kind` says what took as long before."""

    kind: str
    command: list[str]
    started: float = 0.0
    process: subprocess.Popen[bytes] | None = field(default=None)

    @property
    def name(self) -> str:
        return " ".join(self.command)


def network_task(data: str, radius: str, seed: int) -> Task:
    command = ["barlow_networks.py", data, "--radius", radius, "--seed", str(seed)]
    return Task(f"{data} {'robust' if float(radius) else 'standard'}", command)


def planted_task(data: str, seed: int) -> Task:
    return Task(f"planted {data}", ["barlow_planted.py", data, "--seed", str(seed)])


def worlds_task(first: int) -> Task:
    command = ["barlow_exam.py", "--first", str(first), "--worlds", str(first + WORLDS)]
    return Task("worlds", command)


def tasks() -> list[Task]:
    """In the order in which they are started."""
    first = [network_task("utkface", "1", 0), network_task("cifar10", "0.5", 0)]
    first += [network_task("utkface", "0", 0), network_task("cifar10", "0", 0)]
    first += [planted_task("cifar10", 0), planted_task("utkface", 0), worlds_task(0), worlds_task(WORLDS)]
    first += [network_task("cifar10", "1", 0), planted_task("cifar10", 1), planted_task("utkface", 1)]
    first += [worlds_task(2 * WORLDS), worlds_task(3 * WORLDS)]
    for seed in (1, 2):
        for data, radius in (("cifar10", "0.5"), ("utkface", "1")):
            first += [network_task(data, radius, seed), network_task(data, "0", seed)]
        first += [planted_task("cifar10", seed + 1), planted_task("utkface", seed + 1)]
    return first


def run_all(asked: argparse.Namespace, work: Path) -> list[str]:
    """Several processes at a time, until the minutes are over; returns what was left out or failed."""
    began = time.perf_counter()
    end = began + 60 * asked.minutes
    waiting = tasks()
    if asked.toy:
        waiting = [network_task("cifar10", "0.5", 0), network_task("cifar10", "0", 0), planted_task("cifar10", 0)]
        waiting.append(worlds_task(0))
    running: list[Task] = []
    took: dict[str, float] = {}
    missing: list[str] = []
    while waiting or running:
        now = time.perf_counter()
        for task in [task for task in running if task.process.poll() is not None or now > end]:
            running.remove(task)
            if task.process.poll() is None:
                task.process.terminate()
                missing.append(f"{task.name}: cut off")
            elif task.process.returncode:
                missing.append(f"{task.name}: failed with {task.process.returncode}")
            else:
                took[task.kind] = now - task.started
            print(f"{now - began:.0f} s: ended {task.name}", flush=True)
        while waiting and len(running) < asked.at_once:
            task = waiting.pop(0)
            if now + took.get(task.kind, 0.0) > end:
                missing.append(f"{task.name}: no time left")
                continue
            start(task, asked, work)
            running.append(task)
        time.sleep(0.5)
    return missing


def start(task: Task, asked: argparse.Namespace, work: Path) -> None:
    script, *rest = task.command
    command = [sys.executable, *asked.through, str(HERE / script), *rest, "-o", str(work), "--device", asked.device]
    if asked.data and script != "barlow_exam.py":
        command += ["--data", str(asked.data)]
    if asked.toy:
        command.append("--toy")
    task.started = time.perf_counter()
    print(f"start {task.name}", flush=True)
    task.process = subprocess.Popen(command)


def evaluation(audited: Path, features: Path) -> Evaluation:
    """Who is audited, by whose features; both have the same held-out rows."""
    with np.load(audited, allow_pickle=False) as own, np.load(features, allow_pickle=False) as other:
        if not np.array_equal(own["rows"], other["rows"]):
            raise ValueError(f"{audited} and {features} hold out other rows")
        return Evaluation(
            labels=own["labels"].astype(np.int64),
            predictions=own["logits"].argmax(axis=1),
            representations={"robust": other["features"].astype(np.float32)},
            sources={"robust": Source(from_model=audited == features)},
        )


def factor_rows(work: Path, preset: str) -> list[dict[str, Any]]:
    """Section 7's factors, for every pair of networks that is there."""
    rows = []
    for robust in sorted(work.glob("*-*-*.npz")):
        if robust.name.count(".") > 2 or robust.stem.endswith("weights") or robust.name.startswith("planted"):
            continue
        data, radius, seed = robust.stem.split("-")
        standard = work / f"{data}-0-{seed}.npz"
        if radius == "0" or not standard.exists():
            continue
        for kind, audited in (("standard", standard), ("robust", robust)):
            rows_of = evaluation(audited, robust)
            facts = {"data": f"{data}, radius {radius}", "seed": int(seed), "model": kind, "preset": preset}
            for group in GROUPS:
                for depth in DEPTHS:
                    found = numbers(rows_of, group, depth, preset)
                    rows.append({**facts, "group": group, "depth": depth, **found})
    return rows


def leaf_tables(work: Path, data: str, radius: str, names: Sequence[str]) -> None:
    """Tables 2 to 5 of the paper, depth one: the leaf of most importance of each class, in sample and held out."""
    robust = work / f"{data}-{radius}-0.npz"
    for kind, audited in (("standard", work / f"{data}-0-0.npz"), ("robust", robust)):
        whole = evaluation(audited, robust)
        half = len(whole) // 2
        grown, held = whole.rows(np.arange(half)), whole.rows(np.arange(half, len(whole)))
        for group in GROUPS:
            print(f"\n{data}, {kind} network, by {group}\n")
            print("| class | rule | BER | ER | EC | ALER | held out: BER | ER | EC | ALER |\n|" + "---|" * 10)
            slicer = make("barlow:recommended", options={"scope": group, "depth": 1}).fit(grown)
            pairs = zip(tree_statistics(slicer, grown), tree_statistics(slicer, held), strict=True)
            for g, (own, fresh) in enumerate(pairs):
                leaf = int(np.argmax(own.leaves.importances))
                conditions = leaf_paths(slicer._tree_of(g).nodes())[leaf]
                rule = " and ".join(f"{one['feature']} {one['op']} {one['value']:.3f}" for one in conditions)
                numbers_ = [f"{value:.3f}" for leaves in (own.leaves, fresh.leaves) for value in _paper(leaves, leaf)]
                print(f"| {names[own.group[group]]} | {rule} | " + " | ".join(numbers_) + " |")


def _paper(leaves: Leaves, leaf: int) -> tuple[float, ...]:
    return leaves.base_error_rate, leaves.error_rates[leaf], leaves.coverages[leaf], leaves.aler


def audits(work: Path, data: str, radius: str) -> None:
    """The standard network audited by one method at a time: what confirmed slices hold of the held-out rows."""
    with np.load(work / f"{data}-0-0.npz") as own, np.load(work / f"{data}-{radius}-0.npz") as robust:
        probs = softmax(own["logits"].astype(np.float64), axis=1)
        layers = {"robust": robust["features"].astype(np.float32), "own": own["features"].astype(np.float32)}
        labels = own["labels"].astype(np.int64)
    sources = {name: Source(from_model=name == "own") for name in layers}
    rows = Evaluation(labels=labels, probs=probs, representations=layers, sources=sources)
    asked = [("confusion", {})]
    asked += [("barlow", {"representation": name, "scope": group}) for name in layers for group in GROUPS]
    for method, options in asked:
        found = audit(rows, methods=[method], options={method: options}, map=False, self_test=False)
        wrong = np.asarray(rows.errors)[~found.discover]
        slices = [slice_ for slice_ in found.confirmed if slice_.side == "hard"]
        inside = np.zeros(len(wrong), dtype=bool)
        for slice_ in slices:
            inside |= np.asarray(slice_.members, dtype=bool)[~found.discover]
        excess = (wrong[inside] - wrong.mean()).sum() / wrong.sum()
        print(
            f"{data}, {method} {options}: {len(slices)} of {len(found.slices)} confirmed, {inside.sum():,} of "
            f"{len(wrong):,} held-out rows, error {wrong[inside].mean() if slices else 0:.3f} of {wrong.mean():.3f}, "
            f"{wrong[inside].sum() / wrong.sum():.3f} of the errors, excess {excess:.3f}",
            flush=True,
        )


def gather(work: Path, out: Path, missing: list[str]) -> None:
    """Everything small in one file; of seed 0 also features and weights."""
    results: dict[str, Any] = {"missing": missing}
    for path in sorted(work.glob("*.json")):
        results[path.stem] = json.loads(path.read_text())
    (out / "results.json").write_text(json.dumps(results))
    for name in KEPT:
        _copy(work / f"{name}.npz", out)
    for name in WEIGHTS:
        _copy(work / f"{name}.weights.npz", out)
    pictures: dict[str, Any] = {}
    for path in sorted(work.glob("planted-*.npz")):
        with np.load(path, allow_pickle=False) as file:
            pictures |= {f"{path.stem}/{name}": file[name] for name in file.files}
    np.savez_compressed(out / "planted.npz", **pictures)
    coarse_shares(pictures)
    results["factors"] = factor_rows(work, "recommended")
    (out / "results.json").write_text(json.dumps(results, default=lambda value: value.item()))
    if results["factors"]:
        table(results["factors"])
        observations(results["factors"])
    for data, radius, names in (("cifar10", "0.5", CIFAR), ("utkface", "1", SPANS)):
        if all((work / f"{data}-{one}-0.npz").exists() for one in ("0", radius)):
            leaf_tables(work, data, radius, names)


def coarse_shares(pictures: Mapping[str, Any]) -> None:
    """Print how much of what an attack changes lies below an eighth of the frequencies, a picture at a time."""
    for name in [name for name in pictures if name.endswith(" attack")]:
        change = pictures[name].astype(float) - pictures[name.replace(" attack", " images")]
        power = np.square(np.abs(np.fft.fft2(change, axes=(1, 2)))).sum(axis=3)
        across = np.fft.fftfreq(power.shape[1])
        coarse = np.hypot(across[:, None], across) <= 1 / 8
        shares = power[:, coarse].sum(axis=1) / power.sum(axis=(1, 2))
        error = shares.std(ddof=1) / len(shares) ** 0.5
        print(f"{name}: coarse {shares.mean():.2f} ({error:.2f}), n = {len(shares)}; of noise {coarse.mean():.2f}")


def _copy(path: Path, out: Path) -> None:
    if path.exists():
        shutil.copy(path, out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=Path)
    parser.add_argument("--minutes", type=float, default=8.0, help="after which nothing runs but the tables")
    parser.add_argument("--at-once", type=int, default=6)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--data", type=Path, help="a folder made by `barlow_networks.py pack`")
    parser.add_argument("--work", type=Path, help="where processes write. Default: OUT/work")
    parser.add_argument("--tables", action="store_true", help="train nothing")
    parser.add_argument("--audits", action="store_true", help="train nothing, audit the standard networks")
    parser.add_argument("--through", nargs="*", default=[], help="what runs each script. Default: Python alone")
    parser.add_argument("--toy", action="store_true", help="few rows, to see that it runs")
    asked = parser.parse_args()
    work = asked.work or asked.out / "work"
    work.mkdir(parents=True, exist_ok=True)
    asked.out.mkdir(parents=True, exist_ok=True)
    if asked.audits:
        audits(work, "cifar10", "0.5")
        audits(work, "utkface", "1")
        return
    missing = [] if asked.tables else run_all(asked, work)
    print("missing:", missing, flush=True)
    gather(work, asked.out, missing)


if __name__ == "__main__":
    main()
