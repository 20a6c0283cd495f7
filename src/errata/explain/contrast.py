"""What the members of a slice have most more of than the rest: said where no short description fits."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..core.record import Record
from .candidates import class_words
from .classes import Classes
from .metadata import Metadata
from .profile import ColumnProfile
from .tokens import Tokens
from .view import SliceView

LEAST_POINTS = 10.0  # on search rows: less is hardly telling
FEWEST = 5  # held-out members with it


@dataclass(frozen=True)
class Contrast(Record):
    """A value or a word, and how many held-out members and others have it."""

    text: str
    slice: tuple[int, int]  # members that have it, of all
    rest: tuple[int, int]  # others that have it, of all


@dataclass(frozen=True)
class _Option:
    points: float  # on search rows
    contrast: Contrast


def most_telling(view: SliceView) -> Contrast | None:
    """The value or word that members have most more of on search rows, and more of on held-out rows too."""
    options = [option for option in _options(view) if option.points >= LEAST_POINTS]
    for option in sorted(options, key=lambda option: -option.points):
        if _bears_out(option.contrast):
            return option.contrast
    return None


def _options(view: SliceView) -> Iterator[_Option]:
    classes = view.explanation(Classes)
    if classes is not None and not view.in_class:
        for word, profile in (("label", classes.labels), ("predicted", classes.predictions)):
            if profile is not None:
                yield from _of_column(profile, word)
    metadata = view.explanation(Metadata)
    if metadata is not None:
        for profile in metadata.columns:
            yield from _of_column(profile, None)
    tokens = view.explanation(Tokens)
    if tokens is not None:
        yield from _of_words(view, tokens)


def _of_column(profile: ColumnProfile, word: str | None) -> Iterator[_Option]:
    """The values of a column; word: what goes before a class."""
    for row in profile.rows:
        value = "missing" if row.value is None else row.value
        text = f"{profile.column} {value}"
        if word is not None:
            text = class_words(word, row.value)
        yield _Option(row.search_points, Contrast(text, row.slice, row.rest))


def _of_words(view: SliceView, tokens: Tokens) -> Iterator[_Option]:
    """Words after all values, in the order of the search rows."""
    rest_n = int((view.rest & view.measured).sum())
    for row in tokens.rows:
        elsewhere = row.match.precise[1] - row.match.precise[0]
        yield _Option(LEAST_POINTS, Contrast(f"“{row.token}”", row.match.covers, (elsewhere, rest_n)))


def _bears_out(contrast: Contrast) -> bool:
    inside = contrast.slice[0] / max(contrast.slice[1], 1)
    outside = contrast.rest[0] / max(contrast.rest[1], 1)
    return contrast.slice[0] >= FEWEST and 100 * (inside - outside) >= LEAST_POINTS
