"""The slices of two audits under both models, on the rows that the audits share.

A slice was confirmed because its model errs in it on held-out rows, so a second model that is no better looks better
there. Which slices were tested was decided on search rows alone: intervals that hold together over all of them hold
whichever were confirmed. So the level allows for every slice that was tested, not for those that are shown. The change
itself is shown without regression to the mean (`regression.py`). The rest of the rows is chosen by the same outcomes,
and looks worse under any other model; it is not measured.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from .audit import Audit, Slice
from .blocks import Array
from .comparison import Group
from .confirm import SplitTask
from .evaluation import Evaluation
from .judgement import DRAWN, NO_LABEL, kept
from .known_slices import audited_trials, count_tested, shared_rows, split_of
from .regression import flattery

MOSTLY = 0.5  # of the rows of a slice: one that the first audit holds so many of is not new


def why_no_loops(audit: Audit) -> str:
    """Why loops that people drew cannot be compared on the rows of their own audit; "" where they can."""
    return "" if len(audit.overall) == 1 else NO_LABEL


def drawn_words(slices: Sequence[Slice]) -> list[str]:
    """What is to be said of loops among slices that are compared on the rows they were drawn around."""
    ids = [slice_.id for slice_ in slices if slice_.method == DRAWN]
    if not ids:
        return []
    verb = "was" if len(ids) == 1 else "were"
    return [
        f"{', '.join(ids)} {verb} drawn with the errors in sight: there, a model that is no better looks better, and "
        "by how much is not known."
    ]


def known_groups(audit: Audit, rows: Array, after: Evaluation, slices: Sequence[Slice]) -> Iterator[Group]:
    """Yield each of some slices of an audit, on rows that were held out from its search.

    Rows that people moved are where the slice was found: who moved them may have seen their outcomes.

    Parameters
    ----------
    audit : Audit
        Of the first model.
    rows : array
        (m,) numbers of the rows of the audit that the second model was measured on.
    after : Evaluation
        Those rows, in that order, under the second model.
    slices : sequence of Slice
        Of the audit.
    """
    trials = audited_trials(audit)
    later = dict(after.tasks())
    for slice_ in slices:
        trial = trials[slice_.task]
        parts = _parts(slice_)
        inside = np.any([_held_out(audit, part) for part in parts], axis=0)
        yield Group(
            slice_.id,
            slice_.name,
            slice_.task,
            inside[rows],
            trial.outcome[rows],
            trial.outcome_of(later[slice_.task]),
            regression=_flattery(audit, parts, inside, trials),
        )


def _parts(slice_: Slice) -> list[Slice]:
    """The slice and those merged into it, as they were found."""
    if slice_.judged is None:
        return [slice_]
    return [slice_.judged.found, *slice_.judged.merged]


def _held_out(audit: Audit, slice_: Slice) -> Array:
    held_out = audit.discover if slice_.confirmed_on == "discover" else ~audit.discover
    inside: Array = slice_.members & held_out
    return inside


def _flattery(audit: Audit, parts: list[Slice], inside: Array, trials: Mapping[str, SplitTask]) -> float | None:
    """How much too high the rate of the parts together is; None where none of them was confirmed on these rows."""
    if all(part.verdict != "confirmed" for part in parts):
        return None
    counted = np.zeros(len(inside), dtype=bool)
    errors = 0.0
    for part in parts:
        own = _held_out(audit, part)
        errors += flattery(split_of(part, trials), part, count_tested(audit)) * int((own & ~counted).sum())
        counted |= own
    return errors / max(int(inside.sum()), 1)


def new_groups(first: Audit, second: Audit) -> list[Group]:
    """Slices that the second audit confirmed, and of whose rows the first audit's confirmed slices hold few.

    On the rows that both audits have, in the order of the first (`shared_rows`). These rows confirmed them for the
    second model: there a model that is no worse looks worse, and the correction has the other sign.
    """
    mine, theirs = shared_rows(first.evaluation, second.evaluation)
    before = dict(first.evaluation.rows(mine).tasks())
    trials = audited_trials(second)
    groups = []
    for slice_ in kept(second):
        confirmed = slice_.verdict == "confirmed" and slice_.side == "hard"
        if not confirmed or slice_.task not in before or _is_known(first, slice_.members[theirs], mine):
            continue
        trial = trials[slice_.task]
        earlier = trial.outcome_of(before[slice_.task])
        inside = _held_out(second, slice_)
        excess = _flattery(second, _parts(slice_), inside, trials) or 0.0
        group = Group(f"new-{slice_.id}", slice_.name, slice_.task, inside[theirs], earlier, trial.outcome[theirs])
        groups.append(replace(group, kind="new", regression=-excess))
    return groups


def _is_known(first: Audit, members: Array, mine: Array) -> bool:
    """Whether at least half of some rows lie in confirmed slices of the first audit."""
    held = [slice_.members[mine] for slice_ in first.confirmed if slice_.side == "hard"]
    if not held:
        return False
    covered = int((np.any(held, axis=0) & members).sum())
    return covered >= MOSTLY * max(int(members.sum()), 1)
