"""Labelled images of one size from a file: bytes (n, h, w, c), and classes."""

from __future__ import annotations

import io
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ..core import Array, InputError
from ..inputs.decoding import open_image

LABEL_COLUMNS = ("labels", "label")
EXACT = 2**53  # below it every whole number is a float


def read_images(path: str | Path) -> tuple[Array, Array, tuple[str, ...] | None]:
    """Images, class numbers, and the classes' names where the labels are text.

    .npz: `images` (n, h, w) or (n, h, w, 3) as bytes, and `labels`. .parquet: a column `image` of PNG or JPEG bytes,
    and `label` or `labels`.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"`{path}` does not exist, or is no file")
    readers = {".npz": _npz, ".parquet": _parquet}
    if path.suffix not in readers:
        ending = path.suffix or "nothing"
        raise InputError(f"`{path}` must end in .npz or .parquet; got `{ending}`")
    images, labels = readers[path.suffix](path)
    if images.ndim not in (3, 4) or not images.size:
        raise InputError(f"`{path}` must have images (n, h, w) or (n, h, w, 3), and one of them; got {images.shape}")
    if labels.shape != images.shape[:1]:
        raise InputError(f"`{path}` must have one label per image; got {labels.shape} for {len(images)} images")
    if labels.dtype.kind == "f":
        labels = _whole_numbers(labels, path)
    if labels.dtype.kind in "iu":
        return images, labels.astype(np.int64), None
    names, numbers = np.unique(labels.astype(str), return_inverse=True)
    return images, numbers.astype(np.int64), tuple(names.tolist())


def _whole_numbers(labels: Array, path: Path) -> Array:
    """Class numbers stored as floats: as names they would be sorted as text, 10.0 before 2.0."""
    labels = labels.astype(np.float64)
    bad = np.flatnonzero(~(np.abs(labels) < EXACT) | (labels != np.floor(labels)))
    if len(bad):
        raise InputError(
            f"`{path}` has the label {labels.flat[bad[0]]} in row {bad[0]}; give whole numbers, or names as text"
        )
    return labels.astype(np.int64)


def _npz(path: Path) -> tuple[Array, Array]:
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in ("images", "labels") if name in file}
            names = ", ".join(f"`{name}`" for name in file.files) or "none"
    except Exception as error:  # of damaged bytes, zip and numpy raise almost anything
        raise InputError(f"`{path}` cannot be read as .npz ({error}); write it again with np.savez") from error
    for name in ("images", "labels"):
        if name not in arrays:
            raise InputError(f"`{path}` has no array `{name}`; it has {names}")
    return arrays["images"], arrays["labels"]


def _parquet(path: Path) -> tuple[Array, Array]:
    import pandas as pd
    import pyarrow as pa

    try:
        table = pd.read_parquet(path)
    except (pa.ArrowException, OSError, ValueError) as error:
        words = str(error).partition("\n")[0]
        raise InputError(f"`{path}` cannot be read as parquet ({words}); write it again") from error
    label = next((name for name in LABEL_COLUMNS if name in table), None)
    if "image" not in table or label is None:
        raise InputError(f"`{path}` needs columns `image` and `label`; it has {', '.join(map(str, table.columns))}")
    labels = table[label]
    if labels.isna().any():
        raise InputError(f"`{path}` has no label in row {labels.isna().argmax()}; give one, or leave the row out")
    if labels.dtype == object:
        classes = labels.to_numpy()
    else:
        classes = np.array(labels.tolist())
    return _decode_all(table["image"], path), classes


def _decode_all(blobs: Iterable[Any], path: Path) -> Array:
    images = [_decode(blob, row, path) for row, blob in enumerate(blobs)]
    if not images:
        return np.empty((0, 0, 0), np.uint8)
    for row, image in enumerate(images):
        if image.shape != images[0].shape:
            raise InputError(
                f"the image in row {row} of `{path}` is {image.shape}, that in row 0 {images[0].shape}; "
                "give all in one size, grey or coloured"
            )
    return np.stack(images)


def _decode(blob: Any, row: int, path: Path) -> Array:
    try:
        image = open_image(io.BytesIO(blob))
        mode = "L" if image.mode in ("1", "L") else "RGB"
        return np.asarray(image.convert(mode))
    except Exception as error:  # decoders raise errors of many types
        raise InputError(f"the image in row {row} of `{path}` cannot be read ({error})") from error
