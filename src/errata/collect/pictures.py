"""Labelled pictures of one size from a file: bytes (n, h, w, c), and classes."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np

from ..core import Array, InputError

LABELS = ("labels", "label")


def read_pictures(path: str | Path) -> tuple[Array, Array, tuple[str, ...] | None]:
    """Pictures, class numbers, and the classes' names where the labels are text.

    .npz: `images` (n, h, w) or (n, h, w, 3) as bytes, and `labels`. .parquet: a column `image` of PNG or JPEG bytes,
    and `label` or `labels`.
    """
    path = Path(path)
    if not path.is_file():
        raise InputError(f"`{path}` is no file")
    readers = {".npz": _npz, ".parquet": _parquet}
    if path.suffix not in readers:
        raise InputError(f"`{path}` must end in .npz or .parquet; got `{path.suffix or 'nothing'}`")
    images, labels = readers[path.suffix](path)
    if labels.dtype.kind in "iu":
        return images, labels.astype(np.int64), None
    names, numbers = np.unique(labels.astype(str), return_inverse=True)
    return images, numbers.astype(np.int64), tuple(names.tolist())


def _npz(path: Path) -> tuple[Array, Array]:
    try:
        with np.load(path, allow_pickle=False) as file:
            found = {name: file[name] for name in ("images", "labels") if name in file}
            has = ", ".join(f"`{name}`" for name in file.files)
    except (OSError, ValueError) as error:
        raise InputError(f"`{path}` cannot be read as .npz ({error})") from error
    for name in ("images", "labels"):
        if name not in found:
            raise InputError(f"`{path}` has no array `{name}`; it has {has or 'none'}")
    return found["images"], found["labels"]


def _parquet(path: Path) -> tuple[Array, Array]:
    import pandas as pd

    try:
        table = pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise InputError(f"`{path}` cannot be read as parquet ({str(error).partition(chr(10))[0]})") from error
    label = next((name for name in LABELS if name in table), None)
    if "image" not in table or label is None:
        raise InputError(f"`{path}` needs columns `image` and `label`; it has {', '.join(map(str, table.columns))}")
    return np.stack([_decoded(blob, i, path) for i, blob in enumerate(table["image"])]), table[label].to_numpy()


def _decoded(blob: Any, row: int, path: Path) -> Array:
    from PIL import Image

    try:
        picture = Image.open(io.BytesIO(blob))
        return np.asarray(picture.convert("L" if picture.mode in ("1", "L") else "RGB"))
    except Exception as error:  # in any of the ways a decoder may say so
        raise InputError(f"the picture in row {row} of `{path}` cannot be read ({error})") from error
