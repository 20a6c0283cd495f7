"""The parts of one slice, as plain values for the template."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core import Audit, Explanation, Slice
from . import numbers, sentences
from .images import Pictures

STRIP = 6
STRIP_TEXTS = 3
PROFILE_ROWS = 6
DESCRIPTIONS = 5
LEAST_POINTS = 2.0  # a column that differs by less is not worth a line
SHORT, LONG = 150, 320  # characters of a text


def explanation(found: Slice, kind: str) -> Mapping[str, Any] | None:
    return next((e.data for e in found.explanations if e.kind == kind), None)


def of_audit(audit: Audit, kind: str) -> list[Mapping[str, Any]]:
    return [e.data for e in audit.explanations if e.kind == kind]


def strip(audit: Audit, found: Slice, pictures: Pictures) -> list[dict[str, Any]]:
    """A few random members: what a slice looks like before anything is said about it."""
    data = explanation(found, "exemplars")
    if data is None:
        return []
    at_random = [row for row in group(data, "slice")["rows"] if row["picked"] == "random"]
    media = audit.evaluation.media
    most = STRIP if media is not None and media.kind == "image" else STRIP_TEXTS
    return [item(audit, row, pictures, SHORT) for row in at_random[:most]]


def item(audit: Audit, row: Mapping[str, Any], pictures: Pictures, most: int) -> dict[str, Any]:
    """One row to look at: its picture or text, and what the model said of it."""
    media = audit.evaluation.media
    text = media.text(row["row"]) if media is not None and media.kind == "text" else None
    return {
        **row,
        "mark": {True: "wrong", False: "right", None: ""}[row["wrong"]],
        "picture": pictures.symbol(row["row"]),
        "has_picture": media is not None and media.kind == "image",
        "text": None if text is None else clipped(text, most),
        "loss_text": None if row["loss"] is None else numbers.quantity(row["loss"]),
        "href": "",
    }


def clipped(text: str, most: int) -> str:
    """The beginning of a text, on one line."""
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1].rstrip() + "…"


def group(data: Mapping[str, Any], which: str) -> Mapping[str, Any]:
    return next((group for group in data["groups"] if group["which"] == which), {"rows": [], "of": 0})


def exemplar_groups(audit: Audit, found: Slice, pictures: Pictures) -> list[dict[str, Any]]:
    """Members by weight, then what to compare all with; members at random have a place of their own."""
    data = explanation(found, "exemplars")
    if data is None:
        return []
    members, rows = group(data, "slice"), "confirm rows" if data["drawn_from"] == "confirm" else "rows"
    by_weight = [row for row in members["rows"] if row["picked"] == "weight"]
    highest, some = group(data, "highest loss"), group(data, "random")
    groups = [
        ("Members of highest weight", f"{numbers.out_of(len(by_weight), members['of'])}; its core", by_weight),
        (
            "Highest loss",
            f"{numbers.out_of(len(highest['rows']), highest['of'])} {rows}, in the slice or not; not typical",
            highest["rows"],
        ),
        (
            "All rows at random",
            f"{numbers.out_of(len(some['rows']), some['of'])} {rows}, seed {data['seed']}",
            some["rows"],
        ),
    ]
    return [
        {"title": title, "note": note, "rows": [item(audit, row, pictures, LONG) for row in shown]}
        for title, note, shown in groups
        if shown
    ]


def easy_end(audit: Audit, found: Slice, pictures: Pictures) -> list[dict[str, Any]]:
    """The other end of a failure direction; the hard end is the members of highest weight, shown already."""
    data = explanation(found, "extremes")
    easiest = {"rows": []} if data is None else group(data, "easiest")
    if not easiest["rows"]:
        return []
    note = f"{numbers.out_of(len(easiest['rows']), easiest['of'])} confirm rows, by the direction"
    rows = [item(audit, row, pictures, LONG) for row in easiest["rows"]]
    return [{"title": "The easiest of its class", "note": note, "rows": rows}]


def members_note(found: Slice, shown: list[Mapping[str, Any]], of: int) -> str:
    seen = found.confirm
    known = seen is not None and seen.error_rate is not None
    wrong = sum(bool(row["wrong"]) for row in shown) if known else None
    in_all = numbers.rate_of(seen.errors, seen.n) if seen is not None else ""
    return sentences.members_at_random(len(shown), of, wrong, in_all)


def class_parts(found: Slice) -> dict[str, Any] | None:
    """Labels and predictions beside the rest, and who is taken for whom."""
    data = explanation(found, "classes")
    if data is None:
        return None
    profiles = [(title, data[key]) for title, key in (("Label", "labels"), ("Prediction", "predictions")) if data[key]]
    pairs = sorted(data["confused"], key=lambda pair: -pair["slice"][0])  # chosen on discover rows, counted here
    return {
        "profiles": [
            {"title": title, "rows": _share_rows(profile), **_rest_of(profile)} for title, profile in profiles
        ],
        "confused": [{**pair, "count": numbers.out_of(*pair["slice"])} for pair in pairs if pair["slice"][0] > 0],
    }


def mostly(found: Slice) -> str:
    """ "Mostly triangle → star, 58 of 98 errors"."""
    data = explanation(found, "classes")
    pairs = data["confused"] if data else []
    if not pairs or 2 * pairs[0]["slice"][0] <= pairs[0]["slice"][1]:
        return ""
    top = pairs[0]
    return f"Mostly {top['label']} → {top['prediction']}, {numbers.out_of(*top['slice'])} errors"


def _share_rows(profile: Mapping[str, Any]) -> list[dict[str, Any]]:
    """By share in the slice, the largest first."""
    rows = sorted(profile["rows"], key=lambda row: -(row["slice_share"] or 0.0))
    return [value_row(profile["column"], row) for row in rows[:PROFILE_ROWS]]


def _rest_of(profile: Mapping[str, Any]) -> dict[str, int]:
    return {"more": max(0, len(profile["rows"]) - PROFILE_ROWS) + profile["left_out"]}


def value_row(column: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """One value of a column: shares as text and as places on a 0 to 100% axis."""
    value = "missing" if row["value"] is None else row["value"]
    return {
        "column": column,
        "value": value,
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


def metadata_parts(found: Slice) -> dict[str, Any] | None:
    """The value of each column that differs most, then every value."""
    data = explanation(found, "metadata")
    if data is None:
        return None
    columns = [column for column in data["columns"] if column["rows"]]
    differing = [c for c in columns if abs(c["rows"][0]["found_points"]) >= LEAST_POINTS]
    return {
        "top": [value_row(c["column"], c["rows"][0]) for c in differing[:PROFILE_ROWS]],
        "all": [value_row(c["column"], row) for c in columns for row in c["rows"]],
        "columns": len(columns),
        "skipped": sentences.skipped(data["skipped"]),
    }


def token_parts(found: Slice) -> dict[str, Any] | None:
    data = explanation(found, "tokens")
    if data is None:
        return None
    rows = [
        {
            "token": row["token"],
            "relative": numbers.times(row["relative"]),
            "covers": numbers.rate_of(*row["covers"]),
            "covers_count": numbers.out_of(*row["covers"]),
            "precise": numbers.rate_of(*row["precise"]),
            "precise_count": numbers.out_of(*row["precise"]),
            **outcome_texts(row),
        }
        for row in data["rows"]
    ]
    return {"rows": rows, "length": sentences.lengths(data["length"])}


def description_parts(found: Slice) -> dict[str, Any] | None:
    """The nearest texts, each with how well nearness to it retrieves the members."""
    data = explanation(found, "descriptions")
    if data is None:
        return None
    rows = [
        {
            "text": clipped(row["text"], SHORT),
            "score": numbers.quantity(row["score"]),
            "precision": numbers.quantity(row["average_precision"]),
            "base": numbers.quantity(row["base_rate"]),
        }
        for row in sentences.towards(data)[:DESCRIPTIONS]
    ]
    return {"rows": rows, "note": sentences.descriptions(data)}


def caption_parts(found: Slice) -> dict[str, Any] | None:
    """The hardest captions of a failure direction, then the easiest, each with what was measured of it."""
    data = explanation(found, "captions")
    if data is None:
        return None
    rows = [
        {
            "side": side,
            "text": clipped(row["text"], SHORT),
            "score": numbers.quantity(row["score"]),
            "precision": numbers.quantity(row["retrieval"]["average_precision"]),
            "interval": sentences.rates(row["matches"]["interval"]) if row["matches"]["n"] else "",
            **outcome_texts(row["matches"]),
        }
        for side in ("hard", "easy")
        for row in data[side]
    ]
    return {"rows": rows, "note": sentences.captions(data)}


def hardest_caption(found: Slice) -> str:
    """The same for a terminal, in one sentence."""
    data = explanation(found, "captions")
    if data is None:
        return ""
    hard = [{**row, "text": clipped(row["text"], SHORT)} for row in data["hard"]]
    return sentences.hardest_caption({**data, "hard": hard})


def nearest_texts(found: Slice) -> str:
    """The same for a terminal, in one sentence."""
    data = explanation(found, "descriptions")
    if data is None:
        return ""
    rows = [{**row, "text": clipped(row["text"], SHORT)} for row in data["rows"]]
    return sentences.nearest_texts({**data, "rows": rows})


def name_score(found: Slice) -> str:
    data = explanation(found, "name")
    return "" if data is None else sentences.name_score(data)


def extra(found: Slice) -> list[Explanation]:
    """Explanations that this page has no part for; it names them instead of hiding them."""
    known = {
        "exemplars",
        "near",
        "classes",
        "metadata",
        "tokens",
        "descriptions",
        "captions",
        "extremes",
        "name",
        "coherence",
        "opponents",
        "path",
        "features",
    }
    return [e for e in found.explanations if e.kind not in known]
