"""How a network gets its blindspots: what it is trained on, how, and whether that worked.

`published` keeps the numbers of SpotCheck's rows, at half the side and from fresh weights. `small` is SpotCheck-like
only: a small network on small images, and training rows chosen by `choose_focused`. Its results must not be compared
with the published table.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..core import Array, Progress, silent
from ..core.errors import unknown
from .scenes import SPLITS, Scenes, sample_scenes, sizes
from .worlds import World

if TYPE_CHECKING:
    from torch import nn

    from ..train import Epoch

POOL = 102_400  # scenes that focused rows are chosen from: as many as the largest published training set
MOST_CALLED_POSITIVE = 0.25  # of the positives of a blindspot, by a model that is blind there
LEAST_OTHER_ACCURACY = 0.95  # of such a model outside its blindspots
STAGE = "training a small network"  # under which progress is reported


@dataclass(frozen=True)
class Recipe:
    """How scenes are drawn and a network is trained on them."""

    px: int  # width and height of an image
    network: str  # a name of `errata.train.network`
    epochs: int
    batch: int
    lr: float
    scale: str  # of `sizes`
    inside: float = 0.0  # share of the training rows chosen from inside blindspots, evenly,
    near: float = 0.0  # and from those that miss one by a single feature


RECIPES = {
    "small": Recipe(48, "small", epochs=5, batch=64, lr=3e-3, scale="small", inside=0.2, near=0.3),
    "published": Recipe(112, "resnet18", epochs=5, batch=256, lr=1e-3, scale="published"),
}


@dataclass(frozen=True, eq=False)
class Trained:
    """A network with the blindspots of a world."""

    model: nn.Module
    history: tuple[Epoch, ...]
    splits: dict[str, Scenes]  # train and validation as labelled for training, test with the truth


@dataclass(frozen=True)
class BlindspotRates:
    """How often a model is right in its blindspots and elsewhere."""

    called_positive: tuple[float, ...]  # of each blindspot's rows, which are all positive
    rows: tuple[int, ...]  # of each blindspot
    other_accuracy: float

    @property
    def worked(self) -> bool:
        """Whether the model is blind where planned, and accurate elsewhere."""
        return max(self.called_positive) < MOST_CALLED_POSITIVE and self.other_accuracy > LEAST_OTHER_ACCURACY


def recipe(name: str) -> Recipe:
    """A recipe by its name."""
    if name not in RECIPES:
        raise unknown("recipe", name, RECIPES)
    return RECIPES[name]


def splits(world: World, recipe: Recipe, seed: int = 0) -> dict[str, Scenes]:
    """The three samples; blindspots are labelled 0 in all but the test."""
    n = sizes(world, recipe.scale)
    seeds = {split: len(SPLITS) * seed + i for i, split in enumerate(SPLITS)}
    others = {split: sample_scenes(world, n[split], seeds[split], flip=split != "test") for split in SPLITS[1:]}
    if not recipe.inside + recipe.near:
        return {"train": sample_scenes(world, n["train"], seeds["train"], flip=True), **others}
    pool = sample_scenes(world, max(POOL, n["train"]), seeds["train"], flip=True)
    return {"train": pool.rows(choose_focused(pool, n["train"], recipe.inside, recipe.near)), **others}


def choose_focused(pool: Scenes, n: int, inside: float, near: float) -> Array:
    """(n,) rows of `pool`: shares from inside each blindspot and from just beside it, the others from everywhere.

    A conjunction of seven features holds for one image in 128. On rows drawn freely, a small network needs hours to
    learn that; on rows from both sides of the border, seconds. A blindspot's rows repeat where they are too few.
    """
    rng = np.random.default_rng(pool.seed)
    missed = count_misses(pool)
    spots = missed.shape[1]
    chosen = []
    for b in range(spots):
        for distance, share in ((0, inside), (1, near)):
            rows = np.flatnonzero(missed[:, b] == distance)
            count = int(n * share / spots)
            chosen.append(rng.choice(rows, count, replace=count > len(rows)))
    left = n - sum(len(rows) for rows in chosen)
    return np.concatenate([*chosen, rng.choice(len(pool), left, replace=left > len(pool))])


def count_misses(scenes: Scenes) -> Array:
    """(n, B): in how many of its features each scene misses each blindspot."""
    column = {name: scenes.features[:, i] for i, name in enumerate(scenes.world.features)}
    spots = scenes.world.blindspots
    return np.stack([np.sum([column[name] != value for name, value in spot.items()], axis=0) for spot in spots], axis=1)


def train(
    world: World,
    recipe: Recipe,
    *,
    seed: int = 0,
    device: str | None = None,
    progress: Progress = silent,
) -> Trained:
    """Train a network that has the world's blindspots; the scenes come with it."""
    from ..train import fit, network

    samples = splits(world, recipe, seed)
    training = samples["train"]
    validation = samples["validation"]
    progress(STAGE, 0.0)
    model = network(recipe.network, px=recipe.px, seed=seed)
    history = fit(
        model,
        training.images(px=recipe.px),
        training.labels,
        epochs=recipe.epochs,
        batch=recipe.batch,
        lr=recipe.lr,
        device=device,
        seed=seed,
        validation=(validation.images(px=recipe.px), validation.labels),
        progress=lambda _, share: progress(STAGE, share),
    )
    return Trained(model, history, samples)


def measure_blindspots(logits: Array, test: Scenes) -> BlindspotRates:
    """How blind a model is, by its logits (n, 1) on the test scenes."""
    positive = logits[:, 0] > 0
    outside = ~test.blindspot.any(axis=1)
    called = tuple(float(positive[rows].mean()) for rows in test.blindspot.T)
    right = (positive == test.truth)[outside]
    return BlindspotRates(called, tuple(int(rows.sum()) for rows in test.blindspot.T), float(right.mean()))
