"""Audits and evaluations in a user's own tools: pandas frames, matplotlib plots, the HTML of a notebook's cell.

`core` knows none of these tools. It calls what `VIEWS` lists, so that `audit.to_frame()` is a method all the same.
"""

from __future__ import annotations

from ..core.views import Views
from .cells import audit_cell
from .frames import audit_frame, evaluation_frame, groups_frame
from .plots import plot_audit, plot_gaps, plot_sizes

VIEWS: Views = {
    "Audit.html": audit_cell,
    "Audit.plot": plot_audit,
    "Audit.to_frame": audit_frame,
    "Evaluation.to_frame": evaluation_frame,
    "GroupMetrics.to_frame": groups_frame,
}

__all__ = [
    "audit_cell",
    "audit_frame",
    "evaluation_frame",
    "groups_frame",
    "plot_audit",
    "plot_gaps",
    "plot_sizes",
]
