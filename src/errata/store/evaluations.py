"""An Evaluation as a folder: outcomes and metadata in one table, representations and images beside it."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ..core import Array, Evaluation, InputError, Media, Origin, Source
from ..core import tensor_files as arrays
from ..core.validate import DATE_UNITS

DISPLAY_PX = 256
ROWS_A_GROUP = 1 << 20  # of a parquet file: what is in memory at one time
IMAGES = "media.parquet"
COLUMNS = {"ids": "id", "labels": "label", "predictions": "prediction", "losses": "loss", "groups": "group"}

ReadFile = Callable[..., Evaluation]  # reads the file that a folder refers to


def save(folder: Path, evaluation: Evaluation, reference: Mapping[str, Any] | None) -> None:
    """Write an evaluation; with a `reference` to the file it came from, representations and media stay there."""
    folder.mkdir()
    media = None if evaluation.media is None else evaluation.media.kind
    if reference is not None:
        reference = {**reference, "fingerprint": evaluation.fingerprint}
    sources = {
        name: {"from_model": source.from_model, "reads": sorted(source.reads)}
        for name, source in evaluation.sources.items()
    }
    facts = {
        "task": evaluation.task,
        "class_names": evaluation.class_names,
        "origin": vars(evaluation.origin),
        "sources": sources,
        "media": media,
        "reference": reference,
        "metric": evaluation.metric,
    }
    (folder / "evaluation.json").write_text(json.dumps(facts, indent=1) + "\n")
    write_rows(folder / "rows.parquet", len(evaluation), lambda rows: _table(evaluation, rows, reference is None))
    if reference is None:
        arrays.write(folder / "representations.safetensors", evaluation.representations)
        if evaluation.media is not None and evaluation.media.kind == "image":
            _save_images(folder / IMAGES, evaluation.media)


def write_rows(path: Path, n: int, table_of: Callable[[slice], pa.Table]) -> None:
    """Write a parquet file of n rows, a group of rows at a time; table_of: from some rows to their table."""
    first = table_of(slice(0, min(n, ROWS_A_GROUP)))
    with pq.ParquetWriter(path, first.schema) as writer:
        writer.write_table(first)
        for start in range(ROWS_A_GROUP, n, ROWS_A_GROUP):
            writer.write_table(table_of(slice(start, min(start + ROWS_A_GROUP, n))))


def _table(evaluation: Evaluation, rows: slice, with_text: bool) -> pa.Table:
    some = evaluation.span(rows)
    columns = {
        column: _arrow(getattr(some, name)) for name, column in COLUMNS.items() if getattr(some, name) is not None
    }
    if some.probs is not None:
        columns["probs"] = _arrow(some.probs)
    for name, values in some.metadata.items():
        columns[f"metadata:{name}"] = _arrow(values)
    media = evaluation.media
    if with_text and media is not None and media.kind == "text":
        columns["text"] = pa.array([media.text(i) for i in range(rows.start, rows.stop)], pa.string())
    return pa.table(columns)


def _arrow(values: Array) -> pa.Array:
    if values.ndim == 2:
        flat = pa.array(_native(values).reshape(-1))
        return pa.FixedSizeListArray.from_arrays(flat, values.shape[1])
    return to_arrow(values)


def to_arrow(values: Array) -> pa.Array:
    """(n,) values as an arrow column; what arrow has no type for as text."""
    kind = values.dtype.kind
    if kind in "US":
        return pa.array(values.tolist())
    if kind in "cV":
        return pa.array([str(value) for value in values])
    if kind == "M" and np.datetime_data(values.dtype)[0] not in DATE_UNITS:
        values = values.astype("datetime64[s]")
    return pa.array(_native(values))


def _native(values: Array) -> Array:
    """Contiguous and in this machine's byte order."""
    return np.ascontiguousarray(values, dtype=values.dtype.newbyteorder("="))


def _save_images(path: Path, media: Media, rows_a_group: int = 1000) -> None:
    """Display-sized copies, a thousand at a time, so that the folder needs nothing else to be looked at."""
    schema = pa.schema([("image", pa.binary())])
    with pq.ParquetWriter(path, schema) as writer:
        for start in range(0, len(media), rows_a_group):
            rows = range(start, min(start + rows_a_group, len(media)))
            images = pa.array([media.thumbnail(i, DISPLAY_PX) for i in rows], pa.binary())
            writer.write_table(pa.table([images], schema=schema))


