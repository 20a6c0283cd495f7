"""Numbers that a page's scripts read: positions and outcomes of all rows, and columns that a hypothesis may name."""

from __future__ import annotations

import json
from base64 import b64encode
from typing import Any

import numpy as np
from markupsafe import Markup

from ..core import Array, Audit
from ..core.audit import of_kind
from ..explain.map import FULL_SCALE, RowMap
from ..hypothesis import column_names, to_columns

MOST_POINTS = 20_000  # of a saved page
LEAST_BYTES = 2  # of a value: a digit and a comma
MOST_BYTES = 2_000_000  # of the columns of a saved page
RIGHT = 0
WRONG = 1
UNKNOWN = 2


def script_json(value: Any) -> Markup:
    """JSON that may stand inside of a script element, whatever its texts say."""
    text = json.dumps(value, separators=(",", ":"), allow_nan=False)
    return Markup(text.replace("<", "\\u003c").replace("\u2028", "\\u2028").replace("\u2029", "\\u2029"))


def positions(audit: Audit) -> Array | None:
    """(n, 2) whole numbers of two bytes; None where no map was drawn."""
    row_map = next(iter(of_kind(audit.explanations, RowMap)), None)
    return None if row_map is None else row_map.positions()


def map_representation(audit: Audit) -> str | None:
    """What the map is of; the first representation where there is no map, None where there is none at all."""
    row_map = next(iter(of_kind(audit.explanations, RowMap)), None)
    if row_map is not None and row_map.representation in audit.evaluation.representations:
        return row_map.representation
    return next(iter(audit.evaluation.representations), None)


def unit_positions(audit: Audit) -> Array | None:
    """(n, 2) positions in [-1, 1]; None where no map was drawn."""
    xy = positions(audit)
    return None if xy is None else xy.astype(np.float32) / FULL_SCALE


def map_data(audit: Audit, rows: Array | None = None) -> dict[str, Any] | None:
    """The map of some rows, or of all: positions, outcomes, and the members of each slice."""
    xy = positions(audit)
    if xy is None:
        return None
    thinned = {} if rows is None else {"rows": base64_of(rows.astype("<i4"))}
    rows = np.arange(len(xy)) if rows is None else rows
    return {
        "n": len(rows),
        "of": len(xy),
        **thinned,
        "xy": base64_of(xy[rows]),
        "outcome": base64_of(outcomes(audit)[rows]),
        "members": map_members(audit, rows),
    }


def map_members(audit: Audit, rows: Array) -> dict[str, str]:
    """Slice id -> one bit for each of some rows: whether it is a member."""
    return {slice_.id: packed(slice_.members[rows]) for slice_ in audit.slices}


def outcomes(audit: Audit) -> Array:
    """(n,) of all rows: right, wrong, or not known, as with several labels."""
    errors = audit.evaluation.errors
    if errors is None:
        return np.full(len(audit.evaluation), UNKNOWN, dtype=np.uint8)
    return np.where(errors, WRONG, RIGHT).astype(np.uint8)


def held_out_data(audit: Audit) -> dict[str, Any] | None:
    """Columns and outcomes of the held-out rows, to list them and to test a hypothesis; None of too many bytes.

    Texts that are too long are left out alone.
    """
    held_out = np.flatnonzero(~audit.discover)
    if LEAST_BYTES * len(held_out) * len(column_names(audit.evaluation)) > MOST_BYTES:  # before millions are written
        return None
    rows = audit.evaluation.rows(held_out)
    media = audit.evaluation.media
    kind = None if media is None else media.kind
    columns = to_columns(rows)
    without_texts = {name: column for name, column in columns.items() if column["kind"] != "words"}
    for kept in (columns, without_texts):
        data = {
            "columns": kept,
            "wrong": base64_of(outcomes(audit)[held_out]),
            "n": len(held_out),
            "media": kind,  # where words would be looked for with a server
        }
        if len(json.dumps(data)) <= MOST_BYTES:
            return data
    return None


def example_condition(audit: Audit) -> str:
    """A condition that could be tested on this audit."""
    for name, column in audit.evaluation.metadata.items():
        values = [value for value in column[:100].tolist() if value is not None and value == value]
        if values:
            named = f'"{name}"' if " " in name else name
            if isinstance(values[0], str):
                return f"{named} = {values[0]}"
            return f"{named} > {values[0]:.4g}"
    return "label = " + audit.evaluation.class_name(0)


def packed(bits: Array) -> str:
    """(n,) bool as base64, eight a byte, the first in the lowest bit."""
    return base64_of(np.packbits(bits, bitorder="little"))


def base64_of(array: Array) -> str:
    """The bytes of an array as text."""
    return b64encode(np.ascontiguousarray(array).tobytes()).decode()
