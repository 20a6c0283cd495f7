"""Size against mean loss, of slices and of plain clusters (Spotlight, figure 5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..core import Array, Explanation
from .view import View


def sizes(views: Sequence[View], clusters: Array | None) -> Explanation | None:
    """The slices of one task beside the clusters ((n,) int) of the same rows, on rows nobody searched."""
    first = views[0]
    losses, rows = first.evaluation.losses, first.measured
    if losses is None:
        return None
    return Explanation(
        "sizes",
        {
            "task": first.slice.task,
            "measured_on": "confirm",
            "overall": _mean(losses, rows),
            "slices": [_slice_point(view) for view in views],
            "clusters": [] if clusters is None else _cluster_points(losses, clusters, rows),
        },
    )


def _slice_point(view: View) -> dict[str, Any]:
    assert view.evaluation.losses is not None
    found = view.slice
    point = _point(view.evaluation.losses, view.inside, view.measured)
    return {"id": found.id, "name": found.name, "side": found.side, "verdict": found.verdict, **point}


def _cluster_points(losses: Array, clusters: Array, rows: Array) -> list[dict[str, Any]]:
    return [{"cluster": int(c), **_point(losses, clusters == c, rows)} for c in np.unique(clusters)]


def _point(losses: Array, group: Array, rows: Array) -> dict[str, Any]:
    n, total = int(np.count_nonzero(group & rows)), int(np.count_nonzero(rows))
    return {"n": n, "share": n / max(total, 1), "mean_loss": _mean(losses, group & rows)}


def _mean(losses: Array, rows: Array) -> float | None:
    return float(losses[rows].mean(dtype=np.float64)) if rows.any() else None
