"""SpotCheck scenes: what is in each image and where, sampled from a world; `paint` makes the pixels.

Everything is drawn for a canvas of 224 by 224 and scaled when painted. A row depends on the seed and its own
number only: neither on how many rows are drawn nor on the batch it is painted in.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..core import Array, InputError
from ..core.errors import unknown
from .paint import CANVAS, STRIPE, extent, paint
from .worlds import POSITION, TARGET, World, sample_world

__all__ = ["SCALES", "SPLITS", "Scenes", "World", "sample_scenes", "sample_world", "sizes"]

GAP = 5  # between the boxes of any two objects
PLACING_TRIES = 1_000
SPLITS = ("train", "validation", "test")
PER_BUCKET = (400, 50, 50)  # published: rows of each split for each combination of features
SMALL = (12_800, 1_600, 6_400)  # rows in all, so that every world takes the same time
SCALES = ("published", "small")


@dataclass(frozen=True, eq=False)
class Scenes:
    """Scenes of a world, one a row: what is in each, where it lies and how it is labelled."""

    world: World
    seed: int
    ids: Array  # (n,) the row's own number, which its noise hangs on
    features: Array  # (n, F) int8, columns as `world.features`
    truth: Array  # (n,) int64: 1 where a square is present
    labels: Array  # (n,) int64: the truth, or 0 inside a blindspot where flipped
    blindspot: Array  # (n, B) bool
    boxes: Array  # (n, objects, 4) int16: x1, y1, x2, y2 on the canvas, the end included; -1 where absent
    phases: Array  # (n, objects) int8: where the stripes begin

    def __len__(self) -> int:
        return len(self.ids)

    def rows(self, index: Array | slice) -> Scenes:
        """Some of the rows, which look as they did."""
        arrays = ("ids", "features", "truth", "labels", "blindspot", "boxes", "phases")
        return replace(self, **{name: getattr(self, name)[index] for name in arrays})

    def images(self, rows: Array | slice | None = None, px: int = CANVAS) -> Array:
        """(b, px, px, 3) uint8 of the rows, or of all."""
        some = self if rows is None else self.rows(rows)
        columns = {name: some.features[:, i] for i, name in enumerate(self.world.features)}
        return paint(px, objects_of(self.world), columns, some.boxes, some.phases, (self.seed, some.ids))


def sizes(world: World, scale: str = "published") -> dict[str, int]:
    """How many rows each split has. A bucket is a combination of features; rows are drawn freely, not by bucket."""
    if scale not in SCALES:
        raise unknown("scale", scale, SCALES)
    if scale == "small":
        rows = SMALL
    else:
        rows = tuple(each * 2**world.n_features for each in PER_BUCKET)
    return dict(zip(SPLITS, rows, strict=True))


def objects_of(world: World) -> tuple[str, ...]:
    """The layer of each box, in the order of painting: the square has two."""
    return ("square", "square", *world.layers[2:])


def sample_scenes(world: World, n: int, seed: int, *, flip: bool = False) -> Scenes:
    """`n` scenes; `flip` labels those inside a blindspot 0, as in training and validation."""
    if n < 1:
        raise InputError(f"`n` is {n}; a sample needs at least one scene")
    rolls, phases, places = np.random.SeedSequence([world.seed, seed]).spawn(3)
    features = _roll(world, n, np.random.default_rng(rolls))
    column = {name: features[:, i] for i, name in enumerate(world.features)}
    objects = objects_of(world)
    present, widths, heights = _wanted(objects, column)
    boxes = place(present, widths, heights, places)
    column[POSITION][:] = _relative_position(boxes[:, :2])  # a view: fills the column of `features`
    blindspot = world.inside(features)
    truth = column[TARGET].astype(np.int64)
    labels = np.where(blindspot.any(axis=1), 0, truth) if flip else truth.copy()
    phase = np.random.default_rng(phases).integers(STRIPE, size=(n, len(objects)), dtype=np.int8)
    return Scenes(world, seed, np.arange(n), features, truth, labels, blindspot, boxes, phase)


def _roll(world: World, n: int, rng: np.random.Generator) -> Array:
    """(n, F) int8: attributes are rolled also where the object is absent."""
    rollable = np.isin(world.features, world.enabled)
    # Unenabled features are rolled and thrown away, which keeps the random numbers of a row in step.
    return (rng.random((n, len(rollable))) < 0.5) & rollable.astype(np.int8)


def _wanted(objects: tuple[str, ...], column: dict[str, Array]) -> tuple[Array, Array, Array]:
    """(n, objects) each: present, width, height."""
    present = np.column_stack([column[f"{layer}_presence"] == 1 for layer in objects])
    present[:, 1] &= column["square_number"] == 1
    extents = [np.array([extent(layer, 0), extent(layer, 1)])[column[f"{layer}_size"]] for layer in objects]
    return present, np.stack([e[:, 0] for e in extents], axis=1), np.stack([e[:, 1] for e in extents], axis=1)


def place(present: Array, widths: Array, heights: Array, seed: np.random.SeedSequence) -> Array:
    """(n, objects, 4) int16: boxes drawn uniformly one object after the other, each until it is clear of those before.

    Every try has its own stream with a number for every row, so that a row's boxes do not hang on other rows.
    """
    n, objects = present.shape
    boxes = np.full((n, objects, 4), -1, dtype=np.int16)
    for j, streams in enumerate(seed.spawn(objects)):
        size = np.column_stack([widths[:, j], heights[:, j]])
        pending = np.flatnonzero(present[:, j] & (size <= CANVAS).all(axis=1))
        for _ in range(PLACING_TRIES):
            if not len(pending):
                break
            unit = np.random.default_rng(streams.spawn(1)[0]).random((pending[-1] + 1, 2))[pending]
            corner = (unit * (CANVAS + 1 - size[pending])).astype(np.int16)
            box = np.concatenate([corner, corner + size[pending]], axis=1, dtype=np.int16)
            clear = ~too_close(boxes[pending, :j], box[:, None]).any(axis=1)
            boxes[pending[clear], j] = box[clear]
            pending = pending[~clear]
        stuck = np.flatnonzero(present[:, j] & (boxes[:, j, 0] < 0))
        if len(stuck):
            raise InputError(
                f"object {j} of scene {stuck[0]} found no place {GAP} px from the others in {PLACING_TRIES} tries; "
                "use smaller or fewer objects"
            )
    return boxes


def too_close(first: Array, second: Array) -> Array:
    """(...) bool: whether boxes (..., 4) are less than the gap apart; an absent box is never."""
    width = np.minimum(first[..., 2], second[..., 2]) - np.maximum(first[..., 0], second[..., 0])
    height = np.minimum(first[..., 3], second[..., 3]) - np.maximum(first[..., 1], second[..., 1])
    return (width > -GAP) & (height > -GAP) & (first[..., 0] >= 0) & (second[..., 0] >= 0)


def _relative_position(squares: Array) -> Array:
    """(n,) of boxes (n, 2, 4): 1 above the middle row, 0 below, -1 without a square; of two, the topmost counts."""
    centre = (squares[..., 1] + squares[..., 3]) // 2
    topmost = np.where(squares[..., 0] >= 0, centre, CANVAS).min(axis=1)
    return np.where(squares[:, 0, 0] < 0, -1, topmost < CANVAS // 2)
