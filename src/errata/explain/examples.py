"""Rows to look at: what each is, what the model said of it, and the group in which it is drawn."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..core import Array, Evaluation
from ..core.record import Record, RowNumber, json_key


@dataclass(frozen=True)
class Example(Record):
    """One row: what it is, what the model said, and how wrong that was."""

    row: RowNumber  # its number in the evaluation
    id: int | str
    label: str | None
    prediction: str | None
    loss: float | None
    wrong: bool | None  # None where there are no errors


@dataclass(frozen=True)
class PickedExample(Example):
    """A row and how it came into its group: by "weight", by "loss" or at "random"."""

    picked: str


@dataclass(frozen=True)
class ValuedExample(Example):
    """A row with the value that a feature has in it."""

    value: float


@dataclass(frozen=True)
class FeatureImage(Record):
    """An image, where in it a feature is, and the image changed so that the feature rises; as data: addresses."""

    row: RowNumber
    image: str = field(metadata=json_key("picture"))
    heat: str | None  # None: the feature is nowhere in it
    attack: str
    before: float  # the value of the feature in the image
    after: float  # and in the changed image
    moved: float  # L2 distance of the two


@dataclass(frozen=True)
class ExampleGroup(Record):
    """Some rows of a kind, and of how many they were drawn."""

    which: str
    total: int = field(metadata=json_key("of"))
    rows: tuple[Example, ...]


@dataclass(frozen=True)
class PickedGroup(Record):
    """The same, with how each row came in."""

    which: str
    total: int = field(metadata=json_key("of"))
    rows: tuple[PickedExample, ...]


def example(evaluation: Evaluation, row: int) -> Example:
    """One row of an evaluation, by its number."""
    return Example(**example_fields(evaluation, row))


def example_fields(evaluation: Evaluation, row: int) -> dict[str, Any]:
    """The fields of `Example` of one row, for records that have more."""
    identity = evaluation.row_ids[row]
    name = identity.item() if isinstance(identity, np.integer) else str(identity)
    loss = None if evaluation.losses is None else float(evaluation.losses[row])
    wrong = None if evaluation.errors is None else bool(evaluation.errors[row])
    return {
        "row": row,
        "id": name,
        "label": _class_text(evaluation, evaluation.labels, row),
        "prediction": _class_text(evaluation, evaluation.predictions, row),
        "loss": loss,
        "wrong": wrong,
    }


def _class_text(evaluation: Evaluation, column: Array | None, row: int) -> str | None:
    """The class of a row by name; a quantity in four digits."""
    if column is None:
        return None
    value = column[row]
    if value == int(value):
        return evaluation.class_name(int(value))
    return f"{float(value):.4g}"


def highest(values: Array, rows: Array, count: int) -> Array:
    """The rows with the highest values, highest first; of equal ones the first first."""
    picked: Array = rows[np.argsort(-values[rows], kind="stable")][:count]
    return picked


def picked_group(which: str, evaluation: Evaluation, rows: Array, picked: list[str], total: int) -> PickedGroup:
    """A group of rows, each with how it came in; `total` is what they were drawn from."""
    examples = [
        PickedExample(**example_fields(evaluation, int(row)), picked=how) for row, how in zip(rows, picked, strict=True)
    ]
    return PickedGroup(which, total, tuple(examples))


def find_group(groups: Iterable[PickedGroup], which: str) -> PickedGroup:
    """A group by its name; an empty one where there is none of that name."""
    return next((group for group in groups if group.which == which), PickedGroup(which, 0, ()))
