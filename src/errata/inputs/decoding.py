"""The one way in which images of others are opened: four formats, and no more pixels than a screen could ever need.

Pillow knows dozens of formats. Some start programs (EPS runs Ghostscript), few are ever tested with hostile files.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL import Image

FORMATS = ("JPEG", "PNG", "WEBP", "GIF")
IMAGE_SUFFIXES = (".jpg", ".jpeg", ".png", ".webp", ".gif")
OTHER_SUFFIXES = (".bmp", ".tif", ".tiff", ".eps", ".svg", ".heic", ".avif", ".jp2", ".psd", ".dcm")
MOST_PIXELS = 80_000_000  # decoded, a quarter of a gigabyte


def open_image(source: Path | io.BytesIO) -> Image.Image:
    """An image whose pixels are not read yet; a ValueError or what Pillow raises where it may not be read."""
    from PIL import Image

    if isinstance(source, Path) and not source.is_file():  # a pipe would be waited for
        raise ValueError(f"`{source}` is not a file")
    image = Image.open(source, formats=FORMATS)
    width, height = image.size
    if width * height > MOST_PIXELS:
        raise ValueError(f"it has {width} x {height} pixels, more than {MOST_PIXELS:,}")
    return image
