"""Numbers that a page's scripts read: places and outcomes of all rows, and columns that a guess may name."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from typing import Any

import numpy as np
from markupsafe import Markup

from ..core import Array, Audit
from ..hypothesis import to_columns
from . import parts

MOST_PLACES = 20_000  # of a saved page
MOST_BYTES = 2_000_000  # of the columns of a saved page
RIGHT, WRONG, UNKNOWN = 0, 1, 2


def script(value: Any) -> Markup:
    """JSON that may stand inside of a script element, whatever its texts say."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))


def places(audit: Audit) -> Array | None:
    """(n, 2) whole numbers of two bytes; None where no map was drawn."""
    found = parts.of_audit(audit, "map")
    return np.frombuffer(b64decode(found[0]["xy"]), dtype="<i2").reshape(-1, 2) if found else None


def map_data(audit: Audit, rows: Array | None = None) -> dict[str, Any] | None:
    """The map of some rows, or of all: places, outcomes, and the members of each slice."""
    xy = places(audit)
    if xy is None:
        return None
    rows = np.arange(len(xy)) if rows is None else rows
    members = {found.id: _bytes(np.packbits(found.members[rows], bitorder="little")) for found in audit.slices}
    return {
        "n": len(rows),
        "of": len(xy),
        "xy": _bytes(xy[rows]),
        "outcome": _bytes(outcomes(audit)[rows]),
        "members": members,
    }


def outcomes(audit: Audit) -> Array:
    """(n,) of all rows: right, wrong, or not known, as with several labels."""
    errors = audit.evaluation.errors
    plain = np.full(len(audit.evaluation), UNKNOWN, dtype=np.uint8)
    return plain if errors is None else np.where(errors, WRONG, RIGHT).astype(np.uint8)


def guess_data(audit: Audit) -> dict[str, Any] | None:
    """The rows nobody searched, as far as a guess needs them; None where there are no outcomes or too many bytes."""
    unseen = np.flatnonzero(~audit.discover)
    if audit.evaluation.errors is None:
        return None
    rows = audit.evaluation.rows(unseen)
    data = {"columns": to_columns(rows), "wrong": _bytes(outcomes(audit)[unseen]), "n": len(unseen)}
    return data if len(json.dumps(data)) <= MOST_BYTES else None


def example(audit: Audit) -> str:
    """A guess that could be made of this audit."""
    for name, column in audit.evaluation.metadata.items():
        values = [value for value in column[:100].tolist() if value is not None and value == value]
        if values:
            named = f'"{name}"' if " " in name else name
            return f"{named} = {values[0]}" if isinstance(values[0], str) else f"{named} > {values[0]:.4g}"
    return "label = " + audit.evaluation.class_name(0)


def _bytes(array: Array) -> str:
    return b64encode(np.ascontiguousarray(array).tobytes()).decode()
