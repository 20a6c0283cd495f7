"""Metrics as an outcome of each row and the rows on which it is defined: their mean is the metric.

The false-negative rate is the mean of "predicted another class" over the rows of the positive class; precision that of
"is of the positive class" over the rows predicted so. What is a mean of rows can be measured in any group of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from . import validate
from .blocks import Array
from .errors import InputError, unknown
from .evaluation import Evaluation

MEANINGS = {
    "error": "Share of rows with another prediction than label.",
    "selection_rate": "Share of rows predicted positive.",
    "fpr": "Of the rows that are not positive, the share predicted positive.",
    "fnr": "Of the positive rows, the share not predicted positive.",
    "precision": "Of the rows predicted positive, the share that is.",
    "recall": "Of the positive rows, the share predicted positive.",
    "log_loss": "Mean of −log of the probability of the label.",
    "mae": "Mean of |prediction − label|.",
    "rmse": "Root of the mean of (prediction − label)².",
    "over_prediction": "Mean of prediction − label where that is positive, 0 elsewhere.",
    "under_prediction": "Mean of label − prediction where that is positive, 0 elsewhere.",
    "loss": "Mean loss.",
}


@dataclass(frozen=True, eq=False)
class RowMetric:
    """A metric as values of rows.

    Attributes
    ----------
    values : array
        (n,) what is averaged; of no meaning outside `defined`.
    defined : array
        (n,) bool: the rows that count.
    kind : str
        "rate" where values are 0 or 1, "mean", or "root" for the root of their mean.
    """

    values: Array
    defined: Array
    kind: Literal["rate", "mean", "root"]


def row_metrics(evaluation: Evaluation, positive: str | int | None = None) -> dict[str, RowMetric]:
    """All metrics that these rows have, by name.

    Parameters
    ----------
    evaluation : Evaluation
        The rows, with their outcomes.
    positive : str or int, optional
        The positive class, by its name or its number; in a multi-label task, the label to look at. Default: the second
        of two classes. Of more classes, those metrics that need one are left out.
    """
    if evaluation.task == "multilabel":
        evaluation = one_label(evaluation, positive)
        positive = 1
    everywhere = np.ones(len(evaluation), dtype=bool)
    if evaluation.task == "classification":
        return _of_classes(evaluation, positive_class(evaluation, positive), everywhere)
    if positive is not None:
        raise InputError(f"`positive` names a class, which rows of the task {evaluation.task!r} do not have")
    if evaluation.task == "regression" and evaluation.labels is not None and evaluation.predictions is not None:
        return _of_targets(evaluation.labels.astype(np.float64), evaluation.predictions, everywhere)
    if evaluation.losses is None:
        raise InputError("metrics need losses, or labels with probs or predictions; this evaluation has neither")
    return {"loss": RowMetric(evaluation.losses, everywhere, "mean")}


def one_label(evaluation: Evaluation, label: str | int | None) -> Evaluation:
    """One label of a multi-label task as a task of two classes.

    Parameters
    ----------
    evaluation : Evaluation
        Of several labels.
    label : str or int, optional
        Which; an InputError lists them where it is None.
    """
    tasks = dict(evaluation.tasks())
    if label is None:
        raise InputError(f"a multi-label task has metrics of each label; name one as `positive`: {', '.join(tasks)}")
    if isinstance(label, int):
        label = evaluation.class_name(label)
    if label not in tasks:
        raise unknown("label", label, tasks)
    return tasks[label]


def positive_class(evaluation: Evaluation, positive: str | int | None) -> int | None:
    """The number of the positive class: as named, or the second of two; None of more where none is named.

    Parameters
    ----------
    evaluation : Evaluation
        Of a classification.
    positive : str or int, optional
        As of `row_metrics`.
    """
    classes = {evaluation.class_name(k): k for k in range(evaluation.class_count)}
    if positive is None:
        return 1 if len(classes) <= 2 else None
    number = classes.get(str(positive))
    if isinstance(positive, int) and 0 <= positive < max(len(classes), 2):
        number = int(positive)
    if number is None:
        raise unknown("class", str(positive), classes)
    return number


def _of_classes(evaluation: Evaluation, positive: int | None, everywhere: Array) -> dict[str, RowMetric]:
    metrics: dict[str, RowMetric] = {}
    labels = evaluation.labels
    predictions = evaluation.predictions
    if labels is None or predictions is None:
        raise InputError("metrics of classes need labels with probs or predictions; add them to the input")
    metrics["error"] = RowMetric(predictions != labels, everywhere, "rate")
    if positive is not None:
        is_positive = labels == positive
        predicted = predictions == positive
        metrics["selection_rate"] = RowMetric(predicted, everywhere, "rate")
        metrics["fpr"] = RowMetric(predicted, ~is_positive, "rate")
        metrics["fnr"] = RowMetric(~predicted, is_positive, "rate")
        metrics["precision"] = RowMetric(is_positive, predicted, "rate")
        metrics["recall"] = RowMetric(predicted, is_positive, "rate")
    if evaluation.probs is not None:
        true = evaluation.probs[np.arange(len(labels)), labels].astype(np.float64)
        metrics["log_loss"] = RowMetric(-np.log(np.clip(true, validate.FLOOR, 1)), everywhere, "mean")
    return metrics


def _of_targets(labels: Array, predictions: Array, everywhere: Array) -> dict[str, RowMetric]:
    over = predictions - labels
    return {
        "mae": RowMetric(np.abs(over), everywhere, "mean"),
        "rmse": RowMetric(np.square(over), everywhere, "root"),
        "over_prediction": RowMetric(np.maximum(over, 0), everywhere, "mean"),
        "under_prediction": RowMetric(np.maximum(-over, 0), everywhere, "mean"),
    }


def choose_metrics(known: Mapping[str, RowMetric], names: Sequence[str] | None) -> dict[str, RowMetric]:
    """The metrics of these names, in their order; all where none is named.

    Parameters
    ----------
    known : mapping
        What `row_metrics` returned.
    names : list of str, optional
        Which of them.
    """
    if isinstance(names, str):
        names = [names]
    chosen = {}
    for name in names or known:
        if name not in known and name in MEANINGS:
            cure = "; name the class as `positive`" if "error" in known else ""
            raise InputError(f"these rows have no `{name}`; they have {', '.join(known)}{cure}")
        if name not in known:
            raise unknown("metric", name, MEANINGS)
        chosen[name] = known[name]
    return chosen
