"""Rows held out to prove a fix on, and what another model changed in the slices of an audit on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import numpy as np

from ..core import Array, Audit, Comparison, Evaluation, InputError, Plan, Slice
from ..core.comparison import Group, measure
from ..core.confirm import Settings, SplitTask
from ..core.grouping import copies_mask
from ..core.searched import ERROR, for_metric
from .targets import place_targets, refuse_audited, target_slices

Model = TypeVar("Model")


def hold_out(evaluation: Evaluation, share: float = 0.3) -> tuple[Evaluation, Evaluation]:
    """Split rows into rows to audit and rows held out to prove a fix on.

    Rows are split by their ids, within every class; rows of one group stay together, and so do copies.

    Parameters
    ----------
    evaluation : Evaluation
        The rows to split.
    share : float
        Share of the rows to hold out, between 0 and 1.

    Returns
    -------
    tuple of Evaluation
        (rows to audit, rows held out).

    Examples
    --------
    >>> import numpy as np
    >>> import errata
    >>> evaluation = errata.Evaluation(losses=np.arange(100.0))
    >>> audited, held_out = errata.hold_out(evaluation, share=0.3)
    >>> len(audited), len(held_out)
    (70, 30)
    """
    if not 0 < share < 1:
        raise InputError(f"`share` must be between 0 and 1; got {share}")
    mask = copies_mask(evaluation, share)
    if mask.all() or not mask.any():
        raise InputError(f"{len(evaluation)} rows cannot be split {share:g} to {1 - share:g}; give more rows")
    return evaluation.rows(~mask), evaluation.rows(mask)


def recheck(
    audit: Audit,
    before: Evaluation,
    after: Evaluation,
    *,
    slices: Sequence[str] | None = None,
    alpha: float = 0.05,
) -> Comparison:
    """Compare two models in the slices of an audit, on held-out rows.

    Parameters
    ----------
    audit : Audit
        The audit whose slices are compared. They stay as they are.
    before : Evaluation
        Held-out rows under the audited model, with the representations that the slices read. It alone decides which
        rows lie in which slice.
    after : Evaluation
        The same rows under the other model. Only its outcomes are read.
    slices : list of str, optional
        Slices to compare: ids, "accepted", "confirmed" or "all". Default: those that people accepted where there are
        any (`load(..., judged=True)`), else the confirmed ones.
    alpha : float
        Chance that any of the intervals misses, on each side.

    Returns
    -------
    Comparison
        One change for all rows, one for the rows outside every slice, one for each slice.

    Examples
    --------
    >>> import numpy as np
    >>> import errata
    >>> def rows(first_id, hard, n=2000):
    ...     rng = np.random.default_rng(first_id)
    ...     x = rng.normal(size=(n, 2))
    ...     labels = rng.integers(0, 2, n)
    ...     wrong = rng.random(n) < np.where(x[:, 0] > 1, hard, 0.05)
    ...     predictions = np.where(wrong, 1 - labels, labels)
    ...     ids = np.arange(n) + first_id
    ...     return errata.Evaluation(labels=labels, predictions=predictions, representations={"x": x}, ids=ids)
    >>> audit = errata.audit(rows(0, hard=0.8), methods=["gmm"])
    >>> comparison = errata.recheck(audit, before=rows(5000, hard=0.8), after=rows(5000, hard=0.1))
    >>> comparison["s1"].judgement
    'better'
    """
    if not 0 < alpha < 0.5:
        raise InputError(f"`alpha` must be between 0 and 0.5; got {alpha}")
    refuse_audited(audit, before, "in `before`")
    after = _aligned(before, after)
    before = _as_audited(audit, before)
    after = _as_audited(audit, after)
    targets = target_slices(audit, slices)
    groups = list(_groups(audit, targets, before, after))
    changes = tuple(measure(group, before.groups, alpha / len(groups)) for group in groups)
    outcome = audit.overall[0][1].outcome
    return Comparison(changes, outcome, alpha, {"rows": len(before), "slices": [slice_.id for slice_ in targets]})


def correct(
    audit: Audit,
    plan: Plan,
    train: Callable[[Plan], Model],
    measured: Callable[[Model], Evaluation],
    before: Evaluation,
) -> tuple[Model, Comparison]:
    """Train a model by a plan, and compare it with the audited one on held-out rows.

    Parameters
    ----------
    audit : Audit
        The audit that the plan was made from.
    plan : Plan
        What to change in training.
    train : callable
        Takes the plan and returns a trained model.
    measured : callable
        Takes that model and returns its Evaluation on the rows of `before`.
    before : Evaluation
        Held-out rows under the audited model.

    Returns
    -------
    tuple
        (the trained model, the Comparison).

    Examples
    --------
    >>> import numpy as np
    >>> import errata
    >>> def rows(first_id, hard, n=2000):
    ...     rng = np.random.default_rng(first_id)
    ...     x = rng.normal(size=(n, 2))
    ...     labels = rng.integers(0, 2, n)
    ...     wrong = rng.random(n) < np.where(x[:, 0] > 1, hard, 0.05)
    ...     predictions = np.where(wrong, 1 - labels, labels)
    ...     ids = np.arange(n) + first_id
    ...     return errata.Evaluation(labels=labels, predictions=predictions, representations={"x": x}, ids=ids)
    >>> audit = errata.audit(rows(0, hard=0.8), methods=["gmm"])
    >>> plan = errata.plan_weights(audit, rows(5000, hard=0.8))
    >>> model, comparison = errata.correct(
    ...     audit,
    ...     plan,
    ...     train=lambda plan: "a model that is right more often",
    ...     measured=lambda model: rows(10_000, hard=0.1),
    ...     before=rows(10_000, hard=0.8),
    ... )
    >>> comparison["s1"].judgement
    'better'
    """
    if not len(plan):
        raise InputError(f"the plan is empty: {plan.why}")
    refuse_audited(audit, before, "in `before`")  # before hours of training, not after
    model = train(plan)
    return model, recheck(audit, before, measured(model), slices=plan.slices)


def _as_audited(audit: Audit, rows: Evaluation) -> Evaluation:
    """Return the rows that count for what the audit searched for, with its outcomes."""
    settings = audit.settings
    return for_metric(rows, settings.get("metric", ERROR), settings.get("positive"))[0]


def _aligned(before: Evaluation, after: Evaluation) -> Evaluation:
    """Return `after` in the row order of `before`."""
    if len(before) != len(after) or not np.array_equal(np.sort(before.row_ids), np.sort(after.row_ids)):
        odd = np.setxor1d(before.row_ids, after.row_ids)
        raise InputError(f"both models must be measured on the same rows; {len(odd)} ids differ, such as {odd[0]!r}")
    order = np.argsort(after.row_ids, kind="stable")
    after = after.rows(order[np.argsort(np.argsort(before.row_ids, kind="stable"))])
    if before.labels is not None and after.labels is not None:
        differ = np.flatnonzero(np.atleast_2d((before.labels != after.labels).T).any(axis=0))
        if len(differ):
            row = before.row_ids[differ[0]]
            raise InputError(
                f"row {row!r} has different labels in `before` and `after` ({len(differ)} rows); give the same ones"
            )
    return after


def _groups(audit: Audit, targets: list[Slice], before: Evaluation, after: Evaluation) -> Iterator[Group]:
    """Yield, for each task, all rows, the rows outside every slice, and each slice."""
    weights = place_targets(audit, targets, before) if targets else {}
    audited = dict(audit.evaluation.tasks())
    earlier = dict(before.tasks())
    later = dict(after.tasks())
    settings = Settings(tolerance=audit.settings.get("tolerance"))
    for task, _ in audit.overall:
        trial = SplitTask(audited[task], audit.discover, settings)
        outcomes = (trial.outcome_of(earlier[task]), trial.outcome_of(later[task]))
        slices = [slice_ for slice_ in targets if slice_.task == task]
        inside = {slice_.id: weights[slice_.id] >= slice_.threshold for slice_ in slices}
        yield Group("overall", "all rows", task, np.ones(len(before), dtype=bool), *outcomes, kind="all")
        if slices:
            rest: Array = ~np.any(list(inside.values()), axis=0)
            yield Group("rest", "the rest", task, rest, *outcomes, kind="rest")
        for slice_ in slices:
            yield Group(slice_.id, slice_.name, task, inside[slice_.id], *outcomes)
