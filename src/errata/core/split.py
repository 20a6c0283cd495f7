"""Which rows are searched and which are held out: a property of the data, never of the run.

A user's seed must not change this split, or a second run with another seed would be another chance for the verdict.
Outcomes must not change it either: rows are never stratified on error or loss.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .blocks import Array
from .evaluation import Evaluation

HASHED = 1 << 18  # names that are texts at one time


def discover_mask(evaluation: Evaluation, share: float = 0.5, copies: Array | None = None) -> Array:
    """Choose the search rows.

    Parameters
    ----------
    evaluation : Evaluation
        Its ids, or groups, decide; rows are stratified by label, or by prediction where there are no labels.
    share : float
        Of the rows that are searched.
    copies : array, optional
        (n,) the same for rows that are copies of each other: they stay together, still stratified. Read where there are
        no groups.

    Returns
    -------
    array
        (n,) bool: True where a row is searched, False where it is held out.
    """
    units = evaluation.row_ids if evaluation.groups is None else evaluation.groups
    keys = _hash_keys(units, evaluation.row_ids)
    if evaluation.groups is not None:
        return _by_group(evaluation.groups, keys, share)
    if copies is not None:
        return _by_copies(evaluation, copies, keys, share)
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
    for names in _runs(np.sort(_as_bytes(ids))):
        base.update(b"\0".join(names.tolist()) + b"\0")
    keys = [np.frombuffer(b"".join(_digests(base, names.tolist())), dtype=">u8") for names in _runs(units)]
    return np.concatenate(keys).astype(np.uint64)


def _as_bytes(names: Array) -> Array:
    """Names as UTF-8, whose order is that of the texts, in an array: millions of texts as objects would fill memory."""
    if names.dtype.kind in "iu" and len(names):
        longest = max(len(str(names.max())), len(str(names.min())))
        return names.astype(f"S{longest}")
    texts = names if names.dtype.kind == "U" else np.array([str(name) for name in names.tolist()])
    return np.char.encode(texts, "utf-8")


def _runs(values: Array) -> Iterator[Array]:
    """The values, some at a time."""
    for start in range(0, len(values), HASHED):
        yield values[start : start + HASHED]


def _digests(base: Any, names: Sequence[Any]) -> Iterator[bytes]:
    for name in names:
        own = base.copy()
        own.update(str(name).encode())
        yield own.digest()


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


def _by_copies(evaluation: Evaluation, copies: Array, keys: Array, share: float) -> Array:
    """As without copies, of which all go where the one with the first id goes, in the stratum that it is in."""
    order = np.argsort(evaluation.row_ids, kind="stable")
    _, first, unit, sizes = np.unique(copies[order], return_index=True, return_inverse=True, return_counts=True)
    leaders = order[first]
    chosen = np.zeros(len(sizes), dtype=bool)
    stratum_of = np.empty(len(evaluation), dtype=np.int64)
    for number, rows in enumerate(_strata(evaluation)):
        stratum_of[rows] = number
    for number in np.unique(stratum_of[leaders]):
        units = np.flatnonzero(stratum_of[leaders] == number)
        units = units[np.argsort(keys[leaders[units]], kind="stable")]
        spare = (int(keys[leaders[units[0]]]) & 0xFFFFFFFF) / 2**32
        before = np.cumsum(sizes[units]) - sizes[units]
        # One row each: as many as int(share * rows + spare).
        chosen[units[before + (sizes[units] - 1) / 2 <= share * sizes[units].sum() + spare - 1]] = True
    mask = np.empty(len(evaluation), dtype=bool)
    mask[order] = chosen[unit]
    return mask
