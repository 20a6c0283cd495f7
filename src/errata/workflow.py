"""The conductor of the main job: searches on some rows, measures on others, explains, draws the map."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np

from . import store
from .core import Array, Audit, Captions, ErrorType, Evaluation, InputError, Progress, Slice, silent
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
from .core.error_types import OutcomeSlice, find_error_types
from .core.errors import unknown
from .core.evaluation import INFLUENCE
from .core.membership import OVERLAP, jaccard
from .core.ownership import settle_sources
from .core.same_rows import count_same_rows
from .core.soften import SOFTNESS
from .core.split import discover_mask
from .explain import draw_map, restore_explanation
from .explain import explain as explain_audit
from .inputs import read
from .inputs.influence import add_influence
from .report import to_html
from .slicers import Approximation, Slicer, check, knows_outcome, make, registry, restore, search_within
from .slicers.gmm import Gmm
from .slicers.options import SEED
from .version import __version__

FEWEST_ROWS = 20
DEFAULT_METHODS = ("consensus",)  # what found most, with least else, in the benchmarks
PART = 0.8  # share of a slice's rows in another from which it is a part of it
MOST_UNLABELLED = 20_000  # held-out rows whose representations help a search: more take memory and say no more

Options = Mapping[str, Mapping[str, Any]]  # method -> {option: value}


@dataclass(frozen=True, eq=False)
class _Search:
    """One method on one task, with search rows and held-out rows in their roles."""

    key: str  # names the fitted slicer in the audit and on disk
    method: str
    task: str
    trial: SplitTask
    slicer: Slicer  # not fitted yet
    reverse: bool = False


@dataclass(frozen=True, eq=False)
class _Fit:
    """A search that was run."""

    search: _Search
    slicers: dict[str, Any]  # key -> what is saved and applied: the slicer, and the approximation of some of its slices
    candidates: list[SliceCandidate]
    outcome_slices: list[OutcomeSlice]  # that know the outcome; some of the candidates are their approximations


def audit(
    evaluation: Evaluation,
    *,
    methods: Sequence[str] | None = None,
    options: Options | None = None,
    seed: int = 0,
    settings: Settings | None = None,
    within: str = "auto",
    crossfit: bool = False,
    train: Evaluation | None = None,
    texts: Captions | None = None,
    map: bool = False,
    progress: Progress = silent,
) -> Audit:
    """Find slices on the search rows, confirm them on the held-out rows, and explain them.

    Parameters
    ----------
    evaluation : Evaluation
        Rows that the model was not trained on, with its outcomes and at least one representation.
    methods : list of str, optional
        Names, each `NAME` or `NAME:PRESET`. Default: the methods that do best together on the benchmarks and can read
        this evaluation.
    options : mapping, optional
        Options of methods that are run, such as {"gmm": {"components": 20}}: arguments of their constructors.
    seed : int
        Seed of the search. The split depends on the row ids alone.
    settings : Settings, optional
        How strict the confirmation is.
    within : str
        Search within each `label` or each `prediction`, small classes pooled, or among all rows at once, `none`.
        Default: `auto`, each method's own way.
    crossfit : bool
        Also search the held-out rows and test on the search rows, all in one family of tests.
    train : Evaluation, optional
        The rows that the model was trained on, with the same representations, for methods that need them.
    texts : Captions, optional
        Texts that may describe a slice.
    map : bool
        Draw a map of all rows, as the command does. It takes longer than most searches, and no number depends on it.
    progress : callable
        Called with the stage and the share that is done.

    Returns
    -------
    Audit
        Slices in order of importance, with their verdicts and explanations.

    Examples
    --------
    >>> import numpy as np
    >>> import errata
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(1000, 2))
    >>> labels = rng.integers(0, 2, 1000)
    >>> wrong = rng.random(1000) < np.where(x[:, 0] > 1, 0.8, 0.05)
    >>> evaluation = errata.Evaluation(
    ...     labels=labels, predictions=np.where(wrong, 1 - labels, labels), representations={"x": x}
    ... )
    >>> audit = errata.audit(evaluation, methods=["gmm"])
    >>> audit.slices[0].verdict
    'confirmed'
    """
    settings = settings or Settings()
    options = options or {}
    _check_rows(evaluation, train, texts)
    if methods is None:
        methods = DEFAULT_METHODS
    built = _build_slicers(methods, options, seed, within)
    discover = discover_mask(evaluation, settings.share)
    _check_split(evaluation, discover)
    softness = _softness(evaluation, built)
    evaluation, ownership = settle_sources(evaluation, discover)
    if _reads_influence(built):
        evaluation, train = add_influence(evaluation, train, discover)
    searches = list(_searches(evaluation, built, discover, settings, crossfit))
    fits = _run_all(searches, train, seed, progress)
    family = [
        (fit.search, candidate) for fit in fits for candidate in select_candidates(fit.search.trial, fit.candidates)
    ]
    results = confirm_all([(search.trial, candidate) for search, candidate in family])
    tested = _in_order([(search, result) for (search, _), result in zip(family, results, strict=True)])
    slices, error_types = _two_faces(fits, tested)
    trials = {search.task: search.trial for search in searches if not search.reverse}
    plain = Audit(
        slices=slices,
        evaluation=evaluation,
        discover=discover,
        overall=tuple((task, trial.overall()) for task, trial in trials.items()),
        settings={
            **_settings_record(settings, methods, options, seed, crossfit, len(family), train, fits),
            "within": within,
            "softness": softness,
            "ownership": ownership,
        },
        silence=_silence(trials, len(family)),
        slicers={key: slicer for fit in fits for key, slicer in fit.slicers.items()},
        error_types=error_types,
    )
    result = _explain(plain, train, texts, seed)
    if map:
        result = add_map(result, seed=seed, progress=progress)
    return result


def add_map(audit: Audit, *, seed: int = 0, progress: Progress = silent) -> Audit:
    """Return the audit with a map of its rows, where it has none and has a representation to draw one from."""
    if any(explanation.kind == "map" for explanation in audit.explanations) or not audit.evaluation.representations:
        return audit
    return draw_map(audit, seed=seed, progress=progress)


def load(folder: str | Path) -> Audit:
    """Load a saved audit, with its slicers ready for new rows.

    Parameters
    ----------
    folder : str or Path
        The folder that `save` or the command `errata audit` wrote.

    Returns
    -------
    Audit
        The audit as it was saved.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import errata
    >>> x = np.random.default_rng(0).normal(size=(100, 2))
    >>> evaluation = errata.Evaluation(losses=np.exp(x[:, 0]), representations={"x": x})
    >>> audit = errata.audit(evaluation, methods=["gmm"])
    >>> folder = errata.save(audit, tempfile.mkdtemp() + "/audit")
    >>> len(errata.load(folder).slices) == len(audit.slices)
    True
    """
    return store.load(folder, restore, restore_explanation, read)


def save(audit: Audit, folder: str | Path) -> Path:
    """Write an audit and its report as a new folder; completely or not at all.

    Parameters
    ----------
    audit : Audit
        What to write.
    folder : str or Path
        A folder that does not exist yet.

    Returns
    -------
    Path
        The folder, with `audit.json`, `memberships.parquet`, `report.html` and what `load` needs.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import errata
    >>> x = np.random.default_rng(0).normal(size=(100, 2))
    >>> evaluation = errata.Evaluation(losses=np.exp(x[:, 0]), representations={"x": x})
    >>> audit = errata.audit(evaluation, methods=["gmm"])
    >>> folder = errata.save(audit, tempfile.mkdtemp() + "/audit")
    >>> (folder / "report.html").is_file()
    True
    """
    return store.save(audit, folder, report=to_html(audit))


def _check_rows(evaluation: Evaluation, train: Evaluation | None, texts: Captions | None) -> None:
    if not isinstance(evaluation, Evaluation):
        raise InputError(f"`audit` takes an Evaluation; got {type(evaluation).__name__}; make one with errata.collect")
    if len(evaluation) < FEWEST_ROWS:
        raise InputError(
            f"an audit needs at least {FEWEST_ROWS} rows; got {len(evaluation)}; half of them are held out to confirm "
            "what the other half shows"
        )
    shared = 0 if train is None else count_same_rows(evaluation, train)
    if shared:  # errors on training rows do not predict errors on new ones
        raise InputError(
            f"at least {shared} rows of the evaluation are also in `train`; audit rows the model was not trained on"
        )
    if texts is not None:  # `explain` would refuse them after the search
        texts.check_with(evaluation)


def _check_split(evaluation: Evaluation, discover: Array) -> None:
    if discover.all() or not discover.any():
        kind = "id" if evaluation.groups is None else "group"
        raise InputError(f"the rows cannot be split in two: one {kind} holds nearly all of them; give smaller `groups`")


def check_methods(methods: Sequence[str], options: Options, seed: int = 0, within: str = "auto") -> None:
    """Raise InputError unless all names, presets and options are known: worth knowing before an hour of reading."""
    _check_names(methods, options, seed)
    for method in methods:
        check(method, seed=seed, options=options_of(method, options))
    _build_slicers(methods, options, seed, within)


def _build_slicers(methods: Sequence[str], options: Options, seed: int, within: str) -> dict[str, Slicer]:
    """Return a slicer, not fitted yet, for each method."""
    _check_names(methods, options, seed)
    slicers = {}
    for method in methods:
        own = options_of(method, options)
        slicers[method] = search_within(make(method, seed=seed, options=own), within, own)
    return slicers


def _check_names(methods: Sequence[str], options: Options, seed: int) -> None:
    """Refuse a list of methods that is none, options of others, and a seed that no method could take."""
    if isinstance(methods, str):
        raise InputError(f"`methods` must be a list of names; got the text {methods!r}; write [{methods!r}]")
    if not methods:
        raise InputError("`methods` is empty; name at least one, such as `spotlight`")
    if len(set(methods)) != len(methods):
        raise InputError(f"`methods` names a method twice: {', '.join(methods)}; name each once")
    named = {method.partition(":")[0] for method in methods} | set(methods)
    for method in options:
        if method not in named:
            raise _option_of_another(method, methods)
    if isinstance(seed, int) and not SEED.allows(seed, {}):
        raise InputError(f"`seed` must be {SEED.words}; got {seed}")


def _option_of_another(method: str, methods: Sequence[str]) -> InputError:
    """Return what to say of an option whose method is not run: it would change nothing, or mean another audit."""
    known = registry()
    if method.partition(":")[0] not in known:
        return unknown("method in an option", method, known)
    return InputError(
        f"an option is for method `{method}`, which is not run (only {', '.join(methods)}); "
        f"name it too, with `--method {method}` or in `methods`, or leave the option out"
    )


def options_of(method: str, options: Options) -> dict[str, Any]:
    """Return the options for a method, overridden by those for this preset of it."""
    return {**options.get(method.partition(":")[0], {}), **options.get(method, {})}


def _reads_influence(slicers: Mapping[str, Slicer]) -> bool:
    return any(getattr(slicer, "representation", None) == INFLUENCE for slicer in slicers.values())


def _softness(evaluation: Evaluation, slicers: Mapping[str, Slicer]) -> float | None:
    """Return what hard predictions were made soft by, where a method reads probabilities and there are none."""
    if evaluation.probs is not None or evaluation.task not in ("classification", "multilabel"):
        return None
    makes_influence = _reads_influence(slicers) and INFLUENCE not in evaluation.representations
    if makes_influence or any(getattr(slicer, "reads_probs", False) for slicer in slicers.values()):
        return SOFTNESS
    return None


def _searches(
    evaluation: Evaluation, slicers: Mapping[str, Slicer], discover: Array, settings: Settings, crossfit: bool
) -> Iterator[_Search]:
    for t, (task, view) in enumerate(evaluation.tasks()):
        trials = [SplitTask(view, discover, settings)]
        if crossfit:
            trials.append(SplitTask(view, ~discover, settings))
        for reverse, trial in enumerate(trials):
            for method, slicer in slicers.items():
                key = method.replace(":", "-")
                if task:
                    key += f"-task{t}"
                if reverse:
                    key += "-reverse"
                # Each search fits a copy: a slicer that is not fitted holds nothing but its options.
                yield _Search(key, method, task, trial, copy.copy(slicer), bool(reverse))


def _run_all(searches: Sequence[_Search], train: Evaluation | None, seed: int, progress: Progress) -> list[_Fit]:
    """Run the searches; the progress of each is reported as a share of all of them."""
    fits = []
    for i, search in enumerate(searches):

        def report(stage: str, share: float, key: str = search.key, done: int = i) -> None:
            progress(key, (done + share) / len(searches))

        report(search.method, 0.0)
        search.slicer.report_progress = report
        fits.append(_run(search, train, seed))
        report(search.method, 1.0)
    return fits


def _run(search: _Search, train: Evaluation | None, seed: int) -> _Fit:
    """Fit a slicer on the search rows; an approximation takes the place of each slice that reads the outcome."""
    slicer = search.slicer
    view = search.trial.evaluation
    search_rows = view.rows(search.trial.discover)
    if hasattr(slicer, "unlabelled_rows"):  # what is fitted to representations alone may see those of held-out rows
        slicer.unlabelled_rows = _unlabelled(view, search.trial.confirm)
    slicer.fit(search_rows, train=train)
    own = slicer.membership(view)
    knowing = [j for j in range(own.shape[1]) if knows_outcome(slicer, view, j)]
    fair = [_candidate(search, slicer, own, j) for j in range(own.shape[1]) if j not in knowing]
    slicers: dict[str, Any] = {search.key: slicer}
    if not knowing:
        return _Fit(search, slicers, fair, [])
    approximation = Approximation(search.method, seed).fit(slicer, search_rows, knowing)
    slicers[_approximation_key(search)] = approximation
    weights = approximation.membership(view)
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
    return _Fit(search, slicers, candidates, outcome_slices)


def _unlabelled(view: Evaluation, held_out: Array) -> Evaluation:
    """Return representations of held-out rows, evenly thinned in the order of their ids."""
    rows = np.flatnonzero(held_out)
    rows = rows[np.argsort(view.row_ids[rows], kind="stable")]
    thinned = rows[:: 1 + len(rows) // MOST_UNLABELLED]
    return view.rows(thinned).without_outcomes()


def _approximation_key(search: _Search) -> str:
    return f"{search.key}-approximation"


def _candidate(search: _Search, slicer: Any, weights: Array, j: int) -> SliceCandidate:
    rule = slicer.rules_[j]
    column = scoped(rule, search.trial.evaluation, weights[:, j])
    return SliceCandidate(search.method, j, column, float(slicer.thresholds_[j]), rule, rule.get("side", "hard"))


def _fidelity(approximated: Array, own: Array, held_out: Array) -> float:
    """Return the share of an approximation's held-out members that the method itself would take."""
    members = approximated & held_out
    return float(own[members].mean()) if members.any() else 0.0


