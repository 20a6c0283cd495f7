"""Which words a slice has more of than the whole (Spotlight, figure 4)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import CountVectorizer

from ..core import Array, Explanation, Media
from .view import View, description, ratio

WORD = r"[^\W_]+(?:['’][^\W_]+)*"  # letters and digits of any script; "don't" is one word
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


def token_profile(view: View, words: Words) -> Explanation:
    """The words chosen on searched rows, measured on the others, and the mean length in tokens."""
    everywhere = view.inside | view.rest
    found = _sums(words, view.inside & view.chosen)
    relative = relative_frequency(found, _sums(words, everywhere & view.chosen))
    held_out, whole = _sums(words, view.inside & view.measured), _sums(words, everywhere & view.measured)
    measured = relative_frequency(held_out, whole)
    rows = [
        {
            "token": str(words.vocabulary[j]),
            "found_relative": float(relative[j]),
            "relative": float(measured[j]),
            "slice_tokens": [int(held_out[j]), int(held_out.sum())],
            "whole_tokens": [int(whole[j]), int(whole.sum())],
            **description(view, words.with_any([str(words.vocabulary[j])])),
        }
        for j in _choose(view, words, found, relative)
    ]
    return Explanation("tokens", {**view.roles, "minimum": FEWEST, "rows": rows, "length": _length(view, words)})


def _sums(words: Words, rows: Array) -> Array:
    """(words,) occurrences in some rows ((n,) bool)."""
    sums: Array = np.asarray(words.counts[np.flatnonzero(rows)].sum(axis=0)).ravel()
    return sums


def _choose(view: View, words: Words, found: Array, relative: Array) -> list[int]:
    """The words with the largest relative frequency; of equal ones the more frequent, then the alphabet."""
    in_rows = np.asarray((words.counts[np.flatnonzero(view.inside & view.chosen)] > 0).sum(axis=0)).ravel()
    candidates = np.flatnonzero((found >= FEWEST) & (in_rows >= FEWEST_ROWS) & (relative > 1))
    order = np.lexsort((candidates, -found[candidates], -relative[candidates]))
    return [int(j) for j in candidates[order][:MOST]]


def _length(view: View, words: Words) -> dict[str, Any]:
    """Mean length in tokens, of members and of the rest."""
    members, rest = view.inside & view.measured, view.rest & view.measured
    n, rest_n = int(np.count_nonzero(members)), int(np.count_nonzero(rest))
    return {
        "slice": ratio(words.lengths[members].sum(), n),
        "slice_n": n,
        "rest": ratio(words.lengths[rest].sum(), rest_n),
        "rest_n": rest_n,
    }
