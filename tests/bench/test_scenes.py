"""SpotCheck's generator: the worlds follow the published rules, and the pixels show what the features say."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from errata.bench.paint import PALETTE, SHAPES, extent
from errata.bench.scenes import Scenes, objects_of, place, sample_scenes, sample_world, sizes, too_close
from errata.bench.worlds import (
    ATTRIBUTES,
    POSITION,
    TARGET,
    World,
    contradictions,
    features_of,
    presence,
    sample_blindspots,
)
from errata.core import InputError

WORLDS = [sample_world(seed) for seed in range(300)]
WHITE, GREY, DARK, BLACK, BLUE, ORANGE = (tuple(int(v) for v in colour) for colour in PALETTE)
ALL = tuple(ATTRIBUTES)


def everything(*enabled: str) -> World:
    """A world of all five layers."""
    return World(0, ALL, enabled, ())


def scene(*, boxes: dict[int, tuple[int, int]], **values: int) -> Scenes:
    """One hand-made scene of all layers: `boxes` gives an object's corner, `values` the features that are not 0."""
    world = everything()
    objects = objects_of(world)
    features = np.array([[values.get(name, 0) for name in world.features]], dtype=np.int8)
    placed = np.full((1, len(objects), 4), -1, dtype=np.int16)
    for j, (x, y) in boxes.items():
        width, height = extent(objects[j], values.get(f"{objects[j]}_size", 0))
        placed[0, j] = x, y, x + width, y + height
    zeros = np.zeros(1, dtype=np.int64)
    return Scenes(world, 0, zeros, features, zeros, zeros, np.zeros((1, 0), bool), placed, np.zeros((1, 5), np.int8))


def where(image: np.ndarray, *colours: tuple[int, ...]) -> np.ndarray:
    """(px, px) bool: pixels of any of the colours."""
    return np.any([(image == colour).all(axis=-1) for colour in colours], axis=0)


# Worlds


def test_worlds_are_drawn_as_published() -> None:
    n = len(WORLDS)
    layers = np.bincount([len(world.layers) - 2 for world in WORLDS], minlength=4)
    features = np.bincount([world.n_features for world in WORLDS], minlength=9)
    blindspots = np.bincount([len(world.blindspots) for world in WORLDS], minlength=4)
    for counts, values in ((layers, (1, 2, 3)), (features, (6, 7, 8)), (blindspots, (1, 2, 3))):
        assert counts.sum() == counts[list(values)].sum() == n
        assert np.all(np.abs(counts[list(values)] / n - 1 / 3) < 0.1)
    extra = [layer for world in WORLDS for layer in world.layers[2:]]
    assert all(world.layers[:2] == ("background", "square") for world in WORLDS)
    assert all(len(set(world.layers)) == len(world.layers) for world in WORLDS)
    for layer in ("rectangle", "circle", "text"):
        assert abs(extra.count(layer) / len(extra) - 1 / 3) < 0.08


def test_enabled_features_are_counted_as_published() -> None:
    for world in WORLDS:
        objects = [f"{layer}_presence" for layer in world.layers[1:]]
        options = [name for name in world.enabled if name not in objects]
        assert set(objects) <= set(world.enabled) <= set(world.features)
        assert POSITION not in world.enabled
        assert 5 <= len(options) + len(objects) - 1 <= 7
        assert world.n_features == len(options) + len(objects) == len(world.enabled)


def test_blindspots_are_apart_positive_and_well_formed() -> None:
    lengths = []
    for world in WORLDS:
        for one, other in combinations(world.blindspots, 2):
            assert contradictions(one, other) >= 2
        for blindspot in world.blindspots:
            lengths.append(len(blindspot) - 1)
            assert blindspot[TARGET] == 1
            assert set(blindspot) <= {*world.enabled, POSITION}
            for name in blindspot:
                if not name.startswith("background") and not name.endswith("_presence"):
                    assert blindspot[presence(name)] == 1
    counts = np.bincount(lengths, minlength=7)
    assert counts.sum() == counts[4:7].sum()
    assert np.all(counts[4:7] / len(lengths) > 0.25)


def test_values_of_blindspots_are_even() -> None:
    values = [value for world in WORLDS for spot in world.blindspots for name, value in spot.items()
              if not name.endswith("_presence")]  # fmt: skip
    assert abs(np.mean(values) - 0.5) < 0.05


def test_a_world_is_its_seed() -> None:
    assert sample_world(5) == WORLDS[5] != WORLDS[6]


