"""Where a cause is known: do heat maps and attacks of robust features show it, and those of standard ones? (appendix I)

    python benchmarks/barlow_planted.py cifar10 -o OUT [--seed 0] [--network small] [--device cuda]
    python benchmarks/barlow_planted.py report -o OUT       means over classes of every network pair, and over seeds

A small tag of nine coloured cells, drawn anew for every seed, stands at a random place of 90% of one class's pictures
and of 3% of the others; a standard and a robust network learn from them. On held-out pictures half of every class
carry the tag, so the standard network takes many of the other classes for the tagged one. Its failures are explained
within each of those classes, by features of the robust network and by its own: a tree of depth one on half of the
held-out rows. On the other half: does the feature of the split tell the tag (area under the curve); of tagged rows,
does the heat map's peak, and of its heat what share, lie on the tag, and of what an attack changes; and does an
attack on rows without the tag draw it: is the tag's pattern found in the change better than 99 other such patterns?
`--network small` is for a CPU: pictures of 32 px, and the recipe of the small networks of benchmarks/barlow_factors.py.
"""

from __future__ import annotations

import argparse
import json
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from barlow_factors import RADIUS as SMALL_RADIUS
from barlow_factors import STEPS as SMALL_TRAIN_STEPS
from barlow_networks import DATA, measured, read, split, train
from errata import Evaluation, Source
from errata.explain.thumbnails import upsampled
from errata.slicers import make
from errata.tensors import Attribution, Ball
from errata.train import fit_robust, network, normalise_pixels, outputs
from trained import over_runs

Array = np.ndarray
CELLS = 3
RADIUS = {"cifar10": 0.5, "utkface": 1.0}
TAGGED = (0.9, 0.03)  # of the class with the tag, and of the others, while training
CLASS = 3  # cat; people of 21 to 27
MOST = 24  # rows of a group whose heat and attack are measured
SHOWN = 6
PATTERNS = 99
MARGIN = 1 / 16  # of a picture: so far beside the tag still counts as on it
STEPS = 100
COARSE = 1 / 8  # of the frequencies: below it a change is coarse
EPOCHS = {"cifar10": 12, "utkface": 12}
LEARNT = {"cifar10": 24_000, "utkface": 10_000}
SMALL_SIDE = 32
SMALL = {"epochs": 8, "batch": 128, "lr": 3e-3}
SMALL_LEARNT = 10_000
SMALL_MOST = 12
SMALL_STEPS = 50
SMALL_ATTACKED = 500  # held-out rows whose accuracy under attack is measured


@dataclass(frozen=True, eq=False)
class Tagged:
    images: Array
    labels: Array
    tag: Array  # (n,) bool
    places: Array  # (n, 2) upper left corner


