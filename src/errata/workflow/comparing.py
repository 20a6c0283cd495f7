"""Two models on the same rows: known slices by paired tests, and a search for rows where the second is worse.

The search has an outcome of its own: the second model is wrong where the first was right. A region that both find hard
has many such rows, and as many the other way round; so a slice that is found must pass two tests on held-out rows: it
has more such rows than the rest, and the error rate rose in it by the paired test. A claim that needs both may spend
the whole level on each.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..core import Array, Audit, Change, Comparison, Evaluation, InputError, Progress, Slice, Source, silent
from ..core.apply import apply
from ..core.compared_slices import drawn_words, known_groups, new_groups, why_no_loops
from ..core.comparison import Group, measure
from ..core.confirm import Settings, SplitTask
from ..core.errors import unknown
from ..core.grouping import settle_groups
from ..core.judgement import DRAWN, choose
from ..core.known_slices import audited_trials, count_tested, first_other_label, shared_rows
from ..core.paired import visible_rise
from ..core.same_rows import count_same_rows
from .auditing import audit
from .methods import Options
from .seeking import FEWEST_ROWS

COMPARE_METHODS = ("consensus", "rules")
LABEL = "label"
MOST_VALUES = 50  # of a column whose values are compared one by one
MOST_EXAMPLES = 10
SMALL = 0.02  # of the held-out rows: the size of slice that sensitivity is stated for
FLATTERED = (
    "The rows of known slices also confirmed them, so a model that is no better looks better there (regression to the "
    "mean). It is taken out of the changes that are shown, {words}. The intervals allow for all {tested} slices that "
    "were tested."
)
MOST_CHANGED = 200  # rows of a group, fixed and newly wrong, whose ids are kept
MOST_MEMBERS = 6  # rows of a group, at random, whose ids are kept: what it looks like


def compare(
    first: Audit | Evaluation,
    second: Audit | Evaluation,
    *,
    slices: Audit | None = None,
    which: Sequence[str] | None = None,
    by: Sequence[str] = (),
    search: bool = True,
    methods: Sequence[str] | None = None,
    options: Options | None = None,
    seed: int = 0,
    groups: str = "auto",
    alpha: float = 0.05,
    progress: Progress = silent,
) -> Comparison:
    """Compare two models on the same rows, and search for slices where the second is worse.

    Parameters
    ----------
    first, second : Audit or Evaluation
        The rows under each model, matched by id. The first's representations and metadata are searched. The slices of
        an audit are compared on the rows that were held out from its search, without regression to the mean. Where
        both are audits, slices that only the second has are compared too; their ids are "new-s1", "new-s2", …
    slices : Audit, optional
        Compare slices of this audit, on rows that were not audited.
    which : list of str, optional
        Which slices: "accepted", "confirmed", "all" or ids. Default: those that people accepted where there are any
        (`load(..., judged=True)`), else the confirmed ones.
    by : list of str
        Compare each value of these columns: `label`, or metadata of the first.
    search : bool
        Search for slices where the second model is worse.
    methods : list of str, optional
        Of the search. Default: `consensus` where the first has representations, `rules` where it has metadata.
    options, seed : mapping, int
        Of the search, as of `audit`.
    groups : str
        What rows belong together, as of `audit`: they count as fewer. Not read where the first is an audit.
    alpha : float
        Chance that any of the intervals misses, on each side.
    progress : callable
        Called with the stage and the share that is done.

    Returns
    -------
    Comparison
        All rows, known slices, values of `by`, and slices that were found, whose ids are "r1", "r2", …

    Examples
    --------
    >>> import numpy as np
    >>> import errata
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(4000, 2))
    >>> labels = rng.integers(0, 2, 4000)
    >>> def model(hard):
    ...     wrong = rng.random(4000) < np.where(x[:, 0] > 1, hard, 0.05)
    ...     return errata.Evaluation(labels=labels, predictions=labels ^ wrong, representations={"x": x})
    >>> comparison = errata.compare(model(0.05), model(0.5))
    >>> comparison["r1"].judgement
    'worse'
    """
    asked = Asked(slices, which, by, search, methods, options, seed, groups, alpha, progress)
    return compare_as_asked(first, second, asked)


@dataclass(frozen=True, eq=False)
class Asked:
    """What is asked of a comparison, as of `compare`.

    Attributes
    ----------
    most_changed : int, optional
        Ids of rows of a group, fixed and newly wrong, that are kept; None: of all.
    found : dict
        Level of the search -> what it found. It stays where the same search is asked for again.
    """

    slices: Audit | None = None
    which: Sequence[str] | None = None
    by: Sequence[str] = ()
    search: bool = True
    methods: Sequence[str] | None = None
    options: Options | None = None
    seed: int = 0
    groups: str = "auto"
    alpha: float = 0.05
    progress: Progress = silent
    most_changed: int | None = MOST_CHANGED
    found: dict[float, _Found] = field(default_factory=dict)


def compare_as_asked(first: Audit | Evaluation, second: Audit | Evaluation, asked: Asked) -> Comparison:
    """Compare two models, as `compare` says.

    Parameters
    ----------
    first, second : Audit or Evaluation
        The rows under each model.
    asked : Asked
        What is compared, and how.
    """
    alpha = asked.alpha
    if not 0 < alpha < 0.5:
        raise InputError(f"`alpha` must be between 0 and 0.5; got {alpha}")
    pair = _pair(first, second, asked.groups)
    known = _known(first, asked.slices, asked.which, pair)
    new = _new(first, second)
    named = [group for column in asked.by for group in _values(pair, column)]
    methods = _default_methods(pair.before) if asked.methods is None else asked.methods
    searching = asked.search and pair.any_broken and bool(methods)
    parts = 1 + bool(known.groups or named) + bool(new.groups) + searching
    overall = [
        Group("overall", "all rows", task, np.ones(len(pair.before), dtype=bool), *outcomes, kind="all")
        for task, outcomes in pair.outcomes.items()
    ]
    changes = [measure(group, pair.before.groups, alpha / parts / len(overall)) for group in overall]
    level = alpha / parts / max(known.tested + len(named), 1)
    changes += [measure(group, known.groups_of_rows, level) for group in known.groups]
    changes += [measure(group, pair.before.groups, level) for group in named]
    changes += [measure(group, pair.before.groups, alpha / parts / max(new.tested, 1)) for group in new.groups]
    found = _found(pair, alpha / parts, methods, asked) if searching else _Found()
    groups = [*overall, *named, *new.groups, *found.worse]
    facts: dict[str, Any] = {
        "rows": len(pair.before),
        "parts": parts,
        "methods": list(methods),
        "seed": asked.seed,
        "tested": found.tested,
        "examples": found.examples,
        **_rows_of_groups(groups, pair.before, known, asked.most_changed),
        "chosen": known.sentence,
        "notes": [*pair.notes, *known.notes, *_sensitivity(changes, found)],
    }
    if asked.search:
        facts["notes"].append(_search_note(pair, methods, found))
    return Comparison((*changes, *found.changes), pair.outcome_name, alpha, facts)


def _found(pair: _Pair, level: float, methods: Sequence[str], asked: Asked) -> _Found:
    """Return what the search finds; what it found before, where it was asked for already."""
    if level not in asked.found:
        search = {"methods": methods, "options": asked.options, "seed": asked.seed}
        asked.found[level] = _search(pair, level, search, asked.progress)
    return asked.found[level]


def _rows_of_groups(groups: Sequence[Group], rows: Evaluation, known: _Known, most: int | None) -> dict[str, Any]:
    """Return which rows of each group changed, and some of each at random."""
    return {
        "changed": _changed(groups, rows, most) | _changed(known.groups, known.rows, most),
        "members": _random_rows(groups, rows) | _random_rows(known.groups, known.rows),
    }


def _default_methods(rows: Evaluation) -> list[str]:
    """Return the default methods that have something to search."""
    searched = (rows.representations, rows.metadata)
    return [method for method, has in zip(COMPARE_METHODS, searched, strict=True) if has]


@dataclass(frozen=True, eq=False)
class _Pair:
    """Rows that both models were measured on."""

    before: Evaluation
    after: Evaluation  # in the same order
    rows: Array  # (m,) their numbers in the first
    outcomes: dict[str, tuple[Array, Array]]  # task -> (m,) 0/1 under each model
    outcome_name: str
    notes: tuple[str, ...]

    @property
    def any_broken(self) -> bool:
        """Whether the second model is wrong anywhere that the first was right."""
        return any(bool((after > before).any()) for before, after in self.outcomes.values())


def _pair(first: Audit | Evaluation, second: Audit | Evaluation, groups: str) -> _Pair:
    all_before = rows_of(first)
    all_after = rows_of(second)
    if isinstance(first, Audit):
        trials = audited_trials(first)
    else:
        all_before, discover, _ = settle_groups(all_before, groups)
        trials = {task: SplitTask(view, discover, Settings()) for task, view in all_before.tasks()}
    mine, theirs = shared_rows(all_before, all_after)
    if len(mine) < FEWEST_ROWS:
        raise InputError(
            f"the two models share {len(mine)} rows by id; a comparison needs at least {FEWEST_ROWS}; "
            "measure both on the same rows, with the same ids"
        )
    before = all_before.rows(mine)
    after = all_after.rows(theirs)
    other = first_other_label(before, after)
    if other is not None:
        raise InputError(f"row {before.row_ids[other]} has different labels under the two models; give the same ones")
    earlier = dict(before.tasks())
    later = dict(after.tasks())
    if set(earlier) != set(later):
        raise InputError("the two models do not have the same tasks; give the same labels in the same order")
    outcomes = {
        task: (trial.outcome_of(earlier[task]), trial.outcome_of(later[task])) for task, trial in trials.items()
    }
    notes = []
    left_out = max(len(all_before), len(all_after)) - len(mine)
    if left_out:
        notes.append(f"{left_out:,} rows that only one of the two has are left out.")
    name = next(iter(trials.values())).outcome_name
    return _Pair(before, after, mine, outcomes, name, tuple(notes))


def rows_of(model: Audit | Evaluation) -> Evaluation:
    """The rows of a model that is compared."""
    if isinstance(model, Audit):
        return model.evaluation
    if isinstance(model, Evaluation):
        return model
    raise InputError(f"`compare` takes audits and evaluations; got {type(model).__name__}")


@dataclass(frozen=True, eq=False)
class _Known:
    """Slices that were known before."""

    groups: list[Group] = field(default_factory=list)
    groups_of_rows: Array | None = None  # what rows belong together, of the rows of `groups`
    tested: int = 0  # slices that their intervals allow for
    notes: tuple[str, ...] = ()
    sentence: str = ""  # which they are, where nobody named them
    rows: Evaluation | None = None  # that they are of


def _known(first: Audit | Evaluation, slices: Audit | None, which: Sequence[str] | None, pair: _Pair) -> _Known:
    """Return slices of an audit: of `slices` on new rows, else of the first on its held-out rows."""
    if slices is not None:
        return _on_new_rows(slices, which, pair)
    if not isinstance(first, Audit):
        if which:
            raise InputError("slices can be named where the first model is a saved audit; give its folder")
        return _Known()
    choice = choose(first, which, no_loops=why_no_loops(first))
    groups = list(known_groups(first, pair.rows, pair.after, choice.slices))
    left_out = [choice.left_out] if choice.left_out else []
    if not groups:
        return _Known(notes=(*left_out, "The first audit has no confirmed slice to compare."))
    loops = drawn_words(choice.slices)
    tested = count_tested(first) + sum(slice_.method == DRAWN for slice_ in choice.slices)
    notes = [*left_out, *_moved_notes(choice.slices), *loops, *_regression_notes(groups, tested)]
    return _Known(groups, pair.before.groups, tested, tuple(notes), choice.sentence, pair.before)


def _regression_notes(groups: Sequence[Group], tested: int) -> list[str]:
    """What was taken out of the changes, where the rows confirmed any of the slices."""
    taken = [group.regression for group in groups if group.regression is not None]
    if not taken:
        return []
    words = f"{100 * min(taken):.1f} to {100 * max(taken):.1f} points each"
    if max(taken) < 0.0005:
        words = "less than 0.1 points here, since they had errors to spare"
    elif len(taken) == 1:
        words = f"{100 * taken[0]:.1f} points"
    return [FLATTERED.format(words=words, tested=tested)]


def _moved_notes(slices: Sequence[Slice]) -> list[str]:
    ids = [slice_.id for slice_ in slices if slice_.judged is not None and slice_.judged.edited]
    if not ids:
        return []
    return [f"People moved rows of {', '.join(ids)} and may have seen their outcomes; compared as found."]


def _new(first: Audit | Evaluation, second: Audit | Evaluation) -> _Known:
    """Slices that only the audit of the second model has; none where one of the two is no audit."""
    if not isinstance(first, Audit) or not isinstance(second, Audit):
        return _Known()
    return _Known(new_groups(first, second), tested=count_tested(second))


def _changed(groups: Sequence[Group], rows: Evaluation | None, most: int | None) -> dict[str, dict[str, list[Any]]]:
    """Id of a group -> ids of its rows that were fixed, and that are newly wrong."""
    if rows is None:
        return {}
    return {group.id: group.changed_rows(rows.row_ids, most) for group in groups if not group.task}


def _random_rows(groups: Sequence[Group], rows: Evaluation | None) -> dict[str, list[Any]]:
    """Id of a group -> ids of some of its rows."""
    if rows is None:
        return {}
    return {group.id: group.random_rows(rows.row_ids, MOST_MEMBERS) for group in groups if not group.task}


def _on_new_rows(slices: Audit, which: Sequence[str] | None, pair: _Pair) -> _Known:
    """Return slices of another audit, on rows that it did not see: no selection, no correction."""
    new = np.ones(len(pair.before), dtype=bool)
    if count_same_rows(slices.evaluation, pair.before):
        new = ~np.isin(pair.before.row_ids, slices.evaluation.row_ids)
    if not new.any():
        raise InputError(
            "all rows are rows of the audit in `slices`; give that audit as the first model, or rows it did not see"
        )
    rows = pair.before.rows(new)
    weights = apply(slices, rows)
    choice = choose(slices, which)
    groups = []
    for slice_ in choice.slices:
        if slice_.id in weights and slice_.task in pair.outcomes:
            before, after = pair.outcomes[slice_.task]
            inside = weights[slice_.id] >= slice_.threshold
            groups.append(Group(slice_.id, slice_.name, slice_.task, inside, before[new], after[new]))
    notes = [f"Known slices are compared on {int(new.sum()):,} rows that were not audited."]
    if choice.left_out:
        notes.append(choice.left_out)
    return _Known(groups, rows.groups, max(len(groups), 1), tuple(notes), choice.sentence, rows)


def _values(pair: _Pair, column: str) -> Iterator[Group]:
    """Yield the rows of each value of a column."""
    if column == LABEL and pair.before.task == "classification" and pair.before.labels is not None:
        values = np.array([pair.before.class_name(int(label)) for label in pair.before.labels])
    elif column in pair.before.metadata:
        values = pair.before.metadata[column]
    else:
        raise unknown("column", column, [LABEL, *pair.before.metadata])
    distinct = np.unique(values)
    if len(distinct) > MOST_VALUES:
        raise InputError(
            f"column `{column}` has {len(distinct):,} values; at most {MOST_VALUES} can be compared one by one"
        )
    for value in distinct:
        for task, outcomes in pair.outcomes.items():
            yield Group(f"{column}={value}", "", task, values == value, *outcomes, kind="group")


@dataclass(frozen=True, eq=False)
class _Found:
    """What a search for rows that got worse found."""

    changes: tuple[Change, ...] = ()
    tested: int = 0
    examples: dict[str, list[Any]] = field(default_factory=dict)
    worse: tuple[Group, ...] = ()  # those of the changes that got worse, with their rows
    small: tuple[int, float | None] | None = None  # rows of a small slice, and the rise that they would show


def _search(pair: _Pair, alpha: float, search: dict[str, Any], progress: Progress) -> _Found:
    """Search every task for slices where the second model is wrong and the first was right."""
    found: list[tuple[Change, Group]] = []
    tested = 0
    small = None
    for task, (before, after) in pair.outcomes.items():
        settings = Settings(alpha=alpha / len(pair.outcomes))
        rows = _broken_rows(pair, before, after)
        result = audit(rows, settings=settings, within="none", progress=progress, **search)
        tested += int(result.settings["tested"])
        level = settings.alpha / max(int(result.settings["tested"]), 1)
        held_out = ~result.discover
        for slice_ in result.slices:
            group = Group("", slice_.name, task, slice_.members & held_out, before, after, kind="found")
            found.append((_found_change(slice_, group, result, level), group))
        n = round(SMALL * int(held_out.sum()))
        small = n, visible_rise(n, float((before > after)[held_out].mean()), level)
    found.sort(key=lambda pair: pair[0].judgement != "worse")
    changes = [replace(change, id=f"r{i}") for i, (change, _) in enumerate(found, start=1)]
    worse = tuple(replace(found[i][1], id=change.id) for i, change in enumerate(changes) if change.judgement == "worse")
    examples = {group.id: _newly_wrong(group, pair.before.row_ids) for group in worse}
    return _Found(tuple(changes), tested, examples, worse, small)


def _newly_wrong(group: Group, ids: Array) -> list[Any]:
    """Ids of some rows of a group that only the second model is wrong on, in their order."""
    broken = group.inside & (group.after > group.before)
    examples: list[Any] = np.sort(ids[broken])[:MOST_EXAMPLES].tolist()
    return examples


def _broken_rows(pair: _Pair, before: Array, after: Array) -> Evaluation:
    """The rows with the outcome of the search as their error; what is searched knows nothing else of the outcome."""
    known = pair.before
    return Evaluation(
        labels=np.zeros(len(known), dtype=np.int64),
        predictions=(after > before).astype(np.int64),
        class_names=("not worse", "worse"),
        representations=known.representations,
        sources={name: Source(from_model=False) for name in known.representations},
        metadata=known.metadata,
        ids=known.ids,
        groups=known.groups,
        media=known.media,
    )


def _found_change(slice_: Slice, group: Group, result: Audit, level: float) -> Change:
    """A slice that was found, on held-out rows: worse only where it also has more such rows than the rest."""
    change = measure(group, result.evaluation.groups, level)
    if change.judgement == "worse" and slice_.verdict != "confirmed":
        return replace(change, judgement="no change shown")
    return change


def _sensitivity(changes: Sequence[Change], found: _Found) -> list[str]:
    """What would have been seen, in one sentence or two."""
    rises = []
    for change in changes:
        name = f"{change.n:,} rows" if change.kind == "all" else change.id
        visible = "none" if change.visible is None else f"{100 * change.visible:.1f}"
        if change.task:
            name = f"{change.task}, {name}"
        rises.append(f"{name}: {visible}")
    sentences = [f"Smallest rise that would have been seen (80% power), in points: {', '.join(rises)}."]
    if found.small is not None:
        n, visible_rise_of_small = found.small
        small = "no rise" if visible_rise_of_small is None else f"a rise of {100 * visible_rise_of_small:.0f} points"
        sentences.append(f"In a slice of {n:,} held-out rows that the search finds, {small} would have been seen.")
    return sentences


def _search_note(pair: _Pair, methods: Sequence[str], found: _Found) -> str:
    if not methods:
        return "Slices where the second model is worse were not searched for: the first has nothing to search."
    if not pair.any_broken:
        return "The second model is wrong nowhere that the first was right."
    worse = sum(change.judgement == "worse" for change in found.changes)
    return f"Searched for slices where the second model is worse: {found.tested} tested, {worse} confirmed."
