"""What the columns of an influence embedding hold on painted scenes, and what normalised centroids do there.

    errata bench spotcheck --scale small --configs 8 --seed 7000 --method high-loss -o FOLDER
    python benchmarks/infembed_columns.py FOLDER [--worlds 8]

Rows with a square, in the order of the Hessian's eigenvalues, the largest first. A group is a blindspot, or none.
"Between": the share of a column's variance that lies between groups, all rows; "by chance": the same with groups drawn
anew. "Among errors": between the blindspots alone, rows that are wrong, worlds with two blindspots or more. Then DR and
FDR of ten clusters of the leading four columns a class, raw sets: k-means, normalised centroids, and normalised
centroids whose clusters keep only rows with an embedding of more than a share of the mean length among errors; and of
the three most important clusters the mean share of one blindspot, and of rows that are right. Last, DBSCAN by its
radius, as a share of that mean length (none: what the option's default finds), and beside it HDBSCAN, which has no
radius and finds sets of different densities, by the fewest rows of a set and how sets are taken from its tree, and
k-means: the sets a world, the share of wrong rows that are in none and, of the set that has most of a blindspot's
wrong rows, the share of its wrong rows that are of that blindspot ("own") and of the blindspot's that it has ("has").
Differences of DR are from DBSCAN's default, world by world. n: worlds; where it is smaller, the others have no such
figure.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.cluster import HDBSCAN

from errata import Evaluation
from errata.bench import metrics
from errata.bench.spotcheck import read_world, sort_by_importance
from errata.slicers import make
from trained import over_finite_runs

Array = np.ndarray
RANKS = ((1, 1), (2, 2), (3, 4), (5, 8), (9, 16), (17, 32), (33, 64), (65, 100))
SHARES = (0.0, 0.1, 0.25, 0.5)
RADII = (0.02, 0.05, 0.1, 0.2, 0.4)
FEWEST = (5, 20, 50)  # rows of a set of HDBSCAN


def between(E: Array, groups: Array) -> Array:
    """(d,) of each column: the share of its variance that is between the groups' means."""
    overall = E.mean(axis=0)
    total = np.square(E - overall).sum(axis=0)
    parts = [(groups == g).sum() * np.square(E[groups == g].mean(axis=0) - overall) for g in np.unique(groups)]
    return np.asarray(sum(parts) / np.maximum(total, 1e-300))


def group_of(blindspots: Array) -> Array:
    """(n,) 0 for none, else the number of the first blindspot of a row."""
    return np.where(blindspots.any(axis=1), blindspots.argmax(axis=1) + 1, 0)


def print_columns(worlds: Sequence[tuple[Evaluation, Array]]) -> None:
    print("| columns | variance, of the first's | within groups | between | by chance | among errors |")
    print("|---" * 6 + "|")
    facts = []
    for number, (rows, blindspots) in enumerate(worlds):
        E = np.asarray(rows.representations["influence"], dtype=np.float64)
        groups = group_of(blindspots)
        variance = E.var(axis=0)
        share = between(E, groups)
        chance = between(E, np.random.default_rng(number).permutation(groups))
        wrong = np.asarray(rows.errors) & (groups > 0)
        errors = np.full(E.shape[1], np.nan)
        if len(np.unique(groups[wrong])) > 1:
            errors = between(E[wrong], groups[wrong])
        within = variance * (1 - share)
        facts.append((variance / variance[0], within / within[0], share, chance, errors))
    for first, last in RANKS:
        cells = []
        for column in range(5):
            each = [world[column][first - 1 : last] for world in facts if len(world[column]) >= first]
            cells.append(over_finite_runs([float(values.mean()) for values in each]))
        print(f"| {first} to {last} | {' | '.join(cells)} |", flush=True)
    print("columns a world: " + ", ".join(str(len(world[0])) for world in facts))


def print_centroids(worlds: Sequence[tuple[Evaluation, Array]]) -> None:
    print("\n| clusters | rows longer than | DR | FDR | share of one blindspot, of three | right, of three |")
    print("|---" * 6 + "|")
    for clusterer, axes in (("kmeans", 4), ("normalised", 4), ("kmeans", None), ("normalised", None)):
        for least in SHARES:
            found = [centroid_line(*world, clusterer, axes, least) for world in worlds]
            cells = [over_finite_runs([line[i] for line in found]) for i in range(4)]
            columns = "four a class" if axes else "all"
            print(f"| {clusterer}, columns: {columns} | {least} | {' | '.join(cells)} |", flush=True)


