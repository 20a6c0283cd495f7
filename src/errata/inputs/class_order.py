"""Whether labels and the columns of the probabilities are in one order: error above chance is often no error at all."""

from __future__ import annotations

import warnings

import numpy as np

from ..core import Array, Evaluation

SURE = 3.0  # standard errors above chance that accuracy must reach in another order
FEWEST = 20  # rows, below which nothing is said
EXPLAINS = 0.1  # more accuracy than any order gives to a model that is wrong in all ways alike
MOST_NAMES = 12  # classes of which all names are written
MOST_CLASSES = 5000  # a table of all pairs of more is large, and nobody orders so many by hand


class InputWarning(UserWarning):
    """What was read is possible, but probably not what was meant."""


def warn_of_order(evaluation: Evaluation) -> Evaluation:
    """The evaluation itself, with an InputWarning where its classes seem to be in another order."""
    sentence = other_order(evaluation)
    if sentence is not None:
        warnings.warn(sentence, InputWarning, stacklevel=4)
    return evaluation


def other_order(evaluation: Evaluation) -> str | None:
    """A sentence that names the order of classes that would explain an accuracy below chance; None where none does.

    Classes are matched to predictions on half of the rows (an assignment on the confusion matrix). The classes that
    move must be predicted worse than by chance on the other half, and well in the new order, so that the best of many
    orders is not taken for a finding.
    """
    from scipy.optimize import linear_sum_assignment

    labels = evaluation.labels
    predictions = evaluation.predictions
    if evaluation.task != "classification" or labels is None or predictions is None or len(labels) < FEWEST:
        return None
    k = evaluation.class_count
    if k > MOST_CLASSES:
        return None
    half = np.empty(len(labels), dtype=bool)
    half[np.argsort(evaluation.row_ids, kind="stable")] = np.arange(len(labels)) % 2 == 0  # row order never matters
    first = _confusion(labels[half], predictions[half], k)
    second = _confusion(labels[~half], predictions[~half], k)
    _, column = linear_sum_assignment(-first)  # class i is predicted as column[i]
    moved = np.flatnonzero((column != np.arange(k)) & (first.sum(axis=1) > 0))
    rows = second[moved]
    if not explains(rows, moved, column[moved], second.sum(axis=0) / second.sum()):
        return None
    return _sentence(evaluation, first + second, column, moved)


def explains(rows: Array, moved: Array, column: Array, predicted: Array) -> bool:
    """Whether the rows (m, k) of the classes that move are below chance where they stand, and well above where they go.

    predicted: (k,) share of all predictions, by which chance is what a class would get.
    """
    n = rows.sum()
    if len(moved) < 2 or n < FEWEST / 2:
        return False
    before = rows[np.arange(len(moved)), moved].sum() / n
    after = rows[np.arange(len(moved)), column].sum() / n
    chance = float(rows.sum(axis=1) @ predicted[moved] / n)
    error = SURE * np.sqrt(chance * (1 - chance) / n)
    # Errors without a pattern give 1 / (m - 1); two classes among others must be exchanged in most rows.
    least = max(chance + error, 1 / (len(moved) - 1) + EXPLAINS) if len(moved) > 2 else max(chance + error, 0.5)
    return bool(before < chance and after > least)


def _confusion(labels: Array, predictions: Array, k: int) -> Array:
    """(k, k) rows by label and prediction."""
    counts: Array = np.bincount(labels.astype(np.int64) * k + predictions.astype(np.int64), minlength=k * k)
    return counts.reshape(k, k).astype(np.float64)


def _chance(confusion: Array) -> float:
    """The accuracy of predictions that were dealt out among the rows at random."""
    n = confusion.sum()
    return float((confusion.sum(axis=0) / n) @ (confusion.sum(axis=1) / n))


def _sentence(evaluation: Evaluation, confusion: Array, column: Array, moved: Array) -> str:
    k = len(confusion)
    n = confusion.sum()
    accuracy = np.trace(confusion) / n
    after = confusion[np.arange(k), column].sum() / n
    names = [evaluation.class_name(int(i)) for i in np.argsort(column)]
    if k <= MOST_NAMES:
        order = f"({', '.join(names)})"
    else:
        pairs = [
            f"{evaluation.class_name(j)} as {name}" for j, name in enumerate(names) if evaluation.class_name(j) != name
        ]
        order = ", ".join(pairs[:MOST_NAMES])
        if len(pairs) > MOST_NAMES:
            order += ", …"
    chance = _chance(confusion)
    if accuracy < chance:
        problem = f"accuracy is {accuracy:.0%} where chance is {chance:.0%}"
    else:
        own = confusion[moved, moved].sum() / confusion[moved].sum()
        listed = ", ".join(evaluation.class_name(int(i)) for i in moved[:MOST_NAMES])
        problem = f"accuracy is {accuracy:.0%}, but {own:.0%} for the classes {listed}"
    what = "the classes of `predictions`" if evaluation.probs is None else "the columns of `probs`"
    return f"{problem}; reading {what} as {order} gives {after:.0%}: check class_names"
