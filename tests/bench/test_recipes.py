"""Recipes show a network what they say they show, and plant what they say they plant."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from errata.bench.recipes import (
    RECIPES,
    Recipe,
    choose_focused,
    count_misses,
    measure_blindspots,
    recipe,
    splits,
    train,
)
from errata.bench.scenes import sample_scenes, sample_world
from errata.core import InputError
from errata.train import NETWORKS, outputs

WORLD = sample_world(23)  # two blindspots of five features


def test_recipes_name_what_there_is() -> None:
    assert {trained.network for trained in RECIPES.values()} <= set(NETWORKS)
    assert recipe("small") is RECIPES["small"]
    with pytest.raises(InputError, match="unknown recipe `smal`"):
        recipe("smal")


def test_splits_are_apart_and_labelled_by_their_purpose() -> None:
    samples = splits(WORLD, RECIPES["small"], seed=1)
    assert {split: len(scenes) for split, scenes in samples.items()} == {
        "train": 12_800, "validation": 1_600, "test": 6_400
    }  # fmt: skip
    assert len({scenes.seed for scenes in samples.values()}) == 3
    for split, scenes in samples.items():
        inside = scenes.blindspot.any(axis=1)
        assert np.array_equal(scenes.labels != scenes.truth, inside if split != "test" else np.zeros_like(inside))
    assert not np.array_equal(samples["test"].boxes, splits(WORLD, RECIPES["small"], seed=2)["test"].boxes)


def test_unfocused_rows_are_drawn_freely() -> None:
    free = replace(RECIPES["small"], inside=0.0, near=0.0)
    samples = splits(WORLD, free)["train"]
    assert np.array_equal(samples.ids, np.arange(12_800))
    assert 0.04 < samples.blindspot.mean(axis=0).sum() < 0.09  # two of 1 / 32


def test_focused_rows_keep_their_shares() -> None:
    pool = sample_scenes(WORLD, 20_000, 0, flip=True)
    chosen = pool.rows(choose_focused(pool, 4_000, inside=0.2, near=0.3))
    assert len(chosen) == 4_000
    missed = count_misses(chosen)
    assert np.array_equal(missed == 0, chosen.blindspot)
    for b in range(2):
        assert 0.10 <= (missed[:, b] == 0).mean() < 0.14
        assert 0.15 <= (missed[:, b] == 1).mean() < 0.35
        assert (count_misses(pool)[:, b] == 1).mean() < 0.2
    assert np.array_equal(choose_focused(pool, 100, 0.2, 0.3), choose_focused(pool, 100, 0.2, 0.3))


def test_planted_counts_what_is_called_positive() -> None:
    test = sample_scenes(WORLD, 4_000, 0)
    inside = test.blindspot.any(axis=1)
    blind = np.where((test.truth == 1) & ~inside, 3.0, -3.0)[:, None]
    seeing = np.where(test.truth == 1, 3.0, -3.0)[:, None]
    assert measure_blindspots(blind, test).called_positive == (0.0, 0.0)
    assert measure_blindspots(blind, test).worked
    assert measure_blindspots(seeing, test).called_positive == (1.0, 1.0)
    assert not measure_blindspots(seeing, test).worked
    assert not measure_blindspots(-np.abs(seeing), test).worked
    assert measure_blindspots(blind, test).rows == tuple(test.blindspot.sum(axis=0))


def test_a_recipe_trains() -> None:
    tiny = Recipe(32, "small", epochs=1, batch=64, lr=3e-3, scale="small", inside=0.2, near=0.3)
    trained = train(WORLD, tiny, seed=1)
    assert len(trained.history) == 1
    assert outputs(trained.model, trained.splits["test"].images(np.arange(9), 32))[1].shape == (9, 64)


@pytest.mark.slow
def test_the_small_recipe_plants_its_blindspots() -> None:
    trained = train(WORLD, RECIPES["small"])
    test = trained.splits["test"]
    assert measure_blindspots(outputs(trained.model, test.images(px=48))[0], test).worked
