"""Why Barlow does not find the blindspots of SpotCheck-like worlds: true attributes as features, trees of 1 to 8 cuts.

    python benchmarks/barlow_depth.py planted --worlds 44 [--called .05 --wrong .01]
    python benchmarks/barlow_depth.py trained FOLDER  of `errata bench spotcheck --scale small --layer second -o FOLDER`

`planted`: scenes of the published number of rows, and outcomes drawn by hand: in a blindspot a square is seen with
probability `called`, elsewhere an answer is wrong with probability `wrong`. No network has a part in it. `trained`: the
answers and layers of trained networks; the attributes of their test scenes are made again from the world's seed.

Attributes are what an image shows: -1 and 1 for an object that is there, 0 where it is not, so that one cut says
"a blue circle". Beside them: the attributes with noise up to 512 columns, which the choice of 20 features has to see
through; layers of trained networks. DR and FDR as `errata bench spotcheck` counts them, sets of a slicer as they
are (raw). `tau 0`: leaves need no share of the failures.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from bridge import table
from errata import Evaluation, Source
from errata.bench import metrics
from errata.bench.recipes import RECIPES, splits
from errata.bench.scenes import Scenes, sample_scenes, sample_world, sizes
from errata.bench.spotcheck import sort_by_importance
from errata.bench.worlds import POSITION, TARGET, World, presence
from errata.slicers.barlow.slicer import Barlow
from errata.slicers.options import Interval

Array = np.ndarray
DEPTHS = range(1, 9)
DEPTHS_NAMED = [f"depth {depth}" for depth in DEPTHS]
SOME = (1, 3, 5, 6)  # of the slow variants
COLUMNS = 512  # of the layer that the published worlds' networks have
TAU = 0.2


class DeepBarlow(Barlow):
    """Barlow without the paper's limit of three cuts."""

    limits: ClassVar = {**Barlow.limits, "depth": Interval(1, max(DEPTHS))}


@dataclass(frozen=True)
class Variant:
    """One way to run Barlow on a world."""

    features: str
    rows: str = "with a square"  # or "all"
    scope: str = "label"
    tau: float = TAU
    chosen: int = 20  # features that a tree may use
    preset: str = "recommended"
    depths: Sequence[int] = DEPTHS


@dataclass(frozen=True, eq=False)
class WorldRows:
    """Test rows of a world: what the model says of them, what can be searched, where it is blind."""

    world: World
    labels: Array  # (n,)
    probs: Array  # (n,) that there is a square
    spaces: dict[str, Array]
    blindspots: Array  # (n, B) bool

    def evaluation(self, variant: Variant) -> tuple[Evaluation, Array]:
        rows = np.full(len(self.labels), True)
        if variant.rows != "all":
            rows = self.labels == 1
        evaluation = Evaluation(
            labels=self.labels[rows],
            probs=self.probs[rows],
            representations={variant.features: self.spaces[variant.features][rows]},
            sources={variant.features: Source(from_model=variant.features == "own layer")},
        )
        return evaluation, self.blindspots[rows]


PLANTED = (
    Variant("attributes"),
    Variant("attributes", tau=0.0),
    Variant("attributes", preset="as_published", depths=SOME),
    Variant("attributes and noise", depths=SOME),
    Variant("attributes and noise", chosen=COLUMNS, depths=SOME),
    Variant("attributes", rows="all", scope="prediction", depths=SOME),
)
TRAINED = (
    Variant("attributes"),
    Variant("attributes", tau=0.0),
    Variant("own layer"),
    Variant("second network"),
    Variant("second network", tau=0.0),
    Variant("second network", chosen=COLUMNS),
    Variant("attributes", rows="all", scope="prediction", depths=SOME),
)


def attributes(scenes: Scenes) -> Array:
    """(n, F) what each image shows: 0 where the object is absent, else -1 or 1; a presence is 0 or 1."""
    columns = {name: scenes.features[:, i] for i, name in enumerate(scenes.world.features)}
    shown = []
    for name, values in columns.items():
        if name == POSITION or name.endswith("_presence"):
            shown.append(values)
        else:
            there = columns.get(presence(name), np.ones_like(values))
            shown.append(np.where(there == 1, 2 * values - 1, 0))
    return np.stack(shown, axis=1).astype(np.float32)


def cuts_needed(blindspot: Any) -> int:
    """Conditions of a blindspot on rows with a square, less the presences that another of them implies."""
    implied = {presence(name) for name in blindspot if not name.endswith("_presence")}
    return sum(name != TARGET and name not in implied for name in blindspot)


def with_noise(shown: Array, seed: int) -> Array:
    rng = np.random.default_rng([seed, 7])
    return np.hstack([shown, rng.normal(size=(len(shown), COLUMNS - shown.shape[1])).astype(np.float32)])


def planted_worlds(asked: argparse.Namespace) -> Iterator[WorldRows]:
    for i in range(asked.worlds):
        seed = int(np.random.SeedSequence([asked.seed, i, 0]).generate_state(1)[0])
        world = sample_world(seed)
        test = sample_scenes(world, sizes(world)["test"], 2)
        rng = np.random.default_rng([seed, 1])
        inside = test.blindspot.any(axis=1)
        called = np.where(inside, rng.random(len(test)) < asked.called, test.truth == 1)
        called ^= ~inside & (rng.random(len(test)) < asked.wrong)
        shown = attributes(test)
        spaces = {"attributes": shown, "attributes and noise": with_noise(shown, seed)}
        yield WorldRows(world, test.truth, np.where(called, 0.9, 0.1), spaces, test.blindspot)


