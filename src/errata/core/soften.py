"""Probabilities where a file has hard predictions only."""

from __future__ import annotations

import numpy as np

from .blocks import Array
from .errors import InputError
from .evaluation import Evaluation

SOFTNESS = 0.1  # what a hard prediction leaves to the other classes together: a model is rarely surer than this


def class_probs(evaluation: Evaluation, who: str, classes: int | None = None) -> Array:
    """The model's probabilities, or hard predictions made soft: .9 for the predicted class, .1 spread over the others.

    Parameters
    ----------
    evaluation : Evaluation
        Rows with `probs`, or with the predictions of a classification or a multi-label task.
    who : str
        What asks, for the message where there are neither.
    classes : int, optional
        How many columns soft predictions have, where rows alone may not show every class. A prediction of a class
        beyond them is spread evenly. Default: `evaluation.class_count`.

    Returns
    -------
    array
        (n, k), or (n, t) of the positive class for multi-label.
    """
    if evaluation.probs is not None:
        return evaluation.probs
    evaluation.need(frozenset({"predictions"}), who)
    predictions = np.asarray(evaluation.predictions)
    if evaluation.task == "multilabel":
        return np.where(predictions == 1, 1 - SOFTNESS, SOFTNESS)
    if not is_class_index(predictions):
        raise InputError(f"{who} reads predictions of classes; this evaluation is one of {evaluation.task}")
    k = max(2, classes or evaluation.class_count)
    soft = np.full((len(predictions), k), SOFTNESS / (k - 1), dtype=np.float32)
    known = predictions < k
    soft[~known] = 1 / k
    soft[known, predictions[known].astype(np.int64)] = 1 - SOFTNESS
    return soft


def is_class_index(values: Array) -> bool:
    """Whether values can be classes: whole numbers from 0."""
    return bool(values.ndim == 1 and (values == np.round(values)).all() and (values >= 0).all())
