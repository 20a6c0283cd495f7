"""Captions of a failure direction (Jain et al. 2023, section 2.2), each measured on held-out rows.

A caption is scored by the correlation, over the search rows of the class, between a row's nearness to it and the
direction's decision, less that of the class's reference caption: what looks like its class is easy, so that nearness
to any words for the class is. The paper's own score is what a caption says beyond that reference, standardised as the
rows are, along the direction: two texts stand there for rows, which lie elsewhere in the space. Positive is easy,
negative is hard, as everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Self

import numpy as np
from scipy.special import logit, ndtri

from ..core import Array, Captions, Slice
from ..core.blocks import Matrix, blocks, unit
from ..core.captions import CaptionScore, nearest_share
from ..core.gaps import wilson
from ..core.record import FLAT, Record, json_key
from ..core.words import WORD
from .context import Context
from .descriptions import Retrieval, retrieve, unit_products
from .kinds import SliceExplanation
from .view import MEASURED_ON, Match, Outcome, SliceView, measure_match, measure_outcome

MOST = 5  # on each side
ACROSS = 0.6  # of the way to another class's reference: halfway would leave out half of what names no class at all
MISSED = 0.05  # chance that an interval of any caption of a side misses: they are ordered by what was measured
ALIKE = 1e-12  # a spread below which all rows are equally near, or have one decision
LARGEST_LOGIT = 30.0  # of a weight that is 0 or 1 in double precision


@dataclass(frozen=True, eq=False)
class Direction:
    """The arrays that a rule of kind "direction" names, handed over by whoever holds the slicer."""

    normal: Array  # (d,) of length one, in the standardised space, pointing to easy
    scale: Array  # (d,) infinite for a column that never varies
    centre: Array  # (d,)
    intercept: float

    @classmethod
    def of(cls, slice_: Slice, arrays: Mapping[str, Array]) -> Self:
        """arrays: what the slice's method has fitted, by name."""
        names = slice_.rule["arrays"]
        return cls(
            normal=arrays[names["direction"]][slice_.column],
            scale=arrays[names["scale"]],
            centre=arrays[names["centre"]],
            intercept=float(arrays[names["intercept"]][slice_.column]),
        )


@dataclass(frozen=True, eq=False)
class References:
    """What each class is called when nothing more is said of it."""

    rows: Array  # (k, d)
    captions: tuple[str, ...]  # (k,) the caption, or what was taken in its place
    named: Array  # (k,) bool: false where no text names the class, and the mean of all texts was taken


@dataclass(frozen=True)
class LeftOut(Record):
    """How many captions were left out."""

    names: int  # they name another class
    nearer: int  # they lie nearer to another class that is named


@dataclass(frozen=True)
class ClassRate(Record):
    """What happens on all held-out rows of the class."""

    outcome: Outcome = field(metadata=FLAT)
    interval: tuple[float, float]  # Wilson, 95%


@dataclass(frozen=True)
class CaptionMatches(Record):
    """The rows of the class that are nearest to a caption."""

    share: float  # of the class's search rows
    cosine: float  # so near or nearer
    match: Match = field(metadata=FLAT)
    interval: tuple[float, float]  # of their error rate: Wilson, 95% over all captions of its side


@dataclass(frozen=True)
class CaptionRow(Record):
    """A caption, its score, and what was measured of it."""

    text: str
    score: float
    retrieval: Retrieval
    matches: CaptionMatches


@dataclass(frozen=True)
class DirectionCaptions(SliceExplanation):
    """The hardest and the easiest captions of a direction, by their score; in the order of the measured error."""

    kind = "captions"
    needs = frozenset({"texts", "arrays"})

    class_name: str = field(metadata=json_key("class"))
    reference: str  # the caption of the class alone
    representation: str
    total: int = field(metadata=json_key("of"))  # captions to choose from
    left_out: LeftOut
    class_rate: ClassRate
    hard: tuple[CaptionRow, ...]
    easy: tuple[CaptionRow, ...]
    chosen_on: str
    measured_on: str
    scored_by: str = "difference"  # "correlation", "difference" or "published"; audits of version 0.3 did not say

    @classmethod
    def explain(cls, view: SliceView, context: Context) -> DirectionCaptions | None:
        """None where the slice is no direction in the space that the texts lie in."""
        rule = view.slice.rule
        assert context.texts is not None
        # A direction of `multiaccuracy` names no arrays: it is a score over many columns, not a normal of this space.
        if view.slice.slicer not in context.arrays or rule.get("kind") != "direction" or "arrays" not in rule:
            return None
        if rule["representation"] != context.texts.representation:
            return None
        return caption_slice(view, context.texts, Direction.of(view.slice, context.arrays[view.slice.slicer]))


