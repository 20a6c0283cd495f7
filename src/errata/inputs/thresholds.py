"""Where a label of several is called present: at one half, unless other rows say better.

Rare conditions are seldom held likelier than not. The threshold that gives the best F1 on validation rows is what
their users would take, and so what counts as an error.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..core import Array, Evaluation, InputError


def f1_thresholds(validation: Evaluation) -> Array:
    """(t,) for each label, the probability from which calling it present gives the best F1 on these rows.

    The smallest of several equally good; one half for a label that no row has.
    """
    validation.need(frozenset({"labels", "probs"}), "a threshold by F1")
    assert validation.labels is not None
    assert validation.probs is not None
    labels = validation.labels
    probs = validation.probs
    if validation.task == "classification" and probs.shape[1] == 2:
        labels = labels[:, None]
        probs = probs[:, 1:]
    elif validation.task != "multilabel":
        raise InputError(f"thresholds are for labels that are present or not; these rows are of {validation.task}")
    return np.array([_best(labels[:, t], probs[:, t]) for t in range(labels.shape[1])])


def at_thresholds(evaluation: Evaluation, thresholds: Array) -> Evaluation:
    """The same rows, with each label called present from its threshold on."""
    evaluation.need(frozenset({"probs"}), "a prediction at a threshold")
    assert evaluation.probs is not None
    binary = evaluation.task != "multilabel"
    probs = evaluation.probs[:, 1:] if binary else evaluation.probs
    if np.shape(thresholds) != (probs.shape[1],):
        raise InputError(f"`thresholds` must be one for each of {probs.shape[1]} labels; got {np.shape(thresholds)}")
    present = (probs >= thresholds).astype(np.int64)
    if binary:
        present = present[:, 0]
    return replace(evaluation, predictions=present)


def _best(labels: Array, probs: Array) -> float:
    if not labels.any():
        return 0.5
    order = np.argsort(-probs, kind="stable")
    values = probs[order].astype(np.float64)
    hits = np.cumsum(labels[order])
    last = np.append(values[1:] != values[:-1], True)  # equal probabilities are called alike
    called = np.arange(1, len(values) + 1)
    f1 = (2 * hits / (called + labels.sum()))[last]
    return float(values[last][len(f1) - 1 - np.argmax(f1[::-1])])
