"""Whether a method of others reads more of a row's outcome than it declares: its membership moves when that does.

A method that reads the loss, or the label beside the prediction, has slices of errors by construction; `reads` says so,
and an approximation is then confirmed in their place. What a method declares can be wrong. Nothing that it does not
read can move it, so this finds no fault in one that is honest. Ids move with the outcomes: what a method looks up by
them, elsewhere than in the rows that it is given, may be the outcome too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..core import Array, Evaluation
from .contract import OUTCOMES, knows_outcome

MOST_ROWS = 20_000
MOVED = 1e-6  # of a weight in [0, 1]: less may be the rounding of another order of sums
FIELDS = {"label": ("labels",), "prediction": ("predictions", "probs"), "loss": ("losses",)}


def undeclared_slices(slicer: Any, rows: Evaluation, held_out: Array) -> list[int]:
    """The slices whose membership depends on ids, or on outcomes that the method does not declare.

    Parameters
    ----------
    slicer
        A fitted method.
    rows
        All rows.
    held_out
        (n,) bool: those of them that it was not fitted to.
    """
    if is_ours(slicer):
        return []
    rng = np.random.default_rng(0)
    some = _drawn(rows, held_out, rng)
    order = rng.permutation(len(some))
    own = np.asarray(slicer.membership(some))
    fair = [j for j in range(own.shape[1]) if not knows_outcome(slicer, rows, j)]
    hidden = {j: OUTCOMES - _declared(slicer, j) for j in fair}
    moved: dict[frozenset[str], Array] = {}
    for names in set(hidden.values()):
        moved[names] = _moved(slicer, _with_others_names_and_outcomes(some, names, order), own)
    found = [j for j in fair if moved[hidden[j]][j]]
    if found and _moved(slicer, some, own)[found].any():  # the same rows give another membership: it is random
        return []
    return found


def is_ours(slicer: Any) -> bool:
    """Whether a method, and the one that it wraps, is of this package, whose tests hold it to what it declares."""
    inner = getattr(slicer, "slicer", slicer)
    return all(type(part).__module__.startswith("errata.") for part in (slicer, inner))


def _drawn(rows: Evaluation, held_out: Array, rng: np.random.Generator) -> Evaluation:
    """Some of the held-out rows, in the order of their ids; no more of them are copied."""
    index = np.flatnonzero(held_out)
    index = index[np.argsort(rows.row_ids[index], kind="stable")]
    return rows.rows(index[np.sort(rng.permutation(len(index))[:MOST_ROWS])])


def _declared(slicer: Any, j: int) -> frozenset[str]:
    rule = slicer.rules_[j]
    return frozenset(rule.get("reads", slicer.reads)) | (OUTCOMES & frozenset(rule.get("scope") or {}))


def _with_others_names_and_outcomes(rows: Evaluation, names: frozenset[str], order: Array) -> Evaluation:
    """The rows with the id of each taken from another one, and what `names` says from a third."""
    changes = {}
    for field in ("labels", "predictions", "probs", "losses"):
        values = getattr(rows, field)
        if values is not None:
            changes[field] = values
            if any(field in FIELDS[name] for name in names):
                changes[field] = values[order]
    # An id and an outcome of two other rows: together they would be of one row that a method may know.
    return replace(rows.with_outcomes(**changes), ids=rows.row_ids[np.roll(order, 1)])


def _moved(slicer: Any, rows: Evaluation, own: Array) -> Array:
    """(s,) bool: slices of which a row has another weight; all where the method fails on these outcomes alone."""
    try:
        weights = np.asarray(slicer.membership(rows))
    except Exception:  # on the same rows it did not, so it read what it says that it does not
        return np.ones(own.shape[1], dtype=bool)
    if weights.shape != own.shape:
        return np.ones(own.shape[1], dtype=bool)
    differs: Array = (np.abs(weights - own) > MOVED).any(axis=0)
    return differs
