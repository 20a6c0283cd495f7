"""A table of any library as an Evaluation. Columns are converted whole, never row by row."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..core import Array, Evaluation, InputError
from .formats import ObjectFormat, refuse_data
from .media import ImageBytes, ImagePaths
from .names import KNOWN, PREFIXES, Reading, build, check_metadata, has_prefix

PROB = "prob:"
MOST_VALUES = 50  # so many different texts may describe groups of rows, however few rows there are
MAY_BE_MISSING = ("text", "image_path", "image")


def is_frame(value: Any) -> bool:
    """Whether this is a table of a library that narwhals knows (pandas, polars, pyarrow, duckdb, …)."""
    import narwhals as nw

    return isinstance(nw.from_native(value, pass_through=True), nw.DataFrame | nw.LazyFrame)


def is_dataset(value: Any) -> bool:
    """Whether this is a `datasets.Dataset` of Hugging Face; who holds one has imported its package."""
    datasets = sys.modules.get("datasets")
    return datasets is not None and isinstance(value, getattr(datasets, "Dataset", ()))


def is_records(value: Any) -> bool:
    """Whether this is a list of dicts, one a row."""
    return isinstance(value, list | tuple) and len(value) > 0 and all(isinstance(row, Mapping) for row in value)


def is_table(value: Any) -> bool:
    """Whether this is a table in any of these forms, without importing the package it comes from."""
    return is_frame(value) or is_dataset(value) or is_records(value)


def from_table(
    table: Any,
    *,
    metadata: Sequence[str] = (),
    foreign: Sequence[str] = (),
    folder: str | Path = "",
    task: str | None = None,
) -> Evaluation:
    """An Evaluation from a pandas, polars or pyarrow table, a `datasets.Dataset` or a list of dicts.

    Columns: losses, labels, probs (lists) or prob:CLASS, predictions, ids, groups, embedding and
    embedding:NAME (lists of one length), metadata:NAME, and one of text, image_path (relative to
    `folder`) and image (JPEG or PNG bytes). Others are left alone unless `metadata` names them; "all" names all that
    can be metadata. `foreign` names the representations that do not come from the audited model. task:
    "classification" or "regression", where labels and predictions are whole numbers and could be either.
    """
    return from_arrow(to_arrow(table), Reading.of(metadata, foreign, Path(folder), "the table", task))


FORMAT = ObjectFormat(
    "table",
    "a pandas, polars or pyarrow table, a `datasets.Dataset` or a list of dicts",
    is_table,
    partial(refuse_data, "a table"),
    from_table,
)


def to_arrow(table: Any) -> pa.Table:
    """The table as arrow has it, without a copy where it can."""
    import narwhals as nw

    if isinstance(table, pa.Table):
        return table
    try:
        if is_dataset(table):
            return table.with_format("arrow")[:]
        if is_records(table):
            return pa.table({name: [row.get(name) for row in table] for name in keys_of(table)})
        frame = nw.from_native(table)
        if isinstance(frame, nw.LazyFrame):
            frame = frame.collect()
        return nw.maybe_reset_index(frame).to_arrow()
    except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
        reason = (str(error) or type(error).__name__).splitlines()[0]
        raise InputError(f"the table cannot be read ({reason}); give each column one type") from error


def keys_of(records: Sequence[Mapping[str, Any]]) -> list[str]:
    """All keys of all rows, in the order in which they are met."""
    return list(dict.fromkeys(str(name) for row in records for name in row))


def from_arrow(table: pa.Table, reading: Reading, matrices: Mapping[str, Array] | None = None) -> Evaluation:
    """An Evaluation from an arrow table, by the names of its columns; matrices: lists that are read already."""
    matrices = matrices or {}
    reading = checked_reading(table.schema, reading)
    wanted = [name for name in table.column_names if is_wanted(name, reading)]
    table = pa.table({name: _decoded(_whole(name, table.column(name), reading)) for name in wanted})
    classes = [name for name in wanted if has_prefix(name, (PROB,))]
    columns = {name: _converted(name, table.column(name), reading) for name in wanted if name not in classes}
    columns |= matrices
    if not classes:
        return build(columns, reading)
    if "probs" in columns:
        raise InputError(f"{reading.where} has both `probs` and `{classes[0]}`; give the probabilities once")
    columns["probs"] = np.stack([_converted(name, table.column(name), reading) for name in classes], axis=1)
    class_names = [name.removeprefix(PROB) for name in classes]
    return build({**columns, **_by_name(table, class_names)}, reading, class_names)


def names_rows(column: pa.ChunkedArray) -> bool:
    """Whether a column of texts has another value in most rows, as names, paths and free text have."""
    column = _decoded(column)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return False
    return bool(pc.count_distinct(column).as_py() > max(MOST_VALUES, len(column) / 2))


def column_values(table: pa.Table, name: str) -> Any:
    """One column as an array: (n,) of numbers or text, (n, d) of lists of one length; None where it is neither."""
    column = _decoded(table.column(name))
    if is_list(column.type) and pc.min(pc.list_value_length(column)).as_py():
        try:
            return matrix(name, column)
        except InputError:
            return None
    if not _is_plain(column.type):
        return None
    return _vector(name, column, Reading())


def is_wanted(name: str, reading: Reading) -> bool:
    """Whether a column is read at all."""
    return name in KNOWN or name in reading.metadata or has_prefix(name, (*PREFIXES, PROB))


def checked_reading(schema: pa.Schema, reading: Reading) -> Reading:
    """The reading of a table with these columns, `all` replaced; an InputError for names that cannot be meant."""
    further = [
        column.name
        for column in schema
        if column.name not in KNOWN and not has_prefix(column.name, (*PREFIXES, PROB)) and _is_plain(column.type)
    ]
    check_names(schema.names, reading.named(schema.names))
    reading = reading.with_further(schema.names, further)
    _check_any_known(schema.names, reading)
    return reading


def check_names(names: Sequence[str], reading: Reading) -> None:
    """The columns asked for are there, and none is a known one misspelt."""
    twice = next((name for name, count in Counter(names).items() if count > 1), None)
    if twice is not None:
        raise InputError(f"{reading.where} has the column `{twice}` twice; rename one of them")
    check_metadata(names, reading)
    known = {_stem(name): name for name in KNOWN}
    given = set(names)
    for name in names:
        meant = known.get(_stem(name), name)
        if meant not in given and name not in reading.metadata:
            raise InputError(
                f"{reading.where} has a column `{name}`, which is read under the name `{meant}`; "
                "rename it, or name it as metadata"
            )


def _check_any_known(names: Sequence[str], reading: Reading) -> None:
    if not any(is_wanted(name, reading) for name in names):
        raise InputError(
            f"{reading.where} has no column that is known; its first line or schema names {_listed(names)}, "
            f"where some of {', '.join(KNOWN)} should be"
        )


def _stem(name: str) -> str:
    """Equal for `Label` and `labels`, `loss` and `losses`: the slips that would else pass in silence."""
    return name.lower().removesuffix("es").removesuffix("s")


def _listed(names: Sequence[str]) -> str:
    listed = ", ".join(f"`{name}`" for name in names[:5]) or "nothing"
    if len(names) > 5:
        listed += ", …"
    return listed


def _converted(name: str, column: pa.ChunkedArray, reading: Reading) -> Any:
    """One column as what its name asks for: a vector, a matrix, or images."""
    if name == "image":
        return _images(column, reading)
    metadata = name in reading.metadata or has_prefix(name, ("metadata:",))
    if not metadata and name not in MAY_BE_MISSING:
        _check_present(name, column, reading)
    if is_list(column.type) and not metadata:
        return matrix(name, column)
    if name == "embedding" or has_prefix(name, ("embedding:",)):
        raise InputError(f"`{name}` must be a column of lists of numbers; got {column.type} in {reading.where}")
    return _vector(name, column, reading)


def _whole(name: str, column: pa.ChunkedArray, reading: Reading) -> pa.ChunkedArray:
    """The column, of which no text is damaged and no value lies outside of it: arrow reads such files as they are."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        reason = str(error).partition("\n")[0]
        raise InputError(f"`{name}` in {reading.where} is damaged ({reason}); write it again") from error
    return column


