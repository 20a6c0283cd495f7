"""Barlow's study of factors (section 7 of the paper) on CIFAR-10 and UTKFace: who is audited, the grouping, the depth.

    python benchmarks/barlow_factors.py [--data cifar10,utkface] [--seeds 3] [--network small] [--device cpu]

A standard and a robust network are trained on one part of the pictures; the rest is halved: one half grows the trees,
the other only counts (a group without rows there is left out). The features are always the robust network's, as in
the paper. Classes: CIFAR-10's, or eight spans of age. ALER - BER is the mean over groups; valid is the share of groups
whose leaf of highest importance fails .1 more often than the group and holds .2 of its failures. Data: ERRATA_DATA, or
../shared/data beside the clone.
"""

from __future__ import annotations

import argparse
import io
import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from errata import Evaluation, Source
from errata.bench.tables import data_folder
from errata.core.leaves import Leaves
from errata.slicers import make
from errata.slicers.barlow.slicer import tree_statistics
from errata.train import fit, fit_robust, network, outputs, robust_accuracy

Array = np.ndarray
Row = dict[str, Any]
AGES = (4, 13, 21, 28, 36, 46, 60)  # eight spans of about one size
RADIUS = {"cifar10": 0.25, "utkface": 0.5}  # L2, of pixels in [0, 1]
SIDE = 32
STEPS = 3
DELTA = 0.1
TAU = 0.2
GROUPS = ("label", "prediction")
DEPTHS = (1, 3)
ROBUST_ROWS = 1000


@dataclass(frozen=True, eq=False)
class Pictures:
    images: Array  # (n, px, px, 3) bytes
    labels: Array  # (n,)

    def rows(self, index: Array) -> Pictures:
        return Pictures(self.images[index], self.labels[index])


def read(name: str) -> Pictures:
    import pandas as pd

    if name == "cifar10":
        table = pd.read_parquet(data_folder() / "cifar10.parquet", columns=["label", "image"])
        labels = np.unique(table.label, return_inverse=True)[1]
    else:
        table = pd.read_parquet(data_folder() / "utkface64.parquet", columns=["age", "image"])
        labels = np.searchsorted(AGES, table.age, side="right")
    opened = (Image.open(io.BytesIO(data)).convert("RGB").resize((SIDE, SIDE)) for data in table.image)
    return Pictures(np.stack([np.asarray(picture) for picture in opened]), labels.astype(np.int64))


def split(pictures: Pictures, seed: int) -> tuple[Pictures, Pictures]:
    """(learnt from, looked at): one half each."""
    order = np.random.default_rng(seed).permutation(len(pictures.labels))
    half = len(order) // 2
    return pictures.rows(order[:half]), pictures.rows(order[half:])


def trained(asked: Any, name: str, learnt: Pictures, seed: int) -> dict[str, Any]:
    classes = int(learnt.labels.max()) + 1
    models = {kind: network(asked.network, px=SIDE, outputs=classes, seed=seed) for kind in ("standard", "robust")}
    options: dict[str, Any] = {"epochs": asked.epochs, "batch": 128, "lr": 3e-3, "seed": seed, "device": asked.device}
    fit(models["standard"], learnt.images, learnt.labels, **options)
    fit_robust(models["robust"], learnt.images, learnt.labels, radius=RADIUS[name], steps=STEPS, flip=True, **options)
    return models


def evaluated(models: dict[str, Any], rest: Pictures, device: str) -> dict[str, Evaluation]:
    """The same rows under both models, with the robust one's features."""
    seen = {kind: outputs(model, rest.images, device=device) for kind, model in models.items()}
    features = seen["robust"][1]
    return {
        kind: Evaluation(
            labels=rest.labels,
            predictions=logits.argmax(axis=1),
            representations={"robust": features},
            sources={"robust": Source(from_model=kind == "robust")},
        )
        for kind, (logits, _) in seen.items()
    }


def numbers(evaluation: Evaluation, group: str, depth: int, preset: str) -> dict[str, Any]:
    """One tree a group, grown on the first half of the rows; both halves counted, never together."""
    half = len(evaluation) // 2
    grown, held = (evaluation.rows(np.arange(*ends)) for ends in ((0, half), (half, len(evaluation))))
    slicer = make(f"barlow:{preset}", options={"scope": group, "depth": depth})
    slicer.fit(grown)
    told = {
        name: {json.dumps(dict(one.group)): one.leaves for one in tree_statistics(slicer, rows)}
        for name, rows in (("in sample", grown), ("held out", held))
    }
    found: dict[str, Any] = {}
    for name, trees in told.items():
        found[f"gain, {name}"] = [leaves.aler - leaves.base_error_rate for leaves in trees.values()]
        found[f"valid, {name}"] = [valid(told["in sample"][key], leaves) for key, leaves in trees.items()]
    return found


