"""Size against mean loss, of slices and of plain clusters (Spotlight, figure 5)."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ..core import Array, Audit
from ..core.record import FLAT, Record
from .context import Context
from .kinds import AuditExplanation
from .view import MEASURED_ON, SliceView, view_of


@dataclass(frozen=True)
class SizePoint(Record):
    """The size of a group of rows and its mean loss."""

    n: int
    share: float
    mean_loss: float | None


@dataclass(frozen=True)
class SlicePoint(Record):
    """A slice as a point."""

    id: str
    name: str
    side: str
    verdict: str
    point: SizePoint = field(metadata=FLAT)


@dataclass(frozen=True)
class ClusterPoint(Record):
    """A cluster as a point."""

    cluster: int
    point: SizePoint = field(metadata=FLAT)


@dataclass(frozen=True)
class Sizes(AuditExplanation):
    """The slices of one task beside the clusters of the same rows, on held-out rows."""

    kind = "sizes"

    task: str
    measured_on: str
    overall: float | None  # the mean loss of all held-out rows
    slices: tuple[SlicePoint, ...]
    clusters: tuple[ClusterPoint, ...]

    @classmethod
    def explain(cls, audit: Audit, context: Context) -> tuple[Sizes, ...]:
        """One for each task that has slices and losses."""
        plots = []
        for name, evaluation in context.tasks.items():
            views = [view_of(audit, slice_, context.tasks) for slice_ in audit.slices if slice_.task == name]
            if views and evaluation.losses is not None:
                plots.append(_sizes(views, evaluation.losses, context.clusters))
        return tuple(plots)


def _sizes(views: list[SliceView], losses: Array, clusters: Array | None) -> Sizes:
    rows = views[0].measured
    cluster_points = []
    if clusters is not None:
        cluster_points = [ClusterPoint(int(c), measure_point(losses, clusters == c, rows)) for c in np.unique(clusters)]
    return Sizes(
        task=views[0].slice.task,
        measured_on=MEASURED_ON,
        overall=_mean(losses, rows),
        slices=tuple(_slice_point(view, losses) for view in views),
        clusters=tuple(cluster_points),
    )


def _slice_point(view: SliceView, losses: Array) -> SlicePoint:
    slice_ = view.slice
    point = measure_point(losses, view.inside, view.measured)
    return SlicePoint(slice_.id, slice_.name, slice_.side, slice_.verdict, point)


def measure_point(losses: Array, group: Array, rows: Array) -> SizePoint:
    """The size and the mean loss of a group among some rows, both (n,) bool."""
    n = int(np.count_nonzero(group & rows))
    total = int(np.count_nonzero(rows))
    return SizePoint(n, n / max(total, 1), _mean(losses, group & rows))


def _mean(losses: Array, rows: Array) -> float | None:
    return float(losses[rows].mean(dtype=np.float64)) if rows.any() else None