def _decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """The column without categories and string views, which most of arrow's functions do not take."""
    if pa.types.is_dictionary(column.type):
        pieces = [_unviewed(chunk.dictionary).take(chunk.indices) for chunk in column.chunks]
        kind = None if pieces else column.type.value_type
        return pa.chunked_array(pieces, type=kind)
    return _unviewed(column)


def _unviewed(values: Any) -> Any:
    plain = {"string_view": pa.large_string(), "binary_view": pa.large_binary()}.get(str(values.type))
    return values if plain is None else values.cast(plain)


def _check_present(name: str, column: pa.ChunkedArray, reading: Reading) -> None:
    if column.null_count:
        row = pc.index(column.is_null(), True).as_py()
        raise InputError(
            f"`{name}` has a missing value in {reading.where}, first at row {row}; drop that row or fill it in"
        )


def _vector(name: str, column: pa.ChunkedArray, reading: Reading) -> Array:
    """(n,) numbers, or text as objects with None where it is missing."""
    kind = column.type
    if pa.types.is_nested(kind) or pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        raise InputError(f"`{name}` must have one number or text a row; got {kind} in {reading.where}")
    if pa.types.is_temporal(kind):
        column = column.cast(pa.string())
    elif pa.types.is_decimal(kind):
        column = column.cast(pa.float64())
    elif pa.types.is_null(kind):  # metadata without a single value
        column = column.cast(pa.string())
    values: Array = column.to_numpy()
    return values


