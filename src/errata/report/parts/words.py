"""Words for a slice: frequent tokens, nearest texts and captions, each with what was measured of it."""

from __future__ import annotations

from typing import Any

from ...core import Slice
from .. import numbers, sentences
from ..contract import Part, Section, View
from ..explanations import explanation
from ..row_items import SHORT, clipped
from .profile import outcome_texts

MOST_TEXTS = 5

SECTION = Section("words", "Words and rules", 3, template="section_words.html", always=True)


def token_table(view: View, slice_: Slice) -> dict[str, Any] | None:
    """Words that are more frequent in the slice than elsewhere."""
    data = explanation(slice_, "tokens")
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


def description_table(view: View, slice_: Slice) -> dict[str, Any] | None:
    """The nearest texts, each with how well nearness to it retrieves the members."""
    data = explanation(slice_, "descriptions")
    if data is None:
        return None
    rows = [
        {
            "text": clipped(row["text"], SHORT),
            "score": numbers.quantity(row["score"]),
            "precision": numbers.quantity(row["average_precision"]),
            "base": numbers.quantity(row["base_rate"]),
        }
        for row in sentences.towards(data)[:MOST_TEXTS]
    ]
    return {"rows": rows, "note": sentences.descriptions(data)}


def caption_table(view: View, slice_: Slice) -> dict[str, Any] | None:
    """The hardest captions of a failure direction, then the easiest, each with what was measured of it."""
    data = explanation(slice_, "captions")
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


def hardest_caption(slice_: Slice) -> str:
    """The hardest caption for a terminal, in one sentence."""
    data = explanation(slice_, "captions")
    if data is None:
        return ""
    hard = [{**row, "text": clipped(row["text"], SHORT)} for row in data["hard"]]
    return sentences.hardest_caption({**data, "hard": hard})


def nearest_texts(slice_: Slice) -> str:
    """The nearest texts for a terminal, in one sentence."""
    data = explanation(slice_, "descriptions")
    if data is None:
        return ""
    rows = [{**row, "text": clipped(row["text"], SHORT)} for row in data["rows"]]
    return sentences.nearest_texts({**data, "rows": rows})


def name_score(slice_: Slice) -> str:
    """How well the machine-made name fits, in one sentence."""
    data = explanation(slice_, "name")
    return "" if data is None else sentences.name_score(data)


TOKENS = Part("tokens", SECTION, token_table, "part_tokens.html", order=1)
DESCRIPTIONS = Part("descriptions", SECTION, description_table, "part_descriptions.html", order=2)
CAPTIONS = Part("captions", SECTION, caption_table, "part_captions.html", order=3)
