"""The frozen slices of an audit on any rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from .audit import Audit, Slice
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
        or a label where these rows have none, and slices that are a list of rows where these are other rows. Of an
        audit as people left it, a slice holds what was merged into it; rows that people moved are moved nowhere else.

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
    same_ids = bool(np.isin(evaluation.row_ids, audit.evaluation.row_ids).all())
    placing = _Placing(audit, dict(evaluation.tasks()), evaluation, same_ids, place)
    weights: dict[str, Array] = {}
    for slice_ in audit.slices:
        judged = slice_.judged
        if judged is not None and judged.decided.into is not None:
            continue  # its rows are those of the slice that it was merged into
        merged = () if judged is None else judged.merged
        parts = [placing.weights(part) for part in (slice_, *merged)]
        if all(part is not None for part in parts):
            weights[slice_.id] = _joined(slice_, merged, parts)
    return weights


@dataclass
class _Placing:
    """Some rows, and the memberships of slicers that were asked so far."""

    audit: Audit
    tasks: Mapping[str, Evaluation]
    evaluation: Evaluation
    same_ids: bool
    place: Place | None
    memberships: dict[tuple[str, str], Array] = field(default_factory=dict)

    def weights(self, slice_: Slice) -> Array | None:
        """(n,) of a slice; None where it cannot be placed among these rows."""
        rows = self.tasks.get(slice_.task, self.evaluation)
        if not slice_.slicer or slice_.column < 0 or not can_place(rows, slice_.rule.get("scope")):
            return None
        if slice_.rule.get("kind") == "ids" and not self.same_ids:
            return None
        key = slice_.slicer, slice_.task
        if key not in self.memberships:
            slicer = self.audit.slicers[slice_.slicer]
            self.memberships[key] = slicer.membership(rows) if self.place is None else self.place(slicer, rows)
        return scoped(slice_.rule, rows, self.memberships[key][:, slice_.column])


def _joined(slice_: Slice, merged: Sequence[Slice], parts: Sequence[Any]) -> Array:
    """(n,) weights of a slice with those that people merged into it: a member of one is a member."""
    weights: Array = parts[0]
    for other, own in zip(merged, parts[1:], strict=True):
        weights = np.where(own >= other.threshold, np.maximum(weights, slice_.threshold), weights)
    return weights


def scoped(rule: Mapping[str, Any], evaluation: Evaluation, weights: Array) -> Array:
    """(n,) weights that are zero outside the scope of a rule."""
    if not rule.get("scope"):
        return weights
    inside = rows_in_scope(evaluation, rule["scope"])
    return fill_rows(lambda some, within: some * within, weights.dtype, weights, inside)
