"""The conductor: searches on some rows, measures on others, explains, and returns an Audit."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from . import store
from .core import Array, Audit, Captions, Evaluation, InputError, Slice
from .core.apply import apply, scoped
from .core.confirm import (
    Settings,
    SliceCandidate,
    SliceResult,
    SplitTask,
    confirm_all,
    describe_sensitivity,
    select_candidates,
)
from .core.errors import unknown
from .core.membership import OVERLAP, jaccard
from .core.same_rows import count_same_rows
from .core.split import discover_mask
from .explain import explain as explain_audit
from .inputs import read
from .inputs.influence import REPRESENTATION as INFLUENCE
from .inputs.influence import add_influence
from .report import to_html
from .slicers import Approximation, Slicer, knows_outcome, make, registry, restore
from .version import __version__

FEWEST_ROWS = 20
CLUSTER_ROWS = 10_000  # rows that fit the clusters drawn beside the slices
SEEDS = 2**32  # as many as scikit-learn takes
BEST = ("domino", "gmm")
WITHOUT_LABELS = ("spotlight", "gmm")  # where there are losses and a representation only
UNCONFIRMABLE = "unconfirmable"

Progress = Callable[[str, float], None]  # what is being done, and the share done


@dataclass(frozen=True, eq=False)
class _Search:
    """One method on one task, with discover and confirm rows in their roles."""

    key: str  # names the fitted slicer in the audit and on disk
    method: str
    task: str
    trial: SplitTask
    reverse: bool = False


def audit(
    evaluation: Evaluation,
    *,
    methods: Sequence[str] | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    seed: int = 0,
    settings: Settings | None = None,
    crossfit: bool = False,
    train: Evaluation | None = None,
    texts: Captions | None = None,
    progress: Progress | None = None,
) -> Audit:
    """Find slices on the discover rows, confirm them on the others, explain what was found.

    methods: names, each `NAME` or `NAME:PRESET`; left out, those that `options` name, or the ones that do best
    together on the exam and can read this evaluation. options: {"spotlight": {"size": 0.05}}; every argument of a
    method's constructor is one. seed drives the search, never the split. crossfit also searches on the confirm
    rows and tests on the discover rows, all in one family of tests. train: the rows the model learnt from, with
    the same representations, for methods that need them. texts: candidates for describing each slice.
    """
    settings = settings or Settings()
    _check_rows(evaluation, train)
    if texts is not None:  # `explain` would say it after the search
        texts.check_with(evaluation)
    methods = default_methods(evaluation, options or {}) if methods is None else methods
    check_methods(methods, options or {}, seed)
    discover = discover_mask(evaluation, settings.share)
    _check_split(evaluation, discover)
    if any(_representation(method, options or {}) == INFLUENCE for method in methods):
        evaluation, train = add_influence(evaluation, train, discover)
    searches = list(_searches(evaluation, methods, discover, settings, crossfit))
    slicers: dict[str, Any] = {}
    family: list[tuple[_Search, SliceCandidate]] = []
    outside: list[tuple[_Search, SliceCandidate]] = []
    for i, search in enumerate(searches):
        slicer = make(search.method, seed=seed, options=_options_of(search.method, options or {}))
        _report_to(slicer, progress, search.key, i, len(searches))
        fitted, candidates, blind = _run(search, slicer, train, seed)
        slicers[search.key] = fitted
        if progress is not None:
            progress(search.key, (i + 1) / len(searches))
        family += [(search, candidate) for candidate in select_candidates(search.trial, candidates)]
        outside += [(search, candidate) for candidate in blind[: settings.most]]
    results = confirm_all([(search.trial, candidate) for search, candidate in family])
    found = _in_order([(search, result) for (search, _), result in zip(family, results, strict=True)])
    slices = found + [_bare_slice(search, candidate) for search, candidate in outside]
    trials = {search.task: search.trial for search in searches if not search.reverse}
    plain = Audit(
        slices=tuple(replace(item, id=f"s{i}") for i, item in enumerate(slices, start=1)),
        evaluation=evaluation,
        discover=discover,
        overall=tuple((task, trial.overall()) for task, trial in trials.items()),
        settings=_settings_record(settings, methods, options or {}, seed, crossfit, len(family), train),
        silence=_silence(trials, len(family)),
        slicers=slicers,
    )
    clusters = _clusters(evaluation, discover, seed)
    arrays = {} if texts is None else {key: slicer.to_state().arrays for key, slicer in slicers.items()}
    return explain_audit(plain, seed=seed, clusters=clusters, train=train, texts=texts, arrays=arrays)


def default_methods(evaluation: Evaluation, options: Mapping[str, Any]) -> Sequence[str]:
    """What a newcomer gets: the methods that found most with least beside it in `docs/benchmarks.md`."""
    if options:
        return list(options)
    known = registry()
    views = dict(evaluation.tasks()).values()
    able = all(_has(view, known[name].needs) for name in BEST for view in views)
    return list(BEST if able else WITHOUT_LABELS)


def _has(evaluation: Evaluation, needs: frozenset[str]) -> bool:
    held = {name: getattr(evaluation, name) for name in needs}
    return all(value is not None and (not isinstance(value, Mapping) or bool(value)) for value in held.values())


def load(folder: str | Path) -> Audit:
    """A saved audit, with its slicers ready for new rows."""
    return store.load(folder, restore, read)


def save(audit: Audit, folder: str | Path) -> Path:
    """Write an audit and its report as a folder that does not exist yet; whole or not at all."""
    return store.save(audit, folder, report=to_html(audit))


def _check_rows(evaluation: Evaluation, train: Evaluation | None) -> None:
    if not isinstance(evaluation, Evaluation):
        raise InputError(f"`audit` takes an Evaluation; got {type(evaluation).__name__}; make one with errata.collect")
    if len(evaluation) < FEWEST_ROWS:
        raise InputError(
            f"an audit needs at least {FEWEST_ROWS} rows; got {len(evaluation)}; "
            "half of them only confirm what the other half shows"
        )
    _refuse_training_rows(evaluation, train)


def _check_split(evaluation: Evaluation, discover: Array) -> None:
    if discover.all() or not discover.any():
        kind = "group" if evaluation.groups is not None else "id"
        raise InputError(
            f"the rows cannot be split in two: one {kind} holds nearly all of them; give `groups` that are smaller"
        )


def check_methods(methods: Sequence[str], options: Mapping[str, Mapping[str, Any]], seed: int = 0) -> None:
    """All names, presets and options are known: worth saying before an hour of reading."""
    if isinstance(methods, str):
        raise InputError(f"`methods` is a list of names; got the text {methods!r}; write [{methods!r}]")
    if not methods:
        raise InputError("`methods` is empty; name at least one, such as `spotlight`")
    if len(set(methods)) != len(methods):
        raise InputError(f"`methods` names one twice: {', '.join(methods)}; name each once")
    named = {method.partition(":")[0] for method in methods} | set(methods)
    for method in options:
        if method not in named:
            raise unknown("method in an option", method, named)
    for method in methods:
        _check_seed(getattr(make(method, seed=seed, options=_options_of(method, options)), "seed", seed))


def _check_seed(seed: int) -> None:
    if not 0 <= seed < SEEDS:
        raise InputError(f"`seed` must lie from 0 to {SEEDS - 1}; got {seed}")


def _refuse_training_rows(evaluation: Evaluation, train: Evaluation | None) -> None:
    """Errors on rows the model learnt from say nothing of new ones."""
    if train is None:
        return
    if same := count_same_rows(evaluation, train):
        raise InputError(f"at least {same} rows of the evaluation are also in `train`; audit rows the model never saw")


def _searches(
    evaluation: Evaluation, methods: Sequence[str], discover: Array, settings: Settings, crossfit: bool
) -> Iterable[_Search]:
    for t, (task, view) in enumerate(evaluation.tasks()):
        trials = [SplitTask(view, discover, settings)] + ([SplitTask(view, ~discover, settings)] if crossfit else [])
        for reverse, trial in enumerate(trials):
            for method in methods:
                key = method.replace(":", "-") + (f"-task{t}" if task else "") + ("-reverse" if reverse else "")
                yield _Search(key, method, task, trial, bool(reverse))


def _options_of(method: str, options: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Options said for the method, then those said for this preset of it."""
    return {**options.get(method.partition(":")[0], {}), **options.get(method, {})}


