"""Whether pixels reach a classifier as it was trained: an error where it does far better on the same images by another
usual normalisation than by the given one, a note where it does a little better. A weak classifier is weak by all."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from ..core import Array, InputError
from ..tensors import Prepare, is_out_of_memory
from .identify import Classifier, predict_classes

FAR_BETTER = 0.1  # of accuracy by which another normalisation must be better for an error,
BETTER = 0.02  # and for a note; less than that is as well as another,
ODDS = 2.0  # times which it must raise the odds of being right,
ERRORS = 2.0  # and standard errors of the accuracy


def check_normalisation(
    classifier: Classifier, images: Array, labels: Array, device: torch.device | str | None = None
) -> str:
    """Raise where another normalisation is far better on training images (n, h, w, c) with classes (n,).

    Returns what to tell where one is a little better; "" where none is.
    """
    accuracy = _accuracy(classifier, images, labels, device)
    tried: list[tuple[float, str, str]] = []
    for name, cure, prepare in _alternatives(images, classifier.prepare):
        try:
            other = _accuracy(Classifier(classifier.model, prepare), images, labels, device)
        except Exception as error:  # a network may raise anything where it takes only what the given `prepare` makes
            if is_out_of_memory(error):
                raise
            continue
        tried.append((other, name, cure))
    better = [each for each in tried if _is_clearly_better(each[0], accuracy, len(labels))]
    if not better:
        return ""
    best = max(other for other, _, _ in better)
    # Of those that do as well as the best, the first. Few images cannot tell a far worse one from it either.
    named, name, cure = next(each for each in better if best - each[0] <= min(BETTER, _error(each[0], len(labels))))
    given = "without" if classifier.prepare is None else "through"
    accuracies = (
        f"the classifier is right on {accuracy:.1%} of {len(labels):,} training images {given} `prepare`, and on "
        f"{named:.1%} {name}"
    )
    if best - accuracy > FAR_BETTER:
        raise InputError(f"{accuracies}; {cure}, or set `check_prepare` to false if this is it")
    # Not an error: a network that was trained for too short likes more contrast too.
    return (
        f"{accuracies}; if it was trained with that normalisation, regions may be an effect of the pixels alone: {cure}"
    )


def _accuracy(classifier: Classifier, images: Array, labels: Array, device: torch.device | str | None) -> float:
    return float((predict_classes(classifier, images, device=device) == labels).mean())


def _error(accuracy: float, n: int) -> float:
    return float(ERRORS * np.sqrt(accuracy * (1 - accuracy) / n))


def _is_clearly_better(other: float, accuracy: float, n: int) -> bool:
    least = max(BETTER, _error(accuracy, n))
    return bool(other - accuracy > least and other * (1 - accuracy) > ODDS * accuracy * (1 - other))


def _alternatives(images: Array, prepare: Prepare | None) -> Iterator[tuple[str, str, Prepare | None]]:
    """Normalisations that are often mistaken for each other: what each is, what to do where it is better, itself."""
    cure = "give the `prepare` that it was trained with"
    if prepare is not None:
        yield "without it", "leave `prepare` out where the network normalises pixels itself", None
    # Images first: where they are the cause, some normalisation does as well.
    yield "of images with light and dark exchanged", cure, _composed(lambda x: 1 - x, prepare)
    if images.shape[3] == 3:
        flipped = "give images as red, green, blue, or a `prepare` that orders them as it was trained"
        yield "with the channels in reverse order", flipped, _composed(lambda x: x.flip(1), prepare)
    yield "of pixels that have mean 0 and spread 1 in every channel", cure, _standardised(images)
    yield "of pixels in [-1, 1]", cure, lambda x: 2 * x - 1
    yield "of pixels from 0 to 255", cure, lambda x: 255 * x


def _standardised(images: Array) -> Prepare:
    mean = torch.from_numpy(images.mean(axis=(0, 1, 2)) / 255).float()[:, None, None]
    spread = torch.from_numpy(images.std(axis=(0, 1, 2)) / 255).float()[:, None, None].clamp(min=1 / 255)
    return lambda x: (x - mean.to(x.device)) / spread.to(x.device)


def _composed(first: Prepare, then: Prepare | None) -> Prepare:
    if then is None:
        return first
    return lambda x: then(first(x))
