"""Small images of rows, and of where in them a feature is, as data: addresses."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from ..core import Array
from ..core.media import JPEG_QUALITY, data_address

PX = 96  # the longer side of an image that is larger
COLD = np.array([0.4, 0.0, 0.65])  # purple
HOT = np.array([1.0, 0.85, 0.1])  # yellow: light where it is hot
COVERED = 0.8  # of an image, where the heat is highest: what lies below still shows


def overlay(image: Array, heat: Array) -> str | None:
    """The image in grey under its heat, from purple to yellow, as an address; None without any heat."""
    mixed = overlaid(image, heat)
    return None if mixed is None else address(mixed)


def overlaid(image: Array, heat: Array) -> Array | None:
    """(h, w, 3) in [0, 1]: the image in grey under its heat; None without any."""
    height, width = image.shape[:2]
    full = upsampled(heat, height, width)
    if full is None:
        return None
    grey = image.reshape(height, width, -1).mean(axis=2, keepdims=True)
    amount = full[..., None]
    colour = COLD + amount * (HOT - COLD)
    mixed: Array = (1 - COVERED * amount) * grey + COVERED * amount * colour
    return mixed


def upsampled(heat: Array, height: int, width: int) -> Array | None:
    """(height, width) in [0, 1], the highest 1: the map divided by its maximum, as the published code does.

    None where the feature is nowhere in the image: dividing nothing by nothing draws noise.
    """
    from PIL import Image

    if not heat.size or not heat.max() > 0:
        return None
    drawing = Image.fromarray((heat / heat.max()).astype(np.float32))
    # Pillow takes width before height.
    full: Array = np.asarray(drawing.resize((width, height), Image.Resampling.BILINEAR)).clip(0, 1)
    return full


def address(image: Array) -> str:
    """An image (h, w), (h, w, 1) or (h, w, 3) in [0, 1]: a PNG of its own size, or a small JPEG of a larger one."""
    from PIL import Image

    pixels = np.rint(255 * np.clip(image, 0, 1)).astype(np.uint8)
    if pixels.ndim == 3 and pixels.shape[2] == 1:
        pixels = pixels[..., 0]
    drawing = Image.fromarray(pixels)
    if max(drawing.size) <= PX:
        return data_address(_file_bytes(drawing, "PNG", optimize=True))
    drawing.thumbnail((PX, PX), Image.Resampling.LANCZOS)
    return data_address(_file_bytes(drawing, "JPEG", quality=JPEG_QUALITY))


def _file_bytes(drawing: Any, form: str, **options: Any) -> bytes:
    file = io.BytesIO()
    drawing.save(file, form, **options)
    return file.getvalue()