def test_blindspots_that_cannot_be_apart_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("errata.bench.worlds.TRIES", 20)
    enabled = (TARGET, "circle_presence")
    with pytest.raises(InputError, match=r"3 blindspots of .* contradict each other in 2"):
        sample_blindspots(enabled, [1, 1, 1], np.random.default_rng(0))
    with pytest.raises(InputError, match="more features than the world has"):
        sample_blindspots(enabled, [4], np.random.default_rng(0))


def test_sizes_go_by_the_bucket() -> None:
    small, large = (next(world for world in WORLDS if world.n_features == count) for count in (6, 8))
    assert sizes(small) == {"train": 25_600, "validation": 3_200, "test": 3_200}
    assert sizes(large) == {"train": 102_400, "validation": 12_800, "test": 12_800}
    assert sizes(small, "small") == sizes(large, "small") == {"train": 12_800, "validation": 1_600, "test": 6_400}
    with pytest.raises(InputError, match="unknown scale `smal`; did you mean `small`"):
        sizes(small, "smal")


# Scenes


def test_rollable_features_are_even_and_independent_others_nothing() -> None:
    for world in WORLDS[:6]:
        features = sample_scenes(world, 8_000, 0).features
        rollable = np.isin(world.features, world.enabled)
        fixed = ~rollable & (np.array(world.features) != POSITION)
        assert features.dtype == np.int8
        assert np.all(np.abs(features[:, rollable].mean(axis=0) - 0.5) < 0.025)
        assert not features[:, fixed].any()
        together = np.corrcoef(features[:, rollable], rowvar=False) - np.eye(rollable.sum())
        assert np.abs(together).max() < 0.06


def test_labels_are_flipped_inside_blindspots_only_and_only_if_asked() -> None:
    for world in WORLDS[:6]:
        plain, flipped = (sample_scenes(world, 6_000, 3, flip=flip) for flip in (False, True))
        column = world.features.index(TARGET)
        inside = plain.blindspot.any(axis=1)
        assert np.array_equal(plain.truth, plain.features[:, column])
        assert np.array_equal(plain.labels, plain.truth)
        assert np.array_equal(flipped.truth, plain.truth)
        assert np.array_equal(flipped.labels != flipped.truth, inside)
        assert plain.truth[inside].all()
        assert plain.blindspot.sum(axis=1).max() == 1
        for b, spot in enumerate(world.blindspots):
            values = plain.features[plain.blindspot[:, b]]
            assert len(values) > 5
            assert all((values[:, world.features.index(name)] == value).all() for name, value in spot.items())


def test_no_row_of_a_blindspot_is_missed() -> None:
    world = WORLDS[0]
    scenes = sample_scenes(world, 3_000, 1)
    for b, spot in enumerate(world.blindspots):
        agree = [scenes.features[:, world.features.index(name)] == value for name, value in spot.items()]
        assert np.array_equal(np.all(agree, axis=0), scenes.blindspot[:, b])


def test_a_scene_hangs_on_seed_and_row_alone() -> None:
    world = everything("background_texture", "square_presence", "text_presence", "circle_presence", "circle_texture")
    long, short, other = (sample_scenes(world, n, seed) for n, seed in ((300, 4), (40, 4), (40, 5)))
    assert np.array_equal(long.boxes[:40], short.boxes)
    assert np.array_equal(long.images(slice(0, 40), 48), short.images(px=48))
    assert not np.array_equal(short.boxes, other.boxes)
    picked = np.array([7, 3, 22])
    assert np.array_equal(short.images(picked, 48), short.images(px=48)[picked])
    assert np.array_equal(short.rows(picked).images(px=48), short.images(picked, 48))
    assert len(short.rows(picked)) == 3
    assert np.array_equal(short.rows(picked).labels, short.labels[picked])


def test_noise_differs_between_rows_and_samples() -> None:
    world = everything("background_texture")
    one, other = (sample_scenes(world, 20, seed) for seed in (0, 1))
    textured = [np.flatnonzero(s.features[:, world.features.index("background_texture")]) for s in (one, other)]
    first, second = one.images(textured[0][:2], 64)
    elsewhere = other.images(textured[1][:1], 64)[0]
    for a, b in combinations((first, second, elsewhere), 2):
        dark = [(image == DARK).all(axis=-1) for image in (a, b)]
        assert 0.07 < dark[0].mean() < 0.13
        assert 0.002 < (dark[0] & dark[1]).mean() < 0.02  # .01 by chance


