"""Strength of failure directions by how much of each class's worst subclass is cut (Jain et al. 2023, figure 22).

    python benchmarks/directions_degrees.py run -o DEGREES.jsonl [--studies twenty two] [--seeds 20 21] [--minutes 60]
    python benchmarks/directions_degrees.py report DEGREES.jsonl

In worlds of `directions_chosen.py` the subclass of each class on which a network of all rows errs most, by validation
rows, loses no training row, some of them, or all. Beside it, `alike`: as many training rows of each class are left out,
but of all its subclasses alike, so that only how many rows there are to train on differs from no cut at all.
Strength comes from validation rows, accuracy and errors from test rows; both are the same rows whatever is cut. One
split and one choice of subclasses a seed. Wants what benchmarks/bridge.py wants.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from bridge import table
from directions_chosen import worst
from directions_many import STUDIES, World, accuracy, pictures
from errata import Evaluation
from errata.slicers.directions.slicer import Directions
from trained import over_runs

Array = np.ndarray
SHARES = (0.0, 0.25, 0.5, 0.75, 0.9, 1.0)
SPACES = ("backbone", "named")
Facts = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Alike(World):
    """As many training rows of each class are left out, of all its subclasses alike."""

    def rows_left(self, number: int, most: int) -> int:
        siblings = np.bincount(self.study.class_of)[self.study.class_of[number]]
        return round((1 - self.removed / siblings) * most)


KINDS: dict[str, type[World]] = {"worst": World, "alike": Alike}


# --- what is measured of a network ---------------------------------------------------------------------------


def measured(world: World, permutations: int, before: Array) -> Facts:
    """before: (k,) each class's wrong validation rows where nothing is cut."""
    rules = {space: directions(world.evaluation("validation", space), world, permutations) for space in SPACES}
    as_many = {space: directions(with_as_many_errors(world, space, before), world, 0) for space in SPACES}
    return {
        "seed": world.seed,
        "removed": world.removed,
        "cut": [world.study.names[c] for c in world.cut],
        "train": len(world.roles["train"]),
        "accuracy": accuracy(world, world.first),
        "of_errors": shares_of_errors(world),
        "errors": by_class(world, rules["backbone"], "errors"),
        "strength": {space: by_class(world, rules[space], "strength") for space in SPACES},
        "strength of as many": {space: by_class(world, as_many[space], "strength") for space in SPACES},
        "null": {space: by_class(world, rules[space], "null") for space in SPACES},
    }


def directions(rows: Evaluation, world: World, permutations: int) -> Sequence[Facts]:
    """As `World.directions`, of some validation rows and with shuffles for a null."""
    (space,) = rows.representations
    slicer = Directions(slices=None, permutations=permutations, representation=space)
    return slicer.fit(rows, train=world.evaluation("train", space)).rules_


def with_as_many_errors(world: World, space: str, before: Array) -> Evaluation:
    """Validation rows without those errors by which a class has more than before: an SVM with more learns more."""
    validation = world.evaluation("validation", space)
    chance = np.random.default_rng([world.seed, 7])
    return validation.rows(not_beyond(validation.errors, validation.labels, before, chance))


def not_beyond(errors: Array, labels: Array, most: Array, chance: np.random.Generator) -> Array:
    """(n,) every right row, and of each class's errors at most so many, drawn at random. most: (k,)"""
    kept = np.array(~errors)
    for number, count in enumerate(most):
        wrong = chance.permutation(np.flatnonzero(errors & (labels == number)))
        kept[wrong[:count]] = True
    return kept


def by_class(world: World, rules: Sequence[Facts], fact: str) -> list[Any]:
    """None for a class without a direction, and where its errors are too few to be told."""
    values = {rule["scope"]["label"]: rule[fact] for rule in rules}
    return [values.get(number) for number in range(len(world.study.classes))]


def shares_of_errors(world: World) -> list[float | None]:
    """Of each class's wrong test rows, those of its cut subclass. None: no row is wrong."""
    test = world.evaluation("test", "backbone")
    shares: list[float | None] = []
    for number, cut in enumerate(world.cut):
        wrong = world.fine[test.ids[test.errors & (test.labels == number)]]
        share = None
        if len(wrong):
            share = float((wrong == cut).mean())
        shares.append(share)
    return shares


def run(asked: argparse.Namespace) -> None:
    import torch

    torch.set_num_threads(1)
    until = time.monotonic() + 60 * asked.minutes
    for study, seed in ((study, seed) for study in asked.studies for seed in asked.seeds):
        for kind, facts in degrees(study, seed, asked):
            with asked.out.open("a") as file:
                file.write(json.dumps({"study": study, "kind": kind, **facts}) + "\n")
            print(f"{study}, seed {seed}, {kind}, {facts['removed']:.0%} cut", flush=True)
            if time.monotonic() > until:
                print("stopped: the minutes are over", flush=True)
                return


