"""Explanations made by hand, for tests of what reads them."""

from __future__ import annotations

from collections.abc import Sequence

from errata.explain.captions import CaptionMatches, CaptionRow, ClassRate, DirectionCaptions, LeftOut
from errata.explain.descriptions import Retrieval
from errata.explain.view import Match, Outcome


def captions(reference: str, hard: Sequence[str], easy: Sequence[str] = ()) -> DirectionCaptions:
    """Captions on both sides of a direction; of each its text only, all numbers are the same."""
    outcome = Outcome(10, 5, 0.5, None)
    matches = CaptionMatches(0.1, 0.3, Match((1, 2), (1, 2), outcome), (0.2, 0.8))

    def rows(texts: Sequence[str]) -> tuple[CaptionRow, ...]:
        return tuple(CaptionRow(text, -0.5, Retrieval(0.5, 0.2, 10), matches) for text in texts)

    return DirectionCaptions(
        class_name="",
        reference=reference,
        representation="clip",
        total=len(hard) + len(easy),
        left_out=LeftOut(0, 0),
        class_rate=ClassRate(outcome, (0.2, 0.8)),
        hard=rows(hard),
        easy=rows(easy),
        chosen_on="discover",
        measured_on="confirm",
    )