def _in_order(results: Sequence[tuple[_Search, SliceResult]]) -> list[Slice]:
    """Return slices by importance; those that hold mostly the same rows are merged into the first of them."""
    slices: list[Slice] = []
    for search, result in sorted(results, key=lambda pair: pair[1].priority):
        twin = _twin(slices, search.task, result)
        if twin is None:
            slices.append(_slice(search, result))
        else:
            methods = dict.fromkeys([*slices[twin].found_by, search.method])
            slices[twin] = replace(slices[twin], found_by=tuple(methods), folded=slices[twin].folded + 1)
    return slices


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


def _two_faces(fits: Sequence[_Fit], tested: Sequence[Slice]) -> tuple[tuple[Slice, ...], tuple[ErrorType, ...]]:
    """Slices with their ids, and the error types behind some of them; each points at the other."""
    slices = [replace(slice_, id=f"s{i}") for i, slice_ in enumerate(tested, start=1)]
    outcome_slices = [slice_ for fit in fits if not fit.search.reverse for slice_ in fit.outcome_slices]
    error_types = find_error_types(outcome_slices, slices)
    behind = {slice_.id: tuple(item.id for item in error_types if item.slice == slice_.id) for slice_ in slices}
    return tuple(replace(slice_, error_types=behind[slice_.id]) for slice_ in slices), error_types


