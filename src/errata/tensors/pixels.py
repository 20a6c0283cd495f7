"""Images as bytes with channels last, and as floats in [0, 1] with channels second, as networks take them."""

from __future__ import annotations

import numpy as np
import torch

from ..core import Array, InputError


def validate_images(images: Array, name: str = "images") -> Array:
    """(n, h, w, c) bytes, c being 1 or 3, from images that may lack the channel where they are grey; else an error."""
    images = np.asarray(images)
    if images.ndim == 3:
        images = images[..., None]
    if images.ndim != 4 or images.shape[-1] not in (1, 3) or images.dtype != np.uint8:
        raise InputError(
            f"`{name}` must be bytes (n, h, w) or (n, h, w, 3), channels last; got {images.dtype} {images.shape}"
        )
    return images


def to_pixels(images: torch.Tensor) -> torch.Tensor:
    """(b, h, w, c) uint8 -> (b, c, h, w) float32 in [0, 1]."""
    return images.permute(0, 3, 1, 2).float().div_(255)


def to_bytes(pixels: torch.Tensor) -> Array:
    """(b, c, h, w) in [0, 1] -> (b, h, w, c) uint8."""
    return pixels.detach().mul(255).round_().clamp_(0, 255).to(torch.uint8).permute(0, 2, 3, 1).cpu().numpy()
