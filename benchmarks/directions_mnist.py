"""Failure directions on coloured MNIST: flagged training rows count more (Jain et al. 2023, appendix B.2).

    python benchmarks/directions_mnist.py                   directions in what EfficientNet-lite0 sees
    python benchmarks/directions_mnist.py --space pixels    directions in 50 principal components of the pixels

The label is whether a digit is 5 or more, wrong for a quarter of all rows: .75 is the best there is. Digits are red or
green; the tint agrees with the label for a share of the training rows and for half of the validation and test rows.
Of 20,000 digits half train and half validate, by --seeds; numbers come from the 10,000 test digits. "chosen": of no
upweighting and the three factors, the one that is best for validation rows that no direction was fitted to.
Data: ERRATA_DATA, or ../shared/data beside the clone. What EfficientNet sees in 30,000 digits of both tints and what
each small network says is then in --cache.
"""

from __future__ import annotations

import argparse
import io
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from PIL import Image
from scipy.stats import spearmanr
from sklearn.decomposition import PCA

import bridge as bridging
import errata
from bridge import kept, table
from errata import Audit, Evaluation, Source, fix
from errata.bench.tables import data_folder
from trained import Recipe, over_runs, seen_by

Array = np.ndarray
ROWS = 20_000  # of the training digits that are used; the test digits come after them
PX = 64  # as EfficientNet sees them
COMPONENTS = 50
FLIPPED = 0.25  # of the labels, everywhere
TINTS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)  # share of training rows whose tint agrees with the label
RECIPE = Recipe(epochs=5)


@dataclass(frozen=True, eq=False)
class Digits:
    """Each digit in red and in green."""

    digit: Array  # (n,)
    pixels: Array  # (2, n, 28, 28, 3) bytes
    features: Array  # (2, n, d)
    folder: Path

    @classmethod
    def read(cls, folder: Path, space: str) -> Digits:
        with np.load(data_folder() / "mnist.npz", allow_pickle=False) as file:
            some = np.random.default_rng(0).permutation(len(file["y_train"]))[:ROWS]  # the file goes digit by digit
            grey = np.concatenate([file["x_train"][some], file["x_test"]])
            digit = np.concatenate([file["y_train"][some], file["y_test"]])
        pixels = np.zeros((2, *grey.shape, 3), dtype=np.uint8)
        pixels[0, ..., 0] = grey
        pixels[1, ..., 1] = grey
        flat = pixels.reshape(-1, *pixels.shape[2:])
        if space == "pixels":
            features = principal(flat.reshape(len(flat), -1))
        else:
            features = kept(folder / f"mnist-tinted-{PX}px.npy", lambda: bridging.seen([*map(as_png, flat)], PX))
        return cls(digit.astype(int), pixels, features.reshape(2, len(grey), -1), folder)


