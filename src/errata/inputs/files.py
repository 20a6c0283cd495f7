"""A `.npz`, `.parquet` or `.csv` file as an Evaluation."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from ..core import Array, Captions, Evaluation, InputError
from ..core.errors import unknown
from .names import KNOWN, PREFIXES, Reading, build, check_asked, has_prefix
from .tables import check_names, from_arrow, is_wanted

ARRAYS = (*(name for name in KNOWN if name != "image"), "class_names")  # pictures as bytes need a table
BROKEN = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, OSError, KeyError)
NEVER_EMPTY = ("labels", "predictions", "groups", "ids")  # an empty cell there is a missing one, not an empty name


def read(path: str | Path, *, metadata: Sequence[str] = (), foreign: Sequence[str] = ()) -> Evaluation:
    """An Evaluation from a file.

    `metadata` names columns (or arrays) with other names that are metadata; `foreign` names the
    representations that do not come from the audited model. Names are those of `from_table`; an
    `.npz` may also hold `class_names`, and no array with any other name.
    """
    path = Path(path)
    readers = {".npz": _read_npz, ".parquet": _read_parquet, ".csv": _read_csv}
    _check_file(path, tuple(readers))
    return readers[path.suffix.lower()](path, Reading.of(metadata, foreign, path.parent, f"`{path.name}`"))


def _check_file(path: Path, suffixes: Sequence[str]) -> None:
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        pass  # said below, after the suffix
    except OSError as error:
        raise InputError(f"`{path}` cannot be read ({error.strerror}); check the path") from error
    if path.is_dir():
        raise InputError(f"`{path}` is a folder; give a file that ends in {', '.join(suffixes)}")
    if path.suffix.lower() not in suffixes:
        got = f"`{path.suffix}`" if path.suffix else "none"
        raise InputError(f"`{path}` must end in {', '.join(suffixes)}; got {got}; save it in one of these forms")
    if not path.exists():
        raise InputError(f"there is no file `{path}`; check the path")
    if path.stat().st_size == 0:
        raise InputError(f"`{path}` is empty; write it again")


def read_texts(path: str | Path) -> Captions:
    """Candidate texts from an `.npz` with `texts` (m,) and `embedding` or `embedding:NAME` (m, d).

    It may hold `references` (k,) too: for each class, the plainest of the texts.
    """
    path = Path(path)
    _check_file(path, (".npz",))
    with _opened(path) as archive:
        spaces = [name for name in archive.files if name == "embedding" or has_prefix(name, ("embedding:",))]
        for name in archive.files:
            if name not in ("texts", "references", *spaces):
                raise unknown(f"array in `{path.name}`:", name, ("texts", "references", "embedding", "embedding:"))
        if "texts" not in archive.files or len(spaces) != 1:
            raise InputError(
                f"`{path.name}` must hold `texts` (m,) and one of `embedding` or `embedding:NAME` (m, d); "
                f"got {', '.join(f'`{name}`' for name in archive.files) or 'nothing'}"
            )
        texts, embeddings = _array(path, archive, "texts"), _array(path, archive, spaces[0])
        references = _array(path, archive, "references") if "references" in archive.files else None
    return Captions(texts, embeddings, spaces[0].partition(":")[2] or spaces[0], references)


def _opened(path: Path) -> Any:
    try:
        archive = np.load(path, allow_pickle=False)
    except BROKEN as error:
        raise _damaged(path, error) from error
    if not isinstance(archive, np.lib.npyio.NpzFile):
        raise InputError(f"`{path}` is a single array, not an npz; save it with np.savez and a name for each array")
    return archive


def _read_npz(path: Path, reading: Reading) -> Evaluation:
    with _opened(path) as archive:
        check_asked(archive.files, reading)
        for name in archive.files:
            if name not in ARRAYS and name not in reading.metadata and not has_prefix(name):
                raise unknown(f"array in {reading.where}:", name, (*ARRAYS, *PREFIXES))
        arrays = {name: _array(path, archive, name) for name in archive.files}
    names = arrays.pop("class_names", None)
    return build(arrays, reading, None if names is None else [str(name) for name in np.atleast_1d(names)])


def _array(path: Path, archive: Any, name: str) -> Array:
    try:
        array: Array = archive[name]
    except BROKEN as error:
        if "allow_pickle" in str(error):
            raise InputError(
                f"`{name}` in `{path}` is an object array, which would need pickle; "
                "save it as numbers or as text (`.astype(str)`)"
            ) from error
        raise _damaged(path, error) from error
    return array


def _damaged(path: Path, error: Exception) -> InputError:
    reason = str(error).partition("\n")[0] or type(error).__name__
    return InputError(f"`{path}` is damaged or not what its name says ({reason}); write it again")


def _read_parquet(path: Path, reading: Reading) -> Evaluation:
    try:
        names = pa.parquet.read_schema(path).names
        check_names(names, reading)
        wanted = [name for name in names if is_wanted(name, reading)]
        table = pa.parquet.ParquetFile(path).read(columns=wanted)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, error) from error
    return from_arrow(table, reading)


def _read_csv(path: Path, reading: Reading) -> Evaluation:
    # What must not be taken for numbers: a text "1", an id "007".
    as_text = dict.fromkeys(("ids", "text", "image_path", "embedding"), pa.string())
    convert = pa.csv.ConvertOptions(column_types=as_text)
    parse = pa.csv.ParseOptions(newlines_in_values=True)
    try:
        table = pa.csv.read_csv(path, parse_options=parse, convert_options=convert)
    except (pa.ArrowException, OSError) as error:
        raise _damaged(path, error) from error
    check_names(table.column_names, reading)
    for i, name in enumerate(table.column_names):
        table = table.set_column(i, name, _cells(name, table.column(name), reading))
    return from_arrow(table, reading)


def _cells(name: str, column: pa.ChunkedArray, reading: Reading) -> pa.ChunkedArray:
    """A column of a csv with lists where lists are written, and nulls where nothing is."""
    if not pa.types.is_string(column.type):
        return column
    if name == "embedding" or has_prefix(name, ("embedding:",)) or name == "probs":
        return _lists(name, column, reading)
    if name in NEVER_EMPTY:
        column = pc.if_else(pc.equal(column, ""), pa.scalar(None, pa.string()), column)
    return _whole_numbers(column) if name == "ids" else column


def _lists(name: str, column: pa.ChunkedArray, reading: Reading) -> pa.ChunkedArray:
    """Lists of numbers from cells such as "[0.1, 0.2]", "0.1 0.2" or "0.1;0.2"; an empty cell is missing."""
    bare = pc.utf8_trim_whitespace(pc.replace_substring_regex(column, r"[\[\]()]", ""))
    bare = pc.if_else(pc.equal(bare, ""), pa.scalar(None, pa.string()), bare)
    parts = pc.split_pattern_regex(bare, r"\s*[;,\s]\s*")
    try:
        return parts.cast(pa.list_(pa.float64()))
    except pa.ArrowInvalid as error:
        row = next(i for i, cell in enumerate(parts) if not _parses(cell))
        raise InputError(
            f"`{name}` in {reading.where} has {column[row].as_py()!r} at row {row}; write it as [0.1, 0.2]"
        ) from error


def _parses(cell: pa.ListScalar) -> bool:
    try:
        cell.cast(pa.list_(pa.float64()))
    except pa.ArrowInvalid:
        return False
    return True


def _whole_numbers(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Numbers where nothing is lost by it: "7" is one, "007" and "7a" stay text."""
    try:
        numbers = column.cast(pa.int64())
    except pa.ArrowInvalid:
        return column
    return numbers if numbers.cast(pa.string()).equals(column) else column