def degrees(study: str, seed: int, asked: argparse.Namespace) -> Iterator[tuple[str, Facts]]:
    """A network of each kind and share. Where nothing is cut both kinds are one network, told as `worst`."""
    whole = World(pictures(str(asked.cache)), STUDIES[study], seed, ())
    cut = worst(whole)
    validation = whole.evaluation("validation", "backbone")
    before = np.bincount(validation.labels[validation.errors], minlength=len(cut))
    for kind in asked.kinds:
        for share in asked.shares:
            if share > 0 or kind == "worst":
                world = KINDS[kind](whole.pictures, whole.study, seed, cut, removed=share)
                yield kind, measured(world, asked.permutations, before)


# --- what is told of many ------------------------------------------------------------------------------------


def report(networks: Sequence[Facts]) -> None:
    for study in dict.fromkeys(network["study"] for network in networks):
        these = complete([network for network in networks if network["study"] == study])
        seeds = sorted({network["seed"] for network in these})
        print(f"\n## {study}: {len(these)} networks of {len(seeds)} seeds")
        columns = {f"strength, {space}": strengths(these, space) for space in SPACES}
        columns |= {f"of as many errors, {space}": strengths(these, space, "strength of as many") for space in SPACES}
        columns |= {f"null, {space}": nulls(these, space) for space in SPACES}
        columns |= harms(these)
        for kind in dict.fromkeys(network["kind"] for network in these):
            shares = shares_of(these, kind)
            by_share = {name: over_shares(these, values, kind, shares) for name, values in columns.items()}
            levels(kind, shares, by_share)
            differences(shares, by_share)
            if len(shares) > 2:
                correlations(shares, by_share)
        between_kinds(these, columns)
        within_classes(these)


def complete(networks: Sequence[Facts]) -> list[Facts]:
    """Those of seeds of which every network was trained: what is paired by seed must be there."""
    of_seed = {network["seed"]: 0 for network in networks}
    for network in networks:
        of_seed[network["seed"]] += 1
    return [network for network in networks if of_seed[network["seed"]] == max(of_seed.values())]


def comparable(networks: Sequence[Facts], space: str) -> dict[int, Array]:
    """Seed -> (k,) bool: classes that have a strength in all of its networks, so that means are of the same classes."""
    found: dict[int, Array] = {}
    for network in networks:
        both = zip(network["strength"][space], network["strength of as many"][space], strict=True)
        here = np.array([None not in pair for pair in both])
        found[network["seed"]] = here & found.get(network["seed"], True)
    return found


def strengths(networks: Sequence[Facts], space: str, which: str = "strength") -> list[float]:
    """Of each network, the mean over comparable classes."""
    classes = comparable(networks, space)
    counts = [int(each.sum()) for each in classes.values()]
    print(f"{which}, {space}: {sum(counts)} of {sum(len(each) for each in classes.values())} classes are in the means")
    return [
        float(np.mean([network[which][space][k] for k in np.flatnonzero(classes[network["seed"]])]))
        for network in networks
    ]


def nulls(networks: Sequence[Facts], space: str) -> list[float]:
    """Of each network, the mean over classes of the mean of shuffles. NaN: nothing was shuffled."""
    means = []
    for network in networks:
        known = [null["mean"] for null in network["null"][space] if null is not None]
        means.append(float(np.mean(known or [np.nan])))
    return means


def harms(networks: Sequence[Facts]) -> dict[str, list[float]]:
    known = [[share for share in network["of_errors"] if share is not None] for network in networks]
    return {
        "accuracy of the cut": [network["accuracy"]["minority"] for network in networks],
        "overall": [network["accuracy"]["all"] for network in networks],
        "share of errors of the cut": [float(np.mean(shares)) for shares in known],
        "errors a class": [float(np.mean([count or 0 for count in network["errors"]])) for network in networks],
        "training rows": [float(network["train"]) for network in networks],
    }


def shares_of(networks: Sequence[Facts], kind: str) -> list[float]:
    """What was cut in networks of one kind, with nothing first: there both kinds are one network."""
    return sorted({0.0, *(network["removed"] for network in networks if network["kind"] == kind)})


def over_shares(networks: Sequence[Facts], values: Sequence[float], kind: str, shares: Sequence[float]) -> Array:
    """(seeds, shares) of one kind."""
    found = {
        (network["seed"], network["removed"]): value
        for network, value in zip(networks, values, strict=True)
        if network["kind"] == kind or network["removed"] == 0
    }
    seeds = sorted({seed for seed, _ in found})
    return np.array([[found[seed, share] for share in shares] for seed in seeds])