def principal(flat: Array) -> Array:
    """(n, 50) fitted to some rows for training and validation, of both tints."""
    some = np.random.default_rng(0).permutation(ROWS)[:5000]
    fitted = PCA(COMPONENTS, random_state=0).fit(flat[np.concatenate([some, len(flat) // 2 + some])])
    return fitted.transform(flat)


def as_png(pixels: Array) -> bytes:
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


@dataclass(frozen=True, eq=False)
class World:
    """One split, one draw of labels and tints, and what networks trained so say."""

    digits: Digits
    seed: int
    tint: float

    @cached_property
    def roles(self) -> dict[str, Array]:
        order = np.random.default_rng(self.seed).permutation(ROWS)
        test = np.arange(ROWS, len(self.digits.digit))
        return {"train": order[: ROWS // 2], "validation": order[ROWS // 2 :], "test": test}

    @cached_property
    def labels(self) -> Array:
        flip = np.random.default_rng([self.seed, 1]).random(len(self.digits.digit)) < FLIPPED
        return np.where(flip, self.digits.digit < 5, self.digits.digit >= 5).astype(int)

    @cached_property
    def agrees(self) -> Array:
        """(n,) bool: a digit whose label is 0 is red, one whose label is 1 green."""
        chance = np.random.default_rng([self.seed, 2]).random(len(self.labels))
        share = np.full(len(self.labels), 0.5)
        share[self.roles["train"]] = self.tint
        return chance < share

    def pixels(self, rows: Array) -> Array:
        return self.digits.pixels[self._tinted(rows), rows]

    def _tinted(self, rows: Array) -> Array:
        return np.where(self.agrees[rows], self.labels[rows], 1 - self.labels[rows])

    def evaluation(self, role: str, weights: Array | None = None) -> Evaluation:
        """Rows as a network says that was trained on rows that count so often."""
        asked = np.concatenate([self.roles["validation"], self.roles["test"]])
        train = self.roles["train"]
        rows = self.roles[role]
        pairs = self.pixels(train), self.labels[train]
        found = seen_by(self.digits.folder, RECIPE, pairs, self.pixels(asked), seed=self.seed, weights=weights)
        said = found.probs[np.isin(asked, rows)]
        return self._described(rows, said)

    def _described(self, rows: Array, probs: Array | None) -> Evaluation:
        features = self.digits.features[self._tinted(rows), rows]
        return Evaluation(
            labels=self.labels[rows],
            probs=probs,
            ids=rows,
            class_names=("below 5", "5 or more"),
            representations={"space": features},
            sources={"space": Source(from_model=False)},
        )

    @cached_property
    def train(self) -> Evaluation:
        return self._described(self.roles["train"], None)

    @cached_property
    def audit(self) -> Audit:
        return errata.audit(self.evaluation("validation"), methods=["directions"], train=self.train)


EVEN = "even"  # as often as it takes for these rows to count as much as all others
FACTORS: tuple[float | str, ...] = (2.0, 5.0, EVEN)
WAYS = (*((way, factor) for factor in FACTORS for way in ("directions", "oracle")), ("random", 2.0))


def weights(world: World, way: str, factor: float | str) -> Array:
    """(n,) for training rows: flagged ones, those whose tint misleads, or as many as are flagged at random."""
    slices = [found.id for found in world.audit.slices]
    counted = errata.plan_weights(world.audit, world.train, 2.0, slices=slices).weights_of(world.train) > 1
    if way == "random":
        counted = np.random.default_rng([world.seed, 3]).permutation(len(counted)) < counted.sum()
    elif way == "oracle":
        counted = ~world.agrees[world.roles["train"]]
    times = 1 / counted.mean() - 1 if isinstance(factor, str) else factor
    return fix.upweight(world.train, counted, times).weights_of(world.train)


def measured(world: World) -> dict[str, float]:
    plain = world.evaluation("test")
    train = world.roles["train"]
    flagged = weights(world, "directions", 2.0) > 1
    misled = ~world.agrees[train]
    flipped = world.labels[train] != (world.digits.digit[train] >= 5)
    told = {
        "strength": np.mean([found.rule["strength"] for found in world.audit.slices]),
        "null": np.mean([found.rule["null"]["mean"] for found in world.audit.slices]),
        "flagged": flagged.mean(),
        "of them misled": misled[flagged].mean(),
        "of misled, flagged": flagged[misled].mean(),
        "of them flipped": flipped[flagged].mean(),
        "plain": 1 - plain.errors.mean(),
    }
    for way, factor in WAYS:
        told[said(way, factor)] = gain(world, "test", way, factor)
    for way in ("directions", "oracle"):
        judged = {factor: gain(world, "validation", way, factor) for factor in FACTORS}
        best = max(judged, key=lambda factor: judged[factor])
        told[said(way, "chosen")] = told[said(way, best)] if judged[best] > 0 else 0.0
    return told


def gain(world: World, role: str, way: str, factor: float | str) -> float:
    """Accuracy won by counting rows so; of validation rows, those that no direction was fitted to."""
    rows = ~world.audit.discover if role == "validation" else slice(None)
    before = world.evaluation(role)
    after = world.evaluation(role, weights(world, way, factor))
    return float(before.errors[rows].mean() - after.errors[rows].mean())


def said(way: str, factor: float | str) -> str:
    return f"{way}, h {factor}" if isinstance(factor, str) else f"{way}, h = {factor:g}"


def study(digits: Digits, seeds: Sequence[int]) -> None:
    found = {tint: [measured(World(digits, seed, tint)) for seed in seeds] for tint in TINTS}
    names = list(found[TINTS[0]][0])
    columns = {tint: [over_runs([told[name] for told in each]) for name in names] for tint, each in found.items()}
    table(["", *map(str, TINTS)], [[name, *(columns[tint][i] for tint in TINTS)] for i, name in enumerate(names)])
    tints = np.repeat(TINTS, len(seeds))
    for name in ("strength", *(said("directions", factor) for factor in (*FACTORS, "chosen"))):
        values = [told[name] for each in found.values() for told in each]
        means = np.reshape(values, (len(TINTS), -1)).mean(axis=1)
        whole = spearmanr(TINTS, means).statistic
        each = spearmanr(tints, values).statistic
        print(f"\nSpearman of {name} with tint: {whole:.2f} of means, {each:.2f} of all {len(values)} runs")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--space", choices=["efficientnet", "pixels"], default="efficientnet")
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2, 3, 4])
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "errata-studies")
    asked = parser.parse_args()
    study(Digits.read(asked.cache, asked.space), asked.seeds)


if __name__ == "__main__":
    main()
