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
