"""What to change so that a slice is no longer wrong: data that a person can read, and a trainer can follow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

import numpy as np

from .blocks import Array
from .errors import InputError
from .evaluation import Evaluation

SCHEMA = "errata.plan/1"

Kind = Literal["weights", "select", "prompts"]


@dataclass(frozen=True)
class Prompt:
    """A picture to draw: what it shows, the class it is for, how many."""

    text: str
    label: int | None
    count: int


@dataclass(frozen=True, eq=False)
class Plan:
    """Rows that count more, rows to add, or pictures to draw.

    ids: the rows it names. weights: how often each of them counts; 1 for a row to add. why: one sentence. slices: the
    ids of those it is for. facts: what it was made with.
    """

    kind: Kind
    why: str
    ids: Array = field(default_factory=lambda: np.empty(0, dtype=np.int64))  # (m,)
    weights: Array = field(default_factory=lambda: np.empty(0))  # (m,)
    prompts: tuple[Prompt, ...] = ()
    slices: tuple[str, ...] = ()
    facts: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.ids.shape != self.weights.shape or self.ids.ndim != 1:
            raise InputError(f"a plan has one weight a row; got {self.weights.shape} for {self.ids.shape}")

    def __len__(self) -> int:
        """Rows, or pictures to draw."""
        return sum(prompt.count for prompt in self.prompts) if self.kind == "prompts" else len(self.ids)

    def weights_of(self, rows: Evaluation) -> Array:
        """(n,) how often each row counts: its own weight where the plan names it, else 1."""
        weights = np.ones(len(rows))
        weights[_places(self.ids, rows)] = self.weights
        return weights

    def rows_of(self, pool: Evaluation) -> Array:
        """(m,) where the plan's rows stand in `pool`, in the plan's order."""
        return _places(self.ids, pool)

    def to_json(self) -> dict[str, Any]:
        """All but the rows."""
        plain = {"schema": SCHEMA, "kind": self.kind, "why": self.why, "slices": list(self.slices)}
        return {**plain, "facts": dict(self.facts), "prompts": [asdict(prompt) for prompt in self.prompts]}


def _places(ids: Array, rows: Evaluation) -> Array:
    own = rows.row_ids
    order = np.argsort(own, kind="stable")
    at = np.searchsorted(own, ids, sorter=order).clip(max=len(own) - 1)
    places: Array = order[at]
    missing = np.flatnonzero(own[places] != ids)
    if len(missing):
        raise InputError(
            f"the plan names row {ids[missing[0]]!r}, which these rows do not have ({len(missing):,} such); "
            "give the rows it was made from"
        )
    return places
