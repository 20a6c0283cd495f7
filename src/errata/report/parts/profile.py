"""How the members of a slice differ from the rest: labels, predictions and metadata."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ...core import Slice
from .. import numbers, sentences
from ..contract import Part, Section, Values, View
from ..explanations import explanation

PROFILE_ROWS = 6
LEAST_POINTS = 2.0  # a column that differs by less is not worth a line


def profile_section(view: View, slice_: Slice, parts: Sequence[Values]) -> dict[str, Any]:
    """What is said above the profile, and whether there is metadata at all."""
    return {"mistakes": _mistakes(slice_), "has_metadata": explanation(slice_, "metadata") is not None}


SECTION = Section("profile", "Profile", 2, template="section_profile.html", context=profile_section, always=True)


def class_profile(view: View, slice_: Slice) -> dict[str, Any] | None:
    """Labels and predictions beside the rest."""
    data = explanation(slice_, "classes")
    if data is None:
        return None
    profiles = [(title, data[key]) for title, key in (("Label", "labels"), ("Prediction", "predictions")) if data[key]]
    return {"profiles": [_class_shares(title, profile) for title, profile in profiles]}


def metadata_profile(view: View, slice_: Slice) -> dict[str, Any] | None:
    """The value of each column that differs most, then every value."""
    data = explanation(slice_, "metadata")
    if data is None:
        return None
    columns = [column for column in data["columns"] if column["rows"]]
    differing = [column for column in columns if abs(column["rows"][0]["found_points"]) >= LEAST_POINTS]
    return {
        "top": [value_row(column["column"], column["rows"][0]) for column in differing[:PROFILE_ROWS]],
        "all": [value_row(column["column"], row) for column in columns for row in column["rows"]],
        "columns": len(columns),
        "skipped": sentences.skipped(data["skipped"]),
    }


def main_mistake(slice_: Slice) -> str:
    """ "Mostly triangle → star, 58 of 98 errors"."""
    data = explanation(slice_, "classes")
    pairs = data["confused"] if data else []
    if not pairs or 2 * pairs[0]["slice"][0] <= pairs[0]["slice"][1]:
        return ""
    top = pairs[0]
    return f"Mostly {top['label']} → {top['prediction']}, {numbers.out_of(*top['slice'])} errors"


def _mistakes(slice_: Slice) -> str:
    """The most common mistakes in one sentence."""
    data = explanation(slice_, "classes")
    confused = [] if data is None else [pair for pair in data["confused"] if pair["slice"][0] > 0]
    if not confused:
        return ""
    pairs = sorted(confused, key=lambda pair: -pair["slice"][0])  # chosen on search rows, counted on held-out rows
    listed = [f"{pair['label']} → {pair['prediction']} {numbers.out_of(*pair['slice'])}" for pair in pairs[:3]]
    return f"Most common mistakes: {', '.join(listed)}."


def _class_shares(title: str, profile: Mapping[str, Any]) -> dict[str, Any]:
    """By share in the slice, the largest first."""
    rows = sorted(profile["rows"], key=lambda row: -(row["slice_share"] or 0.0))
    return {
        "title": title,
        "rows": [value_row(profile["column"], row) for row in rows[:PROFILE_ROWS]],
        "more": max(0, len(rows) - PROFILE_ROWS) + profile["left_out"],
    }


def value_row(column: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """One value of a column: shares as text and as positions on a 0 to 100% axis."""
    return {
        "column": column,
        "value": "missing" if row["value"] is None else row["value"],
        "slice": numbers.rate_of(*row["slice"]),
        "slice_count": numbers.out_of(*row["slice"]),
        "rest": numbers.rate_of(*row["rest"]),
        "rest_count": numbers.out_of(*row["rest"]),
        "slice_at": 100 * (row["slice_share"] or 0.0),
        "rest_at": 100 * (row["rest_share"] or 0.0),
        "lift": numbers.times(row["lift"]),
        **outcome_texts(row),
    }


def outcome_texts(row: Mapping[str, Any]) -> dict[str, str]:
    """The error of all rows a description matches, with its counts; the mean loss where there are no errors."""
    if row["errors"] is None:
        return {
            "outcome": f"mean loss {numbers.quantity(row['mean_loss'])}",
            "outcome_count": numbers.counted(row["n"], "row"),
        }
    if row["n"] < numbers.FEWEST_FOR_PERCENT:
        return {"outcome": numbers.out_of(row["errors"], row["n"]), "outcome_count": ""}
    return {"outcome": numbers.rate(row["error_rate"]), "outcome_count": numbers.out_of(row["errors"], row["n"])}


CLASSES = Part("classes", SECTION, class_profile, "part_classes.html", order=1)
METADATA = Part("metadata", SECTION, metadata_profile, "part_metadata.html", order=2)
