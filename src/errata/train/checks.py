"""What training and measuring are asked for, checked before they begin: numbers, labelled images, validation rows."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch

from ..core import Array, InputError

Images = Array | torch.Tensor
# Name -> its kind, and the least that it may be.
NUMBERS: dict[str, tuple[type, int]] = {
    "epochs": (Integral, 1),
    "batch": (Integral, 1),
    "lr": (Real, 0),
    "restarts": (Integral, 1),
    "shift": (Integral, 0),
    "seed": (Integral, 0),
    "px": (Integral, 1),
    "outputs": (Integral, 1),
    "channels": (Integral, 1),
}


def check_numbers(**values: Any) -> None:
    """An error for the first value that is no number of its kind, or is too small."""
    for name, value in values.items():
        kind, least = NUMBERS[name]
        # A bool is an Integral; NaN is not at least anything.
        if not isinstance(value, kind) or isinstance(value, bool) or not value >= least:  # type: ignore[operator]
            noun = "an integer" if kind is Integral else "a number"
            raise InputError(f"`{name}` must be {noun} of at least {least}; got {value!r}")


def check_labelled(images: Any, labels: Any) -> tuple[Images, torch.Tensor]:
    """Bytes (n, h, w, c) and classes (n,), checked: one label each, grey images with their channel."""
    images = as_bytes(images)
    classes = as_classes(labels)
    if len(images) != len(classes):
        raise InputError(f"`labels` has {len(classes)} rows and `images` {len(images)}; give one label per image")
    return images, classes


def check_validation(validation: Any) -> tuple[Any, Any]:
    """Images and labels of a tuple."""
    if not isinstance(validation, Sequence) or len(validation) != 2:
        got = f"{len(validation)} values" if isinstance(validation, Sequence) else f"a {type(validation).__name__}"
        raise InputError(f"`validation` must be images and labels, in that order; got {got}")
    return validation[0], validation[1]


def check_weights(weights: Array | None, n: int) -> None:
    """An error unless there is one finite number per row, none of them negative."""
    if weights is None:
        return
    if weights.shape != (n,):
        raise InputError(f"`weights` must have one number for each of {n} rows; got shape {weights.shape}")
    bad = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(bad):
        raise InputError(f"`weights` must be finite and not negative; got {weights[bad[0]]} in row {bad[0]}")


def check_classes(logits: int, targets: torch.Tensor, of: str = "") -> None:
    """An error unless every label has one of so many logits. of: what the row is of, such as " of batch 3"."""
    wrong = torch.isin(targets, torch.arange(max(2, logits), device=targets.device), invert=True).nonzero()
    if len(wrong):
        row = int(wrong[0])
        labels = "0 or 1" if logits == 1 else f"0 to {logits - 1}"
        raise InputError(f"`labels` must be {labels} for {logits} logits; got {targets[row].item()} in row {row}{of}")


def as_bytes(images: Any) -> Images:
    """(n, h, w, c) bytes, c being 1 where images are grey."""
    if not isinstance(images, np.ndarray | torch.Tensor):
        raise InputError(
            f"`images` must be an array or tensor of bytes (n, h, w, 3) or (n, h, w); got a {type(images).__name__}"
        )
    pixels = with_channel(images)
    if pixels.ndim != 4 or pixels.shape[-1] not in (1, 3) or str(pixels.dtype).removeprefix("torch.") != "uint8":
        raise InputError(f"`images` must be bytes (n, h, w, 3) or (n, h, w); got {pixels.dtype} {tuple(pixels.shape)}")
    return pixels


def with_channel(images: Images) -> Images:
    """(n, h, w, c) of images (n, h, w, c), or of grey ones (n, h, w)."""
    if images.ndim == 3:
        return images[..., None]
    return images


def as_classes(labels: Any) -> torch.Tensor:
    """(n,) labels as a tensor, on the device that they are on; numbers of any kind, which a network may lack."""
    if not isinstance(labels, torch.Tensor):
        array = np.asarray(labels)
        if array.dtype.kind not in "biuf":
            raise InputError(
                f"`labels` must be classes 0, 1, ...; got values of type {array.dtype}; give their numbers"
            )
        if array.dtype.kind in "bu":  # torch has few operations for unsigned integers
            array = array.astype(np.int64)
        labels = as_tensor(array)
    classes: torch.Tensor = labels
    if classes.ndim != 1:
        raise InputError(f"`labels` must be classes (n,), one for each image; got shape {tuple(classes.shape)}")
    return classes.int() if classes.dtype == torch.bool else classes


def as_tensor(values: Images) -> torch.Tensor:
    """The same values as a tensor, on the device that they are on."""
    if isinstance(values, torch.Tensor):
        return values
    # torch warns about arrays that are read-only, and does not take negative strides.
    return torch.from_numpy(np.require(values, requirements=["C", "W"]))
