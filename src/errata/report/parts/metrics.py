"""Metrics of a slice beside the rest, as a table."""

from __future__ import annotations

from typing import Any

from ...core import Slice
from ...core.audit import UNCONFIRMABLE
from ...core.metrics import MEANINGS
from ...explain.metrics import MetricRow, SliceMetrics
from .. import numbers
from ..contract import Part, Section, View

SECTION = Section(
    "metrics",
    "Metrics",
    6,
    note="On held-out rows, with 95% intervals of each number by itself. The verdict above is not made of them.",
)
TITLES = {
    "error": "Error",
    "selection_rate": "Predicted positive",
    "fpr": "False-positive rate",
    "fnr": "False-negative rate",
    "precision": "Precision",
    "recall": "Recall",
    "log_loss": "Log loss",
    "mae": "Mean absolute error",
    "rmse": "Root mean squared error",
    "over_prediction": "Over-prediction",
    "under_prediction": "Under-prediction",
}

RATES = ("error", "selection_rate", "fpr", "fnr", "precision", "recall")  # shares of rows


def metric_table(view: View, slice_: Slice) -> dict[str, Any] | None:
    """One row a metric; None where the slice has none, or no number of it is shown."""
    metrics = slice_.explanation(SliceMetrics)
    if metrics is None or slice_.reason == UNCONFIRMABLE:
        return None
    return {"rows": [_line(row) for row in metrics.rows]}


def _line(row: MetricRow) -> dict[str, str]:
    return {
        "title": TITLES.get(row.metric, row.metric),
        "meaning": MEANINGS.get(row.metric, ""),
        "slice": _with_interval(row.metric, row.value, row.low, row.high),
        "n": numbers.count(row.n),
        "rest": _with_interval(row.metric, row.rest_value, row.rest_low, row.rest_high),
        "rest_n": numbers.count(row.rest_n),
    }


def _with_interval(metric: str, value: float | None, low: float | None, high: float | None) -> str:
    """ "31.0% (22.1 to 42.0)" of a rate, else "0.31 (0.22 to 0.42)"."""
    if value is None:
        return numbers.NOT_MEASURED
    if metric in RATES:
        text = numbers.rate(value)
        return text if low is None or high is None else f"{text} ({numbers.interval(low, high)})"
    text = numbers.quantity(value)
    if low is None or high is None:
        return text
    return f"{text} ({numbers.quantity(low)} to {numbers.quantity(high)})"


METRICS = Part("metrics", SECTION, metric_table, "part_metrics.html")
