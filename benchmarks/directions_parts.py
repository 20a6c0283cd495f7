"""Why rows chosen by a failure direction gain less than their share of the cut subclass promises, part by part.

    python benchmarks/directions_parts.py select -o PARTS.jsonl [--seeds 10 11] [--minutes 60]
    python benchmarks/directions_parts.py weight -o WEIGHTS.jsonl [--studies twenty]
    python benchmarks/directions_parts.py report PARTS.jsonl WEIGHTS.jsonl

`select`: worlds of benchmarks/directions_many.py. What a ranking chooses from the pool has two parts, rows of the cut
subclass and others; each part stays as it is or is replaced by as many random rows of its kind and class, and a network
is trained with each of the four (by the direction; by the caption with both parts replaced). If the ranking's own rows
of the cut subclass teach less than random ones do, swapping that part gains; if its others do harm, swapping those
does. Measured on test rows of the cut subclasses, on those nearest to the hardest caption of their class, and on all.
`weight`: training rows that count four times. Those that the direction flags; random ones, as many of the cut
subclasses and as many others, so that only their number is the direction's; and all of the cut subclasses with so many
random others that they are a set share: how large a share does upweighting need?
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import ttest_1samp

from directions_many import RECIPE, STUDIES, World, captioned, cuts, nearness, pictures
from errata import fix
from trained import over_runs, seen_by

Array = np.ndarray
# what is swapped of each ranking
OURS = "random rows of the cut"
REST = "random others"
BOTH = "both random"
PARTS = {"directions": (OURS, REST, BOTH), "caption": (BOTH,), "confidence": (), "random": ()}
SHARES = (0.1, 0.2, 0.4, 0.6, 0.8, 1.0)
FACTOR = 4.0
NEAR = (100, 400)  # test rows of a class, nearest to its hardest caption
TURNS = {"two": 24, "twenty": 4, "faces": 1}
KEYS = ("minority", *(f"nearest {k}" for k in NEAR), "all")  # test rows whose accuracy is told


def selected(world: World) -> dict[str, Any]:
    """By way of choosing: the share of the cut subclasses among what was added, and accuracies once trained."""
    order = captioned(world, "correlation")
    pool = world.evaluation("pool", "named")
    cut = np.isin(world.fine[pool.ids], world.cut)
    ranks = {
        "directions": world.hardness("named", "pool"),
        "caption": nearness(world, "pool", order),
        "confidence": fix.by_confidence(pool),
    }
    near = {f"nearest {k}": nearest_rows(world, order, k) for k in NEAR}
    chance = np.random.default_rng([world.seed, 7, *world.cut])  # worlds of a seed share the pool: not the draw
    results = {"nothing": measured(world, world.first.probs[np.isin(world.asked, world.roles["test"])], near)}
    ranks["random"] = chance.random(len(pool))
    sets = {}
    for name, values in ranks.items():
        own = positions(pool.ids, fix.select(pool, values, world.study.added).ids)
        ours = own[cut[own]]
        others = own[~cut[own]]
        new_ours = swapped(ours, pool.labels, cut, chance)
        new_others = swapped(others, pool.labels, ~cut, chance)
        sets[name] = own
        pairs = {OURS: (new_ours, others), REST: (ours, new_others), BOTH: (new_ours, new_others)}
        sets |= {f"{name}, {part}": np.concatenate(pairs[part]) for part in PARTS[name]}
    for name, rows in sets.items():
        facts = {"picked": float(cut[rows].mean()), "wrong": float(pool.errors[rows].mean())}
        results[name] = {**facts, **measured(world, again(world, pool.ids[rows]), near)}
    return results


def positions(ids: Array, chosen: Array) -> Array:
    return np.flatnonzero(np.isin(ids, chosen))


def swapped(rows: Array, labels: Array, allowed: Array, chance: np.random.Generator) -> Array:
    """As many random rows of each class, among those that are allowed."""
    found = [rows[:0]]
    for label in np.unique(labels[rows]):
        candidates = np.flatnonzero(allowed & (labels == label))
        found.append(chance.choice(candidates, int((labels[rows] == label).sum()), replace=False))
    return np.concatenate(found)


def nearest_rows(world: World, order: dict[int, list[str]], count: int) -> Array:
    """Test rows that lie nearest to the hardest caption of their class."""
    test = world.evaluation("test", "named")
    near = nearness(world, "test", order)
    found = []
    for number in order:
        own = np.flatnonzero(test.labels == number)
        found.append(own[np.argsort(-near[own], kind="stable")[:count]])
    return np.concatenate(found)


def again(world: World, added: Sequence[int] = (), weights: Array | None = None) -> Array:
    """(n, k) what a network trained anew says of test rows."""
    rows = np.concatenate([world.roles["train"], np.asarray(added, int)])
    pixels = world.pictures.pixels
    tested = pixels[world.roles["test"]]
    learnt = pixels[rows], world.labels[rows]
    return seen_by(world.pictures.folder, RECIPE, learnt, tested, seed=world.seed, weights=weights).probs


def measured(world: World, probs: Array, near: dict[str, Array] | None = None) -> dict[str, float]:
    """Accuracy of test rows: all, the mean of the cut subclasses, and those that are near."""
    test = world.roles["test"]
    right = probs.argmax(axis=1) == world.labels[test]
    minority = np.mean([right[world.fine[test] == c].mean() for c in world.cut])
    found = {name: float(right[rows].mean()) for name, rows in (near or {}).items()}
    return {"minority": float(minority), "all": float(right.mean()), **found}


def mean_or_none(values: Array) -> float | None:
    if len(values):
        return float(values.mean())
    return None


def weighted(world: World) -> dict[str, Any]:
    """Accuracies by the share of the cut subclasses among training rows that count more."""
    machine = world.directions("backbone")
    train = world.evaluation("train", "backbone")
    flagged = (machine.membership(train) >= machine.thresholds_).any(axis=1)
    cut = np.isin(world.fine[world.roles["train"]], world.cut)
    facts: dict[str, Any] = {"count": int(flagged.sum()), "rows": len(flagged), "cut": float(cut.mean())}
    facts["of flagged"] = mean_or_none(cut[flagged])
    facts["nothing"] = measured(world, world.first.probs[np.isin(world.asked, world.roles["test"])])
    chance = np.random.default_rng([world.seed, 11, *world.cut])
    sets = {"flagged": flagged}
    sets["as flagged, random"] = mixed(cut, int((cut & flagged).sum()), int((~cut & flagged).sum()), chance)
    for share in SHARES:
        others = round(cut.sum() * (1 - share) / share)
        if others <= (~cut).sum():
            sets[f"{share:g}"] = mixed(cut, int(cut.sum()), others, chance)
    for name, rows in sets.items():
        facts[name] = measured(world, again(world, weights=np.where(rows, FACTOR, 1.0)))
    return facts


def mixed(cut: Array, ours: int, others: int, chance: np.random.Generator) -> Array:
    """(n,) some random rows that are cut, and some that are not."""
    rows = np.zeros(len(cut), bool)
    rows[chance.permutation(np.flatnonzero(cut))[:ours]] = True
    rows[chance.permutation(np.flatnonzero(~cut))[:others]] = True
    return rows


def run(asked: argparse.Namespace) -> None:
    import torch

    torch.set_num_threads(1)
    until = time.monotonic() + 60 * asked.minutes
    task = {"select": selected, "weight": weighted}[asked.task]
    for seed in asked.seeds:
        for study in asked.studies:
            for turn in range(TURNS[study]):
                if time.monotonic() > until:
                    print("stopped: the minutes are over", flush=True)
                    return
                world = World(pictures(str(asked.cache)), STUDIES[study], seed, cuts(study, turn))
                facts = {"task": asked.task, "study": study, "turn": turn, "seed": seed, **task(world)}
                with asked.out.open("a") as file:
                    file.write(json.dumps(facts) + "\n")
                print(f"{study} {turn}, seed {seed}", flush=True)


def report(paths: Sequence[Path]) -> None:
    rows = [json.loads(line) for path in paths for line in path.read_text().splitlines()]
    for study in STUDIES:
        these = [row for row in rows if row["study"] == study]
        report_selection([row for row in these if row["task"] == "select"], study)
        report_weights([row for row in these if row["task"] == "weight"], study)


def report_selection(rows: Sequence[dict[str, Any]], study: str) -> None:
    if len(rows) < 2:
        return
    print(f"\n{study}: {len(rows)} networks. Gains over nothing added: mean (95%, Student)")
    print(f"| added by | of the cut | wrong before | {' | '.join(KEYS)} |\n|---|---|---|" + "---|" * len(KEYS))
    names = [name for name in rows[0] if isinstance(rows[0][name], dict) and name != "nothing"]
    for name in names:
        shares = [np.mean([row[name][key] for row in rows]) for key in ("picked", "wrong")]
        gains = [over_runs(gained(rows, name, key)) for key in KEYS]
        print(f"| {name} | {shares[0]:.3f} | {shares[1]:.3f} | " + " | ".join(gains) + " |")
    for key in KEYS:
        print(f"\npaired differences, {key}")
        for ranking, parts in [(name, parts) for name, parts in PARTS.items() if name != "random"]:
            pairs = [(ranking, "random"), *((f"{ranking}, {part}", ranking) for part in parts)]
            if BOTH in parts:
                pairs.append((f"{ranking}, {BOTH}", "random"))
            for first, second in pairs:
                print(f"  {first} less {second}: {compared(gained(rows, first, key) - gained(rows, second, key))}")
        for name, values in decomposed(rows, key).items():
            print(f"  directions less random, of it {name}: {compared(values)}")
        more = gained(rows, "directions", key) - gained(rows, "confidence", key)
        print(f"  directions less confidence: {compared(more)}")


def decomposed(rows: Sequence[dict[str, Any]], key: str) -> dict[str, Array]:
    """What the direction gains more than random rows, in three parts that add up to it; a swap is the mean of two."""
    own, ours, rest, both = (
        gained(rows, f"directions{part}", key) for part in ("", f", {OURS}", f", {REST}", f", {BOTH}")
    )
    return {
        "by the share of the cut": both - gained(rows, "random", key),
        "by which rows of the cut": ((own - ours) + (rest - both)) / 2,
        "by which others": ((own - rest) + (ours - both)) / 2,
    }


def gained(rows: Sequence[dict[str, Any]], name: str, key: str) -> Array:
    return np.array([row[name][key] - row["nothing"][key] for row in rows])


def compared(values: Array) -> str:
    return f"{over_runs(values)}, p = {ttest_1samp(values, 0).pvalue:.2g}"


def report_weights(rows: Sequence[dict[str, Any]], study: str) -> None:
    if len(rows) < 2:
        return
    flagged = np.mean([row["count"] / row["rows"] for row in rows])
    shares = [row["of flagged"] for row in rows if row["of flagged"] is not None]
    of_flagged = np.mean(shares) if shares else np.nan
    cut = np.mean([row["cut"] for row in rows])
    print(f"\n{study}: {len(rows)} networks; {flagged:.3f} of training rows are flagged, ", end="")
    print(f"{of_flagged:.3f} of them of the cut", end="")
    if len(shares) < len(rows):
        print(f" (n = {len(shares)} that flag any)", end="")
    print(f", of all {cut:.3f}\n| {FACTOR:g} times | networks | minority | all |\n|---|---|---|---|")
    for name in ("flagged", "as flagged, random", *(f"{share:g}" for share in SHARES)):
        these = [row for row in rows if name in row]
        if len(these) > 1:
            gains = [over_runs(gained(these, name, key)) for key in ("minority", "all")]
            print(f"| {name} | {len(these)} | " + " | ".join(gains) + " |")
    for first, second in (("flagged", "as flagged, random"), ("as flagged, random", "1"), ("flagged", "1")):
        less = [compared(gained(rows, first, key) - gained(rows, second, key)) for key in ("minority", "all")]
        print(f"{first} less {second}: minority {less[0]}; all {less[1]}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("task", choices=["select", "weight", "report"])
    parser.add_argument("files", type=Path, nargs="*", help="to report")
    parser.add_argument("-o", "--out", type=Path, default=Path("directions-parts.jsonl"))
    parser.add_argument("--studies", nargs="+", choices=list(TURNS), default=["two"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[10])
    parser.add_argument("--minutes", type=float, default=600)
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "errata-studies")
    asked = parser.parse_args()
    if asked.task == "report":
        report(asked.files)
    else:
        run(asked)


if __name__ == "__main__":
    main()
