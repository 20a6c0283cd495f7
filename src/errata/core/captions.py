"""Texts that slices may be described by, in a space that they share with the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from . import validate
from .blocks import Array
from .errors import InputError
from .evaluation import Evaluation

SHARES = (0.05, 0.1, 0.2, 0.3, 0.5)  # of the rows that may count as near to words


@dataclass(frozen=True, eq=False)
class Captions:
    """Candidate texts, embedded by the encoder that made the representation of this name (CLIP's, for instance)."""

    texts: Sequence[str] | Array  # (m,); a tuple once built
    embeddings: Array  # (m, d)
    representation: str
    references: Sequence[str] | Array | None = None  # (k,) of the texts: the plainest of each class, "a photo of a dog"

    def __post_init__(self) -> None:
        texts = _checked_texts(self.texts)
        embeddings: Any = validate.as_array("embeddings", self.embeddings)
        if embeddings.ndim != 2 or len(embeddings) != len(texts):
            raise InputError(
                f"`embeddings` of the texts must have shape ({len(texts)}, d), one row a text; got {embeddings.shape}"
            )
        validate.representation("embeddings", embeddings, len(texts))
        object.__setattr__(self, "texts", texts)
        object.__setattr__(self, "references", _checked_references(self.references, texts))
        object.__setattr__(self, "embeddings", embeddings)

    def __len__(self) -> int:
        return len(self.texts)

    def check_with(self, evaluation: Evaluation) -> None:
        """The evaluation has classes to compare a slice with, and the representation, of as many columns."""
        if evaluation.task not in ("classification", "multilabel"):
            raise InputError(
                f"texts describe a slice beside its class; got rows without classes (task `{evaluation.task}`); "
                "leave the texts out"
            )
        name = evaluation.representation(self.representation, "a description by texts")
        d, got = evaluation.representations[name].shape[1], self.embeddings.shape[1]
        if d != got:
            raise InputError(
                f"the texts have {got} columns where `embedding:{name}` has {d}; embed both with the same model"
            )
        k = evaluation.class_count
        if self.references is not None and len(self.references) != k:
            got = len(self.references)
            raise InputError(f"`references` has {got} texts where there are {k} classes; give one a class")


def _checked_texts(given: Any) -> tuple[str, ...]:
    if np.ndim(given) != 1:
        raise InputError("`texts` must be a list of texts, shape (m,); got " + _kind(given))
    texts = tuple(given.tolist() if isinstance(given, np.ndarray) else given)
    if not texts:
        raise InputError("`texts` is empty; give at least one")
    for j, text in enumerate(texts):
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"`texts` must hold words; got {text!r} at row {j}; drop it")
    return texts


def _checked_references(given: Any, texts: tuple[str, ...]) -> tuple[str, ...] | None:
    if given is None:
        return None
    references = _checked_texts(given)
    missing = [text for text in references if text not in set(texts)]
    if missing:
        raise InputError(f"`references` must be among the texts, which {missing[0]!r} is not; add it to them")
    return references


def _kind(given: Any) -> str:
    return f"the text {given!r}" if isinstance(given, str) else f"shape {np.shape(given)}"


def nearest_share(similarity: Array, bad: Array) -> tuple[float, float]:
    """The share of rows, and the similarity that they reach, with the largest sqrt(n) (rate - rate of all): neither
    a few rows that happen to be bad, nor so many that they are like all."""
    order = np.argsort(-similarity, kind="stable")
    counts = np.array([max(1, round(share * len(order))) for share in SHARES])
    beyond = np.cumsum(bad[order] - bad.mean())[counts - 1] / np.sqrt(counts)
    best = int(np.argmax(beyond))
    return SHARES[best], float(similarity[order[counts[best] - 1]])
