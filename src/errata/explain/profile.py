"""What a slice's rows are, beside the rest: labels, predictions and metadata (Spotlight, figure 8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core import Array, Explanation
from .encode import Column, Skipped
from .view import View, ratio

MOST_ROWS = 12  # values shown of one column
MOST_PAIRS = 5


def class_profile(view: View, labels: Column | None, predictions: Column | None) -> Explanation:
    """Shares of labels and predictions, and which label is taken for which prediction most often."""
    data: dict[str, Any] = {
        **view.roles,
        "labels": None if labels is None else column_profile(view, labels),
        "predictions": None if predictions is None else column_profile(view, predictions),
        "confused": [],
    }
    if labels is not None and predictions is not None and view.evaluation.errors is not None:
        data["confused"] = _confused(view, labels, predictions, view.evaluation.errors)
    return Explanation("classes", data)


def metadata_profile(view: View, columns: Sequence[Column | Skipped]) -> Explanation:
    """Every column against the rest, the one that differs most first."""
    profiles = [column_profile(view, column) for column in columns if isinstance(column, Column)]
    skipped = [{"column": c.name, "distinct": c.distinct} for c in columns if isinstance(c, Skipped)]
    order = sorted(range(len(profiles)), key=lambda j: (-_largest(profiles[j]), j))
    return Explanation("metadata", {**view.roles, "columns": [profiles[j] for j in order], "skipped": skipped})


def column_profile(view: View, column: Column) -> dict[str, Any]:
    """One column: its values in the order of their difference on chosen rows, measured on the others."""
    found = _counts(column, view.inside & view.chosen), _counts(column, view.rest & view.chosen)
    share, other = (counts / max(counts.sum(), 1) for counts in found)
    difference = share - other
    # Of two values that differ as much, what the slice has more of says more than what it lacks.
    order = sorted(range(len(difference)), key=lambda j: (-abs(round(difference[j], 12)), -difference[j], j))
    rows = _measured_rows(view, column)
    for j, row in enumerate(rows):
        row["found"] = {"slice_share": float(share[j]), "rest_share": float(other[j])}
        row["found_points"] = 100 * float(difference[j])
    kept = [rows[j] for j in order if found[0][j] + found[1][j] + rows[j]["n"] > 0]
    return {
        "column": column.name,
        "kind": column.kind,
        "rows": kept[:MOST_ROWS],
        "left_out": max(0, len(kept) - MOST_ROWS),
    }


def _measured_rows(view: View, column: Column) -> list[dict[str, Any]]:
    """One row a value: shares with their counts, lift, and how the model does on all rows with that value."""
    members, rest = view.inside & view.measured, view.rest & view.measured
    inside, outside = _counts(column, members), _counts(column, rest)
    n_inside, n_outside = int(inside.sum()), int(outside.sum())
    outcomes = _outcomes(view, column, members | rest)
    return [
        {
            "value": value,
            "slice": [int(inside[j]), n_inside],
            "rest": [int(outside[j]), n_outside],
            "slice_share": ratio(inside[j], n_inside),
            "rest_share": ratio(outside[j], n_outside),
            "lift": _lift(inside[j], n_inside, outside[j], n_outside),
            **outcomes[j],
        }
        for j, value in enumerate(column.values)
    ]


def _lift(k: int, n: int, rest_k: int, rest_n: int) -> float | None:
    """Share in the slice over share in the rest; None where the rest has none."""
    return None if n == 0 or rest_k == 0 else float((k / n) / (rest_k / rest_n))


def _outcomes(view: View, column: Column, rows: Array) -> list[dict[str, Any]]:
    """`view.outcome` for every value of a column at once."""
    n = _counts(column, rows)
    errors, losses = view.evaluation.errors, view.evaluation.losses
    wrong = None if errors is None else _counts(column, rows & errors)
    total = None if losses is None else _counts(column, rows, losses)
    return [
        {
            "n": int(n[j]),
            "errors": None if wrong is None else int(wrong[j]),
            "error_rate": None if wrong is None else ratio(wrong[j], n[j]),
            "mean_loss": None if total is None else ratio(total[j], n[j]),
        }
        for j in range(len(n))
    ]


def _counts(column: Column, rows: Array, weights: Array | None = None) -> Array:
    """(values,) how many of `rows` have each value, or the sum of their weights."""
    picked = None if weights is None else weights[rows].astype(np.float64)
    counts: Array = np.bincount(column.codes[rows], weights=picked, minlength=len(column.values))
    return counts


def _confused(view: View, labels: Column, predictions: Column, errors: Array) -> list[dict[str, Any]]:
    """The most frequent (label, prediction) among wrong members, chosen on searched rows and counted on the others."""
    width = len(predictions.values)
    pairs = labels.codes * width + predictions.codes
    wrong = view.inside & errors
    found, counts = np.unique(pairs[wrong & view.chosen], return_counts=True)
    top = found[np.argsort(-counts, kind="stable")][:MOST_PAIRS]
    held_out, rest = wrong & view.measured, view.rest & errors & view.measured
    return [
        {
            "label": labels.values[pair // width],
            "prediction": predictions.values[pair % width],
            "slice": [int(np.count_nonzero(pairs[held_out] == pair)), int(np.count_nonzero(held_out))],
            "rest": [int(np.count_nonzero(pairs[rest] == pair)), int(np.count_nonzero(rest))],
        }
        for pair in map(int, top)
    ]


def _largest(profile: dict[str, Any]) -> float:
    return max((abs(round(row["found_points"], 9)) for row in profile["rows"]), default=0.0)