def test_objects_keep_their_distance() -> None:
    for world in [*WORLDS[:4], everything("square_presence", "square_number", "text_presence", "text_size",
                                          "rectangle_presence", "circle_presence")]:  # fmt: skip
        boxes = sample_scenes(world, 2_000, 0).boxes.astype(int)
        for i, j in combinations(range(boxes.shape[1]), 2):
            one, other = boxes[:, i], boxes[:, j]
            both = (one[:, 0] >= 0) & (other[:, 0] >= 0)
            across = np.maximum(one[:, 0] - other[:, 2], other[:, 0] - one[:, 2])
            down = np.maximum(one[:, 1] - other[:, 3], other[:, 1] - one[:, 3])
            assert (np.maximum(across, down)[both] >= 5).all()
        seen = boxes[boxes[..., 0] >= 0]
        assert seen.min() >= 0
        assert seen.max() <= 224


def test_boxes_are_where_and_as_large_as_the_features_say() -> None:
    world = everything("square_presence", "square_size", "square_number", "rectangle_presence", "rectangle_size")
    scenes = sample_scenes(world, 500, 2)
    column = {name: scenes.features[:, i] for i, name in enumerate(world.features)}
    there = scenes.boxes[..., 0] >= 0
    assert np.array_equal(there[:, 0], column["square_presence"] == 1)
    assert np.array_equal(there[:, 1], (column["square_presence"] == 1) & (column["square_number"] == 1))
    wide = scenes.boxes[:, 2, 2] - scenes.boxes[:, 2, 0]
    assert set(wide[there[:, 2] & (column["rectangle_size"] == 0)]) == {50}
    assert set(wide[there[:, 2] & (column["rectangle_size"] == 1)]) == {25}
    assert not there[:, 3:].any()


def test_places_are_even_over_the_canvas() -> None:
    boxes = sample_scenes(everything("square_presence"), 8_000, 0).boxes[:, 0]
    corners = boxes[boxes[:, 0] >= 0, :2]
    assert corners.min() == 0
    assert corners.max() == 224 - 40
    assert np.all(np.abs(corners.mean(axis=0) - 92) < 3)


@pytest.mark.parametrize(("present", "size"), [([[True]], 300), ([[True] * 6], 100)])
def test_what_cannot_be_placed_is_refused(present: list[list[bool]], size: int) -> None:
    there = np.array(present)
    extents = np.full(there.shape, size)
    with pytest.raises(InputError, match=r"object \d of scene 0 found no place 5 px from the others"):
        place(there, extents, extents, np.random.SeedSequence(0))


def test_too_close_means_less_than_five() -> None:
    one = np.array([[10, 10, 20, 20]])
    assert not too_close(one, np.array([[25, 10, 30, 20]]))[0]
    assert too_close(one, np.array([[24, 10, 30, 20]]))[0]
    assert not too_close(one, np.array([[24, 25, 30, 30]]))[0]
    assert not too_close(one, np.array([[-1, -1, -1, -1]]))[0]


def test_relative_position_agrees_with_the_pixels() -> None:
    world = everything("square_presence", "square_number", "square_colour")
    scenes = sample_scenes(world, 400, 0)
    said = scenes.features[:, world.features.index(POSITION)]
    for image, value in zip(scenes.images(px=224), said, strict=True):
        rows = np.flatnonzero(where(image, BLUE, ORANGE).any(axis=1))
        # The topmost square begins with the first coloured row and is 41 high (cut to 40 at the lower edge).
        expected = -1 if not len(rows) else int(rows[0] + 20 < 112)
        assert value == expected
    assert set(said) == {-1, 0, 1}


# Pixels


def test_an_empty_scene_is_its_background() -> None:
    assert set(map(tuple, scene(boxes={}).images()[0].reshape(-1, 3))) == {WHITE}
    assert set(map(tuple, scene(boxes={}, background_colour=1).images()[0].reshape(-1, 3))) == {GREY}
    textured = scene(boxes={}, background_texture=1).images()[0]
    assert set(map(tuple, textured.reshape(-1, 3))) == {WHITE, DARK}
    assert 0.09 < where(textured, DARK).mean() < 0.11


