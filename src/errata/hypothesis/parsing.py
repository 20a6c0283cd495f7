"""A hypothesis as it is written, and what it means: a condition on columns, words, or rows that are listed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.blocks import Array
from ..core.columns import TypedColumn
from ..core.errors import InputError
from ..core.evaluation import Evaluation
from ..core.words import WORD
from .columns import BUILT_IN, OUTCOME, column_names, read_column
from .grammar import Node, Parser, Predicate, is_condition, tokenize

MAX_CHARACTERS = 1000  # of a hypothesis


@dataclass(frozen=True)
class WordQuery:
    """Whole words that must all occur in a row's text; where rows have no text, in its metadata.

    Attributes
    ----------
    words : tuple of str
        In lower case, each once.
    """

    words: tuple[str, ...]

    def match_each(self, evaluation: Evaluation) -> Array:
        """(n, words) bool: which row has which word."""
        if evaluation.media is not None and evaluation.media.kind == "text":
            return np.array([self._words_in(evaluation.media.text(i) or "") for i in range(len(evaluation))])
        columns = text_columns(evaluation)
        if not columns:
            raise InputError(f"{_no_text(evaluation)} Write a condition, such as “column = value”.")
        matches = np.zeros((len(evaluation), len(self.words)), dtype=bool)
        for column in columns:
            distinct, position = np.unique(column.values, return_inverse=True)
            matches |= np.array([self._words_in(value) for value in distinct.tolist()])[position.ravel()]
        return matches

    def _words_in(self, text: str) -> list[bool]:
        lower = text.lower()
        if not any(word in lower for word in self.words):  # much quicker than splitting a text into words
            return [False] * len(self.words)
        present = set(re.findall(WORD, lower))
        return [word in present for word in self.words]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"op": "words", "words": list(self.words)}


@dataclass(frozen=True, eq=False)
class ListedRows:
    """Rows that a user lists, as a mask.

    Attributes
    ----------
    inside : array
        (n,) bool.
    """

    inside: Array

    def to_json(self) -> dict[str, Any]:
        """Plain JSON: how many there are."""
        return {"op": "rows", "n": int(self.inside.sum())}


@dataclass(frozen=True)
class ParsedHypothesis:
    """A parsed hypothesis.

    Attributes
    ----------
    text : str
        As it was written.
    meaning : WordQuery, ListedRows, Predicate, Not or Joined
        Which rows match.
    """

    text: str
    meaning: WordQuery | ListedRows | Node

    def mask(self, evaluation: Evaluation) -> Array:
        """(n,) bool: the rows that match."""
        if isinstance(self.meaning, WordQuery):
            return np.asarray(self.meaning.match_each(evaluation).all(axis=1))
        if isinstance(self.meaning, ListedRows):
            return self.meaning.inside
        return self.meaning.match_rows(evaluation).yes

    @property
    def predicates(self) -> tuple[Predicate, ...]:
        """The comparisons it consists of; none where it is words or rows."""
        if isinstance(self.meaning, WordQuery | ListedRows):
            return ()
        return self.meaning.predicates()

    @property
    def reads_outcome(self) -> bool:
        """Whether it reads both label and prediction, and so whether a row is wrong."""
        return set(OUTCOME) <= {predicate.column for predicate in self.predicates}

    def to_json(self) -> dict[str, Any]:
        """Plain JSON."""
        return {"text": self.text, **self.meaning.to_json()}


def parse(text: str, evaluation: Evaluation) -> ParsedHypothesis:
    """Read a hypothesis; an InputError of one sentence for each mistake.

    Parameters
    ----------
    text : str
        A condition on columns, such as `age > 60 and site = a`, or words.
    evaluation : Evaluation
        Its metadata, labels, predictions and ids are the columns that a condition may name.

    Examples
    --------
    >>> import errata, numpy as np
    >>> rows = errata.Evaluation(losses=np.zeros(3), metadata={"age": np.array([20, 40, 70])})
    >>> parse("age > 30", rows).mask(rows).tolist()
    [False, True, True]
    """
    text = text.strip()
    if len(text) > MAX_CHARACTERS:
        raise InputError(f"The hypothesis has {len(text):,} characters; at most {MAX_CHARACTERS:,} are read.")
    tokens = tokenize(text)
    if is_condition(tokens):
        return ParsedHypothesis(text, Parser(tokens, evaluation).parse())
    words = tuple(dict.fromkeys(re.findall(WORD, text.lower())))
    if not words:
        raise InputError("Nothing to test. Write words, or a condition, such as “column = value”.")
    return ParsedHypothesis(text, WordQuery(words))


def read_hypothesis(hypothesis: str | Array | ParsedHypothesis, evaluation: Evaluation) -> ParsedHypothesis:
    """A text, parsed; or rows, checked."""
    if isinstance(hypothesis, ParsedHypothesis):
        return hypothesis
    if isinstance(hypothesis, str):
        return parse(hypothesis, evaluation)
    inside = np.asarray(hypothesis)
    if inside.shape != (len(evaluation),) or inside.dtype != bool:
        raise InputError(
            f"a hypothesis is a text, or one true or false a row, shape ({len(evaluation)},); "
            f"got shape {inside.shape} of {inside.dtype}"
        )
    return ParsedHypothesis(f"{int(inside.sum()):,} rows of one’s own", ListedRows(inside))


def _no_text(evaluation: Evaluation) -> str:
    if evaluation.media is not None and evaluation.media.kind == "image":
        return "No column holds text to find words in, and to find words in images takes a text encoder."
    return "No row has text to find words in."


def text_columns(evaluation: Evaluation) -> list[TypedColumn]:
    """The metadata that words are looked for in."""
    columns = [read_column(evaluation, name) for name in column_names(evaluation) if name not in BUILT_IN]
    return [column for column in columns if isinstance(column, TypedColumn) and column.kind == "text"]
