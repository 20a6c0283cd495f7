"""Small pictures of rows, and of where in them a feature is, as data: addresses."""

from __future__ import annotations

import io
from typing import Any

import numpy as np

from ..core import Array
from ..core.media import data_address

PX = 96  # the longer side of a picture that is larger
JPEG_QUALITY = 85
COLD, HOT = np.array([0.4, 0.0, 0.65]), np.array([1.0, 0.85, 0.1])  # purple to yellow: light where it is hot
COVERED = 0.8  # of a picture, where the heat is highest: what lies below still shows


def upsampled(heat: Array, height: int, width: int) -> Array | None:
    """(height, width) in [0, 1], the highest 1: the map divided by its maximum, as the published code does.

    None where the feature is nowhere in the picture: dividing nothing by nothing draws noise.
    """
    from PIL import Image

    if not heat.size or not heat.max() > 0:
        return None
    picture = Image.fromarray((heat / heat.max()).astype(np.float32))
    # Pillow asks for width before height.
    full: Array = np.asarray(picture.resize((width, height), Image.Resampling.BILINEAR)).clip(0, 1)
    return full


def overlaid(picture: Array, heat: Array) -> Array | None:
    """(h, w, 3) in [0, 1]: the picture in grey under its heat, from purple to yellow; None without any."""
    height, width = picture.shape[:2]
    full = upsampled(heat, height, width)
    if full is None:
        return None
    grey = picture.reshape(height, width, -1).mean(axis=2, keepdims=True)
    amount = full[..., None]
    colour = COLD + amount * (HOT - COLD)
    mixed: Array = (1 - COVERED * amount) * grey + COVERED * amount * colour
    return mixed


def address(picture: Array | None) -> str | None:
    """A picture (h, w), (h, w, 1) or (h, w, 3) in [0, 1]: a PNG of its own size, or a small JPEG of a larger one."""
    from PIL import Image

    if picture is None:
        return None
    pixels = np.rint(255 * np.clip(picture, 0, 1)).astype(np.uint8)
    drawn = Image.fromarray(pixels[..., 0] if pixels.ndim == 3 and pixels.shape[2] == 1 else pixels)
    if max(drawn.size) <= PX:
        return data_address(_saved(drawn, "PNG", optimize=True))
    drawn.thumbnail((PX, PX), Image.Resampling.LANCZOS)
    return data_address(_saved(drawn, "JPEG", quality=JPEG_QUALITY))


def _saved(picture: Any, form: str, **options: Any) -> bytes:
    file = io.BytesIO()
    picture.save(file, form, **options)
    return file.getvalue()
