"""The plan `weights`: training rows that lie in a slice count more."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..core import Array, Audit, Evaluation, InputError, Plan
from .targets import no_targets, place_targets, refuse_audited, target_slices


def plan_weights(audit: Audit, train: Evaluation, factor: float = 2.0, *, slices: Sequence[str] | None = None) -> Plan:
    """Give the training rows that lie in a slice a larger weight.

    Parameters
    ----------
    audit : Audit
        The audit whose slices are to be fixed.
    train : Evaluation
        The training rows, with the representations that the slices read. None of them may have been audited.
    factor : float
        The weight of a row in a slice; other rows keep the weight 1.
    slices : list of str, optional
        Slices to fix: ids, "accepted", "confirmed" or "all". Default: those that people accepted where there are any
        (`load(..., judged=True)`), else the confirmed ones.

    Returns
    -------
    Plan
        Ids and weights; `plan.weights_of(train)` is the `sample_weight` to train with.

    Examples
    --------
    >>> import numpy as np
    >>> import errata
    >>> def rows(first_id, n=1000):
    ...     rng = np.random.default_rng(first_id)
    ...     x = rng.normal(size=(n, 2))
    ...     labels = rng.integers(0, 2, n)
    ...     wrong = rng.random(n) < np.where(x[:, 0] > 1, 0.8, 0.05)
    ...     predictions = np.where(wrong, 1 - labels, labels)
    ...     ids = np.arange(n) + first_id
    ...     return errata.Evaluation(labels=labels, predictions=predictions, representations={"x": x}, ids=ids)
    >>> audit = errata.audit(rows(0), methods=["gmm"])
    >>> train = rows(5000)
    >>> plan = errata.plan_weights(audit, train, factor=4)
    >>> sorted(set(plan.weights_of(train).tolist()))
    [1.0, 4.0]
    """
    check_factor(factor)  # also where nothing is to be weighted
    targets = target_slices(audit, slices)
    if not targets:
        return Plan("weights", no_targets(audit))
    refuse_audited(audit, train, "training rows")
    weights = place_targets(audit, targets, train)
    flagged = np.any([weights[slice_.id] >= slice_.threshold for slice_ in targets], axis=0)
    ids = tuple(slice_.id for slice_ in targets)
    why = f"{int(flagged.sum()):,} of {len(train):,} rows lie in {', '.join(ids)} and count {factor:g} times"
    return upweight(train, flagged, factor, slices=ids, why=why)


def check_factor(factor: float) -> None:
    """Raise for what is no weight."""
    if not (np.isfinite(factor) and factor > 0):
        raise InputError(f"`factor` must be a positive number; got {factor}")


def upweight(
    rows: Evaluation, flagged: Array, factor: float = 2.0, *, slices: tuple[str, ...] = (), why: str = ""
) -> Plan:
    """Give the flagged rows the weight `factor`.

    Parameters
    ----------
    rows : Evaluation
        The training rows.
    flagged : array of shape (n,), bool
        Which of them get the weight.
    factor : float
        The weight, a positive number.
    slices : tuple of str
        Ids of the slices that the plan is for.
    why : str
        The plan's sentence. Default: how many rows count how often.
    """
    check_factor(factor)
    if flagged.shape != (len(rows),):
        raise InputError(f"`flagged` must have one value for each of {len(rows)} rows; got shape {flagged.shape}")
    ids = rows.row_ids[flagged]
    why = why or f"{len(ids):,} of {len(rows):,} rows count {factor:g} times"
    return Plan("weights", why, ids, np.full(len(ids), float(factor)), slices=slices, facts={"factor": factor})
