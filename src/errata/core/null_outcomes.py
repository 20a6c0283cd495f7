"""Outcomes without a pattern: labels change places among rows of which the model said the same.

Representations, probabilities, predictions, the counts of labels and the confusion matrix stay, and so does what class
and confidence tell; all other relations between a row and its outcome go. What a search confirms in such rows beyond
class and confidence, it confirms by chance.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .blocks import Array
from .evaluation import Evaluation

MOST_BINS = 10  # of confidence, in each predicted class
FEWEST_IN_BIN = 50  # rows


def permute_outcomes(evaluation: Evaluation, rng: np.random.Generator) -> Evaluation:
    """The same rows with outcomes that have no pattern beyond predicted class and confidence.

    Labels change places within a predicted class and a bin of confidence, and losses follow from each row's own
    probabilities; without probabilities, within the predicted class. Each label of a multi-label task moves by itself.
    Residuals of a regression, and losses without predictions, change places among all rows. Where all rows have one
    label, the prediction is the outcome, and predictions change places.

    Rows of one group take the outcomes of neighbours in one order of all groups, mostly of one other group, so that
    outcomes that are alike within groups still are.

    Parameters
    ----------
    evaluation : Evaluation
        All rows, in the order of their ids.
    rng : Generator
        Of the permutation.
    """
    donors = [shuffle_within(outcome_strata(view), evaluation.groups, rng) for _, view in evaluation.tasks()]
    return take_outcomes(evaluation, np.stack(donors, axis=1))


def outcome_strata(view: Evaluation) -> Array:
    """(n,) int: rows of one task that are alike before their outcome is known."""
    n = len(view)
    if view.task == "regression" or has_one_label(view):
        return np.zeros(n, dtype=np.int64)
    classes = view.labels if view.predictions is None else view.predictions
    if classes is None or classes.ndim > 1 or classes.dtype.kind == "f":
        return np.zeros(n, dtype=np.int64)
    codes = np.unique(classes, return_inverse=True)[1].ravel()
    if view.predictions is None or view.probs is None:
        return np.asarray(codes)
    strata = np.empty(n, dtype=np.int64)
    confidence = view.probs.max(axis=1)
    for code in range(int(codes.max()) + 1):
        rows = np.flatnonzero(codes == code)
        bins = int(np.clip(len(rows) // FEWEST_IN_BIN, 1, MOST_BINS))
        by_confidence = rows[np.argsort(confidence[rows], kind="stable")]
        strata[by_confidence] = code * MOST_BINS + np.arange(len(rows)) * bins // len(rows)
    return strata


def has_one_label(view: Evaluation) -> bool:
    """Whether all rows of a task have one label, so that the prediction alone is the outcome."""
    if view.errors is None:
        return False
    assert view.labels is not None
    return bool((view.labels == view.labels[0]).all())


def shuffle_within(strata: Array, groups: Array | None, rng: np.random.Generator) -> Array:
    """(n,) int: whose outcome each row takes, a permutation within each stratum.

    Parameters
    ----------
    strata : array
        (n,) int.
    groups : array, optional
        (n,) rows that belong together are neighbours among those that give and among those that take.
    rng : Generator
        Of the permutation.
    """
    n = len(strata)
    codes = np.zeros(n, dtype=np.int64)
    if groups is not None:
        codes = np.unique(groups, return_inverse=True)[1].ravel()
    giving = rng.permutation(int(codes.max()) + 1)[codes]
    taking = rng.permutation(int(codes.max()) + 1)[codes]
    donors = np.empty(n, dtype=np.int64)
    donors[np.lexsort((rng.random(n), taking, strata))] = np.lexsort((rng.random(n), giving, strata))
    return donors


def take_outcomes(evaluation: Evaluation, donors: Array) -> Evaluation:
    """The same rows, each with the outcome of another.

    Parameters
    ----------
    evaluation : Evaluation
        All rows.
    donors : array
        (n, t) int: for each task, the row whose outcome is taken; its own number where nothing changes.
    """
    if evaluation.labels is None or evaluation.predictions is None:
        assert evaluation.losses is not None
        return evaluation.with_outcomes(losses=evaluation.losses[donors[:, 0]])
    if evaluation.task == "regression":
        assert evaluation.losses is not None
        own = donors[:, 0]
        residuals = evaluation.labels.astype(np.float64) - evaluation.predictions
        return evaluation.with_outcomes(labels=evaluation.predictions + residuals[own], losses=evaluation.losses[own])
    if evaluation.task == "multilabel":
        return _take_labels_each(evaluation, donors)
    return _take_labels(evaluation, donors[:, 0])


def _take_labels(evaluation: Evaluation, donors: Array) -> Evaluation:
    """Classification with predictions."""
    assert evaluation.labels is not None
    assert evaluation.predictions is not None
    taken: dict[str, Any] = {"labels": evaluation.labels[donors]}
    if has_one_label(evaluation):
        taken = {"predictions": evaluation.predictions[donors]}
        if evaluation.probs is not None:
            taken["probs"] = evaluation.probs[donors]
    losses = evaluation.losses
    derived = losses is None or np.array_equal(losses, evaluation.predictions != evaluation.labels)
    if evaluation.probs is None and losses is not None and not derived:
        taken["losses"] = losses[donors]  # the user's own: they belong to the error, not to the row
    return evaluation.with_outcomes(**taken)


def _take_labels_each(evaluation: Evaluation, donors: Array) -> Evaluation:
    """Multi-label: a column of labels moves, or of predictions where all of its labels are the same."""
    assert evaluation.labels is not None
    assert evaluation.predictions is not None
    labels = np.take_along_axis(evaluation.labels, donors, axis=0)
    one_label = (evaluation.labels == evaluation.labels[0]).all(axis=0)
    moved = np.take_along_axis(evaluation.predictions, donors, axis=0)
    taken = {"labels": labels, "predictions": np.where(one_label, moved, evaluation.predictions)}
    if evaluation.probs is not None:
        moved = np.take_along_axis(evaluation.probs, donors, axis=0)
        taken["probs"] = np.where(one_label, moved, evaluation.probs)
    return evaluation.with_outcomes(**taken)
