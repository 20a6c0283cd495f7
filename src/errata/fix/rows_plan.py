"""Plans about rows there are: count some of those learnt from more often, or add the hardest of a pool."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..core import Array, Evaluation, InputError
from ..core.plan import Plan


def upweight(
    rows: Evaluation, flagged: Array, factor: float = 2.0, *, slices: tuple[str, ...] = (), why: str = ""
) -> Plan:
    """Rows where `flagged` is true count `factor` times. flagged: (n,) bool."""
    if not (np.isfinite(factor) and factor > 0):
        raise InputError(f"`factor` must be a positive number; got {factor}")
    if flagged.shape != (len(rows),):
        raise InputError(f"`flagged` must have one value for each of {len(rows)} rows; got shape {flagged.shape}")
    ids = rows.row_ids[flagged]
    said = why or f"{len(ids):,} of {len(rows):,} rows count {factor:g} times"
    return Plan("weights", said, ids, np.full(len(ids), float(factor)), slices=slices, facts={"factor": factor})


def select(
    pool: Evaluation,
    hardness: Array,
    per_class: int,
    *,
    least: float = -np.inf,
    slices: tuple[str, ...] = (),
    facts: Mapping[str, Any] | None = None,
) -> Plan:
    """The `per_class` rows of each class with the largest hardness, none at or below `least`; ties by id.

    Classes are labels, or predictions where the pool has none; without either, all rows are one class.
    """
    if per_class < 1:
        raise InputError(f"`per_class` must be at least 1; got {per_class}")
    classes = pool.labels if pool.labels is not None else pool.predictions
    if classes is None or classes.ndim != 1 or classes.dtype.kind == "f":
        classes = np.zeros(len(pool), dtype=np.int64)
    order = np.lexsort((pool.row_ids, -hardness))
    order = order[hardness[order] > least]
    taken = [order[classes[order] == value][:per_class] for value in np.unique(classes)]
    ids = pool.row_ids[np.concatenate(taken)] if taken else pool.row_ids[:0]
    said = f"add {len(ids):,} of {len(pool):,} rows of the pool, at most {per_class:,} a class"
    return Plan("select", said, ids, np.ones(len(ids)), slices=slices, facts={"per_class": per_class, **(facts or {})})