@pytest.mark.parametrize("layer", ["square", "rectangle", "circle"])
@pytest.mark.parametrize("size", [0, 1])
@pytest.mark.parametrize("colour", [0, 1])
def test_a_shape_fills_its_box(layer: str, size: int, colour: int) -> None:
    j = objects_of(everything()).index(layer)
    image = scene(boxes={j: (30, 60)}, **{f"{layer}_size": size, f"{layer}_colour": colour}).images()[0]
    inked = where(image, ORANGE if colour else BLUE)
    assert np.array_equal(inked, ~where(image, WHITE))
    down, across = np.nonzero(inked)
    width, height = SHAPES[layer][size]
    assert (across.min(), across.max(), down.min(), down.max()) == (30, 30 + width, 60, 60 + height)
    full = (width + 1) * (height + 1)
    share = inked.sum() / full
    assert share == 1 if layer != "circle" else abs(share - np.pi / 4) < 0.03


@pytest.mark.parametrize(("px", "side"), [(224, 41), (112, 20.5), (64, 11.7), (48, 8.8), (16, 2.9)])
def test_sizes_scale_with_the_picture(px: int, side: float) -> None:
    image = scene(boxes={0: (100, 20)}).images(px=px)[0]
    inked = where(image, BLUE)
    assert abs(inked.any(axis=0).sum() - side) <= 1
    assert abs(np.nonzero(inked)[1].min() - 100 * px / 224) <= 1


def test_a_shape_is_cut_at_the_edge() -> None:
    inked = where(scene(boxes={0: (184, 184)}).images()[0], BLUE)
    assert inked[184:, 184:].all()
    assert inked.sum() == 40 * 40


def test_stripes_are_black_vertical_and_five_wide() -> None:
    image = scene(boxes={0: (100, 100)}, square_texture=1).images()[0]
    assert (image[100] == image[140]).all()
    row = where(image[100:101], BLACK)[0, 100:141]
    changes = np.flatnonzero(np.diff(row.astype(int)))
    assert set(np.diff(changes)) == {5}
    assert where(image, BLACK).sum() + where(image, BLUE).sum() == 41 * 41
    shifted = scene(boxes={0: (100, 100)}, square_texture=1)
    moved = replace(shifted, phases=shifted.phases + 3).images()[0]
    assert not np.array_equal(moved, image)


@pytest.mark.parametrize("px", [224, 112, 48])
def test_the_word_is_visible_and_grows(px: int) -> None:
    counts = []
    for size in (0, 1):
        image = scene(boxes={4: (40, 60)}, text_size=size, text_colour=1).images(px=px)[0]
        inked = where(image, ORANGE)
        counts.append(inked.sum())
        width, height = extent("text", size)
        across = np.nonzero(inked.any(axis=0))[0]
        assert across.max() - across.min() + 1 == pytest.approx((width + 1) * px / 224, abs=2)
        assert 0.15 < inked.sum() / ((width + 1) * (height + 1) * (px / 224) ** 2) < 0.8
    assert counts[1] > 2 * counts[0]


def test_a_striped_word_is_partly_black() -> None:
    image = scene(boxes={4: (40, 60)}, text_size=1, text_texture=1).images()[0]
    assert where(image, BLACK).sum() > 50
    assert where(image, BLUE).sum() > 50


def test_there_are_two_squares() -> None:
    image = scene(boxes={0: (10, 10), 1: (100, 150)}, square_number=1, square_size=1).images()[0]
    inked = where(image, BLUE)
    assert inked[10:31, 10:31].all()
    assert inked[150:171, 100:121].all()
    assert inked.sum() == 2 * 21 * 21


def test_scaled_objects_never_overlap() -> None:
    """Every object keeps as many pixels in company as it has alone."""
    world = everything("square_presence", "rectangle_presence", "circle_presence", "square_number")
    scenes = sample_scenes(world, 100, 0)
    together = scenes.images(px=48)
    alone = np.zeros((100, 48, 48), dtype=int)
    for j in range(scenes.boxes.shape[1]):
        boxes = np.full_like(scenes.boxes, -1)
        boxes[:, j] = scenes.boxes[:, j]
        alone += where(replace(scenes, boxes=boxes).images(px=48), BLUE)
    assert alone.max() == 1
    assert np.array_equal(alone == 1, where(together, BLUE))


def test_features_have_one_order() -> None:
    assert features_of(("background", "square"))[:4] == (POSITION, "background_colour", "background_texture", TARGET)
    assert len(features_of(ALL)) == 3 + 5 + 4 + 4 + 4


def test_pictures_too_small_to_see_are_refused() -> None:
    with pytest.raises(InputError, match="`px` is 8"):
        scene(boxes={}).images(px=8)
    with pytest.raises(InputError, match="at least one scene"):
        sample_scenes(WORLDS[0], 0, 0)