def levels(kind: str, shares: Sequence[float], by_share: dict[str, Array]) -> None:
    print(f"\n{kind}")
    rows = [[name, *map(over_runs, values.T)] for name, values in by_share.items()]
    table(["cut", *(f"{share:.0%}" for share in shares)], rows)


def differences(shares: Sequence[float], by_share: dict[str, Array]) -> None:
    """To no cut, paired by seed."""
    rows = [[name, *map(over_runs, (values - values[:, :1]).T[1:])] for name, values in by_share.items()]
    table(["more than without a cut", *(f"{share:.0%}" for share in shares[1:])], rows)


def correlations(shares: Sequence[float], by_share: dict[str, Array]) -> None:
    """Over the shares of a seed; of all networks less their seed's mean; of the means over seeds."""
    others = {"share cut": np.tile(shares, (len(by_share["overall"]), 1))}
    others |= {name: by_share[name] for name in ("accuracy of the cut", "share of errors of the cut", "errors a class")}
    rows = []
    for strength in [name for name in by_share if name.startswith(("strength", "of as many"))]:
        for name, other in others.items():
            rows.append([strength, name, *related(by_share[strength], other)])
    table(["Spearman of", "with", "within seeds", "all, less the seed's mean", "of means"], rows)


def related(first: Array, second: Array) -> tuple[str, str, str]:
    """Spearman of two (seeds, shares): the mean over seeds, of all less their seed's mean, of the means over seeds."""
    within = [spearmanr(a, b).statistic for a, b in zip(first, second, strict=True)]
    centred = [(values - values.mean(axis=1, keepdims=True)).ravel() for values in (first, second)]
    pooled = spearmanr(*centred).statistic
    of_means = spearmanr(first.mean(axis=0), second.mean(axis=0)).statistic
    return over_runs(within, 2), f"{pooled:.2f}", f"{of_means:.2f}"


def between_kinds(networks: Sequence[Facts], columns: dict[str, list[float]]) -> None:
    """The rise where the worst subclass is cut, beyond that where as many rows are left out of all alike."""
    if {network["kind"] for network in networks} != set(KINDS):
        return
    shares = sorted(set.intersection(*(set(shares_of(networks, kind)) for kind in KINDS)))
    rows = []
    for name, values in columns.items():
        worst_, alike = (over_shares(networks, values, kind, shares) for kind in KINDS)
        rows.append([name, *map(over_runs, (worst_ - alike).T[1:])])
    print()
    table(["worst cut, more than alike", *(f"{share:.0%}" for share in shares[1:])], rows)


def within_classes(networks: Sequence[Facts]) -> None:
    """Over the shares of one class of one seed; the mean over its classes is one number a seed."""
    cut = [network for network in networks if network["kind"] == "worst"]
    rows = []
    for space in SPACES:
        seeds = [seed_correlations(cut, space, seed) for seed in sorted({network["seed"] for network in cut})]
        rows.append([space, *(over_runs(column, 2) for column in np.transpose(seeds))])
    print("\nSpearman of strength within each class of each seed, its mean over classes")
    table(["space", "with the share cut", "with the accuracy of the cut"], rows)


def seed_correlations(networks: Sequence[Facts], space: str, seed: int) -> tuple[float, float]:
    """With the share that is cut and with accuracy, the mean over classes of one seed."""
    here = sorted((network for network in networks if network["seed"] == seed), key=lambda network: network["removed"])
    removed = [network["removed"] for network in here]
    accuracies = np.array([network["accuracy"]["cut"] for network in here])
    with_share = []
    with_accuracy = []
    for k in np.flatnonzero(comparable(here, space)[seed]):
        strength = [network["strength"][space][k] for network in here]
        with_share.append(spearmanr(strength, removed).statistic)
        with_accuracy.append(spearmanr(strength, accuracies[:, k]).statistic)
    return float(np.nanmean(with_share)), float(np.nanmean(with_accuracy))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["run", "report"])
    parser.add_argument("networks", type=Path, nargs="*", help="files to report")
    parser.add_argument("-o", "--out", type=Path, default=Path("directions-degrees.jsonl"))
    parser.add_argument("--studies", nargs="+", choices=["twenty", "two"], default=["twenty", "two"])
    parser.add_argument("--kinds", nargs="+", choices=list(KINDS), default=list(KINDS))
    parser.add_argument("--shares", type=float, nargs="+", default=SHARES, help="that are cut")
    parser.add_argument("--seeds", type=int, nargs="+", default=range(20, 30))
    parser.add_argument("--permutations", type=int, default=5, help="shuffles for the null of strength")
    parser.add_argument("--minutes", type=float, default=600)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "errata-studies")
    asked = parser.parse_args()
    if asked.task == "run":
        run(asked)
        return
    report([json.loads(line) for path in asked.networks for line in path.read_text().splitlines()])


if __name__ == "__main__":
    main()