def centroid_line(
    rows: Evaluation, blindspots: Array, clusterer: str, axes: int | None, least: float
) -> tuple[float, float, float, float]:
    """DR, FDR, and the means over the three most important clusters of the largest share of one blindspot and of the
    share of right rows."""
    slicer = make("infembed", options={"clusterer": clusterer, "axes": axes}).fit(rows)
    h = slicer.membership(rows) > 0.5
    E = np.asarray(rows.representations["influence"], dtype=np.float64)
    lengths = np.linalg.norm(E[:, : slicer.rules_[0]["columns"]], axis=1)
    wrong = np.asarray(rows.errors)
    h &= (lengths > least * lengths[wrong].mean())[:, None]
    h = sort_by_importance(h, rows)
    rates = metrics.discovery(h, blindspots)
    of_one = np.nan
    if blindspots.shape[1]:
        of_one = float(metrics.precision_matrix(h, blindspots)[:3].max(axis=1).mean())
    right = [float((~wrong[inside]).mean()) for inside in h.T[:3] if inside.any()]
    return (
        np.nan if rates.dr is None else rates.dr,
        np.nan if rates.fdr is None else rates.fdr,
        of_one,
        float(np.mean(right)) if right else np.nan,
    )


def print_densities(worlds: Sequence[tuple[Evaluation, Array]]) -> None:
    print(
        "\n| clusters | DR | FDR | sets | wrong rows in none | own | has | DR, more than DBSCAN |\n" + "|---" * 8 + "|"
    )
    before = [density_line(*world, lambda E, wrong: {"clusterer": "dbscan"})[0] for world in worlds]
    for name, options in clusterers().items():
        found = [density_line(*world, options) for world in worlds]
        cells = [over_finite_runs([line[i] for line in found]) for i in range(6)]
        more = over_finite_runs([line[0] - other for line, other in zip(found, before, strict=True)])
        print(f"| {name} | {' | '.join([*cells, more])} |", flush=True)


def clusterers() -> dict[str, Callable[[Array, Array], dict[str, Any]]]:
    """Options of `infembed` by name; each is made from embeddings and from which rows are wrong."""

    def dbscan(radius: float | None, neighbours: int) -> Callable[[Array, Array], dict[str, Any]]:
        def options(E: Array, wrong: Array) -> dict[str, Any]:
            advanced: dict[str, Any] = {"min_samples": neighbours}
            if radius is not None:
                advanced["radius"] = radius * float(np.linalg.norm(E[wrong], axis=1).mean())
            return {"clusterer": "dbscan", "advanced": advanced}

        return options

    def hdbscan(fewest: int, selection: str) -> Callable[[Array, Array], dict[str, Any]]:
        def options(E: Array, wrong: Array) -> dict[str, Any]:
            return {"clusterer": HDBSCAN(min_cluster_size=fewest, cluster_selection_method=selection, copy=True)}

        return options

    radii = [(None, 5), *((share, 5) for share in RADII), (None, 20), (0.1, 20)]
    found = {f"DBSCAN, radius {radius}, {least} neighbours": dbscan(radius, least) for radius, least in radii}
    for fewest in FEWEST:
        found |= {f"HDBSCAN, {fewest} rows, {kind}": hdbscan(fewest, kind) for kind in ("eom", "leaf")}
    found["k-means"] = lambda E, wrong: {}
    return found


def density_line(
    rows: Evaluation, blindspots: Array, make_options: Callable[[Array, Array], dict[str, Any]]
) -> tuple[float, ...]:
    """DR, FDR, sets, the share of wrong rows that are in none, and what `main_sets` has."""
    E = np.asarray(rows.representations["influence"], dtype=np.float64)[:, :8]
    wrong = np.asarray(rows.errors)
    slicer = make("infembed", options=make_options(E, wrong)).fit(rows)
    h = sort_by_importance(slicer.membership(rows) > 0.5, rows)
    rates = metrics.discovery(h, blindspots)
    fdr = np.nan if rates.fdr is None else rates.fdr
    missed = 1 - float(h[wrong].any(axis=1).mean())
    dr = np.nan if rates.dr is None else rates.dr
    return dr, fdr, float(h.any(axis=0).sum()), missed, *main_sets(h[wrong], np.asarray(blindspots)[wrong])


def main_sets(h: Array, blindspots: Array) -> tuple[float, float]:
    """Of the set with most rows of a blindspot: the share of its rows that are of it, and of its rows that it has.

    Means over blindspots. h: (n, s) bool, blindspots: (n, b) bool, of wrong rows.
    """
    shared = h.T.astype(float) @ blindspots.astype(float)  # (s, b)
    held = [b for b in range(blindspots.shape[1]) if shared[:, b].any()]
    if not held:
        return np.nan, np.nan
    mains = shared.argmax(axis=0)
    own = [shared[mains[b], b] / h[:, mains[b]].sum() for b in held]
    has = [shared[mains[b], b] / blindspots[:, b].sum() for b in held]
    return float(np.mean(own)), float(np.mean(has))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--worlds", type=int, default=8)
    asked = parser.parse_args()
    worlds = [read_world(path) for path in sorted(asked.folder.glob("world-*.npz"))[: asked.worlds]]
    print(f"{len(worlds)} worlds of {len(worlds[0][0])} rows")
    print_columns(worlds)
    print_centroids(worlds)
    print_densities(worlds)


if __name__ == "__main__":
    main()
