"""The pixels of SpotCheck: a batch of scenes at any size, as codes of a palette and then as colours."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

import numpy as np

from ..core import Array, InputError

CANVAS = 224
STRIPE = 5
SMALLEST = 2  # pixels of anything painted
# Width and height for the values 0 and 1 of the size; drawn boxes include their end, so 40 paints 41 pixels.
SHAPES = {
    "square": ((40, 40), (20, 20)),
    "rectangle": ((50, 30), (25, 15)),
    "circle": ((40, 40), (20, 20)),
}
POINTS = (25, 50)
WORD = "text"
WHITE, GREY, DARK, BLACK, BLUE, ORANGE = range(6)
PALETTE = np.array(
    [(255, 255, 255), (200, 200, 200), (100, 100, 100), (0, 0, 0), (31, 119, 180), (255, 127, 14)], dtype=np.uint8
)
NOISE = 6554  # of 65,536: each pixel of a textured background is dark with p=.1
BLOCK = 1 << 18  # pixels painted at a time: what is at work stays in the cache
SHARPNESS = 8  # the word is drawn so many times too large, then averaged

Columns = Mapping[str, Array]


def extent(layer: str, size: int) -> tuple[int, int]:
    """Width and height of a layer's box on the canvas, without its end."""
    if layer != "text":
        return SHAPES[layer][size]
    height, width = _word(POINTS[size], CANVAS).shape
    return width - 1, height - 1


def paint(
    px: int, objects: tuple[str, ...], columns: Columns, boxes: Array, phases: Array, noise: tuple[int, Array]
) -> Array:
    """(b, px, px, 3) uint8 of boxes (b, objects, 4) on the canvas; `noise` is the seed and the rows' own numbers."""
    if px < 16:
        raise InputError(f"`px` is {px}; nothing can be told apart below 16")
    seed, ids = noise
    images = np.empty((len(boxes), px, px, 3), dtype=np.uint8)
    step = max(1, BLOCK // (px * px))
    for start in range(0, len(boxes), step):
        rows = slice(start, start + step)
        some = {name: column[rows] for name, column in columns.items()}
        codes = _background(px, some["background_colour"], some["background_texture"], seed, ids[rows])
        for j, layer in enumerate(objects):
            ink = _ink(px, some[f"{layer}_colour"], some[f"{layer}_texture"], phases[rows, j])
            if layer == "text":
                _stamp_word(codes, ink, boxes[rows, j], some["text_size"])
            else:
                _stamp_shape(codes, ink, boxes[rows, j], layer == "circle")
        np.take(PALETTE, codes, axis=0, out=images[rows], mode="clip")
    return images


def _background(px: int, colour: Array, texture: Array, seed: int, ids: Array) -> Array:
    """(b, px, px) codes. A row's noise comes from its own key, whatever is painted beside it."""
    codes = np.empty((len(ids), px, px), dtype=np.uint8)
    codes[:] = np.where(colour == 1, GREY, WHITE)[:, None, None]
    draws = -(-px * px // 4)  # four pixels to a 64-bit number
    for i in np.flatnonzero(texture):
        raw = np.random.Philox(key=(seed, int(ids[i]))).random_raw(draws)
        codes[i][raw.view(np.uint16)[: px * px].reshape(px, px) < NOISE] = DARK
    return codes


def _ink(px: int, colour: Array, texture: Array, phases: Array) -> Array:
    """(b, px) code of each column: the object's colour, or black where a stripe runs."""
    thick = max(SMALLEST, round(STRIPE * px / CANVAS))
    shift = phases.astype(np.int64) * thick // STRIPE
    stripe = (np.arange(px) + shift[:, None]) // thick % 2 == 0
    plain = np.where(colour == 1, ORANGE, BLUE).astype(np.uint8)
    return np.where(stripe & (texture == 1)[:, None], np.uint8(BLACK), plain[:, None])


def _stamp_shape(codes: Array, ink: Array, boxes: Array, is_round: bool) -> None:
    """Writes the shape into `codes` (b, px, px). Corners are rounded, not sizes, so that neighbours never overlap."""
    px = codes.shape[1]
    edges = np.rint((boxes + np.array([0, 0, 1, 1])) * (px / CANVAS)).astype(np.int64)
    start = edges[:, :2]
    end = np.maximum(edges[:, 2:], start + SMALLEST)
    end[boxes[:, 0] < 0] = start[boxes[:, 0] < 0] = 0
    at = np.arange(px)
    across = (at >= start[:, :1]) & (at < end[:, :1])
    down = (at >= start[:, 1:]) & (at < end[:, 1:])
    mask = down[:, :, None] & across[:, None, :]
    if is_round:
        # Of a unit circle: pixel centres against the middle and half width of the box.
        half = np.maximum((end - start) / 2, 0.5)
        off = ((at + 0.5 - (start + half)[:, :, None]) / half[:, :, None]).astype(np.float32) ** 2
        mask &= off[:, 1, :, None] + off[:, 0, None, :] <= 1
    np.copyto(codes, np.broadcast_to(ink[:, None, :], codes.shape), where=mask)


def _stamp_word(codes: Array, ink: Array, boxes: Array, size: Array) -> None:
    px = codes.shape[1]
    for value, points in enumerate(POINTS):
        glyph = _word(points, px)
        rows = np.flatnonzero((boxes[:, 0] >= 0) & (size == value))
        corner = np.rint(boxes[rows, :2] * (px / CANVAS)).astype(np.int64)
        corner = np.minimum(corner, [px - glyph.shape[1], px - glyph.shape[0]])
        down, across = np.nonzero(glyph)
        x = corner[:, :1] + across
        y = corner[:, 1:] + down
        codes[rows[:, None], y, x] = ink[rows[:, None], x]


@lru_cache(maxsize=32)
def _word(points: int, px: int) -> Array:
    """(h, w) bool: the word as it is at this size, cut to its ink; at its own size on the canvas, `px` is CANVAS."""
    from PIL import Image, ImageDraw, ImageFont

    font = ImageFont.load_default(size=points * SHARPNESS)  # Pillow's own free font
    _, _, right, bottom = (int(edge) for edge in font.getbbox(WORD))
    large = Image.new("L", (right, bottom))
    ImageDraw.Draw(large).text((0, 0), WORD, fill=255, font=font)
    large = large.crop(large.getbbox())
    scale = px / CANVAS / SHARPNESS
    width, height = (max(SMALLEST, round(edge * scale)) for edge in large.size)
    coverage = np.asarray(large.resize((width, height), Image.Resampling.BOX))
    # Strokes thinner than a pixel would vanish at one half.
    threshold = 0.5 if px >= CANVAS else 0.35
    return coverage > 255 * threshold
