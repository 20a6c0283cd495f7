"""A `.npz` file as an Evaluation."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from ..core import Array, Evaluation, InputError
from ..core.errors import unknown
from .files import damaged
from .formats import FileFormat
from .names import KNOWN, PREFIXES, Reading, build, check_metadata, has_prefix

ARRAYS = (*(name for name in KNOWN if name != "image"), "class_names")  # images as bytes need a table


def read_npz(path: Path, reading: Reading) -> Evaluation:
    """Every array of the file under the names of `from_table`, and `class_names`."""
    with open_npz(path) as archive:
        further = [name for name in archive.files if name not in ARRAYS and not has_prefix(name)]
        reading = reading.with_further(archive.files, further)
        check_metadata(archive.files, reading)
        for name in archive.files:
            if name not in ARRAYS and name not in reading.metadata and not has_prefix(name):
                raise unknown(f"array in {reading.where}:", name, (*ARRAYS, *PREFIXES))
        arrays = {name: read_array(path, archive, name) for name in archive.files}
    names = arrays.pop("class_names", None)
    if names is None:
        return build(arrays, reading)
    return build(arrays, reading, [str(name) for name in np.atleast_1d(names)])


FORMAT = FileFormat("npz", (".npz",), read_npz)


def open_npz(path: Path) -> Any:
    """The archive, which reads an array when it is asked for by name."""
    try:
        archive = np.load(path, allow_pickle=False)
    except Exception as error:  # of damaged bytes, zip and numpy raise almost anything
        raise damaged(path, error) from error
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise InputError(f"`{path}` is a single array, not an npz; save it with np.savez and a name for each array")
    return archive


def read_array(path: Path, archive: Any, name: str) -> Array:
    """One array of the archive of `path`."""
    try:
        array: Array = archive[name]
    except Exception as error:
        if "allow_pickle" in str(error):
            raise InputError(
                f"`{name}` in `{path}` is an object array, which would need pickle; "
                "save it as numbers or as text (`.astype(str)`)"
            ) from error
        raise damaged(path, error) from error
    return array
