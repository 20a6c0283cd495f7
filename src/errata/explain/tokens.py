"""Which words a slice has more of than the whole (Spotlight, figure 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from ..core import Array, Media
from ..core.record import FLAT, Record, json_key
from ..core.words import WORD
from .kinds import SliceExplanation
from .view import MEASURED_ON, Match, SliceView, measure_match, ratio

if TYPE_CHECKING:
    from .context import Context

MOST = 10
FEWEST = 5  # times in the slice
FEWEST_ROWS = 3  # of the slice: one long text that repeats a name is not a pattern


@dataclass(frozen=True, eq=False)
class Words:
    """How often each word stands in each row; counted once for all slices."""

    vocabulary: Array  # (words,) str, sorted
    counts: sparse.csr_matrix  # (n, words)
    lengths: Array  # (n,) tokens

    def with_any(self, words: list[str]) -> Array:
        """(n,) bool: rows that have at least one of the words."""
        columns = np.searchsorted(self.vocabulary, words)
        rows: Array = np.asarray(self.counts[:, columns].sum(axis=1)).ravel() > 0
        return rows

    def rows_with(self, rows: Array) -> Array:
        """(words,) how many of some rows ((n,) bool) have each word."""
        counts: Array = np.bincount(
            self.counts[np.flatnonzero(rows)].indices, minlength=len(self.vocabulary)
        )  # a word stands once in the indices of a row
        return counts

    def presence(self, rows: Array, words: Sequence[str]) -> Array:
        """(rows, words) bool: which of some rows, by their numbers, has which word."""
        columns = np.searchsorted(self.vocabulary, words)
        present: Array = (self.counts[rows][:, columns] > 0).toarray()
        return present


def count_words(media: Media) -> Words | None:
    """None where there is no text, or no word in it."""
    if media.kind != "text":
        return None
    counter = CountVectorizer(token_pattern=WORD, lowercase=True)
    try:
        counts = counter.fit_transform(media.text(i) or "" for i in range(len(media)))
    except ValueError:  # its way of saying that there is no word at all
        return None
    lengths = np.asarray(counts.sum(axis=1)).ravel()
    return Words(np.asarray(counter.get_feature_names_out(), dtype=str), sparse.csr_matrix(counts), lengths)


def relative_frequency(in_slice: Array, in_all: Array) -> Array:
    """(words,) times more frequent in the slice than in the whole, from counts.

    One is added to the count seen and to the count expected: a word seen five times where 0.1
    were expected says less than one seen a hundred times where two were.
    """
    expected = in_all * (in_slice.sum() / max(in_all.sum(), 1))
    relative: Array = (in_slice + 1) / (expected + 1)
    return relative


@dataclass(frozen=True)
class TokenRow(Record):
    """A word: how many times more frequent it is in the slice, and how well it describes the slice."""

    token: str
    search_relative: float = field(metadata=json_key("found_relative"))  # on the rows that choose
    relative: float  # on held-out rows
    slice_tokens: tuple[int, int]
    whole_tokens: tuple[int, int]
    match: Match = field(metadata=FLAT)


@dataclass(frozen=True)
class Lengths(Record):
    """Mean length in tokens, of members and of the rest."""

    slice: float | None
    slice_n: int
    rest: float | None
    rest_n: int


@dataclass(frozen=True)
class Tokens(SliceExplanation):
    """Words that the slice has more of, and the mean length of its texts."""

    kind = "tokens"
    needs = frozenset({"words"})

    chosen_on: str
    measured_on: str
    minimum: int  # times that a word must occur in the slice
    rows: tuple[TokenRow, ...]
    length: Lengths

    @classmethod
    def explain(cls, view: SliceView, context: Context) -> Self:
        """The words chosen on searched rows, measured on the others."""
        words = context.words
        assert words is not None
        everywhere = view.inside | view.rest
        counts = _sums(words, view.inside & view.chosen)
        relative = relative_frequency(counts, _sums(words, everywhere & view.chosen))
        held_out = _sums(words, view.inside & view.measured)
        whole = _sums(words, everywhere & view.measured)
        measured = relative_frequency(held_out, whole)
        rows = [
            TokenRow(
                token=str(words.vocabulary[j]),
                search_relative=float(relative[j]),
                relative=float(measured[j]),
                slice_tokens=(int(held_out[j]), int(held_out.sum())),
                whole_tokens=(int(whole[j]), int(whole.sum())),
                match=measure_match(view, words.with_any([str(words.vocabulary[j])])),
            )
            for j in _choose(view, words, counts, relative)
        ]
        return cls(view.chosen_on, MEASURED_ON, FEWEST, tuple(rows), _lengths(view, words))


def _sums(words: Words, rows: Array) -> Array:
    """(words,) occurrences in some rows ((n,) bool)."""
    sums: Array = np.asarray(words.counts[np.flatnonzero(rows)].sum(axis=0)).ravel()
    return sums


def _choose(view: SliceView, words: Words, counts: Array, relative: Array) -> list[int]:
    """The words with the largest relative frequency; of equal ones the more frequent, then the alphabet."""
    in_rows = np.asarray((words.counts[np.flatnonzero(view.inside & view.chosen)] > 0).sum(axis=0)).ravel()
    candidates = np.flatnonzero((counts >= FEWEST) & (in_rows >= FEWEST_ROWS) & (relative > 1))
    order = np.lexsort((candidates, -counts[candidates], -relative[candidates]))
    return [int(j) for j in candidates[order][:MOST]]


def _lengths(view: SliceView, words: Words) -> Lengths:
    members = view.inside & view.measured
    rest = view.rest & view.measured
    n = int(np.count_nonzero(members))
    rest_n = int(np.count_nonzero(rest))
    return Lengths(ratio(words.lengths[members].sum(), n), n, ratio(words.lengths[rest].sum(), rest_n), rest_n)