def _slice(search: _Search, result: SliceResult) -> Slice:
    confirmed_on: Literal["confirm", "discover"] = "discover" if search.reverse else "confirm"
    candidate = result.candidate
    slicer = search.key if candidate.fidelity is None else _approximation_key(search)
    return Slice(
        id="",
        method=search.method,
        name="",  # `explain` names it
        verdict=result.verdict,
        threshold=candidate.threshold,
        rule=candidate.rule,
        weights=candidate.weights,
        slicer=slicer,
        column=candidate.index,
        side=candidate.side,
        task=search.task,
        reason=result.reason,
        confirmed_on=confirmed_on,
        discover=result.search,
        confirm=result.held_out,
        beyond=result.beyond,
        explained_by=result.explained_by,
        not_applicable=result.not_applicable,
        fidelity=candidate.fidelity,
        found_by=(search.method,),
    )


def _settings_record(
    settings: Settings,
    methods: Sequence[str],
    options: Options,
    seed: int,
    crossfit: bool,
    family: int,
    train: Evaluation | None,
    fits: Sequence[_Fit],
) -> dict[str, Any]:
    notes = [note for fit in fits for note in getattr(fit.search.slicer, "notes", ())]
    trained_on_these_rows = "not known" if train is None else "no"
    plain_options = {method: {key: _as_json(value) for key, value in own.items()} for method, own in options.items()}
    return {
        "version": __version__,
        "methods": list(methods),
        "options": plain_options,
        "seed": seed,
        **asdict(settings),
        "level": settings.level,
        "crossfit": crossfit,
        "tested": family,
        "notes": list(dict.fromkeys(notes)),
        "trained_on_these_rows": trained_on_these_rows,
    }


