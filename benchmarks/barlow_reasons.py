"""Why Barlow's observations hold or do not (section 7 of the paper): reasons put to the test.

    python benchmarks/barlow_reasons.py printed       intervals over classes, from the leaves that the study prints
    python benchmarks/barlow_reasons.py run -o REASONS.jsonl [--data cifar10 utkface] [--seeds 0 1 2 3]
        [--epochs 1 3 8] [--features own other standard] [--no-areas]
    python benchmarks/barlow_reasons.py report REASONS.jsonl

`run` trains small networks as benchmarks/barlow_factors.py does and asks: does label grouping lose to prediction
grouping where the audited network is better (1, 3 and 8 epochs of training)? Does the robust network beat the standard
one only because its own features contain its prediction (features of a second robust network, of other weights, beside
them), or because features of its own kind tell its failures (features of a second standard network)? Does a group's
chief leaf stand above it where trees are grown on fewer rows? And where no leaf is valid, can failures be told from
successes at all (area under the curve of gradient boosting on all features, within a group, by five folds)? Trees are
grown on one half of the other images and counted on the other half.
Data: ERRATA_DATA, or ../shared/data beside the clone.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import spearmanr
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict

from barlow_factors import DEPTHS, GROUPS, RADIUS, SIDE, STEPS, Pictures, read, split, valid
from directions_parts import compared
from errata import Evaluation, Source
from errata.slicers import make
from errata.slicers.barlow.slicer import tree_statistics
from errata.train import fit, fit_robust, network, outputs
from trained import over_runs

Array = np.ndarray
STUDY = Path(__file__).parents[1] / "docs" / "studies" / "barlow.md"
LEARNT = 20_000
EPOCHS = (1, 3, 8)
COLUMNS = ("standard, label", "standard, prediction", "robust, label", "robust, prediction")
FEATURES = ("own", "other", "standard")  # the robust network's, a second robust one's, a second standard one's
ROWS = (15_000, 7_400, 5_900, 3_000, 1_500)  # that trees are grown on, and as many to count
FEWEST = 20  # failures and successes of a group for an area under the curve


def printed() -> None:
    """Of the study's table of leaves, depth one: how much oftener they fail than their class, and ALER - BER, paired
    over classes. There are two leaves, so that one follows from the other."""
    gains: dict[tuple[str, str], list[float]] = {}
    excess: dict[str, list[float]] = {"in sample": [], "held out": []}
    falling = 0
    for line in STUDY.read_text().splitlines():
        cells = line.strip("| ").split(" | ")
        if not re.search(r"\d [>≤] ", line) or len(cells) != 5:
            continue
        for column, cell in zip(COLUMNS, cells[1:], strict=True):
            rule, rates = cell.split(":")
            falling += "≤" in rule
            for where, numbers in zip(excess, rates.split("→"), strict=True):
                base, rate, coverage = map(float, numbers.split(","))
                excess[where].append(rate - base)
                gains.setdefault((where, column), []).append(gain_of_leaf(base, rate, coverage))
    for where, above in excess.items():
        print(
            f"{where}: {len(above)} leaves fail {min(above):.3f} to {max(above):.3f} above their class, "
            f"median {np.median(above):.3f}"
        )
    print(f"where the feature is weak (≤): {falling} of {len(excess['held out'])}")
    compare = (
        ("standard, label", "standard, prediction"),
        ("robust, label", "robust, prediction"),
        ("robust, label", "standard, label"),
        ("robust, prediction", "standard, prediction"),
    )
    for where in excess:
        for first, second in compare:
            more = np.subtract(gains[where, first], gains[where, second])
            print(f"{where}: {first} less {second}: {compared(more)}")


def gain_of_leaf(base: float, rate: float, coverage: float) -> float:
    """ALER - BER of a tree of two leaves: the other one holds the other failures, of the other rows."""
    share = base * coverage / rate
    other = base * (1 - coverage) / (1 - share)
    return coverage * rate + (1 - coverage) * other - base


def run(asked: argparse.Namespace) -> None:
    import torch

    torch.set_num_threads(1)
    for name in asked.data:
        pictures = read(name)
        for seed in asked.seeds:
            rows = list(studied(name, pictures, seed, asked))
            with asked.out.open("a") as file:
                file.writelines(json.dumps(row, default=lambda value: value.item()) + "\n" for row in rows)
            print(f"{name}, seed {seed}", flush=True)


def recorded_runs(path: Path) -> set[tuple[str, int]]:
    """Data and seed of the rows in a file: a second run of them would count twice in the report."""
    if not path.exists():
        return set()
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {(row["data"], row["seed"]) for row in rows}


def studied(name: str, pictures: Pictures, seed: int, asked: argparse.Namespace) -> Iterator[dict[str, Any]]:
    learnt, rest = split(pictures, seed)
    learnt = Pictures(learnt.images[:LEARNT], learnt.labels[:LEARNT])
    audited = {f"standard, {epochs} epochs": standard_network(learnt, seed, epochs) for epochs in sorted(asked.epochs)}
    audited["robust"] = robust_network(name, learnt, seed)
    features = {whose: features_of(whose, name, learnt, rest, seed, audited["robust"]) for whose in asked.features}
    for kind, model in audited.items():
        predictions = outputs(model, rest.images)[0].argmax(axis=1)
        for whose, columns in features.items():
            source = Source(from_model=kind == "robust" and whose == "own")
            evaluation = Evaluation(
                labels=rest.labels,
                predictions=predictions,
                representations={"robust": columns},
                sources={"robust": source},
            )
            facts = {"data": name, "seed": seed, "audited": kind, "features": whose}
            facts["accuracy"] = float((predictions == rest.labels).mean())
            for group in GROUPS:
                areas = failure_areas(evaluation, group) if whose == "own" and asked.areas else {}
                for depth in DEPTHS:
                    yield {**facts, "group": group, "depth": depth, "trees": trees(evaluation, group, depth, areas)}
                if whose == "own":
                    for grown, leaves in grown_on_fewer(evaluation, group).items():
                        yield {**facts, "group": group, "grown": grown, "leaves": leaves}


def features_of(whose: str, name: str, learnt: Pictures, rest: Pictures, seed: int, robust: Any) -> Array:
    """(n, d) of the robust network itself, or of a second network, robust or standard, of another seed."""
    if whose == "own":
        return outputs(robust, rest.images)[1]
    if whose == "other":
        return outputs(robust_network(name, learnt, seed + 1000), rest.images)[1]
    return outputs(standard_network(learnt, seed + 1000, max(EPOCHS)), rest.images)[1]


def grown_on_fewer(evaluation: Evaluation, group: str) -> dict[int, list[bool]]:
    """By rows that trees of depth one are grown on: of every group, whether its chief leaf stands above it on as many
    other rows."""
    found = {}
    for grown in ROWS:
        if 2 * grown <= len(evaluation):
            rows = evaluation.rows(np.arange(2 * grown))
            found[grown] = [tree["more"] > 0 for tree in trees(rows, group, 1, {})]
    return found


def standard_network(learnt: Pictures, seed: int, epochs: int) -> Any:
    model = network("small", px=SIDE, outputs=int(learnt.labels.max()) + 1, seed=seed)
    fit(model, learnt.images, learnt.labels, epochs=epochs, batch=128, lr=3e-3, seed=seed)
    return model


def robust_network(name: str, learnt: Pictures, seed: int) -> Any:
    model = network("small", px=SIDE, outputs=int(learnt.labels.max()) + 1, seed=seed)
    options: dict[str, Any] = {"epochs": max(EPOCHS), "batch": 128, "lr": 3e-3, "seed": seed}
    fit_robust(model, learnt.images, learnt.labels, radius=RADIUS[name], steps=STEPS, flip=True, **options)
    return model


def trees(evaluation: Evaluation, group: str, depth: int, areas: dict[int, float]) -> list[dict[str, Any]]:
    """Of every group's tree, held out: base rate, ALER - BER, whether its chief leaf is valid and by how much it fails
    more often than the group."""
    half = len(evaluation) // 2
    grown = evaluation.rows(np.arange(half))
    held = evaluation.rows(np.arange(half, len(evaluation)))
    slicer = make("barlow:recommended", options={"scope": group, "depth": depth}).fit(grown)
    found = []
    for own, fresh in zip(tree_statistics(slicer, grown), tree_statistics(slicer, held), strict=True):
        leaf = int(np.argmax(own.leaves.importances))
        base = fresh.leaves.base_error_rate
        number = int(next(iter(own.group.values())))
        facts = {"number": number, "base": base, "gain": fresh.leaves.aler - base, "area": areas.get(number)}
        facts["valid"] = bool(valid(own.leaves, fresh.leaves))
        facts["more"] = float(fresh.leaves.error_rates[leaf] - base)
        found.append(facts)
    return found


def failure_areas(evaluation: Evaluation, group: str) -> dict[int, float]:
    """By group: how well all features together tell its failures from its successes."""
    values = np.asarray(evaluation.labels if group == "label" else evaluation.predictions)
    errors = np.asarray(evaluation.errors)
    X = np.asarray(evaluation.representations["robust"])
    found = {}
    for value in np.unique(values):
        own = values == value
        wrong = errors[own]
        if min(wrong.sum(), (~wrong).sum()) >= FEWEST:
            model = HistGradientBoostingClassifier(max_iter=60, random_state=0)
            told = cross_val_predict(model, X[own], wrong, cv=5, method="predict_proba")[:, 1]
            found[int(value)] = float(roc_auc_score(wrong, told))
    return found


def report(path: Path) -> None:
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for name in dict.fromkeys(row["data"] for row in rows):
        these = [row for row in rows if row["data"] == name and "trees" in row]
        seeds = sorted({row["seed"] for row in these})
        print(f"\n## {name}, {len(seeds)} seeds; ALER - BER held out, mean over groups")
        kinds = list(dict.fromkeys(row["audited"] for row in these))
        features = list(dict.fromkeys(row["features"] for row in these))
        gain = {key(row): np.nanmean([tree["gain"] for tree in row["trees"]]) for row in these}
        accuracy = {(row["audited"], row["seed"]): row["accuracy"] for row in these}

        for kind in kinds:
            print(f"\n{kind}: accuracy {over_runs([accuracy[kind, seed] for seed in seeds])}")
            for depth in DEPTHS:
                for whose in features:
                    pairs = [[gain[kind, whose, group, depth, seed] for seed in seeds] for group in GROUPS]
                    more = np.subtract(*pairs)
                    print(
                        f"  depth {depth}, features {whose}: label {np.mean(pairs[0]):.3f}, prediction "
                        f"{np.mean(pairs[1]):.3f}, label less prediction {compared(more)}"
                    )
            for whose in features:
                for group in GROUPS:
                    more = [gain[kind, whose, group, 3, s] - gain[kind, whose, group, 1, s] for s in seeds]
                    print(f"  features {whose}, by {group}: depth 3 less depth 1 {compared(np.array(more))}")
        best = kinds[-2]
        for whose in features:
            for group in GROUPS:
                for depth in DEPTHS:
                    more = [gain["robust", whose, group, depth, s] - gain[best, whose, group, depth, s] for s in seeds]
                    print(
                        f"robust less {best}, features {whose}, by {group}, depth {depth}: {compared(np.array(more))}"
                    )
        report_like_groups(these, best)
        report_areas(these, kinds)
        report_fewer_rows([row for row in rows if row["data"] == name and "grown" in row])


def key(row: dict[str, Any]) -> tuple[Any, ...]:
    return row["audited"], row["features"], row["group"], row["depth"], row["seed"]


def report_like_groups(rows: list[dict[str, Any]], best: str) -> None:
    """Groups of like error rate: by label beside by prediction, and of the robust network beside the standard one."""
    trees_of = {key(row): row["trees"] for row in rows}
    for kind, whose, group, depth in dict.fromkeys(each[:4] for each in trees_of):
        seeds = [each[4] for each in trees_of if each[:4] == (kind, whose, group, depth)]
        where = f"depth {depth}, features {whose}, groups of like error rate"
        if group == "label" and whose == "own" and kind in (best, "robust"):
            pairs = [
                (trees_of[kind, whose, group, depth, s], trees_of[kind, whose, "prediction", depth, s]) for s in seeds
            ]
            print(f"{kind}, {where}: label less prediction {like_groups(pairs)}")
        if kind == "robust":
            pairs = [(trees_of[kind, whose, group, depth, s], trees_of[best, whose, group, depth, s]) for s in seeds]
            print(f"by {group}, {where}: robust less {best} {like_groups(pairs)}")


def like_groups(pairs: Sequence[tuple[list[dict[str, Any]], list[dict[str, Any]]]]) -> str:
    """Each group's gain less that of the group of the other trees whose base rate is nearest, where that is within
    .05; means of each seed, whose groups share images and networks. pairs: trees and other trees, one pair a seed."""
    means = []
    count = 0
    for trees_, others in pairs:
        more = []
        for tree in trees_:
            like = min(others, key=lambda each: abs(each["base"] - tree["base"]))
            if abs(like["base"] - tree["base"]) <= 0.05:
                more.append(tree["gain"] - like["gain"])
        count += len(more)
        if more:
            means.append(float(np.mean(more)))
    if len(means) < 2:
        return f"not told, {count} pairs"
    return f"{compared(np.array(means))}, {count} pairs"


def report_areas(rows: list[dict[str, Any]], kinds: list[str]) -> None:
    """What can be told of failures within a group, and what a leaf of depth one shows."""
    for kind in kinds:
        for group in GROUPS:
            same = [row for row in rows if (row["audited"], row["features"], row["depth"]) == (kind, "own", 1)]
            these = [tree for row in same if row["group"] == group for tree in row["trees"] if tree["area"] is not None]
            if not these:  # run with --no-areas
                continue
            areas = [tree["area"] for tree in these]
            valid_ = np.array([tree["valid"] for tree in these])
            above = sum(tree["more"] > 0 for tree in these)
            rho = spearmanr(areas, [tree["more"] for tree in these]).statistic
            print(
                f"{kind}, by {group}: area under the curve {np.mean(areas):.3f} ({np.min(areas):.2f} to "
                f"{np.max(areas):.2f}), base rate {np.mean([tree['base'] for tree in these]):.3f}, n = {len(these)}; "
                f"valid leaf {valid_.mean():.2f}, above its group {above}; "
                f"Spearman of area and the leaf's excess {rho:.2f}"
            )


def report_fewer_rows(rows: list[dict[str, Any]]) -> None:
    """Chief leaves of depth one that stand above their group, by the rows that trees were grown on."""
    for kind in dict.fromkeys(row["audited"] for row in rows):
        for grown in dict.fromkeys(row["grown"] for row in rows):
            leaves = [
                above for row in rows if (row["audited"], row["grown"]) == (kind, grown) for above in row["leaves"]
            ]
            print(f"{kind}, trees grown on {grown:,} rows: chief leaf above its group {sum(leaves)} of {len(leaves)}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["printed", "run", "report"])
    parser.add_argument("file", type=Path, nargs="?", help="to report")
    parser.add_argument("-o", "--out", type=Path, default=Path("barlow-reasons.jsonl"))
    parser.add_argument("--data", nargs="+", choices=list(RADIUS), default=list(RADIUS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3])
    parser.add_argument("--epochs", type=int, nargs="+", default=list(EPOCHS), help="of the standard networks")
    parser.add_argument("--features", nargs="+", choices=FEATURES, default=list(FEATURES))
    parser.add_argument(
        "--no-areas", dest="areas", action="store_false", help="not how well all features tell failures"
    )
    asked = parser.parse_args()
    if asked.task == "printed":
        printed()
    elif asked.task == "report":
        report(asked.file)
    else:
        twice = sorted(recorded_runs(asked.out) & {(name, seed) for name in asked.data for seed in asked.seeds})
        if twice:
            name, seed = twice[0]
            parser.error(f"{asked.out} has {name}, seed {seed} already; give other --seeds, or another file with -o")
        run(asked)


if __name__ == "__main__":
    main()
