"""What an audit is about where it is not every error: the rows and outcomes of a metric, split as all rows are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core import Array, Evaluation, InputError
from ..core.searched import ERROR, for_metric

FEWEST_ROWS = 20  # of an audit: half of them are held out


@dataclass(frozen=True, eq=False)
class Sought:
    """The rows and outcomes of a metric."""

    evaluation: Evaluation
    discover: Array
    train: Evaluation | None
    slices: Mapping[str, Any] | None
    record: dict[str, Any]  # for the settings: of which evaluation these rows are
    notes: list[str]


def seek(
    evaluation: Evaluation,
    discover: Array,
    metric: str,
    positive: str | int | None,
    *,
    train: Evaluation | None = None,
    slices: Mapping[str, Any] | None = None,
) -> Sought:
    """Return the rows that count for a metric, with its outcomes.

    They are split as all rows are, so that a row is searched or held out whatever the metric: an audit by another
    metric is another look at the same held-out rows.

    Parameters
    ----------
    evaluation
        All rows, with what is known of their representations.
    discover
        (n,) bool: the search rows among them.
    metric, positive, train, slices
        As of `audit`.
    """
    found, rows = for_metric(evaluation, metric, positive)
    if metric == ERROR:
        return Sought(evaluation, discover, train, slices, {"rows_of": None}, [])
    inside = discover[rows]
    if len(found) < FEWEST_ROWS or inside.all() or not inside.any():
        raise InputError(
            f"`{metric}` counts {len(found):,} of {len(evaluation):,} rows, too few to search and to confirm; "
            f"give at least {FEWEST_ROWS}"
        )
    if train is not None:
        train = for_metric(train, metric, positive)[0]
    chosen = None if slices is None else {name: _of_rows(value, rows) for name, value in slices.items()}
    return Sought(found, inside, train, chosen, {"rows_of": evaluation.fingerprint}, _notes(found))


def _of_rows(value: Any, rows: Array) -> Any:
    """A condition as it is; a mask or a clustering of the rows that count."""
    if isinstance(value, str):
        return value
    values = np.asarray(value)
    return values[rows] if values.shape == rows.shape else value


def _notes(found: Evaluation) -> list[str]:
    own = [name for name in found.representations if found.source(name).from_model]
    if not found.label_is_given or not own:
        return []
    return [
        f"Among rows of one label, a representation that contains the prediction tells the outcome: what is found in "
        f"{', '.join(own)} alone cannot be tested. Columns, conditions and representations of another model can."
    ]
