"""Which words and phrases a slice has more of than the rest (Spotlight, figure 4)."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import numpy as np

from ..core.record import FLAT, Record
from .kinds import SliceExplanation
from .text_phrases import FEWEST, LEVEL, Words, phrase_evidence, telling_phrases
from .view import MEASURED_ON, Match, SliceView, measure_match, ratio

if TYPE_CHECKING:
    from .context import Context

MOST = 10


@dataclass(frozen=True)
class TokenRow(Record):
    """A word or a phrase: how much more often members have it, and how well it describes the slice."""

    token: str
    ratio: float = 0.0  # the likelihood ratio 2 ln(L1 / L0) on the rows that choose
    p_value: float = 1.0  # on the rows that choose, corrected for all phrases compared
    rest: tuple[int, int] = (0, 0)  # held-out rows outside the slice that have it, of all
    relative: float | None = None  # share of the members over share of the rest, held-out rows; None where that is 0
    match: Match = field(kw_only=True, metadata=FLAT)


@dataclass(frozen=True)
class Lengths(Record):
    """Mean length in words, of members and of the rest."""

    slice: float | None
    slice_n: int
    rest: float | None
    rest_n: int


@dataclass(frozen=True)
class Tokens(SliceExplanation):
    """Words and phrases that the slice has more of, most evidence first, and the mean length of its texts."""

    kind = "tokens"
    needs = frozenset({"words"})

    chosen_on: str
    measured_on: str
    minimum: int  # members that must have a phrase
    rows: tuple[TokenRow, ...]
    length: Lengths
    level: float = LEVEL  # chance that any of them is chosen though members have no more of it
    compared: int = 0  # phrases that the likelihood ratio was computed of
    own_vocabulary: bool = False  # the phrases are the user's own

    @classmethod
    def explain(cls, view: SliceView, context: Context) -> Self:
        """The phrases chosen on searched rows, measured on the others."""
        words = context.words
        assert words is not None
        evidence = phrase_evidence(view, words)
        rows = []
        for j in telling_phrases(view, words, evidence, MOST):
            match = measure_match(view, words.have(j))
            rest = (match.precise[1] - match.precise[0], int(np.count_nonzero(view.rest & view.measured)))
            rows.append(
                TokenRow(
                    token=words.phrases[j],
                    ratio=float(evidence.ratio[j]),
                    p_value=float(evidence.p_value[j]),
                    rest=rest,
                    relative=_relative(match.covers, rest),
                    match=match,
                )
            )
        return cls(
            chosen_on=view.chosen_on,
            measured_on=MEASURED_ON,
            minimum=FEWEST,
            rows=tuple(rows),
            length=_lengths(view, words),
            compared=evidence.compared,
            own_vocabulary=context.vocabulary is not None,
        )


def _relative(members: tuple[int, int], rest: tuple[int, int]) -> float | None:
    """The share of members that have it over that of the rest."""
    inside = ratio(*members)
    outside = ratio(*rest)
    return None if inside is None or not outside else inside / outside


def _lengths(view: SliceView, words: Words) -> Lengths:
    members = view.inside & view.measured
    rest = view.rest & view.measured
    n = int(np.count_nonzero(members))
    rest_n = int(np.count_nonzero(rest))
    return Lengths(ratio(words.lengths[members].sum(), n), n, ratio(words.lengths[rest].sum(), rest_n), rest_n)
