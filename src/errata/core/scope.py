"""Which rows a slice's rule is about."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .blocks import Array
from .errors import InputError
from .evaluation import Evaluation


def rows_in_scope(evaluation: Evaluation, scope: Mapping[str, Any] | None) -> Array:
    """The rows that a slice's rule is about, and that the slice is compared within.

    Parameters
    ----------
    evaluation : Evaluation
        The rows to choose from.
    scope : mapping, optional
        `label`, `prediction` or the name of a metadata column -> its value; None or empty for all rows.

    Returns
    -------
    array
        (n,) bool.
    """
    mask = np.ones(len(evaluation), dtype=bool)
    for key, value in (scope or {}).items():
        columns = {"label": evaluation.labels, "prediction": evaluation.predictions}
        column = columns.get(key, evaluation.metadata.get(key))
        if column is None:
            raise InputError(f"a slice is limited to {key} {value!r}, which this evaluation does not have; add it")
        mask &= column == value
    return mask


def scope_values(evaluation: Evaluation, scope: Mapping[str, Any] | None) -> dict[str, str]:
    """The values of a scope as text: classes by their names where they have any.

    Parameters
    ----------
    evaluation : Evaluation
        What names the classes.
    scope : mapping, optional
        As for `rows_in_scope`.
    """
    values = {}
    for key, value in (scope or {}).items():
        values[key] = str(value)
        if key in ("label", "prediction") and evaluation.task == "classification":
            values[key] = evaluation.class_name(int(value))
    return values


def scope_in_words(evaluation: Evaluation, scope: Mapping[str, Any] | None) -> str:
    """A scope in words: "label cat and prediction dog"; nothing for all rows. Parameters as of `scope_values`."""
    return " and ".join(f"{key} {value}" for key, value in scope_values(evaluation, scope).items())
