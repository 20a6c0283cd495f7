"""Candidate texts that describe slices, embedded in the same space as the rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np

from . import validate
from .blocks import Array
from .errors import InputError, unknown
from .evaluation import Evaluation

CaptionScore = Literal["correlation", "difference", "published"]
SHARES = (0.05, 0.1, 0.2, 0.3, 0.5)  # of the rows that may count as near to words


@dataclass(frozen=True, eq=False)
class Captions:
    """Candidate texts that may describe a slice.

    Parameters
    ----------
    texts : sequence of str
        (m,), such as "a photo of a dog at night".
    embeddings : array
        (m, d), by the encoder of `representation`.
    representation : str
        The name of the evaluation's representation in the same space, such as CLIP's of the images.
    references : sequence of str, optional
        (k,) of the texts: the plainest of each class, such as "a photo of a dog".
    score : {"correlation", "difference", "published"}
        What the captions of a failure direction are chosen by: the correlation between nearness to the caption and
        the direction's decision, less that of the reference; the paper's (caption - reference) along the direction;
        or as the paper's code.

    Examples
    --------
    >>> import errata, numpy as np
    >>> captions = errata.Captions(["a dog", "a dog at night"], np.eye(2), "clip", references=["a dog"])
    >>> len(captions)
    2
    """

    texts: Sequence[str] | Array
    embeddings: Array
    representation: str
    references: Sequence[str] | Array | None = None
    score: CaptionScore = "correlation"

    def __post_init__(self) -> None:
        if self.score not in get_args(CaptionScore):
            raise unknown("score of captions", self.score, get_args(CaptionScore))
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
        """Raise where the evaluation has no classes, or not the representation with as many columns."""
        if evaluation.task not in ("classification", "multilabel"):
            raise InputError(
                f"texts describe a slice beside its class; got rows without classes (task `{evaluation.task}`); "
                "leave the texts out"
            )
        self.check_space(evaluation)
        k = evaluation.class_count
        if self.references is not None and len(self.references) != k:
            raise InputError(
                f"`references` has {len(self.references)} texts where there are {k} classes; give one a class"
            )

    def check_space(self, evaluation: Evaluation) -> None:
        """Raise where the rows do not have the representation with as many columns."""
        name = evaluation.representation(self.representation, "a description by texts")
        d = evaluation.representations[name].shape[1]
        if self.embeddings.shape[1] != d:
            raise InputError(
                f"the texts have {self.embeddings.shape[1]} columns where `embedding:{name}` has {d}; "
                "embed both with the same model"
            )


def check_captions(texts: Any) -> None:
    """Raise for what is no `Captions`, such as the path of a file of them."""
    if not isinstance(texts, Captions):
        raise InputError(f"`texts` must be errata.Captions; got {texts!r}; read a file with errata.inputs.read_texts")


def _checked_texts(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        raise InputError(f"`texts` must be a list of texts, shape (m,); got the text {value!r}")
    if np.ndim(value) != 1:
        raise InputError(f"`texts` must be a list of texts, shape (m,); got shape {np.shape(value)}")
    if isinstance(value, np.ndarray):
        value = value.tolist()
    texts = tuple(value)
    if not texts:
        raise InputError("`texts` is empty; give at least one")
    for j, text in enumerate(texts):
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"`texts` must hold words; got {text!r} at row {j}; drop it")
    return texts


def _checked_references(value: Any, texts: tuple[str, ...]) -> tuple[str, ...] | None:
    if value is None:
        return None
    references = _checked_texts(value)
    missing = [text for text in references if text not in set(texts)]
    if missing:
        raise InputError(f"`references` must be among the texts, which {missing[0]!r} is not; add it to them")
    return references


def nearest_share(similarity: Array, bad: Array) -> tuple[float, float]:
    """The share of rows that counts as near to words, and the least similarity of these rows.

    It is the share with the largest sqrt(n) (rate - rate of all): neither a few rows that happen to be bad, nor so
    many that they are like all.

    Parameters
    ----------
    similarity : array
        (n,) of search rows, larger is nearer.
    bad : array
        (n,) 0/1 outcomes.
    """
    order = np.argsort(-similarity, kind="stable")
    counts = np.array([max(1, round(share * len(order))) for share in SHARES])
    excess = np.cumsum(bad[order] - bad.mean())[counts - 1] / np.sqrt(counts)
    best = int(np.argmax(excess))
    return SHARES[best], float(similarity[order[counts[best] - 1]])
