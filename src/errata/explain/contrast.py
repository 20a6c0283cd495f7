"""What the members of a slice have most more of than the rest, or least of: said where no short description fits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from ..core.record import Record
from .candidates import class_words
from .classes import Classes
from .context import Context
from .metadata import Metadata
from .profile import ColumnProfile
from .text_phrases import Words, phrase_evidence
from .view import SliceView
from .vocabulary import OUTCOMES, readings, unfair_columns

LEAST_POINTS = 10.0  # less is hardly telling
FEWEST = 5  # held-out rows that have it, on the side that has more
MOST = 3  # contrasts of a slice
MOST_WORDS = 5  # words and phrases on each side, that are tried


@dataclass(frozen=True)
class Contrast(Record):
    """A value or a word, and how many held-out members and others have it."""

    text: str
    slice: tuple[int, int]  # members that have it, of all
    rest: tuple[int, int]  # others that have it, of all
    way: str = "more"  # how often members have it beside the others: "more" or "less"


@dataclass(frozen=True)
class _Option:
    column: str  # or the word itself: no two contrasts are about one thing
    points: float  # on the rows that choose
    contrast: Contrast


def telling_contrasts(view: SliceView, context: Context) -> list[Contrast]:
    """The values and words that members have most more of on search rows, each of another column; then most less of.

    The held-out rows must bear them out. None tells the errors, and so no two are of label and prediction.
    """
    reads = readings(context, view.slice.task)
    unfair = unfair_columns(view, context)
    options = [option for option in _options(view, context) if abs(option.points) >= LEAST_POINTS]
    told: set[str] = set()
    contrasts = []
    for option in sorted(options, key=lambda option: (option.points < 0, -abs(option.points))):
        outcome = reads.get(option.column)
        about = "outcome" if outcome in OUTCOMES else option.column
        if option.column not in unfair and about not in told and _bears_out(option.contrast):
            contrasts.append(option.contrast)
            told.add(about)
    return contrasts[:MOST]


def contrast_words(contrasts: Sequence[Contrast]) -> str:
    """ "more often age 1 to 21 and race asian, less often site b"."""
    sides = []
    for way in ("more", "less"):
        texts = [contrast.text for contrast in contrasts if contrast.way == way]
        if texts:
            sides.append(f"{way} often {' and '.join(texts)}")
    return ", ".join(sides)


def _options(view: SliceView, context: Context) -> Iterator[_Option]:
    classes = view.explanation(Classes)
    if classes is not None and not view.in_class:
        for word, column, profile in (
            ("label", "label", classes.labels),
            ("predicted", "prediction", classes.predictions),
        ):
            if profile is not None:
                yield from _of_column(profile, column, word)
    metadata = view.explanation(Metadata)
    if metadata is not None:
        for profile in metadata.columns:
            yield from _of_column(profile, profile.column, None)
    if context.words is not None:
        yield from _of_words(view, context.words)


def _of_column(profile: ColumnProfile, column: str, word: str | None) -> Iterator[_Option]:
    """The values of a column; word: what goes before a class."""
    for row in profile.rows:
        value = "missing" if row.value is None else row.value
        text = f"{profile.column} {value}"
        if word is not None:
            text = class_words(word, row.value)
        way = "more" if row.search_points > 0 else "less"
        yield _Option(column, row.search_points, Contrast(text, row.slice, row.rest, way))


def _of_words(view: SliceView, words: Words) -> Iterator[_Option]:
    """The phrases whose shares differ most, beyond chance, on the rows that choose; counted on held-out rows."""
    evidence = phrase_evidence(view, words)
    points = np.where(evidence.sure, evidence.points, 0.0)
    order = np.argsort(-points, kind="stable")
    sides = (view.inside & view.measured, view.rest & view.measured)
    counts = [words.rows_with(side) for side in sides]
    totals = [int(np.count_nonzero(side)) for side in sides]
    for j in dict.fromkeys([*order[:MOST_WORDS].tolist(), *order[::-1][:MOST_WORDS].tolist()]):
        inside, outside = ((int(count[j]), total) for count, total in zip(counts, totals, strict=True))
        way = "more" if points[j] > 0 else "less"
        text = f"“{words.phrases[j]}”"
        yield _Option(text, float(points[j]), Contrast(text, inside, outside, way))


def _bears_out(contrast: Contrast) -> bool:
    inside = contrast.slice[0] / max(contrast.slice[1], 1)
    outside = contrast.rest[0] / max(contrast.rest[1], 1)
    points = 100 * (inside - outside)
    if contrast.way == "less":
        return contrast.rest[0] >= FEWEST and -points >= LEAST_POINTS
    return contrast.slice[0] >= FEWEST and points >= LEAST_POINTS
