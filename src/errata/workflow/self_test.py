"""The search, tested on the rows of the audit itself: groups planted in them, and outcomes without a pattern.

The same split, methods, options and settings as the audit's. How often it is repeated follows from the number of rows,
never from the time it took, so that the same seed gives the same answer everywhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ..core import Array, Evaluation, NullRun, PlantedCell, Progress, SelfTest, Slice, silent
from ..core.confirm import Settings
from ..core.gaps import wilson
from ..core.null_outcomes import permute_outcomes
from ..core.planting import is_bad, plant, region, rule
from ..core.self_test import ERRORS, LOSSES, Kind, describe_null_run, describe_self_test
from ..inputs.influence import InfluenceOptions, add_influence
from ..slicers import Slicer
from .findings import Findings, find_slices
from .methods import reads_influence
from .searching import Effort
from .side_by_side import run_side_by_side

MOST_ROWS = 50_000  # beyond which a search is tested only where somebody asks for it
SHARES = (0.05, 0.02, 0.01)  # of the rows, that a planted group holds
GAPS = (0.4, 0.2)
MOST_REPEATS = 10
FEWEST_REPEATS = 3
PLANTED_ROWS = 250_000  # rows that are searched for each gap, in all repeats, tasks and methods together
FOUND = 0.5  # share of a confirmed slice that was planted
NULL_RUNS = 20
NULL_ROWS = 10_000

NOT_TESTED = "The search was not tested on these rows: a group that the test would confirm may not have been found."
HOW_TO = "With more than 50,000 rows that takes long, and is done only where asked for: `errata audit --self-test`."
NO_SEARCH = "There was none: all slices are your own."
NO_GROUP = "No group could be planted in them."
STALE = "It reads a representation that was made with the labels, and would have to be made again for others."


@dataclass(frozen=True, eq=False)
class RepeatedSearch:
    """The search of an audit, which can be run again where its rows have other outcomes.

    Parameters
    ----------
    evaluation, discover
        The rows before influence embeddings are added, and (n,) bool which of them are searched.
    slicers, settings, crossfit, train, seed, effort
        As of `find_slices`.
    influence
        How influence embeddings are made, where a method searches them.
    """

    evaluation: Evaluation
    discover: Array
    slicers: Mapping[str, Slicer]
    settings: Settings
    crossfit: bool = False
    train: Evaluation | None = None
    seed: int = 0
    effort: Effort | None = None
    influence: InfluenceOptions | None = None

    def run(self, rows: Evaluation, discover: Array) -> Findings:
        """Search some rows, or the same rows with other outcomes."""
        train = self.train
        if reads_influence(self.slicers):
            rows, train = add_influence(rows, train, discover, self.influence)
        return find_slices(
            rows,
            self.slicers,
            discover,
            self.settings,
            crossfit=self.crossfit,
            train=train,
            seed=self.seed,
            effort=self.effort,
        )

    @property
    def is_stale(self) -> bool:
        """Whether it reads a representation that would not follow the labels when they move."""
        evaluation = self.evaluation
        for slicer in self.slicers.values():
            name = getattr(slicer, "representation", None) or next(iter(evaluation.representations), None)
            if name is not None and evaluation.source(name).reads:
                return True
        return False

    def by_id(self) -> RepeatedSearch:
        """Rows in the order of their ids, so that the same groups are drawn from any order."""
        order = np.argsort(self.evaluation.row_ids, kind="stable")
        return replace(self, evaluation=self.evaluation.by_id(), discover=self.discover[order])


@dataclass(frozen=True)
class SearchTest:
    """What was measured of a search, or why nothing was."""

    self_test: SelfTest | None = None
    null_run: NullRun | None = None
    reason: str = ""

    @property
    def sentences(self) -> list[str]:
        """One of the self-test, one of the null run."""
        lines = [" ".join(filter(None, [NOT_TESTED, self.reason]))]
        if self.self_test is not None:
            lines = [describe_self_test(self.self_test)]
        if self.null_run is not None:
            lines.append(describe_null_run(self.null_run))
        return lines


def measure_search(search: RepeatedSearch, findings: Findings, wanted: bool | None, progress: Progress) -> SearchTest:
    """Run the self-test and the null run of an audit, where they are wanted and possible.

    Parameters
    ----------
    search
        The audit's.
    findings
        What it found.
    wanted
        None: up to 50,000 rows.
    progress
        Called with the stage and the share that is done.
    """
    if wanted is None and len(search.evaluation) > MOST_ROWS:
        return SearchTest(reason=HOW_TO)
    if wanted is False:
        return SearchTest()
    if not search.slicers:
        return SearchTest(reason=NO_SEARCH)
    if search.is_stale:
        return SearchTest(reason=STALE)
    tolerances = [trial.tolerance for trial in findings.trials.values() if not trial.by_error]
    if tolerances:  # what is bad must not move with what is planted
        search = replace(search, settings=replace(search.settings, tolerance=tolerances[0]))
    search = search.by_id()
    self_test = run_self_test(search, progress=progress)
    found = [slice_ for slice_ in findings.slices if slice_.method in search.slicers]  # not those of the user's own
    null_run = run_null(search, found, progress=progress)
    return SearchTest(self_test, null_run, NO_GROUP)


@dataclass(frozen=True, eq=False)
class _Planted:
    """A group in one of the tasks, and whether it was found."""

    share: float
    gap: float
    kind: Kind
    task: str
    inside: Array  # (n,) bool
    held: float | None = None  # share of its rows in the slice that found it


def run_self_test(
    search: RepeatedSearch, *, repeats: int | None = None, progress: Progress = silent
) -> SelfTest | None:
    """Plant groups in rows whose outcomes have no pattern else, and count which of them the search finds.

    Parameters
    ----------
    search
        With its rows in the order of their ids.
    repeats
        Runs for each gap. Default: what `count_repeats` says.
    progress
        Called with the stage and the share that is done.

    Returns
    -------
    SelfTest or None
        None where no group can be planted.
    """
    evaluation = search.evaluation
    repeats = repeats or count_repeats(evaluation, len(search.slicers))
    runs = [(gap, repeat) for gap in GAPS for repeat in range(repeats)]

    def judged(run: tuple[float, int]) -> list[_Planted]:
        gap, repeat = run
        rng = np.random.default_rng([search.seed, 1, round(100 * gap), repeat])
        rows, groups = _plant_groups(search, gap, repeat, rng)
        if not groups:
            return []
        slices = search.run(rows, search.discover).slices
        return [_judge(group, slices) for group in groups]

    planted = [group for groups in run_side_by_side(judged, runs, "self-test", progress) for group in groups]
    if not planted:
        return None
    return SelfTest(len(evaluation), repeats, _outcome(evaluation), _count(planted, len(evaluation)))


def count_repeats(evaluation: Evaluation, methods: int = 1) -> int:
    """Runs for each gap: ten up to 25,000 rows, fewer where more rows, labels or methods make each of them slow."""
    tasks = 1
    if evaluation.task == "multilabel":
        tasks = evaluation.class_count
    return int(np.clip(PLANTED_ROWS // (len(evaluation) * tasks * methods), FEWEST_REPEATS, MOST_REPEATS))


def _outcome(evaluation: Evaluation) -> str:
    by_error = all(view.errors is not None for _, view in evaluation.tasks())
    return ERRORS if by_error else LOSSES


def _plant_groups(
    search: RepeatedSearch, gap: float, repeat: int, rng: np.random.Generator
) -> tuple[Evaluation, list[_Planted]]:
    """Rows without a pattern but for one group of each size, none of which overlap; regions and rules by turns."""
    evaluation = search.evaluation
    tolerance = search.settings.tolerance or 0.0
    rows = permute_outcomes(evaluation, rng)
    tasks = [name for name, _ in evaluation.tasks()]
    kinds = _kinds(evaluation)
    free = np.ones(len(rows), dtype=bool)
    groups = []
    for i, share in enumerate(SHARES):
        if not kinds:
            break
        kind = kinds[(repeat + i) % len(kinds)]
        inside = _draw_group(evaluation, kind, max(1, round(share * len(rows))), free, rng)
        task = int(rng.integers(len(tasks)))
        if inside is None or not _has_room(rows, task, inside, gap, tolerance):
            continue
        rows = plant(rows, task, inside, gap, tolerance, rng)
        free &= ~inside
        groups.append(_Planted(share, gap, kind, tasks[task], inside))
    return rows, groups


def _kinds(evaluation: Evaluation) -> list[Kind]:
    """What groups can be made of: a representation that knows no outcome, columns."""
    kinds: list[Kind] = []
    if _representation(evaluation) is not None:
        kinds.append("region")
    if evaluation.metadata:
        kinds.append("rule")
    return kinds


def _representation(evaluation: Evaluation) -> str | None:
    """The first that reads no outcome: where the label moves, it must not."""
    names = (name for name in evaluation.representations if not evaluation.source(name).reads)
    return next(names, None)


def _draw_group(evaluation: Evaluation, kind: Kind, count: int, free: Array, rng: np.random.Generator) -> Array | None:
    if kind == "rule":
        return rule(evaluation.metadata, count, free, rng)
    name = _representation(evaluation)
    assert name is not None
    return region(evaluation.representations[name], count, free, rng)


def _has_room(rows: Evaluation, task: int, inside: Array, gap: float, tolerance: float) -> bool:
    """Whether the rate of a group can rise by the gap, and whether there is a bad outcome to take."""
    view = [view for _, view in rows.tasks()][task]
    bad = is_bad(view, tolerance)
    several = view.labels is not None and len(np.unique(view.labels)) > 1
    can_take = bool(bad.any()) or (view.errors is not None and several)
    return can_take and float(bad[inside].mean()) + gap <= 1


def _judge(group: _Planted, slices: Sequence[Slice]) -> _Planted:
    """The group with the share of it in the confirmed slice that is mostly of it; the largest of several."""
    held = [
        float(slice_.members[group.inside].mean())
        for slice_ in slices
        if slice_.verdict == "confirmed"
        and slice_.side == "hard"
        and slice_.task == group.task
        and group.inside[slice_.members].mean() >= FOUND
    ]
    return _Planted(group.share, group.gap, group.kind, group.task, group.inside, max(held, default=None))


def _count(planted: Sequence[_Planted], n: int) -> tuple[PlantedCell, ...]:
    cells: dict[tuple[float, float, Kind], list[_Planted]] = {}
    for group in sorted(planted, key=lambda group: (-group.gap, -group.share, group.kind)):
        cells.setdefault((group.gap, group.share, group.kind), []).append(group)
    return tuple(_cell(key, groups, n) for key, groups in cells.items())


def _cell(key: tuple[float, float, Kind], groups: Sequence[_Planted], n: int) -> PlantedCell:
    gap, share, kind = key
    held = [group.held for group in groups if group.held is not None]
    mean_held = float(np.mean(held)) if held else None
    interval = wilson(len(held), len(groups))
    return PlantedCell(share, max(1, round(share * n)), gap, kind, len(groups), len(held), interval, mean_held)


def run_null(
    search: RepeatedSearch, slices: Sequence[Slice], *, runs: int | None = None, progress: Progress = silent
) -> NullRun:
    """Search rows whose outcomes have no pattern beyond class and confidence, some times, and count what is confirmed.

    Parameters
    ----------
    search
        With its rows in the order of their ids.
    slices
        What the audit found in all rows; of more than 10,000, some are searched once more with their real outcomes.
    runs
        How often. Default: 20.
    progress
        Called with the stage and the share that is done.
    """
    evaluation = search.evaluation
    discover = search.discover
    runs = runs or NULL_RUNS
    observed = _worst_rate(slices)
    some = _some_rows(evaluation)
    if some is not None:
        evaluation = evaluation.rows(some)
        discover = discover[some]
        observed = _worst_rate(search.run(evaluation, discover).slices)

    def null_slices(run: int) -> tuple[Slice, ...]:
        rng = np.random.default_rng([search.seed, 2, run])
        return search.run(permute_outcomes(evaluation, rng), discover).slices

    confirmed = 0
    unexplained = 0
    reached = 0
    for found in run_side_by_side(null_slices, range(runs), "null run", progress):
        verdicts = [slice_ for slice_ in found if slice_.verdict == "confirmed"]
        confirmed += bool(verdicts)
        unexplained += any(not slice_.explained_by for slice_ in verdicts)
        worst = _worst_rate(found)
        reached += observed is not None and worst is not None and worst >= observed
    interval = wilson(unexplained, runs)
    outcome = _outcome(evaluation)
    return NullRun(runs, len(evaluation), outcome, confirmed, unexplained, interval, observed, reached)


def _some_rows(evaluation: Evaluation) -> Array | None:
    """Positions of at most 10,000 rows, whole groups together, always the same; None where these are all."""
    n = len(evaluation)
    if n <= NULL_ROWS:
        return None
    codes = np.arange(n)
    if evaluation.groups is not None:
        codes = np.unique(evaluation.groups, return_inverse=True)[1].ravel()
    order = np.random.default_rng(0).permutation(int(codes.max()) + 1)
    sizes = np.bincount(codes)[order]
    chosen = np.zeros(len(order), dtype=bool)
    chosen[order[np.cumsum(sizes) <= NULL_ROWS]] = True
    chosen[order[0]] = True
    return np.flatnonzero(chosen[codes])


def _worst_rate(slices: Sequence[Slice]) -> float | None:
    """The highest rate on search rows among the slices that were tested."""
    rates = [slice_.discover.rate for slice_ in slices if slice_.side == "hard" and slice_.discover is not None]
    return max(rates, default=None)
