"""The plan `labels`: training rows that pull a slice the wrong way and whose neighbours have another label."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from ..core import Array, Audit, Evaluation, InputError, Plan
from ..core.errors import unknown
from ..core.evaluation import INFLUENCE
from ..explain.relabel import neighbour_labels
from ..explain.training_rows import has_influence, influence_on
from .selection import by_chance
from .targets import check_whole, no_targets, refuse_audited, target_slices

Action = Literal["relabel", "drop"]
By = Literal["opponents", "loss", "random"]
ACTIONS = ("relabel", "drop")
ORDERS = ("opponents", "loss", "random")
LOOKED_AT = 20  # rows for each one that is wanted whose neighbours are searched, the first of the order


def plan_labels(
    audit: Audit,
    train: Evaluation,
    count: int = 200,
    *,
    action: Action = "relabel",
    by: By = "opponents",
    slices: Sequence[str] | None = None,
    seed: int = 0,
) -> Plan:
    """Relabel or drop the training rows that raise the loss of a slice's errors most and differ from their neighbours.

    Parameters
    ----------
    audit : Audit
        The audit whose slices are to be fixed, with influence embeddings. The wrong members of the slices choose, of an
        approximation its own and not those of the cluster behind it: that is what was tested and what the fix is
        measured on. These rows choose, and must not prove.
    train : Evaluation
        The training rows, with influence embeddings of the same factor; `errata.plan_labels` and the command make both.
    count : int
        Rows to change, at most.
    action : {"relabel", "drop"}
        Give them the commonest label of their ten nearest neighbours, or the weight 0.
    by : {"opponents", "loss", "random"}
        What order rows are taken in: opponents of the slices' errors; "loss" (the highest training loss) and "random"
        are baselines. All of them leave out rows whose neighbours mostly have their label.
    slices : list of str, optional
        Slices to fix: ids, "accepted", "confirmed" or "all". Default: those that people accepted where there are any
        (`load(..., judged=True)`), else the confirmed ones.
    seed : int
        Of the random order.

    Returns
    -------
    Plan
        `plan.labels_of(train)` are the labels to train with, `plan.weights_of(train)` the weights.
    """
    _check(count, action, by)
    targets = target_slices(audit, slices)
    if not targets:
        return Plan("labels", no_targets(audit))
    refuse_audited(audit, train, "training rows")
    if train.labels is None or train.task != "classification":
        raise InputError("a plan of labels needs training rows with classes as labels; add `labels`")
    inside = np.any([slice_.members for slice_ in targets], axis=0)
    order = _order(audit, train, inside, by, seed)[: LOOKED_AT * count]
    suggested, _ = neighbour_labels(train, order)
    doubtful = np.flatnonzero(suggested != train.labels[order])[:count]
    return _plan(train, order[doubtful], suggested[doubtful], action, by, tuple(slice_.id for slice_ in targets))


def _check(count: int, action: str, by: str) -> None:
    check_whole("count", count, least=1)
    if action not in ACTIONS:
        raise unknown("action", action, ACTIONS)
    if by not in ORDERS:
        raise unknown("order of training rows", by, ORDERS)


def _order(audit: Audit, train: Evaluation, inside: Array, by: str, seed: int) -> Array:
    """(m,) numbers of training rows, those to change first."""
    if by == "random":
        return np.argsort(by_chance(train, seed), kind="stable")
    if by == "loss":
        train.need(frozenset({"losses"}), "an order by training loss")
        return np.argsort(-np.asarray(train.losses), kind="stable")
    if not has_influence(audit.evaluation, train):
        raise InputError(
            f"opponents need the representation `{INFLUENCE}` of one factor in the audit and in `train`; call "
            "errata.plan_labels or `errata plan labels`, which make it from the last layer"
        )
    errors = audit.evaluation.errors
    asked = inside if errors is None else inside & errors
    scores = influence_on(audit.evaluation.representations[INFLUENCE], train, asked)
    return np.argsort(scores, kind="stable")[: int((scores < 0).sum())]


def _plan(train: Evaluation, rows: Array, suggested: Array, action: str, by: str, slices: tuple[str, ...]) -> Plan:
    ids = train.row_ids[rows]
    facts = {"action": action, "by": by}
    counted = f"{len(ids):,} of {len(train):,} training rows that oppose {', '.join(slices)}"
    if by != "opponents":
        counted = f"{len(ids):,} of {len(train):,} training rows, by {by},"
    if action == "drop":
        why = f"leave out {counted} and whose neighbours have another label"
        return Plan("labels", why, ids, np.zeros(len(ids)), slices=slices, facts=facts)
    why = f"give {counted} the label of their neighbours"
    return Plan("labels", why, ids, np.ones(len(ids)), labels=suggested.astype(np.int64), slices=slices, facts=facts)