def load(folder: Path, read: ReadFile | None = None) -> Evaluation:
    """The evaluation of a saved audit; representations are memory maps. `read` reads a file that it refers to."""
    facts = json.loads((folder / "evaluation.json").read_text())
    path = folder / "rows.parquet"
    if facts["reference"]:
        referenced = _referenced(facts["reference"], read)
        if "group" in pq.read_schema(path).names:  # what an audit found to belong together is not in the file
            return referenced.with_groups(_numpy(pq.read_table(path, columns=["group"]).column("group")))
        return referenced
    table = pq.read_table(path)
    columns = {name: _numpy(table.column(name)) for name in table.column_names if name != "text"}
    metadata = {n.partition(":")[2]: values for n, values in columns.items() if n.startswith("metadata:")}
    class_names = tuple(facts["class_names"]) if facts["class_names"] else None
    return Evaluation(
        **{name: columns[column] for name, column in COLUMNS.items() if column in columns},
        probs=columns.get("probs"),
        metadata=metadata,
        representations=arrays.read(folder / "representations.safetensors", mapped=True),
        media=_media(folder, facts["media"], table),
        class_names=class_names,
        task=facts["task"],
        origin=Origin(**facts["origin"]),
        sources={n: Source(s["from_model"], frozenset(s["reads"])) for n, s in facts["sources"].items()},
        metric=facts.get("metric"),  # audits of versions up to 0.3 have none
    )


def _referenced(reference: Mapping[str, Any], read: ReadFile | None) -> Evaluation:
    path = Path(reference["path"])
    if read is None or not path.exists():
        raise InputError(
            f"this audit refers to `{path}`, which does not exist; put it back, or audit without --reference"
        )
    reading = {name: reference[name] for name in ("metadata", "foreign", "task") if name in reference}
    evaluation = read(path, **reading)
    if evaluation.fingerprint != reference["fingerprint"]:
        raise InputError(f"this audit refers to `{path}`, which has other rows now; put them back, or audit again")
    return evaluation


def _numpy(column: pa.ChunkedArray) -> Array:
    array = column.combine_chunks()
    if pa.types.is_fixed_size_list(array.type):
        flat: Array = array.flatten().to_numpy(zero_copy_only=False)
        return flat.reshape(len(array), array.type.list_size)
    values: Array = array.to_numpy(zero_copy_only=False)
    return values.astype(str) if values.dtype == object else values


class SavedTexts:
    """Texts of a saved audit.

    Parameters
    ----------
    texts : array
        (n,).
    """

    kind: Literal["image", "text"] = "text"

    def __init__(self, texts: Array):
        self._texts = texts

    def __len__(self) -> int:
        return len(self._texts)

    def rows(self, index: Array) -> SavedTexts:
        """Some of the rows."""
        return SavedTexts(self._texts[index])

    def thumbnail(self, i: int, px: int) -> bytes | None:
        """None: a text has no image."""
        return None

    def text(self, i: int) -> str | None:
        """The text of row i."""
        value: str | None = self._texts[i]
        return value


class SavedImages:
    """Display copies of a saved audit, at most 256 pixels wide and high.

    Parameters
    ----------
    images : ChunkedArray
        PNG or JPEG bytes.
    index : array
        (n,) which of them the rows are.
    """

    kind: Literal["image", "text"] = "image"

    def __init__(self, images: pa.ChunkedArray, index: Array):
        self._images = images
        self._index = index

    def __len__(self) -> int:
        return len(self._index)

    def rows(self, index: Array) -> SavedImages:
        """Some of the rows."""
        return SavedImages(self._images, self._index[index])

    def thumbnail(self, i: int, px: int) -> bytes | None:
        """The copy of row i, whatever size is asked for."""
        image: bytes | None = self._images[int(self._index[i])].as_py()
        return image

    def text(self, i: int) -> str | None:
        """None: an image has no text."""
        return None


def _media(folder: Path, kind: str | None, table: pa.Table) -> Media | None:
    if kind == "text":
        return SavedTexts(table.column("text").to_numpy(zero_copy_only=False))
    if kind == "image":
        images = pq.read_table(folder / IMAGES, memory_map=True).column("image")
        return SavedImages(images, np.arange(len(images)))
    return None
