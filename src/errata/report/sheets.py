"""Images side by side, as PNG."""

from __future__ import annotations

import io
from collections.abc import Iterable

import numpy as np

from ..core import Array

GAP = 1  # pixels between two images


def png(image: Array) -> bytes:
    """(h, w, c) bytes."""
    from PIL import Image

    if image.shape[-1] == 1:
        image = image[..., 0]
    file = io.BytesIO()
    Image.fromarray(image).save(file, "PNG", optimize=True)
    return file.getvalue()


def sheet(rows: Iterable[Array]) -> bytes:
    """Rows of images (n, h, w, c), one row over the other."""
    edged = [np.pad(row, ((0, 0), (0, GAP), (0, GAP), (0, 0)), constant_values=128) for row in rows]
    lines = [np.concatenate(list(row), axis=1) for row in edged if len(row)]
    width = max(line.shape[1] for line in lines)
    filled = [np.pad(line, ((0, 0), (0, width - line.shape[1]), (0, 0)), constant_values=128) for line in lines]
    return png(np.concatenate(filled))
