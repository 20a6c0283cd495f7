"""Why published lights fail on painted scenes: one option changed at a time, on worlds that a bench made.

    errata bench spotcheck --scale small --configs 8 --seed 7000 --method high-loss -o FOLDER
    python benchmarks/spotlight_lights.py FOLDER [--only NAME ...] [--worlds 8] [--lights 1]

Rows with a square, their layer with columns of unit size on average, as the bench reads them. Each line is
`spotlight:as_published` (C = 1, 2% of the rows, losses in nats, all columns, Adam from the origin) but for what it
names, with so many lights. "In one": worlds whose first light lies to 80% in one blindspot. "On size": lights whose
weights sum to .5 to 2 times S. "Dark": less than .11 S. "Loss": the mean loss of the first light, as a share of that
of the exact solver at the same size, columns and losses. "Away": the distance of its centre from the data's mean, in
root mean square distances of rows. DR and FDR are of the raw sets, as the bench's. Blindspots: those that a light lies
in, to 80%; of these those that such lights cover to 80%, so that they count as found; and the mean share that they
cover. n: worlds; where it is smaller, the others have no such figure.
"""

from __future__ import annotations

import argparse
import time
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from errata import Evaluation
from errata.bench import metrics
from errata.bench.spotcheck import read_world, sort_by_importance
from errata.slicers import make
from trained import over_finite_runs

Array = np.ndarray
PUBLISHED: dict[str, Any] = {"solver": "adam", "dimming": "by_peak", "loss": "given", "drop_below": 0.0}
EXACT: dict[str, Any] = {"solver": "smooth", "grow": False, "widen": False}
# name -> options, of which the unnamed are `advanced`, and what is done to the rows first
VARIANTS: dict[str, dict[str, Any]] = {
    "as published": {},
    "C = 10": {"barrier": 10.0},
    "C = 100": {"barrier": 100.0},
    "losses bounded by one": {"loss": "bounded"},
    "start at the data's mean": {"move": "mean"},
    "tau 1e-3 at the start": {"initial_precision": 1e-3},
    "layer a tenth as large": {"scale": 0.1},
    "layer three times as large": {"scale": 3.0},
    "rate .003": {"learning_rate": 3e-3},
    "rate .001": {"learning_rate": 1e-3},
    "rate .1": {"learning_rate": 1e-1},
    "patience 100": {"patience": 100},
    "size 1%": {"size": 0.01},
    "size 5%": {"size": 0.05},
    "16 axes": {"axes": 16},
    "C = 100, losses bounded": {"barrier": 100.0, "loss": "bounded"},
    "C = 100, start at the data's mean": {"barrier": 100.0, "move": "mean"},
    "C = 100, 16 axes": {"barrier": 100.0, "axes": 16},
    "rate .001, C = 10": {"barrier": 10.0, "learning_rate": 1e-3},
    "rate .001, C = 100": {"barrier": 100.0, "learning_rate": 1e-3},
    "rate .001, losses bounded": {"loss": "bounded", "learning_rate": 1e-3},
    "rate .001, size 1%": {"learning_rate": 1e-3, "size": 0.01},
    "the exact solver": EXACT,
    "the exact solver, size 1%": {**EXACT, "size": 0.01},
    "the exact solver, size 5%": {**EXACT, "size": 0.05},
    "the exact solver, lights that grow": {**EXACT, "grow": True},
    "the exact solver, 16 axes": {**EXACT, "axes": 16},
    "the exact solver, losses bounded": {**EXACT, "loss": "bounded"},
    "the exact solver, all three": {**EXACT, "axes": 16, "loss": "bounded", "dimming": "members"},
}


def varied(rows: Evaluation, change: dict[str, Any]) -> tuple[Evaluation, dict[str, Any]]:
    """The rows and the options of one line."""
    options = dict(change)
    X = np.asarray(rows.representations["penultimate"], dtype=np.float64)
    if options.pop("move", None) == "mean":
        X = X - X.mean(axis=0)
    X = X * options.pop("scale", 1.0)
    outer = {key: options.pop(key) for key in ("size", "axes", "slices") if key in options}
    return replace(rows, representations={"penultimate": X}, sources={}), {
        **outer,
        "advanced": {**PUBLISHED, **options},
    }


