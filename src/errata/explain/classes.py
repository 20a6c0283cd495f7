"""Labels and predictions of a slice beside the rest, and which label is taken for which class (Spotlight, figure 8)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from ..core import Array
from ..core.record import Record
from .context import Context
from .encode import Column
from .kinds import SliceExplanation
from .profile import ColumnProfile, profile_column
from .view import MEASURED_ON, SliceView

MOST_PAIRS = 5


@dataclass(frozen=True)
class ConfusedPair(Record):
    """A label and the class it is taken for, among wrong rows."""

    label: str | None
    prediction: str | None
    slice: tuple[int, int]  # wrong members of this pair, of all wrong members
    rest: tuple[int, int]


@dataclass(frozen=True)
class Classes(SliceExplanation):
    """Shares of labels and predictions, and the most frequent confusions."""

    kind = "classes"

    chosen_on: str
    measured_on: str
    labels: ColumnProfile | None
    predictions: ColumnProfile | None
    confused: tuple[ConfusedPair, ...]

    @classmethod
    def explain(cls, view: SliceView, context: Context) -> Self | None:
        """None where there are neither labels nor predictions."""
        columns = context.class_columns[view.slice.task]
        if not columns:
            return None
        profiles = {name: profile_column(view, column) for name, column in columns.items()}
        confused: tuple[ConfusedPair, ...] = ()
        if len(columns) == 2 and view.evaluation.errors is not None:
            confused = _confused_pairs(view, columns["labels"], columns["predictions"], view.evaluation.errors)
        return cls(view.chosen_on, MEASURED_ON, profiles.get("labels"), profiles.get("predictions"), confused)


def _confused_pairs(view: SliceView, labels: Column, predictions: Column, errors: Array) -> tuple[ConfusedPair, ...]:
    """The most frequent (label, prediction) among wrong members, chosen on searched rows and counted on the others."""
    width = len(predictions.values)
    pairs = labels.codes * width + predictions.codes
    wrong = view.inside & errors
    distinct, counts = np.unique(pairs[wrong & view.chosen], return_counts=True)
    top = distinct[np.argsort(-counts, kind="stable")][:MOST_PAIRS]
    members = pairs[wrong & view.measured]
    rest = pairs[view.rest & errors & view.measured]
    return tuple(
        ConfusedPair(
            label=labels.values[pair // width],
            prediction=predictions.values[pair % width],
            slice=(int(np.count_nonzero(members == pair)), len(members)),
            rest=(int(np.count_nonzero(rest == pair)), len(rest)),
        )
        for pair in map(int, top)
    )
