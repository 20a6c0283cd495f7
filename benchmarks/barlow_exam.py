"""Barlow in SpotCheck-like worlds, by features of a robust network, beside `confusion`.

    python benchmarks/barlow_exam.py --worlds 16 -o OUT [--device cuda]     makes what is missing, then judges
    python benchmarks/barlow_exam.py --worlds 16 -o OUT --judge             judges the worlds that are there

Worlds of the small scale (48 px) with 1 to 3 blindspots. In each, four networks: the audited one; a second one taught
the true labels; a robust one taught the true labels; and a robust one taught what the audited one was taught, as the
paper's robust and standard networks were taught the same. Barlow reads the layer of each in turn. DR: share of
blindspots that hypotheses found; FDR: share of hypotheses that lie in none. Rows: those with a square, as published,
and all.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch

from errata import Evaluation, Source
from errata.bench import metrics
from errata.bench.recipes import RECIPES, measure_blindspots, splits
from errata.bench.scenes import sample_world
from errata.core.membership import drop_overlapping, standing_out
from errata.slicers import make
from errata.train import fit, fit_robust, network, outputs

Array = np.ndarray
RADIUS = 1.0  # L2, of pixels in [0, 1], pictures of 48 px
STEPS = 3
ATTEMPTS = 5
LAYERS = ("own", "second", "robust", "robust, same labels")
METHODS = ("barlow:recommended", "barlow:as_published")


def make_world(folder: Path, i: int, device: str, toy: bool) -> None:
    """Train until the audited network is blind where planned; keep every layer."""
    path = folder / f"robust-world-{i:03d}.npz"
    if path.exists():
        return
    for attempt in range(ATTEMPTS):
        seed = int(np.random.SeedSequence([4000, i, attempt]).generate_state(1)[0])
        arrays = trained(seed, device, toy)
        if arrays is not None:
            np.savez_compressed(path, **arrays)
            return


def trained(seed: int, device: str, toy: bool) -> dict[str, Array] | None:
    recipe = RECIPES["small"]
    samples = splits(sample_world(seed), recipe)
    learnt = samples["train"].rows(np.arange(300)) if toy else samples["train"]
    test = samples["test"].rows(np.arange(300)) if toy else samples["test"]
    images = learnt.images(px=recipe.px)
    pixels = test.images(px=recipe.px)
    options = {"epochs": 1 if toy else recipe.epochs, "batch": recipe.batch, "lr": recipe.lr, "device": device}
    audited = network(recipe.network, px=recipe.px, seed=seed % 2**31)
    fit(audited, images, learnt.labels, seed=seed % 2**31, **options)
    logits, own = outputs(audited, pixels, device=device)
    if not (toy or measure_blindspots(logits, test).worked):
        return None
    layers = {"own": own}
    for name, labels, radius in (
        ("second", learnt.truth, 0.0),
        ("robust", learnt.truth, RADIUS),
        ("robust, same labels", learnt.labels, RADIUS),
    ):
        other = network(recipe.network, px=recipe.px, seed=(seed + 1) % 2**31)
        fit_robust(other, images, labels, radius=radius, steps=STEPS, seed=(seed + 1) % 2**31, **options)
        said, layers[name] = outputs(other, pixels, device=device)
        right = ((said[:, 0] > 0) == test.truth).mean()
        print(f"  world {seed}, {name}: right on {right:.3f} of {len(pixels)} test rows", flush=True)
    arrays = {name: layer.astype(np.float16) for name, layer in layers.items()}
    return arrays | {"logits": logits[:, 0], "labels": test.truth.astype(np.int8), "blindspot": test.blindspot}


def evaluation_of(arrays: Any, layer: str, both: bool) -> tuple[Evaluation, Array]:
    rows = np.ones(len(arrays["labels"]), dtype=bool) if both else arrays["labels"] == 1
    evaluation = Evaluation(
        labels=arrays["labels"][rows].astype(np.int64),
        probs=1 / (1 + np.exp(-arrays["logits"][rows].astype(np.float64))),
        representations={"layer": arrays[layer][rows].astype(np.float32)},
        sources={"layer": Source(from_model=layer == "own")},
    )
    return evaluation, arrays["blindspot"][rows]


def judged(method: str, evaluation: Evaluation, blindspots: Array) -> dict[str, float | None]:
    """Screened as an audit would: sets that stand out, in order of errors times error rate."""
    slicer = make(method).fit(evaluation)
    h = slicer.membership(evaluation) >= slicer.thresholds_
    wrong = np.asarray(evaluation.errors)
    h = h[:, standing_out(h, wrong.astype(np.float64))]
    errors = (h & wrong[:, None]).sum(axis=0)
    h = h[:, np.argsort(-errors * errors / np.maximum(h.sum(axis=0), 1), kind="stable")]
    h = h[:, drop_overlapping(h, np.arange(h.shape[1]))]
    rates = metrics.discovery(h, blindspots, metrics.Rule())
    return {"dr": rates.dr, "fdr": rates.fdr, "hypotheses": int(h.any(axis=0).sum())}


def judge_world(folder: Path, i: int) -> None:
    """Every method on every layer, in a file beside the world."""
    path = folder / f"robust-world-{i:03d}.npz"
    if not path.exists():
        return
    rows = []
    with np.load(path, allow_pickle=False) as arrays:
        for both in (False, True):
            for method, layer in [("confusion", "own"), *((method, layer) for layer in LAYERS for method in METHODS)]:
                found = judged(method, *evaluation_of(arrays, layer, both))
                where = "none" if method == "confusion" else layer
                rows.append({"both": both, "method": method, "layer": where, **found})
    path.with_suffix(".json").write_text(json.dumps(rows))


def table(worlds: list[list[dict[str, Any]]]) -> None:
    """Means over worlds, each with its standard error."""
    print(f"\n{len(worlds)} worlds\n\n| rows | method | layer | DR | FDR | hypotheses |\n|---|---|---|---|---|---|")
    for same in zip(*worlds, strict=True):
        cells = [metrics.mean_and_error([one[key] for one in same]) for key in ("dr", "fdr", "hypotheses")]
        rates = " | ".join(_cell(*cell) for cell in cells)
        rows = "all" if same[0]["both"] else "with a square"
        print(f"| {rows} | {same[0]['method']} | {same[0]['layer']} | {rates} |", flush=True)


def _cell(mean: float | None, error: float | None) -> str:
    if mean is None:
        return "–"
    return f"{mean:.2f}" if error is None else f"{mean:.2f} ({error:.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", type=Path, required=True)
    parser.add_argument("--worlds", type=int, default=16)
    parser.add_argument("--first", type=int, default=0, help="the first world to make")
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--judge", action="store_true", help="make none")
    parser.add_argument("--toy", action="store_true", help="few rows, to see that it runs")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    began = time.perf_counter()
    for i in range(asked.first, asked.worlds):
        if not asked.judge:
            make_world(asked.out, i, asked.device, asked.toy)
        judge_world(asked.out, i)
        print(f"world {i}: {time.perf_counter() - began:.0f} s", flush=True)
    table([json.loads(path.read_text()) for path in sorted(asked.out.glob("robust-world-*.json"))])


if __name__ == "__main__":
    main()
