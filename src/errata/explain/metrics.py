"""Metrics of a slice beside the rest of its rows: MAE and RMSE, over- and under-prediction, recall and its kin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from ..core.metrics import row_metrics
from ..core.metrics_by import Estimate, estimate
from ..core.record import Record
from .context import Context
from .kinds import SliceExplanation
from .view import MEASURED_ON, SliceView, finite

LEVEL = 0.95


@dataclass(frozen=True)
class MetricRow(Record):
    """One metric on held-out rows of the slice and of the rest."""

    metric: str
    n: int  # rows of the slice that it is defined on
    value: float | None
    low: float | None
    high: float | None
    rest_n: int
    rest_value: float | None
    rest_low: float | None
    rest_high: float | None


@dataclass(frozen=True)
class SliceMetrics(SliceExplanation):
    """Every metric that these rows have, each with its interval; intervals of single metrics, not a verdict."""

    kind = "metrics"

    measured_on: str
    level: float
    rows: tuple[MetricRow, ...]

    @classmethod
    def explain(cls, view: SliceView, context: Context) -> Self | None:
        """None where there are only losses, whose mean stands beside the verdict."""
        evaluation = view.evaluation
        if evaluation.labels is None or evaluation.predictions is None or evaluation.task == "loss":
            return None
        inside = np.flatnonzero(view.inside & view.measured)
        rest = np.flatnonzero(view.rest & view.measured)
        rows = []
        for name, metric in row_metrics(evaluation).items():
            both = [estimate(metric, chosen, evaluation.groups, LEVEL) for chosen in (inside, rest)]
            rows.append(_row(name, *both))
        return cls(MEASURED_ON, LEVEL, tuple(rows))


def _row(name: str, inside: Estimate, rest: Estimate) -> MetricRow:
    return MetricRow(
        metric=name,
        n=inside.n,
        value=finite(inside.value),
        low=finite(inside.low),
        high=finite(inside.high),
        rest_n=rest.n,
        rest_value=finite(rest.value),
        rest_low=finite(rest.low),
        rest_high=finite(rest.high),
    )