def _as_json(value: Any) -> Any:
    """Return an option as JSON has it; a function or an object of the user's by its name."""
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return getattr(value, "__name__", type(value).__name__)
    return value


def _silence(trials: Mapping[str, SplitTask], family: int) -> str:
    """Return what the audit could have missed, one sentence a task."""
    sentences = []
    for task, trial in trials.items():
        sentence = describe_sensitivity(trial, family)
        if task:
            sentence = f"{task}: {sentence}"
        sentences.append(sentence)
    return " ".join(sentences)


def _clusters(evaluation: Evaluation, slicers: Mapping[str, Any]) -> Array | None:
    """Return (n,) clusters to draw beside the slices (figure 5 of Spotlight), where a Gaussian mixture was searched."""
    if evaluation.losses is None:
        return None
    for slicer in slicers.values():
        if isinstance(slicer, Gmm):
            clusters: Array = slicer.membership(evaluation).argmax(axis=1)
            return clusters
    return None


def _explain(plain: Audit, train: Evaluation | None, texts: Captions | None, seed: int) -> Audit:
    arrays = {}
    if texts is not None:  # captions lie along directions that a slicer learned
        arrays = {key: slicer.to_state().arrays for key, slicer in plain.slicers.items()}
    clusters = _clusters(plain.evaluation, plain.slicers)
    return explain_audit(plain, seed=seed, clusters=clusters, train=train, texts=texts, arrays=arrays)


__all__ = ["DEFAULT_METHODS", "Settings", "add_map", "apply", "audit", "check_methods", "load", "options_of", "save"]
