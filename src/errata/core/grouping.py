"""What rows belong together, and the split that keeps them so: given groups, copies, a column that is a group's id."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np

from .blocks import Array
from .columns import present_values
from .copies import Copies, find_copies, too_large, unite
from .errors import InputError, unknown
from .evaluation import Evaluation
from .group_columns import AlikeColumn, candidate_columns, measure_columns
from .near_copies import MOST_ROWS
from .split import discover_mask

AUTO = "auto"
NONE = "none"


def settle_groups(
    evaluation: Evaluation, choice: str = AUTO, share: float = 0.5
) -> tuple[Evaluation, Array, dict[str, Any]]:
    """The evaluation with what belongs together as its groups, the search rows, and a record of why.

    No outcome of a held-out row is read. Copies are found without outcomes. A column is judged on rows that are search
    rows whatever is decided: those of the split without it that are also search rows of the split by it.

    Parameters
    ----------
    evaluation : Evaluation
        All rows.
    choice : str
        "auto": given groups and copies; a column that looks like a group's id where no groups are given. The name of a
        column: its values and copies. "none": given groups alone.
    share : float
        Of the rows that are searched.

    Returns
    -------
    tuple
        The evaluation with groups where rows belong together; (n,) bool, the search rows; the record, as JSON.
    """
    record: dict[str, Any] = {"choice": choice, "given": False, "column": None, "alike": [], "copies": None}
    if choice not in (AUTO, NONE):
        evaluation = evaluation.with_groups(column_groups(evaluation, choice))
        record["column"] = choice
    record["given"] = evaluation.groups is not None and record["column"] is None
    if choice == NONE:
        return evaluation, discover_mask(evaluation, share), record
    copies = find_copies(evaluation)
    record["copies"] = _copies_record(evaluation, copies)
    if evaluation.groups is None:
        alike = _alike_columns(evaluation, copies, share)
        record["alike"] = [asdict(column) for column in alike]
        if not alike:
            return *_split_by_copies(evaluation, copies, share), record
        record["column"] = alike[0].column
        evaluation = evaluation.with_groups(column_groups(evaluation, alike[0].column))
    evaluation = _joined(evaluation, copies)
    return evaluation, discover_mask(evaluation, share), record


def copies_mask(evaluation: Evaluation, share: float) -> Array:
    """(n,) bool: a share of the rows, of which no copy is among the others."""
    copies = find_copies(evaluation)
    if evaluation.groups is None:
        return _split_by_copies(evaluation, copies, share)[1]
    return discover_mask(_joined(evaluation, copies), share)


def column_groups(evaluation: Evaluation, column: str) -> Array:
    """(n,) the values of a column as groups; a row whose value is missing is a group of its own."""
    if column not in evaluation.metadata:
        raise unknown("metadata column", column, evaluation.metadata)
    values = evaluation.metadata[column]
    missing = ~present_values(values)
    if missing.all():
        raise InputError(f"the column `{column}` has no values; name another one in `groups`")
    if not missing.any():
        return values
    names = np.array([f"={value}" for value in values.tolist()])
    own = np.array([f"row {name}" for name in evaluation.row_ids.tolist()])
    return np.where(missing, own, names)


def _alike_columns(evaluation: Evaluation, copies: Copies | None, share: float) -> list[AlikeColumn]:
    """Columns within which errors are alike, measured on search rows of every split that may come of it."""
    columns = candidate_columns(evaluation)
    if not columns:
        return []
    searched = _split_by_copies(evaluation, copies, share)[1]
    for name in columns:
        by_column = evaluation.with_groups(column_groups(evaluation, name))
        searched &= discover_mask(_joined(by_column, copies), share)
    rows = np.flatnonzero(searched)
    return measure_columns(evaluation, columns, rows[np.argsort(evaluation.row_ids[rows], kind="stable")])


def _split_by_copies(evaluation: Evaluation, copies: Copies | None, share: float) -> tuple[Evaluation, Array]:
    if copies is None:
        return evaluation, discover_mask(evaluation, share)
    mask = discover_mask(evaluation, share, copies.codes)
    return evaluation.with_groups(copies.codes), mask


def _joined(evaluation: Evaluation, copies: Copies | None) -> Evaluation:
    """Groups, joined where a row of one is a copy of a row of another; as they were where that would join too many."""
    assert evaluation.groups is not None
    if copies is None:
        return evaluation
    names, codes = np.unique(evaluation.groups, return_inverse=True)
    codes = codes.ravel()
    united = unite([codes, copies.codes])
    if len(np.unique(united)) == len(names) or (too_large(united) and not too_large(codes)):
        return evaluation
    first = np.full(int(united.max()) + 1, len(names))
    np.minimum.at(first, united, codes)
    return evaluation.with_groups(names[first[united]])


def _copies_record(evaluation: Evaluation, copies: Copies | None) -> dict[str, Any]:
    near = len(evaluation) <= MOST_ROWS
    if copies is None:
        return {"rows": 0, "of": len(evaluation), "groups": 0, "largest": 0, "by": {}, "near": near}
    sizes = copies.sizes
    return {
        "rows": int(sizes.sum()),
        "of": len(evaluation),
        "groups": len(sizes),
        "largest": int(sizes.max()),
        "by": dict(copies.rows),
        "near": near,
    }
