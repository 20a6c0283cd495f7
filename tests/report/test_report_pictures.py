"""Pictures inside a saved report: all of them, in few bytes."""

import io

import numpy as np
from PIL import Image

from errata.inputs.media import ImageBytes
from errata.report.image_sources import EmbeddedImages, is_small


def jpeg(px, seed=0):
    """A photograph: waves and noise, in about as many bytes as a face of 64 pixels has."""
    rng = np.random.default_rng(seed)
    across, down = np.meshgrid(np.linspace(0, 5, px), np.linspace(0, 4, px))
    waves = np.stack([np.sin(across + c + seed) * np.cos(down * (c + 1)) for c in range(3)], axis=-1)
    pixels = np.clip(128 + 90 * waves + rng.normal(0, 9, waves.shape), 0, 255).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "JPEG")
    return file.getvalue()


def test_two_hundred_small_photographs_are_all_there():
    """As PNG each took six times the bytes, and a third of them was left out."""
    stored = [jpeg(64, seed) for seed in range(220)]
    images = EmbeddedImages(ImageBytes(stored))
    assert all(images.symbol(row) for row in range(220))
    assert not images.left_out
    assert sum(len(address) for address, _ in images.symbols.values()) < 1.4 * sum(map(len, stored))


def test_a_small_jpeg_has_hard_edges_too():
    assert is_small(jpeg(32))
    assert not is_small(jpeg(64))
    assert not is_small(b"\xff\xd8\xff\xc0")
