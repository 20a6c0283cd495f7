"""Every input format, and `collect` and `read`, which find the right one."""

from __future__ import annotations

import inspect
import os
import warnings
from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

from ..core import Evaluation, InputError
from ..core.errors import unknown
from ..core.extensions import load_extensions
from . import (
    csv,
    estimator,
    json_files,
    lightgbm_booster,
    npz,
    onnx,
    parquet,
    pipelines,
    predicting,
    predictor,
    tables,
    torch_model,
    xgboost_booster,
)
from .array_folder import SAFETENSORS, array_files, read_arrays
from .class_order import InputWarning, warn_of_order
from .datasets import dataset_files, read_dataset
from .files import check_file
from .formats import FileFormat, InputFormat, ObjectFormat, refuse_data
from .names import Reading

FORMATS: dict[str, InputFormat] = {
    format_.name: format_
    for format_ in (
        npz.FORMAT,
        SAFETENSORS,
        parquet.FORMAT,
        csv.FORMAT,
        json_files.JSON,
        json_files.LINES,
        json_files.EVAL,
        tables.FORMAT,
        onnx.FORMAT,
        pipelines.FORMAT,
        lightgbm_booster.FORMAT,
        xgboost_booster.FORMAT,
        estimator.FORMAT,
        torch_model.FORMAT,
        # More and more general: most models predict, and many can be called.
        predicting.FORMAT,
        predictor.FORMAT,
    )
}

# What probably holds rows; a .json file beside them may say what they are.
ROW_FILES = (".arrow", ".csv", ".feather", ".ipc", ".npy", ".npz", ".parquet", ".tsv")


def registry() -> dict[str, InputFormat]:
    """Our formats and those that outside packages offer through the entry point `errata.inputs`.

    Outside ones come first, so that they can accept objects that one of ours would take for something more general.
    """
    outside = load_extensions(entry_points(group="errata.inputs"), ("name",))
    return {**outside, **FORMATS}


def file_formats() -> dict[str, FileFormat]:
    """Suffix -> format, for all files that `read` takes; as with objects, outside ones come first."""
    known: dict[str, FileFormat] = {}
    for format_ in registry().values():
        if isinstance(format_, FileFormat):
            for suffix in format_.suffixes:
                known.setdefault(suffix, format_)
    return known


def read(
    path: str | Path, *, metadata: Sequence[str] = (), foreign: Sequence[str] = (), task: str | None = None
) -> Evaluation:
    """An Evaluation from a file, a folder of `.npy` files, or a folder or pattern of parquet or arrow files.

    metadata: columns (or arrays) with other names that are metadata; "all" for all that can be. foreign:
    representations that do not come from the audited model. task: "classification" or "regression", where whole
    numbers could be either. Names are those of `from_table`; an `.npz` may also hold `class_names`, and no array with
    any other name.
    """
    path = Path(path)
    folder = path if os.path.isdir(path) else path.parent  # which, unlike pathlib, takes names that are too long
    reading = Reading.of(metadata, foreign, folder, f"`{path.name}`", task)
    many = _read_many(path, reading)
    if many is not None:
        _warn_of_rest(path)
        return warn_of_order(many)
    known = file_formats()
    check_file(path, tuple(known))
    return warn_of_order(known[path.suffix.lower()].read(path, reading))


def _read_many(path: Path, reading: Reading) -> Evaluation | None:
    """What a folder or a pattern of files holds; None where it is neither, or holds nothing that is known."""
    if os.path.isfile(path / "audit.json"):
        raise InputError(f"`{path}` is a saved audit; give the rows that it was made of, or new ones")
    samples = json_files.samples_in(path)
    if samples:
        return json_files.read_samples(samples, reading)
    arrays = array_files(path)
    if arrays:
        return read_arrays(arrays, reading)
    files = dataset_files(path)
    if files:
        return read_dataset(files, reading)
    return None


def _warn_of_rest(folder: Path) -> None:
    """Rows of another kind beside those that were read would be missing without a word."""
    if not os.path.isdir(folder):
        return
    files = set(input_files(folder))
    others = sorted(
        file.name
        for file in folder.iterdir()
        if file.suffix.lower() in ROW_FILES and file not in files and file.name[0] not in "._"
    )
    if others:
        named = ", ".join(others[:3])
        more = f" and {len(others) - 3:,} more" if len(others) > 3 else ""
        sentence = f"`{folder}` also has {named}{more}, not read: a folder holds one kind of file"
        warnings.warn(sentence, InputWarning, stacklevel=3)


def input_files(path: Path) -> tuple[Path, ...]:
    """The files that `read` reads: those of a folder or a pattern, looked for in the same order, or the path itself."""
    files = json_files.samples_in(path) or list(array_files(path).values()) or dataset_files(path)
    return tuple(files) or (path,)


def collect(source: Any, data: Any = None, **options: Any) -> Evaluation:
    """Make an Evaluation from a model with its data, a table or a file.

    Parameters
    ----------
    source : str, Path, table, model or function
        A file (`errata.inputs.read`); a table of results (`from_table`); a fitted scikit-learn estimator
        (`from_estimator`); a PyTorch model (`from_torch`); an ONNX Runtime session, a LightGBM or XGBoost booster, a
        Hugging Face pipeline, a model with `predict`, or any function that predicts a batch (`from_predictor`).
    data : optional
        `(X, y)` for an estimator; a loader of batches for a PyTorch model; `(inputs, labels)` or a table with both
        for the others; nothing for a file or a table of results.
    **options : optional
        Options of the function in brackets.

    Returns
    -------
    Evaluation
        One row for each example.

    Examples
    --------
    >>> import numpy as np
    >>> import errata
    >>> from sklearn.linear_model import LogisticRegression
    >>> X = np.arange(6.0).reshape(-1, 1)
    >>> y = np.array([0, 0, 0, 1, 1, 1])
    >>> evaluation = errata.collect(LogisticRegression().fit(X, y), (X, y))
    >>> int(evaluation.errors.sum())
    0
    >>> list(evaluation.representations)
    ['features']
    """
    if isinstance(source, str | Path):
        _check_options(read, options)
        return read(source, *refuse_data("a file", data), **options)
    adapters = [format_ for format_ in registry().values() if isinstance(format_, ObjectFormat)]
    for adapter in adapters:
        if adapter.accepts(source):
            _check_options(adapter.passes_to or adapter.collect, options)
            return warn_of_order(adapter.collect(source, *adapter.arguments(data), **options))
    descriptions = [adapter.description for adapter in adapters]
    raise InputError(
        f"collect takes a path ({', '.join(file_formats())}), {', '.join(descriptions[:-1])}, or {descriptions[-1]}; "
        f"got {type(source).__name__}"
    )


def _check_options(function: Callable[..., Evaluation], options: dict[str, Any]) -> None:
    parameters = inspect.signature(function).parameters.values()
    known = [parameter.name for parameter in parameters if parameter.kind is parameter.KEYWORD_ONLY]
    for name in options:
        if name not in known:
            raise unknown(f"option of {function.__name__}", name, known)
