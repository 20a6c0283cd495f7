"""Words for a slice: frequent tokens, nearest texts and captions, each with what was measured of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...core import Slice
from ...core.words import clipped
from ...explain.captions import CaptionRow, DirectionCaptions
from ...explain.descriptions import Descriptions
from ...explain.names import Name
from ...explain.tokens import Tokens
from .. import name_sentences, numbers, sentences
from ..contract import Part, Section, View
from ..row_items import SHORT
from .profile import outcome_head, outcome_texts

MOST_TEXTS = 5

SECTION = Section("words", "Words and rules", 3, template="section_words.html", always=True)


def token_table(view: View, slice_: Slice) -> dict[str, Any] | None:
    """Words and phrases that members have more of than the rest; none that no held-out member has."""
    tokens = slice_.explanation(Tokens)
    if tokens is None:
        return None
    rows = [
        {
            "token": row.token,
            "times": numbers.times(row.relative),
            "rest": _share(row.rest),
            "covers": numbers.rate_of(*row.match.covers),
            "covers_count": numbers.out_of(*row.match.covers),
            "precise": numbers.rate_of(*row.match.precise),
            "precise_count": numbers.out_of(*row.match.precise),
            **outcome_texts(row.match.outcome),
        }
        for row in tokens.rows
        if row.match.covers[0]
    ]
    return {
        "rows": rows,
        "outcome_head": outcome_head(view),
        "chosen": how_chosen(tokens),
        "length": sentences.lengths(tokens.length),
    }


def how_chosen(tokens: Tokens) -> str:
    """How the words and phrases of a slice were chosen; nothing of an audit that did not record it."""
    if not tokens.compared:
        return ""
    of = "phrases of your vocabulary" if tokens.own_vocabulary else "words and phrases"
    return (
        f"Chosen on search rows among {numbers.count(tokens.compared)} {of} by likelihood ratio, corrected for all of "
        f"them; at least {tokens.minimum} members there have each."
    )


def _share(counts: tuple[int, int]) -> str:
    """A share of rows; a dash where an older audit did not count them."""
    return numbers.rate_of(*counts) if counts[1] else "–"


def description_table(view: View, slice_: Slice) -> dict[str, Any] | None:
    """The nearest texts, each with how well nearness to it retrieves the members."""
    descriptions = slice_.explanation(Descriptions)
    if descriptions is None:
        return None
    rows = [
        {
            "text": clipped(row.text, SHORT),
            "score": numbers.quantity(row.score),
            "precision": numbers.quantity(row.retrieval.average_precision),
            "base": numbers.quantity(row.retrieval.base_rate),
        }
        for row in sentences.towards(descriptions)[:MOST_TEXTS]
    ]
    return {"rows": rows, "note": sentences.descriptions(descriptions)}


def caption_table(view: View, slice_: Slice) -> dict[str, Any] | None:
    """The hardest captions of a failure direction, then the easiest, each with what was measured of it."""
    captions = slice_.explanation(DirectionCaptions)
    if captions is None:
        return None
    hard = [_caption_row("hard", row) for row in captions.hard]
    easy = [_caption_row("easy", row) for row in captions.easy]
    return {"rows": [*hard, *easy], "note": sentences.captions(captions, _class_rows(slice_, captions))}


def _caption_row(side: str, row: CaptionRow) -> dict[str, Any]:
    outcome = row.matches.match.outcome
    interval = sentences.rates(row.matches.interval) if outcome.n else ""
    return {
        "side": side,
        "text": clipped(row.text, SHORT),
        "score": numbers.quantity(row.score),
        "precision": numbers.quantity(row.retrieval.average_precision),
        "interval": interval,
        **outcome_texts(outcome),
    }


def hardest_caption(slice_: Slice) -> str:
    """The hardest caption for a terminal, in one sentence."""
    captions = slice_.explanation(DirectionCaptions)
    if captions is None:
        return ""
    hard = tuple(replace(row, text=clipped(row.text, SHORT)) for row in captions.hard)
    return sentences.hardest_caption(replace(captions, hard=hard), _class_rows(slice_, captions))


def _class_rows(slice_: Slice, captions: DirectionCaptions) -> str:
    """ "rows labelled dog": the rows that a direction lies in."""
    how = "predicted" if "prediction" in (slice_.rule.get("scope") or {}) else "labelled"
    return f"rows {how} {captions.class_name}"


def direction_strength(slice_: Slice) -> str:
    """The strength of a failure direction for a terminal, in one sentence."""
    strength = sentences.strength(slice_)
    return "" if strength is None else f"{strength[0]}: {strength[1]}."


def nearest_texts(slice_: Slice) -> str:
    """The nearest texts for a terminal, in one sentence."""
    descriptions = slice_.explanation(Descriptions)
    if descriptions is None:
        return ""
    rows = tuple(replace(row, text=clipped(row.text, SHORT)) for row in descriptions.rows)
    return sentences.nearest_texts(replace(descriptions, rows=rows))


def name_score(slice_: Slice) -> str:
    """How well the machine-made name fits, and whether it tells errors."""
    name = slice_.explanation(Name)
    return "" if name is None else name_sentences.name_score(name)


def name_fit(slice_: Slice) -> str:
    """How well the machine-made name fits, or what members have more of where there is none."""
    name = slice_.explanation(Name)
    return "" if name is None else name_sentences.name_fit(name)


TOKENS = Part("tokens", SECTION, token_table, "part_tokens.html", order=1)
DESCRIPTIONS = Part("descriptions", SECTION, description_table, "part_descriptions.html", order=2)
CAPTIONS = Part("captions", SECTION, caption_table, "part_captions.html", order=3)