def trained_worlds(asked: argparse.Namespace) -> Iterator[WorldRows]:
    for path in sorted(asked.folder.glob("world-*.npz")):
        with np.load(path, allow_pickle=False) as arrays:
            world = sample_world(json.loads(str(arrays["facts"]))["seed"])
            test = splits(world, RECIPES["small"])["test"]
            assert (test.blindspot == arrays["blindspot"]).all(), f"{path} was not made by the small recipe"
            shown = attributes(test)
            spaces = {"attributes": shown, "attributes and noise": with_noise(shown, world.seed)}
            spaces["own layer"] = arrays["penultimate"].astype(np.float32)
            if "foreign" in arrays:
                spaces["second network"] = arrays["foreign"].astype(np.float32)
            probs = 1 / (1 + np.exp(-arrays["logits"].astype(np.float64)))
            yield WorldRows(world, test.truth, probs, spaces, test.blindspot)


def judge(rows: WorldRows, variant: Variant, depth: int) -> dict[str, Any]:
    """DR and FDR of one variant at one depth, and which blindspots were found."""
    evaluation, blindspots = rows.evaluation(variant)
    rare = {**DeepBarlow.presets[variant.preset].get("advanced", {}), "features": variant.chosen}
    slicer = DeepBarlow(scope=variant.scope, depth=depth, tau=variant.tau, advanced=rare).fit(evaluation)
    h = sort_by_importance(slicer.membership(evaluation) >= slicer.thresholds_, evaluation)
    rates = metrics.discovery(h, blindspots)
    found = [metrics.discovery(h, blindspots[:, [b]]).dr == 1 for b in range(blindspots.shape[1])]
    return {"dr": rates.dr, "fdr": rates.fdr, "hypotheses": int(h.any(axis=0).sum()), "found": found}


def mean_text(values: Sequence[float | None]) -> str:
    mean, error = metrics.mean_and_error(list(values))
    if mean is None:
        return "–"
    return f"{mean:.2f}" if error is None else f"{mean:.2f} ({error:.2f})"


Results = dict[Variant, dict[int, list[dict[str, Any]]]]


def report(results: Results, worlds: Sequence[World]) -> None:
    spots = sum(len(world.blindspots) for world in worlds)
    print(f"\n{len(worlds)} worlds with {spots} blindspots; DR / FDR, standard errors in brackets")
    names = ["features", "rows", "grouped by", "tau", "features a tree may use", "preset"]
    rows = []
    for variant, by_depth in results.items():
        facts = [variant.features, variant.rows, variant.scope, variant.tau, variant.chosen, variant.preset]
        cells = {
            depth: f"{mean_text([world['dr'] for world in some])} / {mean_text([world['fdr'] for world in some])}"
            for depth, some in by_depth.items()
        }
        rows.append([*facts, *(cells.get(depth, "") for depth in DEPTHS)])
    table([*names, *DEPTHS_NAMED], rows)
    for variant in list(results)[:2]:
        by_cuts(variant, results[variant], worlds)
        by_number(variant, results[variant], worlds)


def by_cuts(variant: Variant, by_depth: dict[int, list[dict[str, Any]]], worlds: Sequence[World]) -> None:
    print(f"\nblindspots found, by the cuts that they need: {variant.features}, tau {variant.tau}")
    needed = np.array([cuts_needed(spot) for world in worlds for spot in world.blindspots])
    rows = []
    for cuts in np.unique(needed):
        found = [np.concatenate([world["found"] for world in some])[needed == cuts] for some in by_depth.values()]
        rows.append([cuts, (needed == cuts).sum(), *(int(each.sum()) for each in found)])
    table(["cuts needed", "blindspots", *DEPTHS_NAMED], rows)


def by_number(variant: Variant, by_depth: dict[int, list[dict[str, Any]]], worlds: Sequence[World]) -> None:
    print(f"\nDR by the number of blindspots in a world: {variant.features}, tau {variant.tau}")
    counts = [len(world.blindspots) for world in worlds]
    rows = []
    for count in sorted(set(counts)):
        own = [number for number, spots in enumerate(counts) if spots == count]
        rates = [mean_text([some[number]["dr"] for number in own]) for some in by_depth.values()]
        rows.append([count, len(own), *rates])
    table(["blindspots", "worlds", *DEPTHS_NAMED], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=["planted", "trained"])
    parser.add_argument("folder", type=Path, nargs="?", help="of trained worlds")
    parser.add_argument("--worlds", type=int, default=44)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--called", type=float, default=0.05)
    parser.add_argument("--wrong", type=float, default=0.01)
    asked = parser.parse_args()
    variants = PLANTED
    made = planted_worlds(asked)
    if asked.study == "trained":
        variants = TRAINED
        made = trained_worlds(asked)
    worlds = []
    results: Results = {}
    for rows in made:
        worlds.append(rows.world)
        for variant in variants:
            if variant.features in rows.spaces:
                by_depth = results.setdefault(variant, {depth: [] for depth in variant.depths})
                for depth in variant.depths:
                    by_depth[depth].append(judge(rows, variant, depth))
        print(f"world {len(worlds)}", flush=True)
    report(results, worlds)


if __name__ == "__main__":
    main()