def valid(grown: Leaves, counted: Leaves) -> bool:
    """Does the leaf that was most important while growing satisfy both conditions on the rows counted?"""
    return int(np.argmax(grown.importances)) in counted.valid(DELTA, TAU)


def study(asked: Any, name: str, seed: int) -> Iterator[Row]:
    began = time.perf_counter()
    learnt, rest = split(read(name), seed)
    models = trained(asked, name, learnt, seed)
    few = rest.images[:ROBUST_ROWS], rest.labels[:ROBUST_ROWS]
    for kind, evaluation in evaluated(models, rest, asked.device).items():
        stands = robust_accuracy(models[kind], *few, RADIUS[name], steps=20, device=asked.device)
        took = f"{time.perf_counter() - began:.0f} s"
        right = f"accuracy {1 - evaluation.errors.mean():.3f} of {len(evaluation):,} rows"
        print(f"{name}, seed {seed}, {kind}: {right}, under attack {stands:.3f} of {ROBUST_ROWS:,}; {took}", flush=True)
        for preset in ("recommended", "as_published"):
            for group in GROUPS:
                for depth in DEPTHS:
                    facts = {"data": name, "seed": seed, "model": kind, "preset": preset, "group": group}
                    yield {**facts, "depth": depth, **numbers(evaluation, group, depth, preset)}


def table(rows: list[Row]) -> None:
    """Means over groups and seeds; of gains also the standard error over seeds."""
    keys = ("data", "preset", "model", "group", "depth")
    print(
        "\n| "
        + " | ".join((*keys, "ALER − BER, in sample", "held out", "valid, in sample", "held out", "groups"))
        + " |"
    )
    print("|" + "---|" * (len(keys) + 5))
    for key in dict.fromkeys(tuple(row[name] for name in keys) for row in rows):
        same = [row for row in rows if tuple(row[name] for name in keys) == key]
        gains = [spread([np.nanmean(row[f"gain, {where}"]) for row in same]) for where in ("in sample", "held out")]
        shares = [np.concatenate([row[f"valid, {where}"] for row in same]) for where in ("in sample", "held out")]
        cells = [*key, *gains, *(f"{share.mean():.2f}" for share in shares), len(shares[0])]
        print("| " + " | ".join(map(str, cells)) + " |")


def spread(values: list[float]) -> str:
    error = f" ({np.std(values, ddof=1) / np.sqrt(len(values)):.3f})" if len(values) > 1 else ""
    return f"{np.mean(values):.3f}{error}"


def observations(rows: list[Row]) -> None:
    """The paper's comparisons: in how many pairs of like runs does the first have the higher ALER - BER?"""
    print("\n| compared | preset | higher in sample | higher held out |\n|---|---|---|---|")
    for what, first, second in (("group", "label", "prediction"), ("model", "robust", "standard"), ("depth", 3, 1)):
        for preset in ("recommended", "as_published"):
            cells = []
            for where in ("gain, in sample", "gain, held out"):
                like = list(pairs([row for row in rows if row["preset"] == preset], what, first, second))
                cells.append(f"{sum(np.nanmean(a[where]) > np.nanmean(b[where]) for a, b in like)} of {len(like)}")
            print(f"| {what} {first} against {second} | {preset} | {cells[0]} | {cells[1]} |")


def pairs(rows: list[Row], what: str, first: Any, second: Any) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    others = [name for name in ("data", "seed", "model", "group", "depth") if name != what]
    by = {(row[what], *(row[name] for name in others)): row for row in rows}
    for (value, *rest), row in by.items():
        if value == first:
            yield row, by[(second, *rest)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="cifar10,utkface")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--epochs", type=int, default=12)
    parser.add_argument("--network", default="small")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", type=Path, help="keep all numbers")
    asked = parser.parse_args()
    rows = [row for name in asked.data.split(",") for seed in range(asked.seeds) for row in study(asked, name, seed)]
    table(rows)
    observations(rows)
    if asked.json:
        asked.json.write_text(json.dumps(rows, default=lambda value: value.item()))


if __name__ == "__main__":
    main()
