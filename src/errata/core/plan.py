"""A plan of what to change in the training data so that the model improves on a slice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from .blocks import Array
from .errors import InputError
from .evaluation import Evaluation

SCHEMA = "errata.plan/1"


@dataclass(frozen=True)
class Prompt:
    """Images to draw.

    Attributes
    ----------
    text : str
        What an image shows.
    label : int, optional
        The class that it is for.
    count : int
        How many.
    """

    text: str
    label: int | None
    count: int


@dataclass(frozen=True, eq=False)
class Plan:
    """Rows that count more, rows to add, or images to draw.

    Attributes
    ----------
    kind : str
        "weights", "select", "prompts" or "labels".
    why : str
        One sentence.
    ids : array
        (m,) the rows that it names.
    weights : array
        (m,) how often each of them counts; 1 for a row to add.
    prompts : tuple of Prompt
        Images to draw.
    labels : array
        (m,) the classes that its rows are to have; empty where no label changes.
    slices : tuple of str
        The ids of the slices that it is for.
    facts : mapping
        How it was made.

    Examples
    --------
    >>> import errata, numpy as np
    >>> plan = errata.Plan("weights", "Rows of s1 count three times.", ids=np.array([2]), weights=np.array([3.0]))
    >>> rows = errata.Evaluation(losses=np.zeros(4))
    >>> plan.weights_of(rows).tolist()
    [1.0, 1.0, 3.0, 1.0]
    """

    kind: str
    why: str
    ids: Array = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    weights: Array = field(default_factory=lambda: np.empty(0))
    prompts: tuple[Prompt, ...] = ()
    labels: Array = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    slices: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.ids.shape != self.weights.shape or self.ids.ndim != 1:
            raise InputError(f"a plan has one weight a row; got {self.weights.shape} for {self.ids.shape}")
        if len(self.labels) and self.labels.shape != self.ids.shape:
            raise InputError(f"a plan has one label a row, or none; got {self.labels.shape} for {self.ids.shape}")

    def __len__(self) -> int:
        """Rows, or images to draw."""
        if self.kind == "prompts":
            return sum(prompt.count for prompt in self.prompts)
        return len(self.ids)

    def weights_of(self, rows: Evaluation) -> Array:
        """(n,) how often each row counts: its own weight where the plan names it, else 1."""
        weights = np.ones(len(rows))
        weights[_positions(self.ids, rows)] = self.weights
        return weights

    def labels_of(self, rows: Evaluation) -> Array:
        """(n,) the label of each row: the plan's where it names one, else its own."""
        rows.need(frozenset({"labels"}), "a plan of labels")
        labels = np.array(rows.labels)
        if len(self.labels):
            labels[_positions(self.ids, rows)] = self.labels
        return labels

    def rows_of(self, pool: Evaluation) -> Array:
        """(m,) the positions of the plan's rows in `pool`, in the plan's order."""
        return _positions(self.ids, pool)

    def to_json(self) -> dict[str, Any]:
        """All but the rows."""
        return {
            "schema": SCHEMA,
            "kind": self.kind,
            "why": self.why,
            "slices": list(self.slices),
            "facts": dict(self.facts),
            "prompts": [asdict(prompt) for prompt in self.prompts],
        }


def _positions(ids: Array, rows: Evaluation) -> Array:
    known = rows.row_ids
    order = np.argsort(known, kind="stable")
    at = np.searchsorted(known, ids, sorter=order).clip(max=len(known) - 1)
    positions: Array = order[at]
    missing = np.flatnonzero(known[positions] != ids)
    if len(missing):
        raise InputError(
            f"the plan names row {ids[missing[0]]!r}, which these rows do not have ({len(missing):,} such); "
            "give the rows it was made from"
        )
    return positions
