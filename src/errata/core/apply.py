"""The frozen slices of an audit on any rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from .audit import Audit
from .blocks import Array
from .evaluation import Evaluation
from .scope import can_place, rows_in_scope
from .scratch import fill_rows

Place = Callable[[Any, Evaluation], Array]


def apply(audit: Audit, evaluation: Evaluation, *, place: Place | None = None) -> dict[str, Array]:
    """Find the members of an audit's slices among other rows.

    Parameters
    ----------
    audit : Audit
        The audit whose slices are applied. They stay as they are.
    evaluation : Evaluation
        Any rows with the representations that the slices read. Labels and predictions are needed only by slices
        within one of them.
    place : callable, optional
        From a fitted slicer and rows to (n, s) weights; by default the slicer's own `membership`, of all rows at once.

    Returns
    -------
    dict
        Slice id -> (n,) weights; a row is a member where its weight is at least the slice's threshold. Slices that
        only the outcome defines, and that have no approximation, are left out, and so are slices within a prediction
        or a label where these rows have none, and slices that are a list of rows where these are other rows.

    Examples
    --------
    >>> import numpy as np
    >>> import errata
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(1000, 2))
    >>> labels = rng.integers(0, 2, 1000)
    >>> wrong = rng.random(1000) < np.where(x[:, 0] > 1, 0.8, 0.05)
    >>> evaluation = errata.Evaluation(
    ...     labels=labels, predictions=np.where(wrong, 1 - labels, labels), representations={"x": x}
    ... )
    >>> audit = errata.audit(evaluation, methods=["gmm"])
    >>> new = rng.normal(size=(500, 2))
    >>> weights = errata.apply(audit, errata.Evaluation(representations={"x": new}))
    >>> worst = audit.slices[0]
    >>> inside = weights[worst.id] >= worst.threshold
    >>> bool(new[inside, 0].mean() > 1)
    True
    """
    tasks = dict(evaluation.tasks())
    same_ids = bool(np.isin(evaluation.row_ids, audit.evaluation.row_ids).all())
    memberships: dict[tuple[str, str], Array] = {}
    weights: dict[str, Array] = {}
    for slice_ in audit.slices:
        rows = tasks.get(slice_.task, evaluation)
        if slice_.column < 0 or not can_place(rows, slice_.rule.get("scope")):
            continue
        if slice_.rule.get("kind") == "ids" and not same_ids:
            continue
        key = slice_.slicer, slice_.task
        if key not in memberships:
            slicer = audit.slicers[slice_.slicer]
            memberships[key] = slicer.membership(rows) if place is None else place(slicer, rows)
        weights[slice_.id] = scoped(slice_.rule, rows, memberships[key][:, slice_.column])
    return weights


def scoped(rule: Mapping[str, Any], evaluation: Evaluation, weights: Array) -> Array:
    """(n,) weights that are zero outside the scope of a rule."""
    if not rule.get("scope"):
        return weights
    inside = rows_in_scope(evaluation, rule["scope"])
    return fill_rows(lambda some, within: some * within, weights.dtype, weights, inside)
