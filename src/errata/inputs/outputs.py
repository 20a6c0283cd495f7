"""What the numbers or texts that a model gave are: probabilities, logits, classes or values of a regression.

What was decided where it could have been otherwise is said, in `Outcome.notes`; `task`, `class_names` and `outputs`
decide it instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
from scipy import special

from ..core import Array, InputError
from ..core.errors import unknown
from ..core.evaluation import Task
from ..core.validate import SUM_TOLERANCE

Outputs = Literal["probabilities", "logits", "scores", "classes", "values"]
KINDS: tuple[str, ...] = get_args(Outputs)


@dataclass(frozen=True)
class Outcome:
    """The outcome of all rows as arguments of an Evaluation, and what was decided on the way."""

    fields: dict[str, Any]
    notes: tuple[str, ...] = ()


def interpret(
    values: Array,
    labels: Array,
    *,
    task: Task | None = None,
    class_names: Sequence[str] | None = None,
    outputs: str | None = None,
) -> Outcome:
    """Labels with probs or predictions, from what a model gave.

    values: (n,), (n, k) or (n, t) numbers, or (n,) names of classes. labels: (n,), or (n, t) of 0 and 1. task: of an
    Evaluation. class_names: (k,) in the order of the columns of `values`. outputs: what the values are, one of KINDS.
    Default for both: what the arrays look like, which is noted where it could be otherwise.
    """
    if outputs is not None and outputs not in KINDS:
        raise unknown("kind of `outputs`", outputs, KINDS)
    values = _without_last_axis(values)
    labels = _without_last_axis(labels)
    _check_lengths(values, labels)
    if task == "regression" or outputs == "values":
        return _regression(values, labels)
    if labels.ndim == 2:
        return _several_labels(values, labels, class_names)
    if values.ndim == 2:
        return _columns(values, labels, class_names, outputs)
    if values.dtype.kind in "OUS":
        return _classes(values.astype(str), labels.astype(str), class_names)
    return _single(values, labels, task, class_names, outputs)


def _without_last_axis(array: Array) -> Array:
    if array.ndim == 2 and array.shape[1] == 1:
        return array[:, 0]
    return array


def _check_lengths(values: Array, labels: Array) -> None:
    if values.ndim not in (1, 2):
        raise InputError(
            f"the model gave an output of shape {values.shape}; give one number or text a row, or one row of "
            "probabilities"
        )
    if len(values) != len(labels):
        raise InputError(f"the model gave {len(values):,} rows for {len(labels):,} labels; give one row an example")
    if values.dtype.kind not in "biufOUS":
        raise InputError(f"the model gave {values.dtype}; give numbers or names of classes")


def _regression(values: Array, labels: Array) -> Outcome:
    if values.ndim == 2:
        raise InputError(f"a regression has one value a row; the model gave shape {values.shape}")
    for name, array in (("labels", labels), ("the model's output", values)):
        if array.dtype.kind not in "biuf":
            raise InputError(f"{name} must be numbers for a regression; got {array.dtype}; convert it first")
    predictions = values.astype(np.float64)
    targets = labels.astype(np.float64)
    losses = np.square(targets - predictions)
    return Outcome({"labels": targets, "predictions": predictions, "losses": losses, "task": "regression"})


def _several_labels(values: Array, labels: Array, class_names: Sequence[str] | None) -> Outcome:
    if values.shape != labels.shape:
        raise InputError(
            f"labels have shape {labels.shape} and the model gave {values.shape}; give one value for each label"
        )
    fields: dict[str, Any] = {"labels": labels, "class_names": _names(class_names)}
    if np.isin(values, (0, 1)).all():
        return Outcome({**fields, "predictions": values.astype(np.int64)})
    if values.min() >= 0 and values.max() <= 1:
        return Outcome({**fields, "probs": values})
    note = "the model's outputs leave [0, 1], so they are read as logits, one a label"
    return Outcome({**fields, "probs": special.expit(values.astype(np.float64))}, (note,))


def _columns(values: Array, labels: Array, class_names: Sequence[str] | None, outputs: str | None) -> Outcome:
    """One column a class."""
    if values.dtype.kind not in "biuf":
        raise InputError(f"the model gave shape {values.shape} of {values.dtype}; give numbers, one column a class")
    k = values.shape[1]
    known, names, notes = _class_order(labels, k, class_names)
    fields: dict[str, Any] = {"labels": known, "class_names": names, "task": "classification"}
    values = values.astype(np.float64)
    if outputs == "scores":
        return Outcome({**fields, "predictions": values.argmax(axis=1)}, notes)
    if outputs == "probabilities" or (outputs is None and are_probabilities(values)):
        return Outcome({**fields, "probs": values}, notes)
    if outputs is None:
        notes = (
            *notes,
            f"the model's {k} columns do not sum to one, so they are read as logits and a softmax makes them "
            'probabilities; outputs="scores" takes the largest alone',
        )
    return Outcome({**fields, "probs": special.softmax(values, axis=1)}, notes)


def are_probabilities(values: Array) -> bool:
    """Whether all rows lie in [0, 1] and sum to one."""
    inside = values.min() >= -SUM_TOLERANCE and values.max() <= 1 + SUM_TOLERANCE
    return bool(inside and np.allclose(values.sum(axis=1, dtype=np.float64), 1, atol=SUM_TOLERANCE))


def _class_order(
    labels: Array, k: int, class_names: Sequence[str] | None
) -> tuple[Array, tuple[str, ...] | None, tuple[str, ...]]:
    """(n,) class indices, the names of the k columns, and what was decided about their order."""
    if class_names is not None:
        return _index_by_names(labels, tuple(map(str, class_names)), k)
    distinct = np.unique(labels.astype(str)) if labels.dtype.kind in "OUS" else np.unique(labels)
    if labels.dtype.kind not in "OUS" and distinct.min() >= 0 and distinct.max() < k and _whole(distinct):
        return labels.astype(np.int64), None, ()
    if len(distinct) != k:
        raise InputError(
            f"labels have {len(distinct)} values ({_listed(distinct)}) and the model gave {k} columns; "
            "pass `class_names`, the labels in the order of the columns"
        )
    names = tuple(str(value) for value in distinct)
    note = f"columns of the model's output are read in the order {_listed(names)}; `class_names` sets another"
    return np.searchsorted(distinct, labels.astype(distinct.dtype)), names, (note,)


def _index_by_names(
    labels: Array, names: tuple[str, ...], k: int
) -> tuple[Array, tuple[str, ...] | None, tuple[str, ...]]:
    """Labels by name; numbers that are no names are indices."""
    if len(names) != k:
        raise InputError(f"`class_names` has {len(names)} names where the model gave {k} columns; give one a column")
    index = {name: i for i, name in enumerate(names)}
    texts = [_as_name(value) for value in labels.tolist()]
    missing = next((i for i, text in enumerate(texts) if text not in index), None)
    if missing is None:
        return np.array([index[text] for text in texts], dtype=np.int64), names, ()
    if labels.dtype.kind in "OUS":
        raise InputError(
            f"`labels` has the class {texts[missing]!r} at row {missing}, which `class_names` does not list; "
            f"known: {_listed(names)}"
        )
    if not _whole(labels) or labels.min() < 0 or labels.max() >= k:
        raise InputError(
            f"`labels` has {labels[missing]} at row {missing}, which is neither one of `class_names` nor an index "
            f"from 0 to {k - 1}; number the classes from 0"
        )
    return labels.astype(np.int64), names, ()


def _as_name(value: Any) -> str:
    """A label as text; 1.0 is the class 1."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def _classes(values: Array, labels: Array, class_names: Sequence[str] | None) -> Outcome:
    """Predicted classes by name."""
    names = _names(class_names) or tuple(sorted({*values.tolist(), *labels.tolist()}))
    index = {name: i for i, name in enumerate(names)}
    fields: dict[str, Any] = {"class_names": names, "task": "classification"}
    for name, array in _both(labels, values):
        missing = next((i for i, text in enumerate(array.tolist()) if text not in index), None)
        if missing is not None:
            raise InputError(
                f"`{name}` has the class {str(array[missing])!r} at row {missing}, which `class_names` does not list; "
                f"known: {_listed(names)}"
            )
        fields[name] = np.array([index[text] for text in array.tolist()], dtype=np.int64)
    return Outcome(fields)


