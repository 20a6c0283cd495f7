"""The second conductor: from an audit to a Plan, and from a corrected model to what it changed on rows kept apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal, TypeVar

import numpy as np

from .. import fix
from ..core import Array, Audit, Evaluation, InputError, Slice
from ..core.apply import apply
from ..core.comparison import Comparison, Group, measure
from ..core.confirm import Settings, Trial
from ..core.errors import unknown
from ..core.plan import Plan
from ..core.same_rows import same_rows
from ..core.split import discover_mask

By = Literal["slices", "confidence", "random"]
Side = Literal["hard", "easy", "reference"]
Model = TypeVar("Model")


def keep_apart(evaluation: Evaluation, share: float = 0.3) -> tuple[Evaluation, Evaluation]:
    """(rows to audit, rows kept apart to prove a fix on): by their ids, in every class, whole groups together."""
    if not 0 < share < 1:
        raise InputError(f"`share` of rows to keep apart must lie between 0 and 1; got {share}")
    apart = discover_mask(evaluation, share)
    if apart.all() or not apart.any():
        raise InputError(f"{len(evaluation)} rows cannot be parted {share:g} to {1 - share:g}; give more of them")
    return evaluation.rows(~apart), evaluation.rows(apart)


def plan_weights(audit: Audit, train: Evaluation, factor: float = 2.0, *, slices: Sequence[str] | None = None) -> Plan:
    """Rows of `train` that lie in a slice count `factor` times. slices: ids; left out, the confirmed ones."""
    chosen = _chosen(audit, slices)
    if not chosen:
        return Plan("weights", _nothing(audit))
    _refuse_audited(audit, train, "learnt from")
    weights = apply(audit, train)
    flagged = np.any([weights[found.id] >= found.threshold for found in chosen], axis=0)
    ids = tuple(found.id for found in chosen)
    said = f"{int(flagged.sum()):,} of {len(train):,} rows lie in {', '.join(ids)} and count {factor:g} times"
    return fix.upweight(train, flagged, factor, slices=ids, why=said)


def plan_selection(
    audit: Audit,
    pool: Evaluation,
    per_class: int = 100,
    *,
    slices: Sequence[str] | None = None,
    by: By = "slices",
    seed: int = 0,
) -> Plan:
    """The `per_class` rows of each class that lie deepest in a slice. slices: ids; left out, the confirmed ones.

    by: "confidence" (the least sure of the label) or "random" take no heed of slices: what to compare with.
    """
    if by == "confidence":
        return fix.select(pool, fix.by_confidence(pool), per_class, facts={"by": by})
    if by == "random":
        return fix.select(pool, fix.by_chance(pool, seed), per_class, facts={"by": by, "seed": seed})
    if by != "slices":
        raise unknown("way to select", by, ("slices", "confidence", "random"))
    chosen = _chosen(audit, slices)
    if not chosen:
        return Plan("select", _nothing(audit))
    _refuse_audited(audit, pool, "added")
    weights = apply(audit, pool)
    depth = np.max([weights[found.id] / found.threshold for found in chosen], axis=0)
    return fix.select(pool, depth, per_class, least=0.0, slices=tuple(s.id for s in chosen), facts={"by": by})


def plan_prompts(
    audit: Audit, count: int = 100, *, captions: int = 1, side: Side = "hard", slices: Sequence[str] | None = None
) -> Plan:
    """`count` pictures to draw for each slice, from its captions. slices: ids; left out, the confirmed ones."""
    chosen = _chosen(audit, slices)
    return fix.prompts(chosen, count, captions=captions, side=side) if chosen else Plan("prompts", _nothing(audit))


def recheck(
    audit: Audit,
    before: Evaluation,
    after: Evaluation,
    *,
    slices: Sequence[str] | None = None,
    alpha: float = 0.05,
) -> Comparison:
    """The audit's frozen slices on rows kept apart, under two models. slices: ids; left out, the confirmed ones.

    before: those rows under the audited model, with the representations that the slices read; it alone says which
    rows lie in which slice. after: the same rows under another model; outcomes are all that is read of it.
    """
    if not 0 < alpha < 0.5:
        raise InputError(f"`alpha` must lie between 0 and .5; got {alpha}")
    _refuse_audited(audit, before, "compared on")
    after = _aligned(before, after)
    chosen = _chosen(audit, slices)
    groups = list(_groups(audit, chosen, before, after))
    changes = tuple(measure(group, before.groups, alpha / len(groups)) for group in groups)
    overall = audit.overall[0][1].outcome
    return Comparison(changes, overall, alpha, {"rows": len(before), "slices": [found.id for found in chosen]})


def correct(
    audit: Audit,
    plan: Plan,
    train: Callable[[Plan], Model],
    measured: Callable[[Model], Evaluation],
    before: Evaluation,
) -> tuple[Model, Comparison]:
    """Have a model trained by a plan, and see what it changed on rows kept apart.

    train: follows the plan and returns a model. measured: that model on the rows of `before`, as an Evaluation.
    """
    if not len(plan):
        raise InputError(f"the plan is empty: {plan.why}")
    _refuse_audited(audit, before, "compared on")  # before hours of training, not after
    model = train(plan)
    return model, recheck(audit, before, measured(model), slices=plan.slices)


def _chosen(audit: Audit, ids: Sequence[str] | None) -> list[Slice]:
    """The slices of those ids; without ids, the confirmed ones that are worse than the rest."""
    if ids is None:
        return [found for found in audit.confirmed if found.side == "hard" and found.column >= 0]
    if isinstance(ids, str):
        raise InputError(f"`slices` is a list of ids; got the text {ids!r}; write [{ids!r}]")
    known = {found.id: found for found in audit.slices if found.column >= 0}
    for name in ids:
        if name not in known:
            raise unknown("slice", name, known)
    return [known[name] for name in ids]


def _nothing(audit: Audit) -> str:
    return f"no slice of {len(audit.slices)} is confirmed; name some with `slices` to act on them all the same"


def _refuse_audited(audit: Audit, rows: Evaluation, what: str) -> None:
    """Rows that a slice was found or confirmed on flatter it, and its cure."""
    if shared := same_rows(audit.evaluation, rows):
        raise InputError(f"at least {shared} rows of the audit are also {what}; give rows kept apart from it")


def _aligned(before: Evaluation, after: Evaluation) -> Evaluation:
    """`after` in the order of `before`."""
    if len(before) != len(after) or not np.array_equal(np.sort(before.row_ids), np.sort(after.row_ids)):
        odd = np.setxor1d(before.row_ids, after.row_ids)
        raise InputError(f"both models must be measured on the same rows; {len(odd)} ids differ, such as {odd[0]!r}")
    order = np.argsort(after.row_ids, kind="stable")
    after = after.rows(order[np.argsort(np.argsort(before.row_ids, kind="stable"))])
    if before.labels is not None and after.labels is not None:
        differ = np.flatnonzero(np.atleast_2d((before.labels != after.labels).T).any(axis=0))
        if len(differ):
            row = before.row_ids[differ[0]]
            raise InputError(f"row {row!r} has another label after than before ({len(differ)} such); compare like")
    return after


def _groups(audit: Audit, chosen: list[Slice], before: Evaluation, after: Evaluation) -> Iterator[Group]:
    weights = apply(audit, before) if chosen else {}
    tasks, later, audited = dict(before.tasks()), dict(after.tasks()), dict(audit.evaluation.tasks())
    settings = Settings(tolerance=audit.settings.get("tolerance"))
    for task, _ in audit.overall:
        trial = Trial(audited[task], audit.discover, settings)
        outcomes: dict[str, Any] = {"before": trial.outcome_of(tasks[task]), "after": trial.outcome_of(later[task])}
        own = [found for found in chosen if found.task == task]
        inside = {found.id: weights[found.id] >= found.threshold for found in own}
        everything = np.ones(len(before), dtype=bool)
        yield Group("overall", "all rows", task, everything, **outcomes)
        if own:
            rest: Array = ~np.any(list(inside.values()), axis=0)
            yield Group("rest", "the rest", task, rest, **outcomes)
        for found in own:
            yield Group(found.id, found.name, task, inside[found.id], **outcomes)
