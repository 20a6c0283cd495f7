"""The map: every row of the audit as a point, those of the slice lit."""

from __future__ import annotations

from typing import Any

from ...core import Slice
from ...core.audit import of_kind
from ...explain.map import RowMap
from .. import numbers
from ..contract import Part, Section, View
from ..script_data import MOST_POINTS
from ..static_files import Script

SECTION = Section("map", "Map", 4, template="section_map.html")


def map_values(view: View, slice_: Slice) -> dict[str, Any] | None:
    """None where no map was drawn, or where a saved page would grow too large with it."""
    row_map = next(iter(of_kind(view.audit.explanations, RowMap)), None)
    n = len(view.audit.evaluation)
    if row_map is None or (view.links.saved and n > MOST_POINTS):
        return None
    note = f"{numbers.counted(n, 'row')}."
    if n > MOST_POINTS:
        note = f"{numbers.count(MOST_POINTS)} of {numbers.count(n)} rows drawn. Statistics use all rows."
    return {"of": numbers.count(n), "note": note, "representation": row_map.representation}


MAP = Part("map", SECTION, map_values, scripts=(Script("map.js", ("row_source.js", "row_card.js", "map.js")),))
