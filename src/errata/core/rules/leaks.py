"""Columns that give the outcome away: a rule on them would say what everyone knows.

A column may hold the outcome itself (`correct`, `loss`), or the label or the prediction, with which a scope makes the
outcome. Each is measured: what half of the rows say of a bin must hold in the other half.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ..blocks import Array
from ..evaluation import Evaluation
from .literals import CodedColumn

TOLD = 0.98  # area under the curve of the outcome by one column, from which it gives it away
SAME = 0.9  # share of what guessing the most frequent class leaves open, that a column tells of a class
FEWEST = 10  # bad rows of each half, for the outcome to be measured


def find_leaks(columns: Sequence[CodedColumn], bad: Array, classes: Mapping[str, Array]) -> dict[str, str]:
    """Column -> what it gives away: "the outcome", "the label" or "the prediction".

    Parameters
    ----------
    columns : sequence of CodedColumn
        Of the search rows.
    bad : array
        (n,) bool: their outcomes.
    classes : mapping
        "label" and "prediction" -> (n,) classes of the search rows, see `search_classes`.
    """
    found = {}
    for column in columns:
        if _area(column, bad) > TOLD:
            found[column.name] = "the outcome"
            continue
        for name, values in classes.items():
            if column.name not in found and _skill(column, values) > SAME:
                found[column.name] = f"the {name}"
    return found


def search_classes(evaluation: Evaluation, rows: Array) -> dict[str, Array]:
    """The labels and predictions of some rows, as far as there are any; none where they are no classes.

    Parameters
    ----------
    evaluation : Evaluation
        All rows.
    rows : array
        Row numbers.
    """
    if evaluation.task != "classification":
        return {}
    both = {"label": evaluation.labels, "prediction": evaluation.predictions}
    return {name: values[rows] for name, values in both.items() if values is not None}


def _area(column: CodedColumn, bad: Array) -> float:
    """How well the rate of its bin in even rows ranks odd rows: 1 if all bad ones come first, .5 by chance."""
    learned = slice(0, None, 2)
    tested = bad[1::2]
    positive = int(tested.sum())
    if positive < FEWEST or len(tested) - positive < FEWEST:
        return 0.5
    sizes = np.bincount(column.codes[learned], minlength=column.size + 1)
    wrong = np.bincount(column.codes[learned], weights=bad[learned], minlength=column.size + 1)
    rates = (wrong + bad.mean()) / (sizes + 1)
    _, order, counts = np.unique(rates[column.codes[1::2]], return_inverse=True, return_counts=True)
    ranks = (np.cumsum(counts) - (counts - 1) / 2)[order]  # of equal rates, the mean of their ranks
    area = (ranks[tested].sum() - positive * (positive + 1) / 2) / (positive * (len(tested) - positive))
    return float(area)


def _skill(column: CodedColumn, classes: Array) -> float:
    """Share of odd rows beyond the most frequent class that the commonest class of their bin in even rows tells."""
    names, codes = np.unique(classes, return_inverse=True)
    if len(names) < 2:
        return 0.0
    table = np.zeros((column.size + 1, len(names)))
    np.add.at(table, (column.codes[::2], codes[::2]), 1)
    tested = codes[1::2]
    right = (table.argmax(axis=1)[column.codes[1::2]] == tested).mean()
    easy = (tested == np.bincount(codes[::2]).argmax()).mean()
    if easy >= 1:
        return 0.0
    return float((right - easy) / (1 - easy))
