"""Searches: every method on every task, fitted on search rows, and the candidates that each of them offers."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..core import Array, Evaluation, InputError, Progress, silent
from ..core.apply import scoped
from ..core.confirm import Settings, SliceCandidate, SplitTask
from ..core.error_types import OutcomeSlice
from ..core.leaves import SearchedTrees
from ..engine import Engine, Local
from ..hypothesis import OwnSlices
from ..slicers import Approximation, Slicer, knows_outcome
from ..slicers.undeclared import is_ours, undeclared_slices

SEARCH_ROWS = 200_000
FEWEST_SEARCHED = 1000
APPROXIMATION = "-approximation"  # ends the key of an approximation
MOST_UNLABELLED = 20_000  # held-out rows whose representations help a search: more take memory and say no more

UNDECLARED = (
    "Method `{}` reads outcomes of rows that it does not declare, or looks rows up by their ids: slices of it change "
    "when held-out outcomes and ids are exchanged between rows. They count as reading the outcome, and approximations "
    "of them are tested in their place; correct its `reads`, or give what it looks up as a representation."
)


@dataclass(frozen=True, eq=False)
class Effort:
    """Who does the work of searches, and how many rows they look at.

    Parameters
    ----------
    engine
        Runs passes over all rows.
    search_rows
        Search rows that a method is fitted to, at most; of more, as many are drawn. Every held-out row counts.
    progress
        Called with the search and the share of all of them that is done.
    """

    engine: Engine = field(default_factory=Local)
    search_rows: int = SEARCH_ROWS
    progress: Progress = silent

    def __post_init__(self) -> None:
        if self.search_rows < FEWEST_SEARCHED:
            raise InputError(f"`search_rows` must be at least {FEWEST_SEARCHED:,}; got {self.search_rows:,}")


@dataclass(frozen=True, eq=False)
class Search:
    """One method on one task, with search rows and held-out rows in their roles."""

    key: str  # names the fitted slicer in the audit and on disk
    method: str
    task: str
    trial: SplitTask
    slicer: Slicer  # not fitted yet
    reverse: bool = False


@dataclass(frozen=True, eq=False)
class Fit:
    """A search that was run."""

    search: Search
    slicers: dict[str, Any]  # key -> what is saved and applied: the slicer, and the approximation of some of its slices
    candidates: list[SliceCandidate]
    outcome_slices: list[OutcomeSlice]  # that know the outcome; some of the candidates are their approximations


def list_searches(
    evaluation: Evaluation, slicers: Mapping[str, Slicer], discover: Array, settings: Settings, crossfit: bool
) -> Iterator[Search]:
    for t, (task, view) in enumerate(evaluation.tasks()):
        trials = [SplitTask(view, discover, settings)]
        if crossfit:
            trials.append(SplitTask(view, ~discover, settings))
        for reverse, trial in enumerate(trials):
            for method, slicer in slicers.items():
                if reverse and method == OwnSlices.name:  # nothing was searched: there is no other half to test it on
                    continue
                key = search_key(method, task, t)
                if reverse:
                    key += "-reverse"
                # Each search fits a copy: a slicer that is not fitted holds nothing but its options.
                yield Search(key, method, task, trial, copy.copy(slicer), bool(reverse))


def search_key(method: str, task: str, place: int) -> str:
    """What names the fitted slicer of a search on disk; `place` is that of the task, where there are several."""
    name = method.replace(":", "-")
    return f"{name}-task{place}" if task else name


def run_all(searches: Sequence[Search], train: Evaluation | None, seed: int, effort: Effort) -> list[Fit]:
    """Run the searches; the progress of each is reported as a share of all of them."""
    fits = []
    for i, search in enumerate(searches):

        def report(stage: str, share: float, key: str = search.key, done: int = i) -> None:
            effort.progress(key, (done + share) / len(searches))

        report(search.method, 0.0)
        search.slicer.report_progress = report
        if hasattr(search.slicer, "engine"):
            search.slicer.engine = effort.engine
        fits.append(_run(search, train, seed, effort))
        report(search.method, 1.0)
    return fits


def _run(search: Search, train: Evaluation | None, seed: int, effort: Effort) -> Fit:
    """Fit a slicer on the search rows; an approximation takes the place of each slice that reads the outcome."""
    slicer = search.slicer
    view = search.trial.evaluation

    def placing(stage: str, share: float) -> None:
        effort.progress(f"{search.key}, {stage}", share)

    search_rows = view.rows(_drawn(view, search.trial.discover, effort.search_rows))
    if hasattr(slicer, "unlabelled_rows"):  # what is fitted to representations alone may see those of held-out rows
        slicer.unlabelled_rows = _unlabelled(view, search.trial.confirm)
    slicer.fit(search_rows, train=train)
    own = place(slicer, view, effort.engine, placing)
    undeclared = undeclared_slices(slicer, view, search.trial.confirm)
    if undeclared:
        slicer.notes = (*getattr(slicer, "notes", ()), UNDECLARED.format(search.method))  # type: ignore[attr-defined]
    knowing = [j for j in range(own.shape[1]) if j in undeclared or knows_outcome(slicer, view, j)]
    fair = [_candidate(search, slicer, own, j) for j in range(own.shape[1]) if j not in knowing]
    slicers: dict[str, Any] = {search.key: slicer}
    if not knowing:
        return Fit(search, slicers, fair, [])
    approximation = Approximation(search.method, seed).fit(slicer, search_rows, knowing)
    slicers[approximation_key(search)] = approximation
    weights = place(approximation, view, effort.engine, placing)
    outcome_slices = []
    for column in knowing:
        candidate = _candidate(search, slicer, own, column)
        approximated = None
        if column in approximation.columns_:
            j = int(np.flatnonzero(approximation.columns_ == column)[0])
            approximated = _candidate(search, approximation, weights, j)
            fidelity = _fidelity(approximated.members, candidate.members, search.trial.confirm)
            approximated = replace(approximated, fidelity=fidelity)
        outcome_slices.append(OutcomeSlice(search.trial, search.task, search.key, candidate, approximated))
    approximations = [item.approximation for item in outcome_slices if item.approximation is not None]
    candidates = fair + [candidate for candidate in approximations if candidate.members.any()]
    return Fit(search, slicers, candidates, outcome_slices)


def grown_trees(fits: Sequence[Fit]) -> list[SearchedTrees]:
    """Return the trees that searches grew, of methods that grow one for every group of rows."""
    searches = []
    for fit in fits:
        search = fit.search
        slicer: Any = search.slicer
        if hasattr(slicer, "grown_trees"):
            knowing = knows_outcome(slicer, search.trial.evaluation)
            trees = slicer.grown_trees()
            searches.append(SearchedTrees(trees, search.task, slicer.representation_, search.trial.discover, knowing))
    return searches


def _drawn(view: Evaluation, discover: Array, most: int) -> Array:
    """Return the search rows that are looked at: all, or as many as may be, drawn in the order of their ids."""
    rows = np.flatnonzero(discover)
    if len(rows) <= most:
        return rows
    rows = rows[np.argsort(view.row_ids[rows], kind="stable")]
    return rows[np.sort(np.random.default_rng(0).choice(len(rows), most, replace=False))]


def place(slicer: Any, rows: Evaluation, engine: Engine, report: Progress = silent) -> Array:
    """Return (n, s) what a fitted slicer gives for all rows, a part of them at a time.

    Parameters
    ----------
    slicer, rows, engine
        Who places which rows, and who does the work.
    report
        Called with what is done and the share of the rows that it is done for, where they are several parts.
    """
    bare = copy.copy(slicer)
    for name in ("report_progress", "engine", "unlabelled_rows"):  # of this process, and of no use to another
        vars(bare).pop(name, None)
    weights: Array | None = None
    with engine.hold(rows) as held:
        if len(held.parts) == 1 or _needs_all_rows(slicer, rows):
            return np.asarray(slicer.membership(rows))
        for part, some in held.each(_membership, bare):
            if weights is None:
                weights = engine.empty((len(rows), some.shape[1]))
            weights[part] = some
            report("all rows", part.stop / len(rows))
    assert weights is not None
    return weights


def _needs_all_rows(slicer: Any, rows: Evaluation) -> bool:
    """Whether a part of the rows may not do: conditions type a column by all its values, and parts have no media."""
    return isinstance(slicer, OwnSlices) or (rows.media is not None and not is_ours(slicer))


def _membership(rows: Evaluation, slicer: Any) -> Array:
    return np.asarray(slicer.membership(rows))


def _unlabelled(view: Evaluation, held_out: Array) -> Evaluation:
    """Return representations of held-out rows, evenly thinned in the order of their ids."""
    rows = np.flatnonzero(held_out)
    rows = rows[np.argsort(view.row_ids[rows], kind="stable")]
    thinned = rows[:: 1 + len(rows) // MOST_UNLABELLED]
    return view.rows(thinned).without_outcomes()


def approximation_key(search: Search) -> str:
    return f"{search.key}{APPROXIMATION}"


def method_key(key: str) -> str:
    """Return the key of the slicer that an approximation stands for; any other key as it is."""
    return key.removesuffix(APPROXIMATION)


def _candidate(search: Search, slicer: Any, weights: Array, j: int) -> SliceCandidate:
    rule = slicer.rules_[j]
    column = scoped(rule, search.trial.evaluation, weights[:, j])
    return SliceCandidate(search.method, j, column, float(slicer.thresholds_[j]), rule, rule.get("side", "hard"))


def _fidelity(approximated: Array, own: Array, held_out: Array) -> float:
    """Return the share of an approximation's held-out members that the method itself would take."""
    members = approximated & held_out
    return float(own[members].mean()) if members.any() else 0.0
