"""What an audit searches for where it is not every error: the rows on which a metric is defined, with its outcome.

The false-negative rate is the error rate of the rows of the positive class: an audit of these rows alone searches and
confirms it. Over-prediction is a loss. So an audit needs no other statistics, only other rows or other losses.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from .blocks import Array
from .errors import InputError, unknown
from .evaluation import Evaluation
from .metrics import one_label, positive_class

ERROR = "error"
OF_CLASSES = ("fnr", "fpr")
OF_TARGETS = ("over_prediction", "under_prediction")
SEARCHED = (ERROR, *OF_CLASSES, *OF_TARGETS)


def for_metric(evaluation: Evaluation, metric: str, positive: str | int | None = None) -> tuple[Evaluation, Array]:
    """The rows on which a metric is defined, with the outcomes that it is the rate of.

    Parameters
    ----------
    evaluation : Evaluation
        All rows.
    metric : str
        "error", for which rows stay as they are. "fnr", the rows of the positive class; "fpr", the others, as rows that
        are not of it. "over_prediction" or "under_prediction", all rows, with how far the prediction is above the
        label, or below it, as their losses.
    positive : str or int, optional
        As of `errata.core.metrics.row_metrics`.

    Returns
    -------
    tuple of Evaluation, array
        The rows, and (n,) bool: which of all rows they are.
    """
    if metric not in SEARCHED:
        raise unknown("metric to search for", metric, SEARCHED)
    everywhere = np.ones(len(evaluation), dtype=bool)
    if metric not in OF_CLASSES and positive is not None:
        raise InputError(f"`positive` names a class of `fnr` or `fpr`; the metric is `{metric}`; leave it out")
    if metric == ERROR:
        return evaluation, everywhere
    if metric in OF_TARGETS:
        return _directed(evaluation, metric), everywhere
    view = against_the_rest(evaluation, metric, positive)
    assert view.labels is not None
    rows = view.labels == (metric == "fnr")
    if not rows.any():
        raise InputError(f"no row counts for `{metric}`: all rows are of one class; name another as `positive`")
    return replace(view.rows(rows), metric=metric), rows


def _directed(evaluation: Evaluation, metric: str) -> Evaluation:
    if evaluation.task != "regression" or evaluation.predictions is None or evaluation.labels is None:
        raise InputError(f"`{metric}` is of a regression with labels and predictions; the task is {evaluation.task!r}")
    over = evaluation.predictions.astype(np.float64) - evaluation.labels
    signed = over if metric == "over_prediction" else -over
    return replace(evaluation, losses=np.maximum(signed, 0), metric=metric)


def against_the_rest(evaluation: Evaluation, metric: str, positive: str | int | None) -> Evaluation:
    """The evaluation with two classes: the positive one, 1, and all others, 0."""
    if evaluation.task == "multilabel":
        return one_label(evaluation, positive)
    if evaluation.task != "classification" or evaluation.errors is None:
        raise InputError(f"`{metric}` needs labels with probs or predictions of classes; add them to the input")
    number = positive_class(evaluation, positive)
    if number is None:
        raise InputError(f"`{metric}` of {evaluation.class_count:,} classes needs the class; name it as `positive`")
    return evaluation.one_against_rest(number)
