"""Error types: slices that know the outcome, as the method found them, with the mistakes of their held-out rows.

Their rows are wrong by construction, so nothing is claimed of how often. They are chosen on search rows alone.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .audit import MOSTLY, ErrorType, Mistake, Slice
from .blocks import Array
from .confirm import SliceCandidate, SplitTask
from .evaluation import Evaluation
from .evidence import log_evidence
from .membership import OVERLAP, jaccard
from .scope import rows_in_scope

FEWEST_ERRORS = 8  # of the search rows
MOST_ERROR_TYPES = 20
MOST_CENTRAL = 6
MOST_MISTAKES = 3


@dataclass(frozen=True, eq=False)
class OutcomeSlice:
    """A slice that knows the outcome, beside the set that is told before the outcome.

    Attributes
    ----------
    split, task
        The rows it was found on, and their label in a multi-label audit.
    slicer : str
        The key of the method that found it, in `Audit.slicers`.
    own : SliceCandidate
        The slice as the method has it.
    approximation : SliceCandidate, optional
        What is tested in its place; None where nothing tells its rows before the outcome.
    """

    split: SplitTask
    task: str
    slicer: str
    own: SliceCandidate
    approximation: SliceCandidate | None


def find_error_types(found: Sequence[OutcomeSlice], slices: Sequence[Slice]) -> tuple[ErrorType, ...]:
    """Choose error types on search rows, merge near-identical ones, and describe them by their held-out rows.

    Parameters
    ----------
    found : sequence of OutcomeSlice
        All that know the outcome, of all methods.
    slices : sequence of Slice
        What was tested: an error type points at the one that is its approximation, or near-identical to that.

    Returns
    -------
    tuple of ErrorType
        Those with the most errors on search rows first, at most 20.
    """
    price = float(np.log(max(len(found), 1)))  # the best of many by chance is no finding
    telling = [slice_ for slice_ in found if _evidence(slice_) > price and _search_errors(slice_) >= FEWEST_ERRORS]
    groups: list[list[OutcomeSlice]] = []
    for slice_ in sorted(telling, key=_search_errors, reverse=True):
        twin = next((group for group in groups if _near_identical(group[0], slice_)), None)
        if twin is None:
            groups.append([slice_])
        else:
            twin.append(slice_)
    shown = [group for group in groups if (group[0].own.members & group[0].split.confirm).any()]
    types = [_describe(f"e{i}", group, slices) for i, group in enumerate(shown[:MOST_ERROR_TYPES], start=1)]
    return tuple(types)


def _search_members(found: OutcomeSlice) -> Array:
    members: Array = found.own.members[found.split.discover]
    return members


def _search_errors(found: OutcomeSlice) -> int:
    return int(found.split.outcome[found.split.discover][_search_members(found)].sum())


def _evidence(found: OutcomeSlice) -> float:
    """Log Bayes factor of a rate of its own (uniform) against the rate of its scope, on search rows; 0 if not worse."""
    within = found.split.discover & rows_in_scope(found.split.evaluation, found.own.rule.get("scope"))
    n = int(_search_members(found).sum())
    errors = _search_errors(found)
    if not n or not within.any():
        return 0.0
    return max(0.0, float(log_evidence(n, errors, float(found.split.outcome[within].mean()))))


def _near_identical(first: OutcomeSlice, second: OutcomeSlice) -> bool:
    same_task = first.task == second.task
    return same_task and jaccard(_search_members(first), _search_members(second)) >= OVERLAP


def _describe(id: str, group: Sequence[OutcomeSlice], slices: Sequence[Slice]) -> ErrorType:
    first = group[0]
    split = first.split
    members = first.own.members & split.confirm
    wrong = np.flatnonzero(members & (split.outcome > 0))
    mistakes = _mistakes(split.evaluation, wrong) if split.by_error else ()
    return ErrorType(
        id=id,
        method=first.own.method,
        name=_name(split.evaluation, mistakes, first.own.method),
        rule=first.own.rule,
        weights=first.own.weights,
        threshold=first.own.threshold,
        slicer=first.slicer,
        column=first.own.index,
        task=first.task,
        n=int(members.sum()),
        errors=len(wrong),
        mistakes=mistakes,
        central=tuple(int(row) for row in _most_central(first, members, wrong)),
        found_by=tuple(dict.fromkeys(item.own.method for item in group)),
        folded=len(group) - 1,
        slice=next(filter(None, (_tested_as(item, slices) for item in group)), None),
    )


def _mistakes(evaluation: Evaluation, wrong: Array) -> tuple[Mistake, ...]:
    """The most frequent pairs of label and prediction of some rows."""
    assert evaluation.labels is not None
    assert evaluation.predictions is not None
    if evaluation.task != "classification":
        return ()
    pairs = Counter(zip(evaluation.labels[wrong].tolist(), evaluation.predictions[wrong].tolist(), strict=True))
    return tuple(
        Mistake(int(label), int(prediction), count, count / len(wrong))
        for (label, prediction), count in sorted(pairs.items(), key=lambda item: (-item[1], item[0]))[:MOST_MISTAKES]
    )


def _name(evaluation: Evaluation, mistakes: Sequence[Mistake], method: str) -> str:
    """Its mistake, where most of its errors are one; `explain` tells those of one mistake apart."""
    if not mistakes:
        return f"errors of {method}"
    pair = f"{evaluation.class_name(mistakes[0].label)} → {evaluation.class_name(mistakes[0].prediction)}"
    if mistakes[0].share < MOSTLY:
        return f"no short description: most often {pair}"
    return pair


def _most_central(found: OutcomeSlice, members: Array, wrong: Array) -> Array:
    """Wrong held-out members of the highest weight; of equal ones, those nearest to the middle of the members."""
    representations = found.split.evaluation.representations
    distances = np.zeros(len(wrong))
    if representations and len(wrong):
        name = found.own.rule.get("representation")
        if name not in representations:
            name = next(iter(representations))
        X = representations[str(name)]
        middle = np.asarray(X[np.flatnonzero(members)], dtype=np.float64).mean(axis=0)
        distances = np.square(np.asarray(X[wrong], dtype=np.float64) - middle).sum(axis=1)
    order = np.lexsort((distances, -found.own.weights[wrong]))
    rows: Array = wrong[order][:MOST_CENTRAL]
    return rows


def _tested_as(found: OutcomeSlice, slices: Sequence[Slice]) -> str | None:
    """The slice that holds mostly the rows of the approximation: it, or one it was merged into."""
    if found.approximation is None:
        return None
    members = found.approximation.members
    alike = [(jaccard(slice_.members, members), slice_) for slice_ in slices if slice_.task == found.task]
    overlap, best = max(alike, default=(0.0, None), key=lambda pair: pair[0])
    if best is None or not members.any():
        return None
    holds_it = bool(best.members[members].mean() >= OVERLAP)
    return best.id if overlap >= OVERLAP or holds_it else None
