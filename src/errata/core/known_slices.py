"""The slices of an audit as its test knew them, and the rows that two evaluations share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

import numpy as np

from .audit import Audit, Slice
from .blocks import Array
from .confirm import Settings, SliceCandidate, SplitTask
from .evaluation import Evaluation


def audited_trials(audit: Audit) -> dict[str, SplitTask]:
    """Task -> its rows, split and with the tolerance that they were audited with."""
    names = [field.name for field in fields(Settings)]
    settings = Settings(**{name: audit.settings[name] for name in names if name in audit.settings})
    return {task: SplitTask(view, audit.discover, settings) for task, view in audit.evaluation.tasks()}


def split_of(slice_: Slice, trials: Mapping[str, SplitTask]) -> SplitTask:
    """The rows that a slice was tested on; of the reverse half of a cross-fit, those that the other half searched."""
    trial = trials[slice_.task]
    if slice_.confirmed_on == "discover":
        return SplitTask(trial.evaluation, trial.confirm, trial.settings)
    return trial


def candidate_of(slice_: Slice) -> SliceCandidate:
    """A slice as it is tested."""
    return SliceCandidate(
        method=slice_.method,
        index=slice_.column,
        weights=slice_.weights,
        threshold=slice_.threshold,
        rule=slice_.rule,
        side=slice_.side,
        fidelity=slice_.fidelity,
    )


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
