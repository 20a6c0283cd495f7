"""How the members of a slice differ from the rest: labels, predictions and metadata."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core import Slice
from ...core.words import FEWEST_FOR_PERCENT
from ...explain.classes import Classes
from ...explain.metadata import Metadata
from ...explain.profile import ColumnProfile, ValueRow
from ...explain.view import Outcome
from .. import numbers, sentences
from ..contract import Part, Section, Values, View

PROFILE_ROWS = 6
LEAST_POINTS = 2.0  # a column that differs by less is not worth a line


def profile_section(view: View, slice_: Slice, parts: Sequence[Values]) -> dict[str, Any]:
    """What is said above the profile, and whether there is metadata at all."""
    return {"mistakes": _mistakes(slice_), "has_metadata": slice_.explanation(Metadata) is not None}


SECTION = Section("profile", "Profile", 2, template="section_profile.html", context=profile_section, always=True)


def class_profile(view: View, slice_: Slice) -> dict[str, Any] | None:
    """Labels and predictions beside the rest."""
    classes = slice_.explanation(Classes)
    if classes is None:
        return None
    titled = (("Label", classes.labels), ("Prediction", classes.predictions))
    return {"profiles": [_class_shares(title, profile) for title, profile in titled if profile is not None]}


def metadata_profile(view: View, slice_: Slice) -> dict[str, Any] | None:
    """The value of each column that differs most, then every value."""
    metadata = slice_.explanation(Metadata)
    if metadata is None:
        return None
    columns = [column for column in metadata.columns if column.rows]
    differing = [column for column in columns if abs(column.rows[0].search_points) >= LEAST_POINTS]
    return {
        "top": [value_row(column.column, column.rows[0]) for column in differing[:PROFILE_ROWS]],
        "outcome_head": outcome_head(view),
        "all": [value_row(column.column, row) for column in columns for row in column.rows],
        "columns": len(columns),
        "skipped": sentences.skipped(metadata.skipped),
    }


def main_mistake(slice_: Slice) -> str:
    """ "Mostly triangle → star, 58 of 98 errors"."""
    classes = slice_.explanation(Classes)
    if classes is None or not classes.confused:
        return ""
    top = classes.confused[0]
    if 2 * top.slice[0] <= top.slice[1]:
        return ""
    return f"Mostly {top.label} → {top.prediction}, {numbers.out_of(*top.slice)} errors"


def _mistakes(slice_: Slice) -> str:
    """The most common mistakes in one sentence."""
    classes = slice_.explanation(Classes)
    confused = []
    if classes is not None:
        confused = [pair for pair in classes.confused if pair.slice[0] > 0]
    if not confused:
        return ""
    pairs = sorted(confused, key=lambda pair: -pair.slice[0])  # chosen on search rows, counted on held-out rows
    listed = [f"{pair.label} → {pair.prediction} {numbers.out_of(*pair.slice)}" for pair in pairs[:3]]
    return f"Most common mistakes: {', '.join(listed)}."


def _class_shares(title: str, profile: ColumnProfile) -> dict[str, Any]:
    """By share in the slice, the largest first."""
    rows = sorted(profile.rows, key=lambda row: -(row.slice_share or 0.0))
    return {
        "title": title,
        "rows": [value_row(profile.column, row) for row in rows[:PROFILE_ROWS]],
        "more": max(0, len(rows) - PROFILE_ROWS) + profile.left_out,
    }


def value_row(column: str, row: ValueRow) -> dict[str, Any]:
    """One value of a column: shares as text and as positions on a 0 to 100% axis."""
    value = "missing" if row.value is None else row.value
    return {
        "column": column,
        "value": value,
        "slice": numbers.rate_of(*row.slice),
        "slice_count": numbers.out_of(*row.slice),
        "rest": numbers.rate_of(*row.rest),
        "rest_count": numbers.out_of(*row.rest),
        "slice_at": 100 * (row.slice_share or 0.0),
        "rest_at": 100 * (row.rest_share or 0.0),
        "lift": numbers.times(row.lift),
        **outcome_texts(row.outcome),
    }


def outcome_head(view: View) -> str:
    """The heading of a column that `outcome_texts` fills."""
    return f"{outcome_word(view)}, of all rows with it"


def outcome_word(view: View) -> str:
    """What is counted of rows: how many are wrong, or their mean loss where none can be."""
    return "Mean loss" if view.audit.evaluation.errors is None else "Wrong"


def outcome_texts(outcome: Outcome) -> dict[str, str]:
    """The error of all rows a description matches, with its counts; the mean loss where there are no errors."""
    if outcome.errors is None:
        return {
            "outcome": numbers.quantity(outcome.mean_loss),
            "outcome_count": numbers.counted(outcome.n, "row"),
        }
    counts = numbers.out_of(outcome.errors, outcome.n)
    if outcome.n < FEWEST_FOR_PERCENT:
        return {"outcome": counts, "outcome_count": ""}
    return {"outcome": numbers.rate(outcome.error_rate), "outcome_count": counts}


CLASSES = Part("classes", SECTION, class_profile, "part_classes.html", order=1)
METADATA = Part("metadata", SECTION, metadata_profile, "part_metadata.html", order=2)