def _representation(method: str, options: Mapping[str, Mapping[str, Any]]) -> str | None:
    """The representation that a method asks for by name."""
    asked: str | None = getattr(make(method, options=_options_of(method, options)), "representation", None)
    return asked


def _report_to(slicer: Any, progress: Progress | None, key: str, i: int, total: int) -> None:
    if progress is not None:
        progress(key, i / total)
        slicer.report_progress = lambda stage, share: progress(key, (i + share) / total)


def _run(
    search: _Search, slicer: Slicer, train: Evaluation | None, seed: int
) -> tuple[Any, list[SliceCandidate], list[SliceCandidate]]:
    """(what is saved, its candidates, candidates that nothing can approximate)."""
    view, discover = search.trial.evaluation, search.trial.discover
    searched = view.rows(discover)
    slicer.fit(searched, train=train)
    if not knows_outcome(slicer, view):
        weights = slicer.membership(view)
        return slicer, [_candidate(search, slicer, weights, j) for j in range(weights.shape[1])], []
    approximation = Approximation(search.method, seed).fit(slicer, searched)
    own = slicer.membership(view)
    inside = own >= slicer.thresholds_
    weights = approximation.membership(view)
    candidates = [
        replace(
            _candidate(search, approximation, weights, j),
            fidelity=_fidelity(weights[:, j] >= approximation.thresholds_[j], inside[:, column], search.trial.confirm),
        )
        for j, column in enumerate(approximation.columns_)
    ]
    blind = [  # no approximation, so no column that could be applied to new rows
        replace(_candidate(search, slicer, own, j), index=-1)
        for j in range(own.shape[1])
        if j not in approximation.columns_ and inside[:, j].any()
    ]
    empty = [c for c in candidates if not c.members.any()]
    return approximation, [c for c in candidates if c.members.any()], blind + empty


