"""How often a model is right about drawn images: along a direction, or by kind of caption (Jain et al. 2023).

Each row of a table is a single rate with its own interval (Wilson, 95%). Images of one number start from the same
noise in every row, so rows may be compared. What was drawn is taken to show its class; nobody has checked.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core import Array, InputError, Progress, silent
from ..core.gaps import wilson
from .direction import Side, walk
from .images import decode, draw_captions

ALPHAS = (0.05, 0.1, 0.2, 0.3)
IMAGES = 100  # of a class in each row, as in the paper
SIDES: tuple[Side, Side] = ("hard", "easy")

Classify = Callable[[Array], Any]  # images (b, h, w, 3) uint8 -> predicted classes (b,)
Job = tuple[str, float | None, Sequence[Any] | Array]  # kind, alpha, and what to draw for each class
Draw = Callable[[Any, Progress], Array]  # what to draw, and its progress -> images


@dataclass(frozen=True)
class Accuracy:
    """One row of a table: how many of the drawn images got the class they were drawn for."""

    kind: str  # "hard", "easy", "reference", or what the user called the captions
    alpha: float | None  # None for captions
    n: int
    correct: int
    by_class: Mapping[int, tuple[int, int]]  # class -> correct, n

    @property
    def accuracy(self) -> float:
        """The share of images that got their class."""
        return self.correct / self.n

    @property
    def interval(self) -> tuple[float, float]:
        """Of the accuracy: Wilson, 95%."""
        return wilson(self.correct, self.n)


def alpha_study(
    references: Array,
    normals: Array,
    pipeline: Any,
    classify: Classify,
    labels: Sequence[int] | Array,
    *,
    alphas: Sequence[float] = ALPHAS,
    per_class: int = IMAGES,
    progress: Progress = silent,
    **drawing: Any,
) -> tuple[Accuracy, ...]:
    """Accuracy on decoded images: the references first, then every alpha of the hard and of the easy side.

    references, normals: (c, d), of each class its caption's embedding and its direction, both in the decoder's own
    space (`normal_of`). labels: (c,) the classes. drawing: what `decode` takes by name, `seed` and `length` for two.
    """
    starts = np.asarray(references)
    directions = np.asarray(normals)
    classes = _checked_classes(labels)
    if starts.ndim != 2 or starts.shape != directions.shape or len(starts) != len(classes):
        raise InputError(
            f"`references` and `normals` must both have shape ({len(classes)}, d), a row for each of `labels`; "
            f"got {starts.shape} and {directions.shape}"
        )
    pairs = list(zip(starts, directions, strict=True))
    turned = {side: np.stack([walk(*pair, (0.0, *alphas), side) for pair in pairs]) for side in SIDES}  # (c, 1 + a, d)
    jobs: list[Job] = [("reference", 0.0, turned["hard"][:, 0])]
    jobs += [(side, float(alpha), turned[side][:, a]) for side in SIDES for a, alpha in enumerate(alphas, start=1)]

    def draw(row: Array, progress: Progress) -> Array:
        return decode(row[None], pipeline, per_embedding=per_class, progress=progress, **drawing)

    return _table(jobs, draw, classify, classes, progress)


def caption_study(
    captions: Mapping[str, Sequence[str]],
    pipeline: Any,
    classify: Classify,
    labels: Sequence[int] | Array,
    *,
    per_class: int = IMAGES,
    progress: Progress = silent,
    **drawing: Any,
) -> tuple[Accuracy, ...]:
    """Accuracy on images drawn from captions, a row for each kind of them.

    captions: of each kind a text for every class, {"hard": [...], "easy": [...], "reference": [...]} for one. labels:
    (c,) the classes. drawing: what `draw_captions` takes by name, `seed` and `steps` for two.
    """
    classes = _checked_classes(labels)
    if not captions:
        raise InputError("`captions` is empty; give at least one kind")
    for kind, texts in captions.items():
        if isinstance(texts, str) or len(texts) != len(classes):
            got = "one text" if isinstance(texts, str) else f"{len(texts)} texts"
            raise InputError(f"`captions[{kind!r}]` must hold a text for each of {len(classes)} labels; got {got}")
    jobs: list[Job] = [(kind, None, texts) for kind, texts in captions.items()]

    def draw(text: str, progress: Progress) -> Array:
        return draw_captions([text], pipeline, per_class, progress=progress, **drawing)

    return _table(jobs, draw, classify, classes, progress)


def _table(
    jobs: Sequence[Job], draw: Draw, classify: Classify, classes: list[int], progress: Progress
) -> tuple[Accuracy, ...]:
    """Draws and classifies the images of one class at a time: a row of a table may not fit in memory."""
    table = []
    parts = len(jobs) * len(classes)  # each takes as long as any other
    done = 0

    def report_part(stage: str, share: float) -> None:
        progress(stage, (done + share) / parts)

    for kind, alpha, whats in jobs:
        counts = dict.fromkeys(classes, (0, 0))  # a class may stand there twice, with two directions
        for what, label in zip(whats, classes, strict=True):
            images = draw(what, report_part)
            correct, n = counts[label]
            counts[label] = (correct + _count_correct(classify(images), len(images), label), n + len(images))
            done += 1
        totals = [sum(column) for column in zip(*counts.values(), strict=True)]
        table.append(Accuracy(kind, alpha, n=totals[1], correct=totals[0], by_class=counts))
    return tuple(table)


def _count_correct(predictions: Any, n: int, label: int) -> int:
    classes = np.asarray(predictions)
    if classes.shape != (n,):
        raise InputError(f"`classify` must give a class for each image, shape ({n},); got shape {classes.shape}")
    return int((classes == label).sum())


def _checked_classes(labels: Sequence[int] | Array) -> list[int]:
    classes = np.asarray(labels)
    if classes.ndim != 1 or not len(classes) or not np.issubdtype(classes.dtype, np.integer):
        raise InputError(f"`labels` must be a list of class indices, at least one; got {labels!r}")
    return [int(label) for label in classes]