def matrix(name: str, column: pa.ChunkedArray) -> Array:
    """(n, d) from a column of lists of one length: a view of arrow's own values where they lie in one piece."""
    lengths = pc.list_value_length(column)
    d = lengths[0].as_py() if len(column) else 0
    other = pc.index(pc.equal(lengths, d), False).as_py()
    if other >= 0:
        raise InputError(
            f"`{name}` has lists of different lengths: row {other} has {lengths[other].as_py()} values where row 0 "
            f"has {d}; give every row the same"
        )
    if not d:
        return np.empty((len(column), 0), dtype=np.float32)
    pieces = [flat_values(name, chunk, start, d) for chunk, start in _chunks(column)]
    flat = pieces[0] if len(pieces) == 1 else np.concatenate(pieces)
    return flat.reshape(len(column), d)


def _chunks(column: pa.ChunkedArray) -> list[tuple[pa.Array, int]]:
    """Each non-empty piece with the row it starts at."""
    starts = np.cumsum([0, *(len(chunk) for chunk in column.chunks)])
    return [(chunk, int(start)) for chunk, start in zip(column.chunks, starts, strict=False) if len(chunk)]


def flat_values(name: str, chunk: pa.Array, start: int, d: int) -> Array:
    """The numbers of a piece of a column of lists of d values, one list after the other; start: its first row."""
    values = chunk.flatten()
    kind = values.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)):
        raise InputError(f"`{name}` must hold lists of numbers; got lists of {kind}")
    if values.null_count:
        row = start + pc.index(values.is_null(), True).as_py() // d
        raise InputError(f"`{name}` has a missing value inside the list of row {row}; drop that row or fill it in")
    flat: Array = values.to_numpy(zero_copy_only=False)
    return flat


def _is_plain(kind: pa.DataType) -> bool:
    """Whether a column has one number or text a row."""
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    binary = pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or str(kind) == "binary_view"
    return not (pa.types.is_nested(kind) or binary)


def is_list(kind: pa.DataType) -> bool:
    return bool(pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind))


def _images(column: pa.ChunkedArray, reading: Reading) -> ImageBytes | ImagePaths:
    """Encoded bytes, or the struct of `bytes` and `path` that Hugging Face datasets write."""
    if "image" in reading.metadata:
        raise InputError("`image` holds images, which are no metadata; drop the column instead")
    if pa.types.is_struct(column.type):
        fields = [field.name for field in column.type]
        inner = pc.struct_field(column, "bytes") if "bytes" in fields else None
        if inner is not None and inner.null_count < len(column):
            return ImageBytes(inner)
        if "path" in fields:
            return ImagePaths(pc.struct_field(column, "path").to_numpy(), reading.folder)
    if not (pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)):
        raise InputError(f"`image` must be a column of JPEG or PNG bytes; got {column.type} in {reading.where}")
    return ImageBytes(column)


def _by_name(table: pa.Table, class_names: Sequence[str]) -> dict[str, Array]:
    """Labels and predictions as text, where that is what the `prob:CLASS` columns are called.

    Numbers may be names too (digits 3 and 8, or columns `prob:1`, `prob:0`), and an index would then be wrong.
    """
    present = [name for name in ("labels", "predictions") if name in table.column_names]
    if any(pa.types.is_nested(table.column(name).type) for name in present):
        return {}
    texts = {name: table.column(name).cast(pa.string()) for name in present}
    are_names = all(pc.all(pc.is_in(text, pa.array(class_names))).as_py() for text in texts.values())
    if not are_names:
        return {}
    return {name: text.to_numpy() for name, text in texts.items()}
