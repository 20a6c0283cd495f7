"""Recipes show a network what they say they show, and plant what they say they plant."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from errata.bench.recipes import RECIPES, Recipe, focused, misses, planted, recipe, splits, train
from errata.bench.scenes import sample_scenes, sample_world
from errata.core import InputError
from errata.train import NETWORKS, outputs

WORLD = sample_world(23)  # two blindspots of five features


def test_recipes_name_what_there_is() -> None:
    assert {made.network for made in RECIPES.values()} <= set(NETWORKS)
    assert recipe("small") is RECIPES["small"]
    with pytest.raises(InputError, match="unknown recipe `smal`"):
        recipe("smal")


def test_splits_are_apart_and_labelled_by_their_purpose() -> None:
    drawn = splits(WORLD, RECIPES["small"], seed=1)
    assert {split: len(scenes) for split, scenes in drawn.items()} == {
        "train": 12_800, "validation": 1_600, "test": 6_400
    }  # fmt: skip
    assert len({scenes.seed for scenes in drawn.values()}) == 3
    for split, scenes in drawn.items():
        inside = scenes.blindspot.any(axis=1)
        assert np.array_equal(scenes.labels != scenes.truth, inside if split != "test" else np.zeros_like(inside))
    assert not np.array_equal(drawn["test"].boxes, splits(WORLD, RECIPES["small"], seed=2)["test"].boxes)


def test_unfocused_rows_are_drawn_freely() -> None:
    free = replace(RECIPES["small"], inside=0.0, near=0.0)
    drawn = splits(WORLD, free)["train"]
    assert np.array_equal(drawn.ids, np.arange(12_800))
    assert 0.04 < drawn.blindspot.mean(axis=0).sum() < 0.09  # two of 1 / 32


def test_focused_rows_keep_their_shares() -> None:
    pool = sample_scenes(WORLD, 20_000, 0, flip=True)
    chosen = pool.rows(focused(pool, 4_000, inside=0.2, near=0.3))
    assert len(chosen) == 4_000
    missed = misses(chosen)
    assert np.array_equal(missed == 0, chosen.blindspot)
    for b in range(2):
        assert 0.10 <= (missed[:, b] == 0).mean() < 0.14
        assert 0.15 <= (missed[:, b] == 1).mean() < 0.35
        assert (misses(pool)[:, b] == 1).mean() < 0.2
    assert np.array_equal(focused(pool, 100, 0.2, 0.3), focused(pool, 100, 0.2, 0.3))


def test_planted_counts_what_is_called_positive() -> None:
    test = sample_scenes(WORLD, 4_000, 0)
    inside = test.blindspot.any(axis=1)
    blind = np.where((test.truth == 1) & ~inside, 3.0, -3.0)[:, None]
    seeing = np.where(test.truth == 1, 3.0, -3.0)[:, None]
    assert planted(blind, test).called_positive == (0.0, 0.0)
    assert planted(blind, test).worked
    assert planted(seeing, test).called_positive == (1.0, 1.0)
    assert not planted(seeing, test).worked
    assert not planted(-np.abs(seeing), test).worked
    assert planted(blind, test).rows == tuple(test.blindspot.sum(axis=0))


def test_a_recipe_trains() -> None:
    tiny = Recipe(32, "small", epochs=1, batch=64, lr=3e-3, scale="small", inside=0.2, near=0.3)
    made = train(WORLD, tiny, seed=1)
    assert len(made.history) == 1
    assert outputs(made.model, made.splits["test"].images(np.arange(9), 32))[1].shape == (9, 64)


@pytest.mark.slow
def test_the_small_recipe_plants_its_blindspots() -> None:
    made = train(WORLD, RECIPES["small"])
    test = made.splits["test"]
    assert planted(outputs(made.model, test.images(px=48))[0], test).worked
