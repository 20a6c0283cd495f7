"""From searches to findings: candidates confirmed on held-out rows, near-copies merged, in order of importance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from ..core import Array, ErrorType, Evaluation, Slice
from ..core.confirm import (
    Settings,
    SliceCandidate,
    SliceResult,
    SplitTask,
    can_test,
    confirm_all,
    select_candidates,
)
from ..core.error_types import find_error_types
from ..core.membership import OVERLAP, jaccard
from ..core.rules import read_rule
from ..hypothesis import OwnSlices
from ..slicers import Slicer
from .searching import Effort, Fit, Search, approximation_key, list_searches, run_all

PART = 0.8  # share of a slice's rows in another from which it is a part of it
ABOUT_AS_BAD = 0.9  # of the gap of a slice from which a rule over columns for mostly its rows is told instead


@dataclass(frozen=True, eq=False)
class Findings:
    """What searches found and held-out rows say of it."""

    fits: list[Fit]
    tested: int  # slices in the family that verdicts allow for
    slices: tuple[Slice, ...]  # not explained yet
    error_types: tuple[ErrorType, ...]
    trials: Mapping[str, SplitTask]  # task -> its rows, split


def find_slices(
    evaluation: Evaluation,
    slicers: Mapping[str, Slicer],
    discover: Array,
    settings: Settings,
    *,
    crossfit: bool = False,
    train: Evaluation | None = None,
    seed: int = 0,
    effort: Effort | None = None,
) -> Findings:
    """Search with every method, and confirm what it finds.

    Parameters
    ----------
    evaluation
        All rows, with what is known of their representations.
    slicers
        Method -> slicer, not fitted; each search fits a copy.
    discover
        (n,) bool: the search rows.
    settings
        How strict the confirmation is.
    crossfit, train, seed
        As of `audit`.
    effort
        Who does the work, how many rows are searched, and who is told. Default: this process.
    """
    searches = list(list_searches(evaluation, slicers, discover, settings, crossfit))
    fits = run_all(searches, train, seed, effort or Effort())
    family = [(fit.search, candidate) for fit in fits for candidate in _tested_candidates(fit)]
    results = confirm_all([(search.trial, candidate) for search, candidate in family])
    tested = _in_order([(search, result) for (search, _), result in zip(family, results, strict=True)])
    slices, error_types = _two_faces(fits, tested)
    trials = {search.task: search.trial for search in searches if not search.reverse}
    return Findings(fits, len(family), slices, error_types, trials)


def _tested_candidates(fit: Fit) -> list[SliceCandidate]:
    """What is tested of a search; of the user's own slices all that can be, whatever search rows say of them."""
    if fit.search.method == OwnSlices.name:
        return [candidate for candidate in fit.candidates if can_test(fit.search.trial, candidate)]
    return select_candidates(fit.search.trial, fit.candidates)


def _in_order(results: Sequence[tuple[Search, SliceResult]]) -> list[Slice]:
    """Return slices by importance; those that hold mostly the same rows are merged into the first of them.

    A rule over columns says who is meant: it is the one that is told where it is about as bad.
    """
    slices: list[Slice] = []
    for search, result in sorted(results, key=lambda pair: pair[1].priority):
        twin = None
        if search.method != OwnSlices.name:  # what the user asked for is always told
            twin = _twin(slices, search.task, result)
        if twin is None:
            slices.append(_slice(search, result))
        else:
            slices[twin] = _merged(slices[twin], search, result)
    return slices


def _merged(first: Slice, search: Search, result: SliceResult) -> Slice:
    """Return one slice for two that hold mostly the same rows: the first, or the rule that tells it."""
    told = first
    methods = [*first.found_by, search.method]
    if _tells(result, first):
        told = _slice(search, result)
        methods = [search.method, *first.found_by]
    return replace(told, found_by=tuple(dict.fromkeys(methods)), folded=first.folded + 1)


def _tells(result: SliceResult, first: Slice) -> bool:
    """Return whether a result is a rule for mostly the rows of a slice that is none, and about as bad."""
    is_rule = bool(read_rule(result.candidate.rule)) and not read_rule(first.rule) and first.method != OwnSlices.name
    if not is_rule or first.confirm is None or jaccard(first.members, result.candidate.members) < OVERLAP:
        return False
    same_verdict = result.verdict == first.verdict and bool(result.explained_by) == bool(first.explained_by)
    return same_verdict and result.held_out.gap >= ABOUT_AS_BAD * first.confirm.gap


def _twin(slices: Sequence[Slice], task: str, result: SliceResult) -> int | None:
    """Return the position of the slice that holds mostly the rows of a result, or of which it is a part."""
    candidate = result.candidate
    for i, slice_ in enumerate(slices):
        same_kind = slice_.task == task and slice_.side == candidate.side
        alike = jaccard(slice_.members, candidate.members) >= OVERLAP
        if same_kind and (alike or _is_part(slice_, result)):
            return i
    return None


def _is_part(slice_: Slice, result: SliceResult) -> bool:
    """Return whether a result lies in a confirmed slice and is no worse than it: one finding, told once."""
    inside = result.candidate.members
    if slice_.verdict != "confirmed" or slice_.confirm is None or not inside.any():
        return False
    sharper = result.held_out.gap > slice_.confirm.gap + result.split.delta
    return bool(slice_.members[inside].mean() >= PART and not sharper)


def _two_faces(fits: Sequence[Fit], tested: Sequence[Slice]) -> tuple[tuple[Slice, ...], tuple[ErrorType, ...]]:
    """Slices with their ids, and the error types behind some of them; each points at the other."""
    slices = [replace(slice_, id=f"s{i}") for i, slice_ in enumerate(tested, start=1)]
    outcome_slices = [slice_ for fit in fits if not fit.search.reverse for slice_ in fit.outcome_slices]
    error_types = find_error_types(outcome_slices, slices)
    behind = {slice_.id: tuple(item.id for item in error_types if item.slice == slice_.id) for slice_ in slices}
    return tuple(replace(slice_, error_types=behind[slice_.id]) for slice_ in slices), error_types


def _slice(search: Search, result: SliceResult) -> Slice:
    confirmed_on: Literal["confirm", "discover"] = "discover" if search.reverse else "confirm"
    candidate = result.candidate
    slicer = search.key if candidate.fidelity is None else approximation_key(search)
    return Slice(
        id="",
        method=search.method,
        name="",  # `explain` names it
        threshold=candidate.threshold,
        rule=candidate.rule,
        weights=candidate.weights,
        slicer=slicer,
        column=candidate.index,
        side=candidate.side,
        task=search.task,
        confirmed_on=confirmed_on,
        discover=result.search,
        fidelity=candidate.fidelity,
        found_by=(search.method,),
        **result.judgement,
    )
