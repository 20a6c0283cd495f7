"""Clusters of influence beside Domino's: coherence, label homogeneity, branching (Wang et al. 2023, sections 3.4, 4.1).

    python benchmarks/infembed_clusters.py [news] [sst2] [adult] [wine] [--seeds 0 1 2]

The models and rows of benchmarks/spotlight_clusters.py; influence is of the last layer, in closed form, with the
curvature of the same rows. Both methods cut all rows in 25. Coherence: the k-means objective, the mean squared distance
to the cluster's mean, as a share of that of all rows to theirs; InfEmbed minimises it, so it can hardly lose. "Less":
than Domino's of the same model as published, the mean of the differences with its interval.
Homogeneity: the share of a cluster's commonest label, in clusters of at most 50% accuracy and in the others, weighted
by rows. Branching: slices of `infembed-rule` with B = 2 and 3: how many, their rows, the accuracy in them, and how many
of the rows of either are in both.
"""

from __future__ import annotations

import argparse
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from errata import Evaluation
from errata.inputs.influence.head import HeadInfluence, InfluenceOptions
from errata.slicers import make
from spotlight_clusters import CASES, Case
from trained import over_runs

Array = np.ndarray
CLUSTERS = 25
FAILING = 0.5
FEWEST = 10
METHODS: dict[str, tuple[str, dict[str, Any]]] = {
    "infembed": ("infembed", {"slices": CLUSTERS}),
    "infembed:as_published": ("infembed:as_published", {"slices": CLUSTERS}),
    "domino": ("domino", {"components": CLUSTERS, "slices": CLUSTERS}),
    "domino:as_published": ("domino:as_published", {"components": CLUSTERS, "slices": CLUSTERS}),
}
BESIDE = "domino:as_published"


def embedded(case: Case) -> Evaluation:
    rows = Evaluation(labels=case.labels, probs=case.probs, representations={"penultimate": case.hidden})
    fitted = HeadInfluence.fit(rows, InfluenceOptions(rows=None))
    return fitted.embed(rows)


def assigned(rows: Evaluation, method: str, options: dict[str, Any], seed: int) -> Array:
    """(n,) the cluster of every row."""
    if method.startswith("domino"):
        options = {**options, "representation": "penultimate"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make(method, seed=seed, options=options).fit(rows).membership(rows).argmax(axis=1)


def coherence(rows: Evaluation, mine: Array) -> float:
    mu = np.asarray(rows.representations["influence"], dtype=np.float64)
    within = sum(((mu[mine == c] - mu[mine == c].mean(axis=0)) ** 2).sum() for c in np.unique(mine))
    return float(within / ((mu - mu.mean(axis=0)) ** 2).sum())


def homogeneity(rows: Evaluation, mine: Array) -> tuple[float, float]:
    """Of failing clusters and of the others; NaN where there are none."""
    shares: dict[bool, list[tuple[int, float]]] = {True: [], False: []}
    for c in np.unique(mine):
        own = mine == c
        if own.sum() >= FEWEST:
            commonest = np.bincount(rows.labels[own]).max() / own.sum()
            shares[bool(rows.errors[own].mean() >= FAILING)].append((int(own.sum()), commonest))
    means = [np.average([s for _, s in x], weights=[n for n, _ in x]) if x else np.nan for x in shares.values()]
    return float(means[0]), float(means[1])


def branching(rows: Evaluation, branches: int, seed: int) -> tuple[int, Array]:
    """How many slices, and (n,) which rows are in one."""
    machine = make("infembed-rule", seed=seed, options={"branch": branches})
    inside = (machine.fit(rows).membership(rows) > 0.5).any(axis=1)
    return len(machine.rules_), inside


def print_branching(worlds: list[tuple[Evaluation, int]]) -> None:
    made = {branches: [branching(rows, branches, seed) for rows, seed in worlds] for branches in (2, 3)}
    for branches, found in made.items():
        facts = []
        for (rows, _), (count, inside) in zip(worlds, found, strict=True):
            right = 1 - float(rows.errors[inside].mean()) if inside.any() else np.nan
            facts.append(f"{count} slices, {inside.sum()} rows, {right:.3f} right")
        print(f"B = {branches}: {'; '.join(facts)}")
    shared = [(a & b).sum() / max((a | b).sum(), 1) for (_, a), (_, b) in zip(made[2], made[3], strict=True)]
    print(f"rows of either that are in both: {told(shared)}", flush=True)


def print_methods(worlds: list[tuple[Evaluation, int]]) -> None:
    scores = {}
    homes = {}
    for label, (method, options) in METHODS.items():
        clusters = [(rows, assigned(rows, method, options, seed)) for rows, seed in worlds]
        scores[label] = [coherence(*pair) for pair in clusters]
        homes[label] = [homogeneity(*pair) for pair in clusters]
    print("| method | coherence | less | homogeneity, failing clusters | others |\n|---|---|---|---|---|")
    for label, own in scores.items():
        less = [value - other for value, other in zip(own, scores[BESIDE], strict=True)]
        cells = [told(own), told(less), *(told([home[i] for home in homes[label]]) for i in (0, 1))]
        print(f"| {label} | {' | '.join(cells)} |", flush=True)


def told(values: list[float]) -> str:
    kept = [value for value in values if np.isfinite(value)]
    return over_runs(kept) if len(kept) > 1 else "–"


def main() -> None:
    names = ("news", "sst2", "adult", "wine")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="*", choices=[*names, []])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "errata-studies")
    asked = parser.parse_args()
    for name in asked.cases or names:
        worlds = [(embedded(CASES[name](seed, asked.cache)), seed) for seed in asked.seeds]
        print(f"\n{name}: {len(worlds[0][0]):,} rows, n = {len(worlds)} models")
        print_methods(worlds)
        print_branching(worlds)


if __name__ == "__main__":
    main()
