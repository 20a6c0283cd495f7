"""How a network comes by its blindspots: what it is shown, how it is trained, and whether that worked.

`published` keeps the numbers of SpotCheck's rows, at half the side and from fresh weights. `small` is SpotCheck-like
only: a small network on small pictures, and training rows chosen by `focused`. Its results are not to be set beside
the published table.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..core import Array
from ..core.errors import unknown
from .scenes import SPLITS, Scenes, sample_scenes, sizes
from .worlds import World

if TYPE_CHECKING:
    from torch import nn

    from ..train import Epoch

POOL = 102_400  # scenes that focused rows are chosen from: as many as the largest published training set
BLIND = 0.25  # at most so many positives of a blindspot are called positive by a model that is blind there
ABLE = 0.95  # and at least so many of the rows outside are called right


@dataclass(frozen=True)
class Recipe:
    px: int
    network: str
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
    model: nn.Module
    history: tuple[Epoch, ...]
    splits: dict[str, Scenes]  # train and validation as labelled for training, test with the truth


@dataclass(frozen=True)
class Planted:
    """What a model does where it is to be blind, and elsewhere."""

    called_positive: tuple[float, ...]  # of each blindspot's rows, which are all positive
    rows: tuple[int, ...]  # of each blindspot
    other_accuracy: float

    @property
    def worked(self) -> bool:
        return max(self.called_positive) < BLIND and self.other_accuracy > ABLE


def recipe(name: str) -> Recipe:
    if name not in RECIPES:
        raise unknown("recipe", name, RECIPES)
    return RECIPES[name]


def splits(world: World, recipe: Recipe, seed: int = 0) -> dict[str, Scenes]:
    """The three samples; blindspots are labelled 0 in all but the test."""
    n = sizes(world, recipe.scale)
    seeds = {split: len(SPLITS) * seed + i for i, split in enumerate(SPLITS)}
    drawn = {split: sample_scenes(world, n[split], seeds[split], flip=split != "test") for split in SPLITS[1:]}
    if not recipe.inside + recipe.near:
        return {"train": sample_scenes(world, n["train"], seeds["train"], flip=True), **drawn}
    pool = sample_scenes(world, max(POOL, n["train"]), seeds["train"], flip=True)
    return {"train": pool.rows(focused(pool, n["train"], recipe.inside, recipe.near)), **drawn}


def focused(pool: Scenes, n: int, inside: float, near: float) -> Array:
    """(n,) rows of `pool`: shares from inside each blindspot and from just beside it, the others from everywhere.

    A conjunction of seven features holds for one picture in 128. Freely drawn, a small network needs hours to see
    that; shown the rows on both sides of the border, seconds. A blindspot's rows repeat where they are too few.
    """
    rng = np.random.default_rng(pool.seed)
    missed = misses(pool)
    spots = missed.shape[1]
    chosen = []
    for b in range(spots):
        for distance, share in ((0, inside), (1, near)):
            rows = np.flatnonzero(missed[:, b] == distance)
            count = int(n * share / spots)
            chosen.append(rng.choice(rows, count, replace=count > len(rows)))
    left = n - sum(len(rows) for rows in chosen)
    return np.concatenate([*chosen, rng.choice(len(pool), left, replace=left > len(pool))])


def misses(scenes: Scenes) -> Array:
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
    progress: Callable[[Epoch], None] | None = None,
) -> Trained:
    """A network with the world's blindspots, and the scenes it was made from."""
    from ..train import fit, network

    drawn = splits(world, recipe, seed)
    learnt, checked = drawn["train"], drawn["validation"]
    model = network(recipe.network, px=recipe.px, seed=seed)
    history = fit(
        model,
        learnt.images(px=recipe.px),
        learnt.labels,
        epochs=recipe.epochs,
        batch=recipe.batch,
        lr=recipe.lr,
        device=device,
        seed=seed,
        validation=(checked.images(px=recipe.px), checked.labels),
        progress=progress,
    )
    return Trained(model, history, drawn)


def planted(logits: Array, test: Scenes) -> Planted:
    """What the logits (n, 1) of the test scenes say about the blindspots."""
    positive = logits[:, 0] > 0
    outside = ~test.blindspot.any(axis=1)
    called = tuple(float(positive[rows].mean()) for rows in test.blindspot.T)
    right = (positive == test.truth)[outside]
    return Planted(called, tuple(int(rows.sum()) for rows in test.blindspot.T), float(right.mean()))