def world_line(rows: Evaluation, blindspots: Array, change: dict[str, Any], count: int) -> dict[str, float]:
    """One line on one world."""
    changed, options = varied(rows, {**change, "slices": count})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        slicer = make("spotlight:as_published", options=options).fit(changed)
        weights = slicer.membership(changed)
        best = make("spotlight:as_published", options=exact_beside(options)).fit(rows)
    sets = sort_by_importance(weights >= slicer.thresholds_, changed)
    rates = metrics.discovery(sets, blindspots)
    recalls = covered(sets, blindspots)
    masses = np.array([rule["mass"] for rule in slicer.rules_])
    X = np.asarray(changed.representations["penultimate"], dtype=np.float64)
    spread = np.sqrt(np.square(X - X.mean(axis=0)).sum(axis=1).mean())
    away = np.nan
    if not slicer.axes_.size:
        away = float(np.linalg.norm(slicer.centres_[0] - X.mean(axis=0)) / spread)
    exact = held(best.membership(rows)[:, 0], rows.losses)
    return {
        "dr": np.nan if rates.dr is None else rates.dr,
        "fdr": np.nan if rates.fdr is None else rates.fdr,
        "in one": int(metrics.precision_matrix(weights[:, :1] >= slicer.thresholds_[0], blindspots).max() >= 0.8),
        "lights": len(masses),
        "on size": int(((masses >= 0.5) & (masses <= 2)).sum()),
        "dark": int((masses < 0.11).sum()),
        "blindspots": blindspots.shape[1],
        "entered": len(recalls),
        "found": int((recalls >= 0.8).sum()),
        "covered": float(recalls.sum()),
        "loss": held(weights[:, 0], rows.losses) / exact,
        "away": away,
    }


def exact_beside(options: dict[str, Any]) -> dict[str, Any]:
    """Of the exact solver's first light at the size, columns and losses of a line: what that line's loss is a share
    of."""
    loss = options["advanced"]["loss"]
    exact = {key: options[key] for key in ("size", "axes") if key in options}
    return {"size": 0.02, **exact, "slices": 1, "advanced": {**PUBLISHED, **EXACT, "loss": loss}}


def covered(sets: Array, blindspots: Array) -> Array:
    """Of every blindspot that a set lies in to 80%, the share that such sets cover together."""
    precise = metrics.precision_matrix(sets, blindspots) >= 0.8
    entered = np.flatnonzero(precise.any(axis=0))
    return np.array([sets[blindspots[:, j]][:, precise[:, j]].any(axis=1).mean() for j in entered])


def held(k: Array, losses: Array | None) -> float:
    assert losses is not None
    return float(k @ losses / k.sum()) if k.sum() > 0 else 0.0


def lying(facts: dict[str, list[float]]) -> str:
    entered = sum(facts["entered"])
    share = sum(facts["covered"]) / entered if entered else 0.0
    return f"{entered:.0f} of {sum(facts['blindspots']):.0f}, {sum(facts['found']):.0f}, {share:.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--worlds", type=int, default=8)
    parser.add_argument("--lights", type=int, default=1)
    parser.add_argument("--only", nargs="+", choices=list(VARIANTS))
    asked = parser.parse_args()
    paths = sorted(asked.folder.glob("world-*.npz"))[: asked.worlds]
    if not paths:
        parser.error(f"no world-*.npz in {asked.folder}; `errata bench spotcheck -o FOLDER` writes them")
    worlds = [read_world(path) for path in paths]
    shares = [float(each.mean()) for _, blindspots in worlds for each in blindspots.T]
    first = worlds[0][0]
    losses = np.concatenate([rows.losses for rows, _ in worlds if rows.losses is not None])
    columns = np.asarray(first.representations["penultimate"]).shape[1]
    print(f"{len(worlds)} worlds of {len(first)} rows, {columns} columns; {len(shares)} blindspots", end="")
    print(f" of {min(shares):.3f} to {max(shares):.3f} of the rows; losses: mean {losses.mean():.2f}", end="")
    print(f", 98% {np.quantile(losses, 0.98):.2f}, most {losses.max():.1f} nats")
    print(
        "| | DR | FDR | blindspots: entered, found, covered | in one | on size | dark | first light: loss | away "
        "| DR, more than the first line | seconds |"
    )
    print("|---" * 11 + "|")
    base: list[float] = []
    for name in asked.only or VARIANTS:
        began = time.perf_counter()
        found = [world_line(rows, blindspots, VARIANTS[name], asked.lights) for rows, blindspots in worlds]
        facts = {key: [line[key] for line in found] for key in found[0]}
        counts = [f"{sum(facts[key]):.0f} of {sum(facts['lights']):.0f}" for key in ("on size", "dark")]
        cells = [over_finite_runs(facts[key]) for key in ("dr", "fdr")]
        cells += [lying(facts), f"{sum(facts['in one'])}", *counts]
        base = base or facts["dr"]
        more = [dr - first_dr for dr, first_dr in zip(facts["dr"], base, strict=True)]
        cells += [over_finite_runs(values) for values in (facts["loss"], facts["away"], more)]
        cells.append(f"{time.perf_counter() - began:.0f}")
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