def patterns(count: int, side: int, rng: np.random.Generator) -> Array:
    """(count, side, side, 3) in {0, 255}: nine cells of pure colours."""
    cells = rng.integers(0, 2, (count, CELLS, CELLS, 3), dtype=np.uint8) * 255
    return cells.repeat(side // CELLS, axis=1).repeat(side // CELLS, axis=2)


def put(rows: tuple[Array, Array], pattern: Array, share: Array, rng: np.random.Generator) -> Tagged:
    """share: (n,) how likely each row is to get the tag."""
    images = rows[0].copy()
    n, px = images.shape[:2]
    side = len(pattern)
    places = rng.integers(0, px - side + 1, (n, 2))
    tag = rng.random(n) < share
    for i in np.flatnonzero(tag):
        top, left = places[i]
        images[i, top : top + side, left : left + side] = pattern
    return Tagged(images, rows[1], tag, places)


def on_tag(places: Array, px: int, side: int) -> Array:
    """(n, px, px) bool: the tag and a margin."""
    margin = round(MARGIN * px)
    at = np.arange(px)
    top, left = places[:, :1], places[:, 1:]
    rows = (at >= top - margin) & (at < top + side + margin)
    columns = (at >= left - margin) & (at < left + side + margin)
    return rows[:, :, None] & columns[:, None, :]


def area_under(values: Array, tag: Array) -> float:
    """Of the curve, the way round that separates."""
    if tag.all() or not tag.any():
        return float("nan")
    ranks = np.argsort(np.argsort(values, kind="stable"), kind="stable")
    wins = ranks[tag].sum() - tag.sum() * (tag.sum() - 1) / 2
    area = wins / (tag.sum() * (~tag).sum())
    return float(max(area, 1 - area))


def first_split(features: Array, labels: Array, predictions: Array, group: int) -> int | None:
    """The feature of Barlow's first split of a class, from all its features."""
    rows = labels == group
    evaluation = Evaluation(
        labels=labels[rows],
        predictions=predictions[rows],
        representations={"x": features[rows]},
        sources={"x": Source(from_model=False)},
    )
    slicer = make("barlow:recommended", options={"scope": "all", "depth": 1, "delta": 0.0, "tau": 0.0})
    slicer.fit(evaluation)
    feature = int(slicer.features_[0])
    return None if feature < 0 else feature


def drawn_rank(change: Array, known: Array, others: Array) -> tuple[float, float]:
    """How like the tag a change is at its best place (a cosine), and the share of other patterns that fit worse."""
    px = change.shape[1]
    images = torch.from_numpy(np.moveaxis(change, -1, 1)).float()
    templates = np.concatenate([known[None], others]).astype(np.float32) / 255
    templates -= templates.mean(axis=(1, 2), keepdims=True)
    kernel = torch.from_numpy(np.moveaxis(templates, -1, 1))
    kernel = kernel / kernel.flatten(1).norm(dim=1)[:, None, None, None]
    fits = torch.nn.functional.conv2d(images, kernel)
    ones = torch.ones(1, 3, *kernel.shape[2:])
    length = torch.nn.functional.conv2d(images.square(), ones).clamp_min(1e-12).sqrt()
    # A place that an attack hardly touched is like anything: only places with their share of the change count.
    touched = length.square() >= images.square().sum(dim=(1, 2, 3), keepdim=True) * (kernel.shape[-1] / px) ** 2
    best = torch.where(touched, fits / length, -1.0).amax(dim=(2, 3))
    worse = (best[:, 1:] < best[:, :1]).float().mean(dim=1)
    return float(best[:, 0].mean()), float(worse.mean())


def coarse_share(change: Array) -> float:
    """The share of a change (n, px, px, 3) that lies below an eighth of the frequencies, mean over rows."""
    power = np.square(np.abs(np.fft.fft2(change, axes=(1, 2)))).sum(axis=3)
    across = np.fft.fftfreq(power.shape[1])
    coarse = np.hypot(across[:, None], across) <= COARSE
    shares = power[:, coarse].sum(axis=1) / np.maximum(power.sum(axis=(1, 2)), 1e-12)
    return float(shares.mean())


def localised(lens: Attribution, held: Tagged, rows: Array, feature: int, side: int, steps: int) -> dict[str, Any]:
    """Heat and attack of rows with the tag."""
    px = held.images.shape[1]
    images = held.images[rows]
    box = on_tag(held.places[rows], px, side)
    heats = [upsampled(heat, px, px) for heat in lens.heat(images, feature)]
    there = [i for i, heat in enumerate(heats) if heat is not None]
    peaks = [bool(box[i].flat[int(heats[i].argmax())]) for i in there]
    shares = [float(heats[i][box[i]].sum() / heats[i].sum()) for i in there]
    changed, before, after, _ = lens.attack(images, feature, Ball(0.1 * np.sqrt(images[0].size), steps))
    energy = np.square(changed - images / 255).sum(axis=-1)
    total = np.maximum(energy.sum(axis=(1, 2)), 1e-12)
    return {
        "rows": len(rows),
        "heat": len(there),
        "peak": mean(peaks),
        "share": mean(shares),
        "area": float(box.mean()),
        "attack": float((np.where(box, energy, 0).sum(axis=(1, 2)) / total).mean()),
        "coarse": coarse_share(changed - images / 255),
        "rise": float((after - before).mean() / max(abs(float(before.mean())), 1e-9)),
    }


def mean(values: list[Any]) -> float:
    return float(np.mean(values)) if values else float("nan")


def explained(
    model: torch.nn.Module,
    held: Tagged,
    predictions: Array,
    pattern: Array,
    others: Array,
    device: str,
    *,
    most: int = MOST,
    steps: int = STEPS,
) -> list[dict[str, Any]]:
    """For each class without the tag: the feature of its failures, and what that feature's pictures show.

    most: tagged rows, and rows without the tag, that are explained of each class.
    """
    features = outputs(model, held.images, device=device)[1]
    lens = Attribution(model, prepare=normalise_pixels, device=device)
    half = len(held.labels) // 2
    counted = np.arange(len(held.labels)) >= half
    found = []
    for group in np.unique(held.labels[held.labels != CLASS]):
        root = first_split(features[:half], held.labels[:half], predictions[:half], group)
        here = counted & (held.labels == group)
        areas = np.array([area_under(column, held.tag[here]) for column in features[here].T])
        wrong = predictions[here] != group
        row = {"group": int(group), "failures": int(wrong.sum()), "rows": int(here.sum()), "best area": areas.max()}
        row["tagged failures"] = float(held.tag[here][wrong].mean()) if wrong.any() else float("nan")
        for name, feature in (("split", root), ("best", int(areas.argmax()))):
            if feature is None:
                continue
            row[name] = {"feature": feature, "area under": float(areas[feature])}
            # Most activating first, as people are shown them.
            order = np.flatnonzero(here)[np.argsort(-features[here, feature], kind="stable")]
            row[name]["shown with tag"] = float(held.tag[order[:SHOWN]].mean())
            tagged = order[held.tag[order]][:most]
            bare = order[~held.tag[order]][:most]
            if not (len(tagged) and len(bare)):
                continue
            row[name] |= localised(lens, held, tagged, feature, len(pattern), steps)
            changed = lens.attack(held.images[bare], feature, Ball(0.1 * np.sqrt(held.images[0].size), steps))[0]
            row[name]["drawn"], row[name]["drawn rank"] = drawn_rank(changed - held.images[bare] / 255, pattern, others)
        found.append(row)
    return found


def pictures(model: torch.nn.Module, held: Tagged, feature: int, group: int, device: str) -> dict[str, Array]:
    """Six tagged rows that raise the feature, their heat, and their attacks, to look at."""
    lens = Attribution(model, prepare=normalise_pixels, device=device)
    rows = np.flatnonzero((held.labels == group) & held.tag)
    values = lens.features(held.images[rows])[:, feature]
    rows = rows[np.argsort(-values, kind="stable")[:SHOWN]]
    images = held.images[rows]
    attacked = lens.attack(images, feature, Ball(0.1 * np.sqrt(images[0].size), STEPS))[0]
    heat = lens.heat(images, feature)
    return {"images": images, "heat": heat.astype(np.float16), "attack": (attacked * 255).round().astype(np.uint8)}


def study_small(name: str, asked: argparse.Namespace) -> dict[str, Any]:
    """The study with small networks: no pictures are kept, and `report` has the means."""
    torch.set_num_threads(1)
    images, labels = read(name, asked.data)
    if images.shape[1] != SMALL_SIDE:
        small = [Image.fromarray(image).resize((SMALL_SIDE, SMALL_SIDE)) for image in images]
        images = np.stack([np.asarray(image) for image in small])
    learnt, held, _ = split(name, (images, labels), asked.seed)
    count = 400 if asked.toy else SMALL_LEARNT
    rng = np.random.default_rng([asked.seed, 7])
    pattern, *others = patterns(1 + PATTERNS, CELLS * (SMALL_SIDE // 16), rng)
    learnt = tuple(values[:count] for values in learnt)
    held = tuple(values[: count if asked.toy else 8000] for values in held)
    taught = put(learnt, pattern, np.where(learnt[1] == CLASS, *TAGGED), rng)
    fresh = put(held, pattern, np.full(len(held[1]), 0.5), rng)
    facts: dict[str, Any] = {"data": name, "seed": asked.seed, "radius": SMALL_RADIUS[name], "network": "small"}
    models = {}
    for kind, radius in (("standard", 0.0), ("robust", SMALL_RADIUS[name])):
        model = network("small", px=SMALL_SIDE, outputs=int(labels.max()) + 1, seed=asked.seed)
        fit_robust(
            model, taught.images, taught.labels, radius=radius, steps=SMALL_TRAIN_STEPS, flip=True,
            shift=SMALL_SIDE // 8, seed=asked.seed, device=asked.device, **SMALL,
        )  # fmt: skip
        few = {"attacked": SMALL_ATTACKED, "steps": 20}
        facts[f"{kind} accuracies"] = measured(model, held, (SMALL_RADIUS[name],), asked.device, **few)
        models[kind] = model
    predictions = outputs(models["standard"], fresh.images, device=asked.device)[0].argmax(axis=1)
    for kind, model in models.items():
        few = {"most": SMALL_MOST, "steps": SMALL_STEPS}
        facts[kind] = explained(model, fresh, predictions, pattern, np.stack(others), asked.device, **few)
    (asked.out / f"planted-small-{name}-{asked.seed}.json").write_text(json.dumps(facts))
    return facts


MEASURES = (
    ("split", "area under", "first split: area under the curve for the tag"),
    ("split", "peak", "first split: peak of the heat on the tag"),
    ("split", "share", "first split: share of heat on the tag"),
    ("split", "attack", "first split: share of what an attack changes on the tag"),
    ("split", "coarse", "first split: coarse share of what an attack changes"),
    ("split", "drawn rank", "first split, rows without the tag: other patterns that fit an attack's change worse"),
    ("best", "area under", "best feature: area under the curve for the tag"),
    ("best", "peak", "best feature: peak of the heat on the tag"),
    ("best", "share", "best feature: share of heat on the tag"),
    ("best", "attack", "best feature: share of what an attack changes on the tag"),
    ("best", "coarse", "best feature: coarse share of what an attack changes"),
    ("best", "drawn rank", "best feature, rows without the tag: other patterns that fit an attack's change worse"),
)


def report(folder: Path) -> None:
    """Means over classes, then over seeds with 95% by Student's t, and robust less standard within a seed."""
    for name in DATA:
        runs = [json.loads(path.read_text()) for path in sorted(folder.glob(f"planted-small-{name}-*.json"))]
        if len(runs) < 2:
            continue
        print(f"\n{name}, {len(runs)} seeds of small networks")
        for kind in ("standard", "robust"):
            for k, what in enumerate(("accuracy", "accuracy under attack")):
                print(f"{kind}: {what} {over_runs([run[f'{kind} accuracies'][k]['accuracy'] for run in runs])}")
        for which, key, words in MEASURES:
            by_kind = [[class_mean(run[kind], which, key) for run in runs] for kind in ("standard", "robust")]
            less = np.subtract(by_kind[1], by_kind[0])
            print(f"{words}: standard {over_runs(by_kind[0])}, robust {over_runs(by_kind[1])}, less {over_runs(less)}")


def class_mean(rows: list[dict[str, Any]], which: str, key: str) -> float:
    """The mean over the classes that have the measure: a class whose trees have no cut, or whose map is dark, has
    none."""
    return float(np.nanmean([row[which][key] for row in rows if key in row.get(which, {})]))


def study(name: str, asked: argparse.Namespace) -> dict[str, Any]:
    rows = read(name, asked.data)
    if asked.toy:
        rows = rows[0][:400], rows[1][:400]
    learnt, held, _ = split(name, rows, asked.seed)
    rng = np.random.default_rng([asked.seed, 7])
    side = CELLS * (rows[0].shape[1] // 16)  # 6 px of 32, 12 px of 64
    pattern, *others = patterns(1 + PATTERNS, side, rng)
    learnt = tuple(values[: LEARNT[name]] for values in learnt)
    shares = np.where(learnt[1] == CLASS, *TAGGED)
    taught = put(learnt, pattern, shares, rng)
    held = tuple(values[:8000] for values in held)
    fresh = put(held, pattern, np.full(len(held[1]), 0.5), rng)
    options = {"epochs": 1 if asked.toy else EPOCHS[name], "batch": 32 if asked.toy else 256, "lr": 2e-3}
    options |= {"widths": (16, 16, 32, 32)} if asked.toy else {}
    models = {}
    facts: dict[str, Any] = {"data": name, "seed": asked.seed, "radius": RADIUS[name], "learnt": len(taught.labels)}
    for kind, radius in (("standard", 0.0), ("robust", RADIUS[name])):
        began = time.perf_counter()
        model = train((taught.images, taught.labels), radius, seed=asked.seed, device=asked.device, **options)
        facts[f"{kind} seconds"] = time.perf_counter() - began
        facts[f"{kind} accuracies"] = measured(model, held, (RADIUS[name],), asked.device)
        models[kind] = model
    predictions = outputs(models["standard"], fresh.images, device=asked.device)[0].argmax(axis=1)
    shown = {}
    for kind, model in models.items():
        facts[kind] = explained(model, fresh, predictions, pattern, np.stack(others), asked.device)
        (asked.out / f"planted-{name}-{asked.seed}.json").write_text(json.dumps(facts))
        split_rows = sorted((row for row in facts[kind] if "split" in row), key=lambda row: -row["failures"])
        for first in split_rows[:1]:
            seen = pictures(model, fresh, first["split"]["feature"], first["group"], asked.device)
            shown |= {f"{kind} {key}": value for key, value in seen.items()}
    np.savez_compressed(asked.out / f"planted-{name}-{asked.seed}.npz", pattern=pattern, **shown)
    return facts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=[*DATA, "report"])
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--network", choices=("resnet18", "small"), default="resnet18")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--data", type=Path, help="a folder made by `barlow_networks.py pack`")
    parser.add_argument("--toy", action="store_true", help="few rows, to see that it runs")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    if asked.what == "report":
        report(asked.out)
        return
    study_of = study_small if asked.network == "small" else study
    print(json.dumps(study_of(asked.what, asked))[:2000], flush=True)


if __name__ == "__main__":
    main()
