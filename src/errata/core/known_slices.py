"""The confirmed slices of an audit under another model, on the rows that confirmed them.

A slice was confirmed because the first model errs in it on held-out rows, so a second model that is no better looks
better there. Which slices were tested was decided on search rows alone: intervals that hold together over all of them
hold whichever were confirmed. So the level allows for every slice that was tested, not for those that are shown. The
rest of the rows is chosen by the same outcomes, and looks worse under any other model; it is not measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from .audit import Audit
from .blocks import Array
from .comparison import Group
from .confirm import Settings, SplitTask
from .evaluation import Evaluation


def audited_trials(audit: Audit) -> dict[str, SplitTask]:
    """Task -> its rows, split and with the tolerance that they were audited with."""
    settings = Settings(tolerance=audit.settings.get("tolerance"))
    return {task: SplitTask(view, audit.discover, settings) for task, view in audit.evaluation.tasks()}


def known_groups(audit: Audit, rows: Array, after: Evaluation) -> Iterator[Group]:
    """Yield each confirmed slice that is worse than the rest, on rows that were held out from its search.

    Parameters
    ----------
    audit : Audit
        Of the first model.
    rows : array
        (m,) numbers of the rows of the audit that the second model was measured on.
    after : Evaluation
        Those rows, in that order, under the second model.
    """
    later = dict(after.tasks())
    for task, trial in audited_trials(audit).items():
        outcomes: dict[str, Any] = {"before": trial.outcome[rows], "after": trial.outcome_of(later[task])}
        for slice_ in audit.confirmed:
            if slice_.side != "hard" or slice_.task != task:
                continue
            held_out = audit.discover if slice_.confirmed_on == "discover" else ~audit.discover
            inside = (slice_.members & held_out)[rows]
            yield Group(slice_.id, slice_.name, task, inside, **outcomes)


def count_tested(audit: Audit) -> int:
    """How many slices an audit tested, those merged into others among them."""
    return max(int(audit.settings.get("tested", 0)), len(audit.slices), 1)


def shared_rows(first: Evaluation, second: Evaluation) -> tuple[Array, Array]:
    """Row numbers of the ids that both have, in the order of the first."""
    _, mine, theirs = np.intersect1d(first.row_ids, second.row_ids, return_indices=True)
    order = np.argsort(mine, kind="stable")
    return mine[order], theirs[order]


def first_other_label(before: Evaluation, after: Evaluation) -> int | None:
    """The first row whose label differs between the two; None where all are the same or one has none."""
    if before.labels is None or after.labels is None:
        return None
    if before.class_names and after.class_names and before.labels.ndim == 1:
        # Classes that were given as text are numbered by each file for itself.
        differ = np.array(before.class_names)[before.labels] != np.array(after.class_names)[after.labels]
    else:
        differ = np.atleast_2d((before.labels != after.labels).T).any(axis=0)
    rows = np.flatnonzero(differ)
    return int(rows[0]) if len(rows) else None
