"""The map: every row of the audit as a point, those of the slice lit."""

from __future__ import annotations

from typing import Any

from ...core import Slice
from .. import numbers
from ..contract import Part, Section, View
from ..explanations import of_audit
from ..script_data import MOST_POINTS
from ..static_files import Script

SECTION = Section("map", "Map", 4, template="section_map.html")


def map_values(view: View, slice_: Slice) -> dict[str, Any] | None:
    """None where no map was drawn, or where a saved page would grow too large with it."""
    maps = of_audit(view.audit, "map")
    n = len(view.audit.evaluation)
    if not maps or (view.links.saved and n > MOST_POINTS):
        return None
    note = f"{numbers.counted(n, 'row')}."
    if n > MOST_POINTS:
        note = f"{numbers.count(MOST_POINTS)} of {numbers.count(n)} rows drawn. Statistics use all rows."
    return {"of": numbers.count(n), "note": note, "representation": maps[0]["representation"]}


MAP = Part("map", SECTION, map_values, scripts=(Script("map.js", ("map.js",)),))