def caption_slice(view: SliceView, captions: Captions, direction: Direction) -> DirectionCaptions:
    """The hardest and the easiest captions of a slice's class that do not name another class."""
    evaluation = view.evaluation
    own = int(next(iter(view.slice.rule["scope"].values())))
    if captions.score == "published":
        texts = np.asarray(captions.embeddings, dtype=np.float64)
    else:
        texts = unit(captions.embeddings)
    named = mentions(list(captions.texts), evaluation.class_names or ())
    references = _references(captions, texts, named, view)
    if captions.score == "correlation":
        embeddings = evaluation.representations[captions.representation]
        among = (view.inside | view.rest) & view.searched
        both = np.vstack([references.rows[own : own + 1], texts])
        correlations = correlation_scores(both, embeddings, among, decisions(view.slice))
        scores = correlations[1:] - correlations[0]
    else:
        scores = caption_scores(texts, references.rows[own], direction, captions.score)
    others = np.array([bool(classes - {own}) for classes in named])
    across = _across(texts, references, own)
    allowed = np.where(others | across, 0.0, scores)
    whole = measure_outcome(evaluation, (view.inside | view.rest) & view.measured)
    return DirectionCaptions(
        class_name=evaluation.class_name(own),
        reference=references.captions[own],
        representation=captions.representation,
        total=len(captions),
        left_out=LeftOut(int(others.sum()), int((across & ~others).sum())),
        class_rate=ClassRate(whole, _interval(whole)),
        hard=_caption_rows(view, captions, texts, allowed, "hard"),
        easy=_caption_rows(view, captions, texts, allowed, "easy"),
        chosen_on="discover",
        measured_on=MEASURED_ON,
        scored_by=captions.score,
    )


def caption_scores(texts: Array, reference: Array, direction: Direction, score: CaptionScore = "difference") -> Array:
    """(m,) negative where a text (m, d) says something hard beyond the reference (d,): the paper's score.

    score: "published" does as the published code, which also subtracts the mean of the images and adds the SVM's
    intercept, as if the difference of two texts were an image.
    """
    beyond = texts - reference
    if score == "published":
        return unit((beyond - direction.centre) / direction.scale) @ direction.normal + direction.intercept
    return unit(beyond / direction.scale) @ direction.normal


def correlation_scores(texts: Array, embeddings: Matrix, rows: Array, decision: Array) -> Array:
    """(m,) correlation over some rows ((n,) bool) between their cosine to a text (m, d) and their decision (n,).

    Negative where rows near to a text lie on the hard side; 0 where all are equally near.
    """
    count = np.count_nonzero(rows)
    mean = sum(unit(block[rows[at]]).sum(axis=0) for at, block in blocks(embeddings)) / count
    aside = decision - decision[rows].mean()
    squares = np.zeros(len(texts))
    products = np.zeros(len(texts))
    for at, block in blocks(embeddings):
        cosines = (unit(block[rows[at]]) - mean) @ texts.T
        squares += np.square(cosines).sum(axis=0)
        products += aside[at][rows[at]] @ cosines
    spread = np.sqrt(squares * np.square(aside[rows]).sum())
    correlation: Array = np.where(spread > ALIKE * count, products / np.where(spread > 0, spread, 1.0), 0.0)
    return correlation


def decisions(slice_: Slice) -> Array:
    """(n,) a direction's decision for each row, in units of its own: its weight falls with it, as a logistic curve."""
    decision: Array = -np.clip(logit(slice_.weights), -LARGEST_LOGIT, LARGEST_LOGIT)
    return decision


def mentions(texts: Sequence[str], names: Sequence[str]) -> list[set[int]]:
    """For each text the classes that it names; of names within names, "truck" in "fire truck", the longest."""
    known = {words: j for j, name in enumerate(names) if (words := _words(name))}
    longest = max(map(len, known), default=0)
    return [_mentioned(_words(text), known, longest) for text in texts]