def _single(
    values: Array, labels: Array, task: Task | None, class_names: Sequence[str] | None, outputs: str | None
) -> Outcome:
    """One number a row."""
    if outputs is None:
        outputs, notes = _kind_of_numbers(values, labels, task)
    else:
        notes = ()
    if outputs == "values":
        return Outcome(_regression(values, labels).fields, notes)
    if outputs == "classes":
        return Outcome(_numbered_classes(values, labels, class_names), notes)
    if outputs == "scores":
        values = (values > 0).astype(np.float64)
    elif outputs == "logits":
        values = special.expit(values.astype(np.float64))
    two = np.stack([1.0 - values, values.astype(np.float64)], axis=1)
    binary = _columns(two, labels, class_names, "probabilities")
    if outputs == "scores":
        fields = {**binary.fields, "predictions": binary.fields["probs"].argmax(axis=1)}
        del fields["probs"]
        return Outcome(fields, (*notes, *binary.notes))
    return Outcome(binary.fields, (*notes, *binary.notes))


def _numbered_classes(values: Array, labels: Array, class_names: Sequence[str] | None) -> dict[str, Any]:
    """Predicted classes as numbers: indices, or names that happen to be numbers."""
    if class_names is not None:
        names = tuple(map(str, class_names))
        known = {name: _index_by_names(array, names, len(names))[0] for name, array in _both(labels, values)}
        return {**known, "class_names": names, "task": "classification"}
    if labels.dtype.kind not in "OUS" and all(array.min() >= 0 for array in (labels, values)):
        known = {name: array.astype(np.int64) for name, array in _both(labels, values)}
        return {**known, "task": "classification"}
    texts = {name: np.array([_as_name(value) for value in array.tolist()]) for name, array in _both(labels, values)}
    return _classes(texts["predictions"], texts["labels"], None).fields


