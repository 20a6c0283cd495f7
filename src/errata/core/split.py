"""Which rows are searched and which are held out: a property of the data, never of the run.

A user's seed must not change this split, or a second run with another seed would be another chance for the verdict.
Outcomes must not change it either: rows are never stratified on error or loss.
"""

from __future__ import annotations

import hashlib

import numpy as np

from .blocks import Array
from .evaluation import Evaluation


def discover_mask(evaluation: Evaluation, share: float = 0.5) -> Array:
    """Choose the search rows.

    Parameters
    ----------
    evaluation : Evaluation
        Its ids, or groups, decide; rows are stratified by label, or by prediction where there are no labels.
    share : float
        Of the rows that are searched.

    Returns
    -------
    array
        (n,) bool: True where a row is searched, False where it is held out.
    """
    units = evaluation.row_ids if evaluation.groups is None else evaluation.groups
    keys = _hash_keys(units, evaluation.row_ids)
    if evaluation.groups is not None:
        return _by_group(evaluation.groups, keys, share)
    mask = np.zeros(len(evaluation), dtype=bool)
    for stratum in _strata(evaluation):
        order = stratum[np.argsort(keys[stratum], kind="stable")]
        # An odd row goes to the side its own hash says: many small classes must not all lean one way.
        # (Low bits: the first row's high bits are small because it comes first.)
        spare = (int(keys[order[0]]) & 0xFFFFFFFF) / 2**32
        mask[order[: int(share * len(order) + spare)]] = True
    return mask


def _hash_keys(units: Array, ids: Array) -> Array:
    """(n,) uint64: blake2b of the fingerprint of all ids followed by each unit's own name."""
    base = hashlib.blake2b(digest_size=8)
    for name in sorted(map(str, ids.tolist())):
        base.update(name.encode() + b"\0")
    keys = np.empty(len(units), dtype=np.uint64)
    for i, name in enumerate(map(str, units.tolist())):
        own = base.copy()
        own.update(name.encode())
        keys[i] = int.from_bytes(own.digest(), "big")
    return keys


def _strata(evaluation: Evaluation) -> list[Array]:
    """Rows by label, by prediction where there is no label, else all together."""
    classes = evaluation.labels if evaluation.labels is not None else evaluation.predictions
    if classes is None or classes.ndim == 2 or evaluation.task == "regression" or classes.dtype.kind == "f":
        return [np.arange(len(evaluation))]
    return [np.flatnonzero(classes == value) for value in np.unique(classes)]


def _by_group(groups: Array, keys: Array, share: float) -> Array:
    """Whole groups, in hash order, until the share of rows is reached."""
    _, first, group, sizes = np.unique(groups, return_index=True, return_inverse=True, return_counts=True)
    order = np.argsort(keys[first], kind="stable")
    before = np.cumsum(sizes[order]) - sizes[order]
    chosen = np.zeros(len(sizes), dtype=bool)
    chosen[order[before + sizes[order] / 2 <= share * len(groups)]] = True
    mask: Array = chosen[group]
    return mask
