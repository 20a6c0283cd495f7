"""A user's own file as a table for slice settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..core import Array, Evaluation, InputError, Media
from ..inputs import read
from ..inputs.names import KNOWN, has_prefix
from .tables import PX, Table, decoded, from_columns, from_frame

if TYPE_CHECKING:
    from pandas import DataFrame

LARGER = 4  # times the side that is wanted: what a JPEG thumbnail loses averages out


def from_file(path: Path, target: str, attributes: Sequence[str]) -> Table:
    """Features are the file's embedding; of a .parquet or .csv without one, all columns that have no other meaning."""
    names = _column_names(path)
    if names and not any(name == "embedding" or has_prefix(name, ("embedding:",)) for name in names):
        return _plain(path, names, target, attributes)
    evaluation = read(path, metadata=list(dict.fromkeys([target, *attributes])))
    name = evaluation.representation(None, "a table of slice settings")
    answers, marks = from_columns(_frame(evaluation), _bare(target), [_bare(column) for column in attributes])
    features = np.asarray(evaluation.representations[name])
    return Table(path.stem, answers, marks, features, name, _images(evaluation.media), evaluation.groups)


def _column_names(path: Path) -> list[str]:
    """Of a .parquet or .csv; none of a file that cannot be read, since `read` says better why."""
    import pandas as pd
    import pyarrow.parquet

    try:
        if path.suffix.lower() == ".csv":
            return [str(name) for name in pd.read_csv(path, nrows=0).columns]
        if path.suffix.lower() == ".parquet":
            return list(pyarrow.parquet.read_schema(path).names)
    except (OSError, ValueError):  # of which arrow's and pandas' own are kinds
        pass
    return []


def _plain(path: Path, names: Sequence[str], target: str, attributes: Sequence[str]) -> Table:
    import pandas as pd

    if "image" in names or "image_path" in names:
        raise InputError(f"`{path.name}` has images but no `embedding` that methods could search; add one")
    try:
        if path.suffix.lower() == ".csv":
            frame = pd.read_csv(path)
        else:
            frame = pd.read_parquet(path)
    except (OSError, ValueError) as error:
        raise InputError(f"`{path}` cannot be read ({str(error).strip()}); write it again") from error
    spare = [name for name in names if name in KNOWN and name not in (target, *attributes)]
    table = from_frame(frame.drop(columns=spare), target, attributes, name=path.stem)
    if "groups" not in spare:
        return table
    return replace(table, groups=frame["groups"].to_numpy())


def _frame(evaluation: Evaluation) -> DataFrame:
    import pandas as pd

    frame = pd.DataFrame(dict(evaluation.metadata))
    return frame.replace("", None)  # an evaluation writes missing text so


def _bare(column: str) -> str:
    """An evaluation calls the column `metadata:age` `age`."""
    return column.removeprefix("metadata:")


def _images(media: Media | None) -> Array | None:
    """(n, px, px, 3) uint8; None where rows are not images."""
    if media is None or media.kind != "image":
        return None
    thumbnails = [media.thumbnail(i, LARGER * PX) for i in range(len(media))]
    if None in thumbnails:
        raise InputError(f"the image of row {thumbnails.index(None)} is missing or broken; drop that row")
    return decoded([data for data in thumbnails if data is not None])