def _both(labels: Array, predictions: Array) -> tuple[tuple[str, Array], tuple[str, Array]]:
    return ("labels", labels), ("predictions", predictions)


def _kind_of_numbers(values: Array, labels: Array, task: Task | None) -> tuple[str, tuple[str, ...]]:
    """What one number a row is, beside the labels, and what is to be said about it."""
    distinct = np.unique(labels)
    low = values.min()
    high = values.max()
    numbers = labels.dtype.kind not in "OUS"
    if _whole(values) and (not numbers or np.isin(values, labels).all() or task == "classification"):
        return "classes", _say_whole(distinct, numbers)
    if len(distinct) <= 2:
        binary = not numbers or set(distinct.tolist()) <= {0, 1}
        if binary and low >= 0 and high <= 1:
            return "probabilities", (
                f"the model gave one number a row from {low:.3g} to {high:.3g} and there are two classes, so it is "
                f"read as the probability of `{distinct[-1]}`",
            )
        if binary:
            return "logits", (
                f"the model gave one number a row from {low:.3g} to {high:.3g} and there are two classes, so it is "
                f'read as the logit of `{distinct[-1]}`; outputs="scores" reads its sign alone, task="regression" '
                "a value",
            )
    if not numbers or task == "classification":
        raise InputError(
            f"labels have {len(distinct)} classes and the model gave one number a row; give (n, k) probabilities, "
            "one column a class, or names of classes"
        )
    if not _whole(distinct):
        return "values", ()
    return "values", (
        f"labels are whole numbers ({len(distinct)} values, {distinct[0]:g} to {distinct[-1]:g}) but the model's "
        'outputs are not among them, so this is read as a regression; task="classification" with (n, k) '
        "probabilities is for classes",
    )


def _say_whole(distinct: Array, numbers: bool) -> tuple[str, ...]:
    """Whole numbers on both sides could be classes or values; two of them hardly."""
    if not numbers or len(distinct) <= 2:
        return ()
    return (
        f"labels and outputs are whole numbers ({len(distinct)} values, {distinct[0]:g} to {distinct[-1]:g}), so they "
        'are read as classes; task="regression" reads them as values',
    )


def _whole(array: Array) -> bool:
    return bool(array.dtype.kind in "biu" or (array == np.round(array)).all())


def _names(class_names: Sequence[str] | None) -> tuple[str, ...] | None:
    return None if class_names is None else tuple(map(str, class_names))


def _listed(values: Any) -> str:
    listed = ", ".join(map(str, values[:8]))
    return f"{listed}, …" if len(values) > 8 else listed