def _candidate(search: _Search, slicer: Any, weights: Array, j: int) -> SliceCandidate:
    rule = slicer.rules_[j]
    column = scoped(rule, search.trial.evaluation, weights[:, j])
    return SliceCandidate(search.method, j, column, float(slicer.thresholds_[j]), rule, rule.get("side", "hard"))


def _fidelity(approximation: Array, own: Array, confirm: Array) -> float:
    taken = approximation & confirm
    return float(own[taken].mean()) if taken.any() else 0.0


def _in_order(results: Sequence[tuple[_Search, SliceResult]]) -> list[Slice]:
    """Slices by importance; those that hold mostly the same rows are folded into the first of them."""
    kept: list[Slice] = []
    for search, result in sorted(results, key=lambda pair: pair[1].priority):
        inside = result.candidate.members
        twin = next(
            (
                i
                for i, other in enumerate(kept)
                if (other.task, other.side) == (search.task, result.candidate.side)
                and jaccard(other.members, inside) >= OVERLAP
            ),
            None,
        )
        if twin is None:
            kept.append(_slice(search, result))
        else:
            names = dict.fromkeys([*kept[twin].found_by, search.method])
            kept[twin] = replace(kept[twin], found_by=tuple(names), folded=kept[twin].folded + 1)
    return kept


def _slice(search: _Search, result: SliceResult) -> Slice:
    return replace(
        _bare_slice(search, result.candidate),
        verdict=result.verdict,
        reason=result.reason,
        confirmed_on="discover" if search.reverse else "confirm",
        discover=result.search,
        confirm=result.held_out,
        beyond=result.beyond,
        explained_by=result.explained_by,
        not_applicable=result.not_applicable,
        fidelity=result.candidate.fidelity,
    )


def _bare_slice(search: _Search, candidate: SliceCandidate) -> Slice:
    """A slice of which nothing was measured. So stays one that no approximation could be found for: what unites its
    rows is that they are wrong, and it is shown without a number."""
    return Slice(
        id="",
        method=search.method,
        name="",  # `explain` names it
        verdict="not confirmed",
        threshold=candidate.threshold,
        rule=candidate.rule,
        weights=candidate.weights,
        slicer=search.key,
        column=candidate.index,
        side=candidate.side,
        task=search.task,
        reason=UNCONFIRMABLE,
        found_by=(search.method,),
    )


def _settings_record(
    settings: Settings,
    methods: Sequence[str],
    options: Mapping[str, Any],
    seed: int,
    crossfit: bool,
    family: int,
    train: Evaluation | None,
) -> dict[str, Any]:
    return {
        "version": __version__,
        "methods": list(methods),
        "options": {method: {key: _named(value) for key, value in given.items()} for method, given in options.items()},
        "seed": seed,
        **asdict(settings),
        "level": settings.level,
        "crossfit": crossfit,
        "tested": family,
        "trained_on_these_rows": "not known" if train is None else "no",
    }


def _named(value: Any) -> Any:
    """A setting as JSON has it; a function or an object of the user's by its name."""
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return getattr(value, "__name__", type(value).__name__)
    return value


def _silence(trials: Mapping[str, SplitTask], family: int) -> str:
    sentences = [(task, describe_sensitivity(trial, family)) for task, trial in trials.items()]
    return " ".join(f"{task}: {sentence}" if task else sentence for task, sentence in sentences)


def _clusters(evaluation: Evaluation, discover: Array, seed: int) -> Array | None:
    """(n,) clusters of a Gaussian mixture, to be drawn beside the slices (the paper's figure 5)."""
    if not evaluation.representations or evaluation.losses is None:
        return None
    rows = np.flatnonzero(discover)
    few = rows[np.linspace(0, len(rows) - 1, min(len(rows), CLUSTER_ROWS)).astype(int)]
    mixture = make("gmm", seed=seed).fit(evaluation.rows(few))
    clusters: Array = mixture.membership(evaluation).argmax(axis=1)
    return clusters


__all__ = ["Settings", "apply", "audit", "check_methods", "load", "save"]
