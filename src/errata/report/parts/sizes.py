"""Size against mean loss of slices and clusters."""

from __future__ import annotations

from typing import Any

from ...core.audit import of_kind
from ...explain.sizes import Sizes
from .. import marks
from ..contract import Part, Section, View

SECTION = Section(
    "sizes",
    "Size against loss",
    2,
    note="A slice that is large and high is worth more than one that is only high.",
    page="overview",
)


def size_plots(view: View, slice_: None) -> dict[str, Any] | None:
    """One plot for each task; None where none was made."""
    plots = of_kind(view.audit.explanations, Sizes)
    if not plots:
        return None
    numbered = {slice_.id: j + 1 for j, slice_ in enumerate(view.audit.slices)}
    return {"plots": [marks.size_plot(plot, numbered) for plot in plots]}


SIZES = Part("sizes", SECTION, size_plots, "part_sizes.html")
