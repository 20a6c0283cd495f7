"""A hypothesis that holds becomes a slice of its audit: tested with all others, explained, saved.

It was chosen among all hypotheses that were tested on the same held-out rows, so all of them join the family: every
slice is judged anew as one of the slices that were tested and the hypotheses together.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from .. import store
from ..core import Audit, InputError, Slice
from ..core.confirm import SliceCandidate, SliceResult, SplitTask, can_test, confirm_all
from ..core.judgement import as_left
from ..core.known_slices import audited_trials, candidate_of, count_tested, split_of
from ..explain import explain_added
from ..hypothesis import OwnSlices, untestable, with_slice
from ..report import to_html
from .auditing import describe_silence, drawn_clusters, load
from .judging import judgement_of
from .searching import search_key

KEPT = "hypotheses"  # in the settings: how many are `counted` among the slices tested, and ids of those `kept`


def keep(audit: Audit, hypothesis: str, *, hypotheses: int = 1, task: str = "") -> Audit:
    """Return the audit with a hypothesis as one of its slices.

    Parameters
    ----------
    audit : Audit
        Its slices keep their ids; their verdicts allow for the hypotheses too.
    hypothesis : str
        A condition on columns, or words that must occur in a row.
    hypotheses : int
        How many were tested on these rows, with this one.
    task : str
        The label, in a multi-label audit.

    Returns
    -------
    Audit
        With the new slice, in order of importance. Its id is one after the last.
    """
    trials = audited_trials(audit)
    if task not in trials:
        raise InputError(f"unknown task `{task}`; known: {', '.join(trials)}")
    key = _key(audit, task)
    own = with_slice(audit.slicers.get(key), hypothesis.strip(), hypothesis, trials[task].evaluation)
    added = _candidate(own, trials[task])
    _check(audit, own, added, trials[task], task)
    id = _next_id(audit)
    earlier = audit.settings.get(KEPT, {"counted": 0, "kept": []})
    kept = [*earlier["kept"], id]
    counted = max(hypotheses, earlier["counted"], len(kept))
    tested = count_tested(audit) - earlier["counted"] + counted
    family = [(split_of(slice_, trials), candidate_of(slice_)) for slice_ in audit.slices]
    results = confirm_all([*family, (trials[task], added)], tested=tested)
    judged = [_judged(slice_, result) for slice_, result in zip(audit.slices, results[:-1], strict=True)]
    plain = replace(
        audit,
        slices=tuple(judged),
        slicers={**audit.slicers, key: own},
        settings={**audit.settings, "tested": tested, KEPT: {"counted": counted, "kept": kept}},
        silence=_silence(audit, trials, tested),
    )
    slice_ = _new_slice(id, task, key, results[-1])
    explained = explain_added(plain, slice_, seed=int(audit.settings.get("seed", 0)), clusters=drawn_clusters(plain))
    return _ordered(explained, results)


def keep_in_folder(folder: str | Path, hypothesis: str, *, hypotheses: int = 1, task: str = "") -> tuple[Audit, Slice]:
    """Add a hypothesis to the slices of a saved audit. Two at once wait for each other.

    Returns the audit as it is saved now, and the new slice.
    """
    folder = Path(folder)
    with store.sole_writer(folder):
        before = load(folder)
        after = keep(before, hypothesis, hypotheses=hypotheses, task=task)
        left = as_left(after, judgement_of(before, folder))
        store.update(after, folder, report=to_html(left), changed=[_key(after, task)])
    known = {slice_.id for slice_ in before.slices}
    (added,) = [slice_ for slice_ in after.slices if slice_.id not in known]
    return after, added


def _key(audit: Audit, task: str) -> str:
    """What names the slicer of the user's own slices, as the searches have it."""
    tasks = [name for name, _ in audit.evaluation.tasks()]
    return search_key(OwnSlices.name, task, tasks.index(task))


def _candidate(own: OwnSlices, trial: SplitTask) -> SliceCandidate:
    column = len(own.slices) - 1
    weights = own.membership(trial.evaluation)[:, column]
    return SliceCandidate(OwnSlices.name, column, weights, float(own.thresholds_[column]), own.rules_[column])


def _check(audit: Audit, own: OwnSlices, added: SliceCandidate, trial: SplitTask, task: str) -> None:
    for slice_ in audit.slices:
        if slice_.task == task and np.array_equal(slice_.members, added.members):
            raise InputError(f"slice {slice_.id} “{slice_.name}” holds the same rows already; nothing was kept")
    for sentence in untestable(OwnSlices(own.slices[-1:]), trial.evaluation, trial.discover):
        raise InputError(sentence)
    if not can_test(trial, added):
        raise InputError("it has too few rows, or too few others, to be tested; nothing was kept")


def _judged(slice_: Slice, result: SliceResult) -> Slice:
    return replace(slice_, **result.judgement)


def _new_slice(id: str, task: str, key: str, result: SliceResult) -> Slice:
    candidate = result.candidate
    return Slice(
        id=id,
        method=OwnSlices.name,
        name="",  # `explain_added` names it
        threshold=candidate.threshold,
        rule=candidate.rule,
        weights=candidate.weights,
        slicer=key,
        column=candidate.index,
        task=task,
        discover=result.search,
        found_by=(OwnSlices.name,),
        **result.judgement,
    )


def _next_id(audit: Audit) -> str:
    return f"s{1 + max((int(slice_.id.removeprefix('s')) for slice_ in audit.slices), default=0)}"


def _silence(audit: Audit, trials: Mapping[str, SplitTask], tested: int) -> str:
    """Return what could have been missed: the sentence of the test anew, those of the search as they are."""
    return "\n".join([describe_silence(trials, tested), *audit.silence.splitlines()[1:]])


def _ordered(audit: Audit, results: list[SliceResult]) -> Audit:
    """Return the audit with its slices by importance, which verdicts and the new one may have changed."""
    order = sorted(range(len(results)), key=lambda i: results[i].priority)
    return replace(audit, slices=tuple(audit.slices[i] for i in order))
