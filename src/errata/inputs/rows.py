"""Rows for a model in any form, cut into what the model reads, the labels, and what describes the rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from ..core import Array, InputError, Media
from ..core.errors import unknown
from .batches import LABEL_KEYS, ROW_KEYS
from .media import ImageBytes, ImageObjects, ImagePaths, Texts, as_media
from .tables import column_values, is_dataset, is_frame, is_records, is_table, keys_of, names_rows, to_arrow

CURE = "give (inputs, labels), or a table with a column `label`"


@dataclass(frozen=True, eq=False)
class Rows:
    """n rows for a model.

    inputs: what the model reads, cut into batches by `batch`. labels: (n,) or (n, t). columns: name -> (n,) of a table,
    which may become metadata and features; those that name rows are in `texts`. class_names: those that the data
    itself knows. media: what a row looks like, where the data shows it.
    """

    inputs: Any
    labels: Array
    columns: dict[str, Array] = field(default_factory=dict)
    texts: dict[str, Array] = field(default_factory=dict)
    ids: Array | None = None
    groups: Array | None = None
    class_names: tuple[str, ...] | None = None
    media: Media | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def batch(self, start: int, stop: int) -> Any:
        """What the model reads of rows `start` to `stop`, in the form in which it came."""
        return cut(self.inputs, start, stop)


def rows_of(data: Any, *, labels: str | None = None, inputs: Sequence[str] | str | None = None) -> Rows:
    """Rows from a pair (inputs, labels) or from a table that holds both.

    labels: the column with the labels. Default: one of `label`, `labels`, `y`, `target`, `targets`. inputs: the
    columns that the model reads; of a single name it reads the values, of several a table. Default: all but labels,
    ids and groups.
    """
    if is_records(data):
        return _from_records(list(data), labels, inputs)
    if is_table(data):
        return _from_table(data, labels, inputs)
    if isinstance(data, list | tuple) and len(data) == 2:
        if labels is not None:
            raise InputError(f"`labels` names a column of a table; got a pair (inputs, labels) and labels={labels!r}")
        return _from_pair(data[0], data[1], inputs)
    if data is None:
        raise InputError(f"a model needs its rows; {CURE}")
    raise InputError(f"rows cannot be read from a {type(data).__name__}; {CURE}")


def cut(inputs: Any, start: int, stop: int) -> Any:
    """Rows `start` to `stop` of a table, array, list, or dict of arrays."""
    import narwhals as nw

    if isinstance(inputs, Mapping):
        return {name: values[start:stop] for name, values in inputs.items()}
    if is_frame(inputs):
        return nw.from_native(inputs)[start:stop].to_native()
    return inputs[start:stop]


def _from_pair(X: Any, y: Any, inputs: Sequence[str] | str | None) -> Rows:
    from scipy import sparse

    labels = np.asarray(y)
    if labels.ndim == 0:
        raise InputError(f"labels must be one a row; got a single {type(y).__name__}; {CURE}")
    if is_table(X):
        rows = (
            _from_table(X, None, inputs, labels) if not is_records(X) else _from_records(list(X), None, inputs, labels)
        )
    else:
        X = X.tocsr() if sparse.issparse(X) else X
        rows = Rows(inputs=X, labels=labels, media=_media_of(X))
    n = _count(X)
    if n != len(labels):
        raise InputError(f"there are {n:,} inputs and labels of shape {labels.shape}; give one label a row")
    return rows


def _count(X: Any) -> int:
    if isinstance(X, Mapping):
        return len(next(iter(X.values()))) if X else 0
    if hasattr(X, "shape"):
        return int(X.shape[0])
    try:
        return len(X)
    except TypeError as error:
        raise InputError(f"inputs must be an array, a list or a table; got a {type(X).__name__}; {CURE}") from error


def _media_of(X: Any) -> Media | None:
    """Inputs that a person can look at: texts and images."""
    if isinstance(X, np.ndarray) and X.ndim == 1 and X.dtype.kind in "OUS":
        X = X.tolist()
    if not isinstance(X, list | tuple) or not len(X):
        return None
    if all(isinstance(value, str | bytes) or hasattr(value, "getbands") for value in X):
        return as_media(list(X))
    return None


def _from_table(data: Any, labels: str | None, inputs: Sequence[str] | str | None, given: Array | None = None) -> Rows:
    table = to_arrow(data)
    names = table.column_names
    label = _label_column(names, labels) if given is None else None
    special = [name for name in names if name == label or name in ROW_KEYS]
    wanted = _wanted(names, inputs, special)
    native = data.collect() if is_frame(data) and hasattr(data, "collect") else data
    return Rows(
        inputs=_select(native, wanted, inputs),
        labels=_labels(table, label, given),
        **_described(table, special),
        class_names=_class_names(data, label),
    )


def _labels(table: pa.Table, column: str | None, given: Array | None) -> Array:
    """Labels that were given apart, or those of a column."""
    if given is not None:
        return given
    assert column is not None
    values = column_values(table, column)
    if values is None:
        raise InputError(f"`{column}` holds {table.column(column).type}; labels are numbers or text, one a row")
    missing = table.column(column).null_count
    if missing:
        raise InputError(f"`{column}` has {missing:,} missing labels; drop these rows or fill them in")
    return np.asarray(values)


def _from_records(
    records: list[Mapping[str, Any]],
    labels: str | None,
    inputs: Sequence[str] | str | None,
    given: Array | None = None,
) -> Rows:
    names = keys_of(records)
    label = _label_column(names, labels) if given is None else None
    special = [name for name in names if name == label or name in ROW_KEYS]
    wanted = _wanted(names, inputs, special)
    images = [name for name in names if any(hasattr(row.get(name), "getbands") for row in records)]
    table = to_arrow([{name: row.get(name) for name in names if name not in images} for row in records])
    described = _described(table, special)
    if images:
        described["media"] = ImageObjects([row.get(images[0]) for row in records])
    if isinstance(inputs, str):
        read: Any = [row.get(inputs) for row in records]
    else:
        read = [{name: row[name] for name in wanted if name in row} for row in records]
    return Rows(inputs=read, labels=_labels(table, label, given), **described)


def _label_column(names: Sequence[str], labels: str | None) -> str:
    if labels is not None:
        if labels not in names:
            raise unknown("column of labels", labels, names)
        return labels
    found = [name for name in LABEL_KEYS if name in names]
    if len(found) != 1:
        problem = f"has both `{found[0]}` and `{found[1]}`" if found else "has no column `label`"
        columns = ", ".join(f"`{name}`" for name in names[:12])
        raise InputError(f"the data {problem} (it has {columns}); pass labels=NAME, the column with the true answers")
    return found[0]


def _wanted(names: Sequence[str], inputs: Sequence[str] | str | None, special: Sequence[str]) -> list[str]:
    if inputs is None:
        return [name for name in names if name not in special]
    wanted = [inputs] if isinstance(inputs, str) else list(inputs)
    for name in wanted:
        if name not in names:
            raise unknown("column of inputs", name, names)
    return wanted


def _select(data: Any, wanted: list[str], inputs: Sequence[str] | str | None) -> Any:
    """The columns that the model reads, in the form of the data; the values alone where one is named."""
    import narwhals as nw

    if is_dataset(data):
        return data[inputs] if isinstance(inputs, str) else data.select_columns(wanted)
    frame = nw.from_native(data)
    if isinstance(inputs, str):
        return frame.get_column(inputs).to_list()
    return frame.select(wanted).to_native()


def _described(table: pa.Table, special: Sequence[str]) -> dict[str, Any]:
    """Columns, ids, groups and media of a table."""
    described: dict[str, Any] = {"columns": {}, "texts": {}}
    for name in table.column_names:
        if name in ROW_KEYS:
            described[ROW_KEYS[name]] = column_values(table, name)
        elif name not in special:
            values = column_values(table, name)
            if values is None:
                continue
            kind = "texts" if names_rows(table.column(name)) else "columns"
            described[kind][name] = values
    described["media"] = _table_media(table, described["texts"])
    return described


def _table_media(table: pa.Table, texts: Mapping[str, Array]) -> Media | None:
    """An image column, else a column `text`, else the longest of the columns that have another text in every row."""
    for name in table.column_names:
        kind = table.schema.field(name).type
        if pa.types.is_struct(kind) and {field.name for field in kind} == {"bytes", "path"}:
            column = table.column(name)
            return ImageBytes(pa.compute.struct_field(column, "bytes"))
    if "image_path" in table.column_names:
        return ImagePaths(column_values(table, "image_path"))
    if "text" in table.column_names:
        return Texts(column_values(table, "text"))
    if not texts:
        return None
    longest = max(texts, key=lambda name: sum(len(str(value)) for value in texts[name][:100]))
    return Texts(texts[longest])


def _class_names(data: Any, label: str | None) -> tuple[str, ...] | None:
    """Names of the classes that a `datasets.Dataset` stores beside its label column."""
    if label is None or not is_dataset(data):
        return None
    names = getattr(data.features[label], "names", None)
    return None if names is None else tuple(names)
