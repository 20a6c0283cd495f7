"""Why a light after one epoch has more of the misled rows in one setting than in another: how they lie in the layer.

    python benchmarks/worst_group_layer.py [mnist-90] [mnist-95] [faces-95] ... [--seeds 0 1 2 3 4 5]

Settings, networks and lights are those of benchmarks/worst_group.py, after the first epoch of a light: rows drawn
evenly, with replacement. Misled are the rows whose tint or gender speaks against their label; they are two groups, of
one label each. "group" is the mean size of the two beside the light's size; "apart" how far their centres are, in root
mean squared distances of a misled row to its own group's centre; "purest place" the largest share of the misled that
the light's kernel has around any of 200 misled rows drawn at random, with the light's size, and "any place" the mean.
The guess, set before the first run: a light has as many of the misled as the purest place lets it have.
"""

from __future__ import annotations

import argparse
import tempfile
from pathlib import Path

import numpy as np

from spotlight_contents import kernel_at
from trained import over_runs
from worst_group import SETTINGS, Draw, Problem, learner_for, problem

Array = np.ndarray
SIZES = (0.02, 0.1)
PLACES = 200


def after_one_epoch(whole: Problem, seed: int) -> tuple[Array, Array]:
    """Probabilities and penultimate layer of the training rows."""
    learner = learner_for(whole.train.pixels.shape[1], "spotlight", "cpu")
    learner.start(whole.train, seed)
    n = len(whole.train.labels)
    learner.epoch(np.random.default_rng([seed, 7]).choice(n, n, p=np.full(n, 1 / n)))
    return learner.outputs(learner.pixels)


def measured(setting: str, seed: int, folder: Path) -> dict[str, float]:
    whole = problem(setting, seed, folder)
    probs, hidden = after_one_epoch(whole, seed)
    layer = hidden.astype(np.float64)
    misled = whole.train.groups % 2 == 0
    found = {"misled": float(misled.mean()), "apart": apart(layer, misled, whole.train.labels)}
    rng = np.random.default_rng([seed, 9])
    centres = layer[rng.choice(np.flatnonzero(misled), min(PLACES, int(misled.sum())), replace=False)]
    for size in SIZES:
        total = size * len(layer)
        shares = [share_of(kernel_at(layer, centre, total), misled) for centre in centres]
        light = Draw("spotlight", {"size": size, "share": 1.0}, whole.train, {}, []).light(probs, hidden, seed)
        found[f"{size:.0%}: light"] = share_of(light, misled)
        found[f"{size:.0%}: purest place"] = max(shares)
        found[f"{size:.0%}: any place"] = float(np.mean(shares))
        found[f"{size:.0%}: light less purest place"] = share_of(light, misled) - max(shares)
        found[f"{size:.0%}: group"] = float(misled.sum()) / 2 / total
    return found


def share_of(k: Array, rows: Array) -> float:
    return float(k @ rows / k.sum())


def apart(layer: Array, misled: Array, labels: Array) -> float:
    """How far the centres of the two misled groups are, in root mean squared distances of a row to its own."""
    groups = [layer[misled & (labels == label)] for label in (0, 1)]
    centres = [group.mean(axis=0) for group in groups]
    squares = [((group - centre) ** 2).sum(axis=1) for group, centre in zip(groups, centres, strict=True)]
    return float(np.linalg.norm(centres[0] - centres[1]) / np.sqrt(np.concatenate(squares).mean()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("settings", nargs="*", choices=[*SETTINGS, []])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4, 5])
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "errata-studies")
    asked = parser.parse_args()
    if len(asked.seeds) < 2:
        parser.error(f"one seed has no interval; got --seeds {asked.seeds[0]}; give two or more")
    for number, setting in enumerate(asked.settings or SETTINGS):
        runs = [measured(setting, seed, asked.cache) for seed in asked.seeds]
        columns = list(runs[0])
        if number == 0:
            print("| setting | " + " | ".join(columns) + " |\n" + "|---" * (len(columns) + 1) + "|")
        cells = [over_runs([run[column] for run in runs]) for column in columns]
        print(f"| {setting} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
