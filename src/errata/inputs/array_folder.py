"""A folder of `.npy` files, or a safetensors file: arrays under their names, memory-mapped and so larger than memory.

`labels.npy`, `probs.npy`, `embedding.npy` and so on, as in an `.npz`; `embedding/NAME.npy` and `metadata/NAME.npy` hold
what has a name of its own there, `embedding:NAME` and `metadata:NAME`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from ..core import Array, Evaluation, InputError, tensor_files
from ..core.errors import unknown
from .files import damaged
from .formats import FileFormat
from .names import KNOWN, PREFIXES, Reading, build, check_metadata, has_prefix

CLASS_NAMES = "class_names"
ARRAYS = (*(name for name in KNOWN if name != "image"), CLASS_NAMES)


def array_files(folder: Path) -> dict[str, Path]:
    """Name -> file of the arrays in a folder; none where it is no folder of arrays."""
    if not os.path.isdir(folder):
        return {}
    files = {file.stem: file for file in sorted(folder.glob("*.npy"))}
    for prefix in PREFIXES:
        files |= {prefix + file.stem: file for file in sorted((folder / prefix[:-1]).glob("*.npy"))}
    return files


def read_arrays(files: Mapping[str, Path], reading: Reading) -> Evaluation:
    """An Evaluation of the arrays in a folder."""
    return from_arrays({name: _map(file) for name, file in files.items()}, reading)


def read_safetensors(path: Path, reading: Reading) -> Evaluation:
    """An Evaluation of the arrays in a safetensors file, which has no texts."""
    try:
        return from_arrays(tensor_files.read(path, mapped=True), reading)
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise damaged(path, error) from error


SAFETENSORS = FileFormat("safetensors", (".safetensors",), read_safetensors)


def from_arrays(arrays: dict[str, Array], reading: Reading) -> Evaluation:
    """An Evaluation of arrays that stay on disk."""
    further = [name for name in arrays if name not in ARRAYS and not has_prefix(name)]
    reading = reading.with_further(arrays, further)
    check_metadata(arrays, reading)
    for name in further:
        if name not in reading.metadata:
            raise unknown(f"array in {reading.where}:", name, (*ARRAYS, *PREFIXES))
    names = arrays.pop(CLASS_NAMES, None)
    class_names = None if names is None else [str(name) for name in np.atleast_1d(names)]
    return build(arrays, reading, class_names)


def _map(file: Path) -> Array:
    try:
        array: Array = np.load(file, mmap_mode="r", allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        if "object" in str(error):  # numpy has no map of those
            raise InputError(
                f"`{file}` is an object array, which would need pickle; save it as numbers or as text (`.astype(str)`)"
            ) from error
        raise damaged(file, error) from error
    return array
