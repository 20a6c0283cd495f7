"""What is unusual in the images that a failure direction ranks hardest on ImageNet (Jain et al. 2023, figures 10, 31).

    python benchmarks/directions_factors.py    shares of people's notes among the hardest and the easiest images

The paper's captions name colours and what is beside a thing. No captions of either can be embedded here (see
`benchmarks/directions_near.py imagenet`), but people noted what is unusual in each image (ImageNet-X: its colour, its
background, other objects beside it, and more). EfficientNet-lite0 on 5,000 validation images, in nine super-classes.
A direction of each is fitted to half of the images; among the others, is a note commoner in the K that it ranks hardest
than in the K that it ranks easiest, and than in the K of the lowest probability of the label? Beside these, what images
with the note lose in accuracy. Each seed halves the images anew; intervals are over super-classes, each the mean of the
seeds. Notes on fewer than 1% of the images are left out. Wants what benchmarks/bridge.py wants.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.special import softmax

import bridge as bridging
from bridge import table
from errata import Evaluation, Source
from errata.bench.tables import data_folder
from errata.inputs import Bridge
from errata.slicers.directions.slicer import Directions
from spotlight_clusters import superclass_names
from trained import over_finite_runs

Array = np.ndarray
K = 25
LEAST = 0.01  # share of the images that have a note
COLUMNS = (
    "all",
    "hardest by direction",
    "easiest by direction",
    "hardest by confidence",
    "hardest less easiest",
    "direction less confidence",
    "lost accuracy",
)


@dataclass(frozen=True, eq=False)
class Images:
    """The images whose notes are known."""

    rows: Evaluation  # labels: the super-class
    doubt: Array  # (n,) one less the probability of the label
    notes: Array  # (n, f) bool
    names: list[str]  # (f,)

    @classmethod
    def read(cls, folder: Path, space: str) -> Images:
        features, labels, embedded = bridging.imagenet(folder)
        layer = bridging.network()._fc
        logits = features @ layer.weight.detach().numpy().T + layer.bias.detach().numpy()
        wrong = logits.argmax(axis=1) != labels
        probs = softmax(logits.astype(np.float64), axis=1)
        kinds, kind = np.unique(superclass_names()[labels], return_inverse=True)
        placed = features
        if space == "bridge":
            weights = layer.weight.detach().numpy()
            placed = Bridge.from_weights(weights, embedded).recentred(features).transform_images(features)
        rows = Evaluation(
            labels=kind,
            predictions=np.where(wrong, (kind + 1) % len(kinds), kind),
            class_names=tuple(kinds),
            representations={space: placed},
            sources={space: Source(from_model=False)},
        )
        table_ = pd.read_parquet(data_folder() / "imagenet5k.parquet").drop(columns=["file_name", "label", "image"])
        known = table_.notna().all(axis=1).to_numpy()
        common = table_.columns[table_[known].mean() >= LEAST]
        doubt = 1 - probs[np.arange(len(labels)), labels]
        return cls(rows.rows(known), doubt[known], table_[common][known].to_numpy() > 0, common.tolist())


def shares(images: Images, space: str, seed: int) -> Array:
    """(super-classes, f, columns); NaN where a super-class has no direction or too few images."""
    rows = images.rows
    searched = np.random.default_rng([seed, 1]).random(len(rows)) < 0.5
    machine = Directions(slices=None, permutations=0, representation=space, seed=seed).fit(rows.rows(searched))
    weights = machine.membership(rows)
    found = np.full((len(rows.class_names), len(images.names), len(COLUMNS)), np.nan)
    for j, rule in enumerate(machine.rules_):
        number = rule["scope"]["label"]
        own = np.flatnonzero(~searched & (rows.labels == number))
        if len(own) >= 2 * K:
            found[number] = of_class(images, own, weights[own, j])
    return found


def of_class(images: Images, own: Array, weights: Array) -> Array:
    """(f, columns) of one super-class's held-out images. weights: (n,) the deepest on the hard side is the largest."""
    notes = images.notes[own]
    order = np.argsort(-weights, kind="stable")
    hard = notes[order[:K]].mean(axis=0)
    easy = notes[order[-K:]].mean(axis=0)
    unsure = notes[np.argsort(-images.doubt[own], kind="stable")[:K]].mean(axis=0)
    errors = images.rows.errors[own]
    lost = [difference(errors, notes[:, f]) for f in range(notes.shape[1])]
    return np.column_stack([notes.mean(axis=0), hard, easy, unsure, hard - easy, hard - unsure, lost])


def difference(errors: Array, inside: Array) -> float:
    """The error rate inside less the one outside; NaN where either has no rows."""
    if inside.all() or not inside.any():
        return np.nan
    return float(errors[inside].mean() - errors[~inside].mean())


def report(images: Images, found: Sequence[Array], space: str) -> None:
    by_class = np.ma.masked_invalid(np.array(found)).mean(axis=0).filled(np.nan)  # (super-classes, f, columns)
    print(f"\n{space}: {len(images.rows)} images, the {K} first of each ranking in a super-class, {len(found)} halves")
    say = partial(over_finite_runs, digits=3)
    table(
        ["note", *COLUMNS],
        [[name, *(say(column) for column in by_class[:, f].T)] for f, name in enumerate(images.names)],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--spaces", nargs="+", choices=["bridge", "backbone"], default=["bridge", "backbone"])
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "errata-studies")
    asked = parser.parse_args()
    for space in asked.spaces:
        images = Images.read(asked.cache, space)
        report(images, [shares(images, space, seed) for seed in asked.seeds], space)


if __name__ == "__main__":
    main()