def _mentioned(words: tuple[str, ...], known: Mapping[tuple[str, ...], int], longest: int) -> set[int]:
    classes = set()
    i = 0
    while i < len(words):
        length = next((n for n in range(longest, 0, -1) if words[i : i + n] in known and i + n <= len(words)), 0)
        if length:
            classes.add(known[words[i : i + length]])
        i += length or 1
    return classes


def _words(text: str) -> tuple[str, ...]:
    """Lower case, and without the s of a plural: crude, but the same on both sides."""
    return tuple(word.removesuffix("s") for word in re.findall(WORD, text.lower()))


def _references(captions: Captions, texts: Array, named: Sequence[set[int]], view: SliceView) -> References:
    """The captions that are references; else the mean of those that name a class and no other, else of all."""
    if captions.references is not None and not view.slice.task:  # a label of many has no such list
        every = list(captions.texts)
        index = [every.index(text) for text in captions.references]
        return References(texts[index], tuple(captions.references), np.ones(len(index), dtype=bool))
    rows = []
    words = []
    is_named = []
    for j in range(view.evaluation.class_count):
        mine = np.array([classes == {j} for classes in named])
        is_named.append(bool(mine.any()))
        if is_named[-1]:
            rows.append(texts[mine].mean(axis=0))
            words.append(f"the mean of {mine.sum()} texts that name it")
        else:
            rows.append(texts.mean(axis=0))
            words.append("the mean of all texts")
    return References(np.array(rows), tuple(words), np.array(is_named))


def _across(texts: Array, references: References, own: int) -> Array:
    """(m,) bool: texts that lie beyond `ACROSS` of the way from their class's reference to that of a named class.

    A class that no text names has the mean of all texts, to which most of them are near.
    """
    ways = references.rows - references.rows[own]
    squares = np.square(ways).sum(axis=1)
    apart = (squares > 1e-12) & references.named
    shares = (texts - references.rows[own]) @ ways[apart].T / squares[apart]
    crossed: Array = (shares > ACROSS).any(axis=1)
    return crossed


def _caption_rows(
    view: SliceView, captions: Captions, texts: Array, scores: Array, side: str
) -> tuple[CaptionRow, ...]:
    """The captions farthest on one side, each with how well it retrieves the slice, and how often its rows fail."""
    sign = -1 if side == "hard" else 1
    order = np.argsort(-sign * scores, kind="stable")  # of equal ones the first first
    chosen = order[sign * scores[order] > 0][:MOST]
    embeddings = view.evaluation.representations[captions.representation]
    cosines = unit_products(embeddings, unit(texts[chosen]))
    among = view.measured & (view.inside | view.rest)
    rows = [
        CaptionRow(
            text=captions.texts[j],
            score=float(scores[j]),
            retrieval=retrieve(view.inside, among, cosines[:, i]),
            matches=_matches(view, cosines[:, i], side, len(chosen)),
        )
        for i, j in enumerate(chosen)
    ]
    return tuple(sorted(rows, key=lambda row: _measured_order(row.matches, side)))


def _measured_order(matches: CaptionMatches, side: str) -> float:
    """The end of the interval that is nearer to the class: few rows prove little. Small comes first."""
    return -matches.interval[0] if side == "hard" else matches.interval[1]


def _matches(view: SliceView, cosines: Array, side: str, captions: int) -> CaptionMatches:
    """Rows of the class nearest to a caption: search rows decide how near, held-out rows say what happened."""
    assert view.evaluation.errors is not None
    among = view.searched & (view.inside | view.rest)
    bad = view.evaluation.errors if side == "hard" else ~view.evaluation.errors
    share, cut = nearest_share(cosines[among], bad[among])
    match = measure_match(view, cosines >= cut)
    return CaptionMatches(share, cut, match, _interval(match.outcome, captions))


def _interval(outcome: Outcome, among: int = 1) -> tuple[float, float]:
    """Of an error rate: 95%, over so many rates together."""
    assert outcome.errors is not None
    return wilson(outcome.errors, outcome.n, float(ndtri(1 - MISSED / 2 / among)))
