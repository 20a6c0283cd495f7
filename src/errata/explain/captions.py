"""Captions of a failure direction (Jain et al. 2023, section 2.2), each measured on rows that were not searched.

A caption is scored by what it says beyond its class's reference caption: the difference of the two, standardised as
the rows are, along the direction. Positive is easy, negative is hard, as everywhere.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Self

import numpy as np

from ..core import Array, Captions, Evaluation, Explanation, Slice
from ..core.blocks import unit
from ..core.captions import nearest_share
from ..core.gaps import wilson
from .descriptions import retrieval, unit_products
from .tokens import WORD
from .view import View, description, outcome

MOST = 5  # on each side
ACROSS = 0.6  # of the way to another class's reference: halfway would leave out half of what names no class at all

Way = Literal["difference", "published"]


@dataclass(frozen=True, eq=False)
class Direction:
    """The arrays that a rule of kind "direction" names, handed over by whoever holds the slicer."""

    normal: Array  # (d,) of length one, in the standardised space, pointing to easy
    scale: Array  # (d,) infinite for a column that never varies
    centre: Array  # (d,)
    intercept: float

    @classmethod
    def of(cls, found: Slice, arrays: Mapping[str, Array]) -> Self:
        """arrays: what the slice's method has learnt, by name."""
        named, j = found.rule["arrays"], found.column
        return cls(
            arrays[named["direction"]][j], arrays[named["scale"]], arrays[named["centre"]],
            float(arrays[named["intercept"]][j]),
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class References:
    """What each class is called when nothing more is said of it."""

    rows: Array  # (k, d)
    said: tuple[str, ...]  # (k,) the caption, or what was taken in its place


def caption_scores(texts: Array, reference: Array, direction: Direction, way: Way = "difference") -> Array:
    """(m,) negative where a text (m, d) says something hard beyond the reference (d,).

    "published": the code also subtracts the mean of the pictures and adds the SVM's intercept, as if the difference
    of two texts were a picture.
    """
    beyond = texts - reference
    if way == "published":
        return unit((beyond - direction.centre) / direction.scale) @ direction.normal + direction.intercept
    return unit(beyond / direction.scale) @ direction.normal


def can_caption(found: Slice, captions: Captions) -> bool:
    """Whether a slice is one side of a direction in the space that the texts lie in."""
    rule = found.rule
    return rule.get("kind") == "direction" and rule["representation"] == captions.representation


def caption_slice(view: View, captions: Captions, direction: Direction, way: Way = "difference") -> Explanation:
    """The hardest and the easiest captions of a slice's class that do not name another class."""
    evaluation = view.evaluation
    own = int(next(iter(view.slice.rule["scope"].values())))
    texts = unit(captions.embeddings) if way == "difference" else np.asarray(captions.embeddings, dtype=np.float64)
    named = mentions(list(captions.texts), evaluation.class_names or ())
    references = _references(captions, texts, named, view)
    scores = caption_scores(texts, references.rows[own], direction, way)
    others, across = np.array([bool(found - {own}) for found in named]), _across(texts, references.rows, own)
    sides = _chosen(np.where(others | across, 0.0, scores))
    return Explanation(
        "captions",
        {
            "class": evaluation.class_name(own),
            "reference": references.said[own],
            "representation": captions.representation,
            "of": len(captions),
            "left_out": {"names": int(others.sum()), "nearer": int((across & ~others).sum())},
            "class_rate": _rate(evaluation, (view.inside | view.rest) & view.measured),
            **{side: _told(view, captions, texts, scores, side, rows) for side, rows in sides.items()},
            "chosen_on": "discover",
            "measured_on": "confirm",
        },
    )


def mentions(texts: Sequence[str], names: Sequence[str]) -> list[set[int]]:
    """For each text the classes that it names; of names within names, "truck" in "fire truck", the longest."""
    known = {words: j for j, name in enumerate(names) if (words := _words(name))}
    longest = max(map(len, known), default=0)
    return [_mentioned(_words(text), known, longest) for text in texts]


def _mentioned(words: tuple[str, ...], known: Mapping[tuple[str, ...], int], longest: int) -> set[int]:
    found, i = set(), 0
    while i < len(words):
        length = next((n for n in range(longest, 0, -1) if words[i : i + n] in known and i + n <= len(words)), 0)
        found |= {known[words[i : i + length]]} if length else set()
        i += length or 1
    return found


def _words(text: str) -> tuple[str, ...]:
    """Lower case, and without the s of a plural: crude, but the same on both sides."""
    return tuple(word.removesuffix("s") for word in re.findall(WORD, text.lower()))


def _references(captions: Captions, texts: Array, named: Sequence[set[int]], view: View) -> References:
    """The captions given as references; else the middle of those that name a class and no other, else of all."""
    k = view.evaluation.class_count
    if captions.references is not None and not view.slice.task:  # a label of many has no such list
        every = list(captions.texts)
        index = [every.index(text) for text in captions.references]
        return References(texts[index], tuple(captions.references))
    alone = [np.array([found == {j} for found in named]) for j in range(k)]
    rows = np.array([texts[mine if mine.any() else slice(None)].mean(axis=0) for mine in alone])
    said = [f"the mean of {mine.sum()} texts that name it" if mine.any() else "the mean of all texts" for mine in alone]
    return References(rows, tuple(said))


def _across(texts: Array, references: Array, own: int) -> Array:
    """(m,) bool: texts that lie beyond `ACROSS` of the way from their class's reference to another's."""
    ways = references - references[own]
    squares = np.square(ways).sum(axis=1)
    apart = squares > 1e-12
    shares = (texts - references[own]) @ ways[apart].T / squares[apart]
    crossed: Array = (shares > ACROSS).any(axis=1)
    return crossed


def _chosen(scores: Array) -> dict[str, Array]:
    """The most negative and the most positive, the first of equal ones first."""
    order = np.argsort(scores, kind="stable")
    back = np.argsort(-scores, kind="stable")
    return {"hard": order[scores[order] < 0][:MOST], "easy": back[scores[back] > 0][:MOST]}


def _told(view: View, captions: Captions, texts: Array, scores: Array, side: str, rows: Array) -> list[dict[str, Any]]:
    """Each caption with how well it retrieves the slice, and how often the rows that match it fail."""
    embeddings = view.evaluation.representations[captions.representation]
    cosines = unit_products(embeddings, unit(texts[rows]))
    among = view.measured & (view.inside | view.rest)
    return [
        {
            "text": captions.texts[j],
            "score": float(scores[j]),
            "retrieval": retrieval(view.inside, among, cosines[:, i]),
            "matches": _matches(view, cosines[:, i], side),
        }
        for i, j in enumerate(rows)
    ]


def _matches(view: View, cosines: Array, side: str) -> dict[str, Any]:
    """Rows of the class nearest to a caption: how near, discover rows decided; what happened, the others say."""
    assert view.evaluation.errors is not None
    among = view.searched & (view.inside | view.rest)
    bad = view.evaluation.errors if side == "hard" else ~view.evaluation.errors
    share, cut = nearest_share(cosines[among], bad[among])
    told = description(view, cosines >= cut)
    return {"share": share, "cosine": cut, **told, "interval": wilson(told["errors"], told["n"])}


def _rate(evaluation: Evaluation, rows: Array) -> dict[str, Any]:
    told = outcome(evaluation, rows)
    return {**told, "interval": wilson(told["errors"], told["n"])}
