"""Which rows to take first, told without any slice: what a selection by slices must beat.

Each is (n,) numbers, larger for rows to take earlier. A model trained with generalised cross-entropy (learning from
failure) or stopped early (just train twice) is ranked by its own confidence: give its evaluation.
"""

from __future__ import annotations

import numpy as np

from ..core import Array, Evaluation


def by_confidence(rows: Evaluation) -> Array:
    """The less likely the model holds the label to be, the earlier; without labels, the less sure it is."""
    rows.need(frozenset({"probs"}), "a ranking by confidence")
    assert rows.probs is not None
    held = rows.probs.max(axis=1) if rows.labels is None else rows.probs[np.arange(len(rows)), rows.labels]
    doubt: Array = 1 - held.astype(np.float64)
    return doubt


def by_chance(rows: Evaluation, seed: int = 0) -> Array:
    """Any row as well as another. By id, so that the order of the rows does not matter."""
    chance, order = np.random.default_rng(seed), np.argsort(rows.row_ids, kind="stable")
    ranks = np.empty(len(rows))
    ranks[order] = chance.random(len(rows))
    return ranks
