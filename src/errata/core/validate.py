"""Checks of every array of an evaluation, made once, when it is built.

Each message says what is wrong, what was got, where, and what to do.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .blocks import Array, Matrix, RowView, blocks
from .errors import InputError
from .scratch import BLOCK_ROWS, empty_array

SUM_TOLERANCE = 1e-3  # float16 softmax outputs miss 1 by up to about this much
LARGEST = 1e38  # nearly the largest of single precision; fourth powers of larger numbers are infinite
DATE_UNITS = ("D", "s", "ms", "us", "ns")
FLOOR = 1e-12  # a probability of zero for the true class costs 27.6 nats, not infinity
MOST_CLASSES = 1_000_000


def as_array(name: str, value: Any) -> Array:
    """`value` as a read-only array without a copy where it already is one."""
    try:
        array = np.asanyarray(value)
    except ValueError as error:
        raise InputError(f"`{name}` is ragged: its rows differ in length; give one value a row") from error
    if array.dtype == object:
        array = _from_objects(name, array)
    if array.dtype.kind == "f" and array.dtype.itemsize > 8:
        array = array.astype(np.float64)  # the methods compute in double precision
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype.kind == "S":
        array = _decoded(name, array)
    if array.dtype.kind == "U":
        _check_unicode(name, array)
    view: Array = array.view()
    view.flags.writeable = False
    return view


def _from_objects(name: str, array: Array) -> Array:
    if all(isinstance(value, str) for value in array.flat):
        return array.astype(str)
    kinds = ", ".join(sorted({type(value).__name__ for value in array.flat})[:3])
    raise InputError(
        f"`{name}` is an object array (holding {kinds}); convert it to numbers or to text, with no missing values"
    )


def _decoded(name: str, array: Array) -> Array:
    try:
        return np.char.decode(array, "utf-8")
    except UnicodeDecodeError as error:
        raise InputError(f"`{name}` holds bytes that are no UTF-8 ({error.reason}); give it as text") from error


def _check_unicode(name: str, array: Array) -> None:
    """No half of a character: it could be neither hashed nor written."""
    if not array.nbytes:
        return
    codes = np.ascontiguousarray(array).view(np.uint32).reshape(len(array.reshape(-1)), -1)
    halves = ((codes >= 0xD800) & (codes <= 0xDFFF)).any(axis=1)
    if halves.any():
        row = int(np.flatnonzero(halves)[0]) // max(1, array[:1].size)
        raise InputError(f"`{name}` has text that is no Unicode (a lone surrogate), first at row {row}; repair it")


def check_one_prediction(labels: Array | None, predictions: Array | None) -> None:
    """An InputError where rows have one label and several predictions."""
    if labels is not None and labels.ndim == 1 and predictions is not None and predictions.ndim == 2:
        raise InputError(
            f"`predictions` must have one column where `labels` has one; got shape {predictions.shape}; probabilities "
            "of classes are `probs`"
        )


def check_length(name: str, array: Matrix, n: int) -> None:
    """One row an example."""
    if len(array) != n:
        raise InputError(f"`{name}` has {len(array):,} rows where the evaluation has {n:,}; give one row an example")


def check_finite(name: str, array: Matrix) -> None:
    """No NaN and no infinity, read a block at a time."""
    if array.dtype.kind not in "fc":
        return
    for rows, block in blocks(array):
        good = np.isfinite(block)
        if not good.all():
            first = int(np.flatnonzero(~good.reshape(len(block), -1).all(axis=1))[0])
            bad = block.reshape(len(block), -1)[first]
            what = "NaN" if np.isnan(bad).any() else "an infinite value"
            raise InputError(f"`{name}` has {what}, first at row {rows.start + first}; drop that row or impute it")


def check_moderate(name: str, array: Matrix) -> None:
    """No number so large that its square, or a sum of squares, would be infinite."""
    if array.dtype.kind != "f" or array.dtype.itemsize <= 4:  # narrower floats have no such numbers
        return
    for rows, block in blocks(array):
        largest = np.abs(block).reshape(len(block), -1).max(axis=1)
        if largest.max() > LARGEST:
            first = int(np.flatnonzero(largest > LARGEST)[0])
            raise InputError(
                f"`{name}` has {largest[first]:.3g} at row {rows.start + first}, too large to compute with; rescale it"
            )


def check_numeric(name: str, array: Matrix) -> None:
    """Numbers or booleans, not text."""
    if array.dtype.kind not in "biuf":
        raise InputError(f"`{name}` must be numbers; got {array.dtype}; convert it first")


def vector(name: str, value: Any, n: int) -> Array:
    """A checked (n,) array of numbers."""
    array = as_array(name, value)
    if array.ndim == 2 and array.shape[1] == 1:
        array = array[:, 0]
    if array.ndim != 1:
        raise InputError(f"`{name}` must have one value a row, shape (n,); got shape {array.shape}")
    check_numeric(name, array)
    check_length(name, array, n)
    check_finite(name, array)
    check_moderate(name, array)
    return array


def as_floating(array: Array) -> Array:
    """Numbers that can be subtracted: booleans cannot, and in bytes minus 1 is 255, which turns an order around."""
    return array if array.dtype.kind == "f" else array.astype(np.float64)


def representation(name: str, value: Any, n: int) -> Matrix:
    """A checked (n, d) matrix of numbers, kept on disk where it is on disk."""
    if name == "embedding:__metadata__":
        raise InputError("`embedding:__metadata__` cannot be saved, since safetensors uses that name; rename it")
    array: Matrix = value if isinstance(value, RowView) else as_array(name, value)
    if array.ndim != 2 or array.shape[1] == 0:
        raise InputError(f"`{name}` must be a matrix of shape (n, d) with d at least 1; got shape {array.shape}")
    check_numeric(name, array)
    check_length(name, array, n)
    check_finite(name, array)
    check_moderate(name, array)
    return array


def probabilities(value: Any, n: int, *, independent: bool) -> Array:
    """Checked probabilities, shape (n, k); one column becomes the two of a binary task."""
    array = as_array("probs", value)
    if array.ndim not in (1, 2):
        raise InputError(f"`probs` must have shape (n, k), or (n,) for one logit; got shape {array.shape}")
    check_numeric("probs", array)
    check_length("probs", array, n)
    check_finite("probs", array)
    _check_range(array)
    array = as_floating(array)
    if independent:
        return array.reshape(n, -1)
    if array.ndim == 1 or array.shape[1] == 1:
        positive = array.reshape(n).astype(np.float64)
        return np.stack([1.0 - positive, positive], axis=1)
    _check_sums(array)
    return array


def _check_range(array: Array) -> None:
    outside = (array < -SUM_TOLERANCE) | (array > 1 + SUM_TOLERANCE)
    if outside.any():
        where = tuple(int(index[0]) for index in np.nonzero(outside))
        raise InputError(
            f"`probs` must lie in [0, 1]; got {array[where]:.4g}, first at row {where[0]}; "
            "apply a softmax or sigmoid to logits first"
        )


def _check_sums(array: Array) -> None:
    sums = array.sum(axis=1, dtype=np.float64)
    off = np.abs(sums - 1) > SUM_TOLERANCE * max(1.0, array.shape[1] / 100)
    if off.any():
        row = int(np.flatnonzero(off)[0])
        raise InputError(
            f"each row of `probs` must sum to 1; row {row} sums to {sums[row]:.4g}; "
            "apply a softmax, or give labels of shape (n, t) for a multi-label task"
        )


def identifiers(value: Any, n: int) -> Array:
    """Checked unique ids; 0 to n - 1 where none were given."""
    if value is None:
        return as_array("ids", _numbers(n))
    array = as_array("ids", value)
    if array.ndim != 1 or array.dtype.kind not in "iuUS":
        raise InputError(f"`ids` must be whole numbers or text, shape (n,); got {array.dtype}, shape {array.shape}")
    check_length("ids", array, n)
    order = np.argsort(array, kind="stable")
    repeats = np.flatnonzero(array[order][1:] == array[order][:-1])
    if len(repeats):
        first = int(order[repeats[0]])
        second = int(order[repeats[0] + 1])
        raise InputError(
            f"`ids` must be unique; got {array[first]!s} at rows {first} and {second}; "
            "give each row its own id (and name what belongs together in `groups`)"
        )
    return array


def _numbers(n: int) -> Array:
    """0 to n - 1."""
    numbers = empty_array((n,), np.int64)
    for start in range(0, n, BLOCK_ROWS):
        stop = min(start + BLOCK_ROWS, n)
        numbers[start:stop] = np.arange(start, stop)
    return numbers


def columns(value: Mapping[str, Any] | None, n: int) -> dict[str, Array]:
    """Checked metadata: one (n,) array a name. Missing values are allowed here, and only here."""
    checked: dict[str, Array] = {}
    for name, column in (value or {}).items():
        array = np.asanyarray(column)
        if array.dtype == object:
            array = np.array([_text(value) for value in array])
        if array.ndim != 1:
            raise InputError(f"metadata `{name}` must have one value a row; got shape {array.shape}")
        check_length(f"metadata:{name}", array, n)
        checked[str(name)] = _simple(f"metadata:{name}", as_array(f"metadata:{name}", array))
    return checked


def _simple(name: str, array: Array) -> Array:
    """Numbers, booleans, text, or dates that can be stored; an InputError of anything else."""
    kind = array.dtype.kind
    if kind in "biufU":
        return array
    if kind == "M":
        return _dates(name, array)
    if kind == "m":
        raise InputError(f"`{name}` holds durations ({array.dtype}); give it as numbers, such as seconds")
    raise InputError(f"`{name}` must be numbers, text or dates; got {array.dtype}; give each part a column of its own")


def _dates(name: str, array: Array) -> Array:
    """Dates in a unit that tables have: days, or seconds and finer."""
    unit, count = np.datetime_data(array.dtype)
    if unit in ("ps", "fs", "as"):
        raise InputError(f"`{name}` holds dates in {unit} ({array.dtype}); give them in nanoseconds or coarser")
    if unit == "generic" or (count == 1 and unit in DATE_UNITS):
        return array
    stored = array.astype("datetime64[s]")
    wrong = ~np.isnat(array) & (stored.astype(array.dtype) != array)
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise InputError(f"`{name}` has a date out of range at row {row} ({array.dtype}); check its unit")
    return stored


def _text(value: Any) -> str:
    """A value as text, "" where it is missing."""
    if value is None or (isinstance(value, float) and value != value):
        return ""
    return str(value)


def classes_in_range(name: str, labels: Array, k: int) -> None:
    """Class indices that `probs` has a column for."""
    bad = (labels < 0) | (labels >= k)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InputError(
            f"`{name}` must name a class from 0 to {k - 1} (`probs` has {k} columns); "
            f"got {int(labels[row])} at row {row}; number the classes from 0 or add the missing columns"
        )


def class_numbers(name: str, values: Array | None) -> None:
    """Classes that are numbered from 0, and not so high that a table with a line for each could not be held."""
    if values is None or values.ndim != 1:
        return
    bad = (values < 0) | (values >= MOST_CLASSES)
    if bad.any():
        row = int(np.flatnonzero(bad)[0])
        raise InputError(
            f"`{name}` must be classes numbered from 0, below {MOST_CLASSES:,}; got {int(values[row])} at row {row}; "
            "number them from 0 or give their names; numbers that a model predicts are `--task regression` "
            '(task="regression")'
        )


def encode_text_classes(
    classes: dict[str, Array | None], class_names: tuple[str, ...] | None
) -> tuple[dict[str, Array | None], tuple[str, ...] | None]:
    """Labels and predictions as class indices where they are text, and the names of the classes."""
    texts = {name: array for name, array in classes.items() if array is not None and array.dtype.kind in "US"}
    if not texts:
        return classes, class_names
    numbers = [name for name, array in classes.items() if array is not None and name not in texts]
    if numbers:
        raise InputError(f"`{next(iter(texts))}` is text but `{numbers[0]}` is numbers; give both in one form")
    names = class_names or tuple(sorted({str(v) for array in texts.values() for v in np.unique(array)}))
    return {**classes, **{name: _encode(name, array, names) for name, array in texts.items()}}, names


def _encode(name: str, values: Array, class_names: tuple[str, ...]) -> Array:
    index = {label: i for i, label in enumerate(class_names)}
    unknown = [str(v) for v in np.unique(values) if str(v) not in index]
    if unknown:
        row = int(np.flatnonzero(values == unknown[0])[0])
        raise InputError(
            f"`{name}` has the class {unknown[0]!r} at row {row}, which `class_names` does not list; "
            f"known: {', '.join(class_names[:8])}"
        )
    return np.array([index[str(v)] for v in values], dtype=np.int64)
