"""The main job: searches on some rows, measures on others, explains, draws the map; loads and saves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from inspect import signature
from pathlib import Path
from typing import Any

from .. import store
from ..core import Array, Audit, Captions, Evaluation, InputError, Progress, silent
from ..core.captions import check_captions
from ..core.confirm import Settings, SplitTask, describe_sensitivity
from ..core.evaluation import INFLUENCE
from ..core.grouping import settle_groups
from ..core.judgement import as_left
from ..core.ownership import settle_sources
from ..core.same_rows import count_same_rows
from ..core.soften import SOFTNESS
from ..core.telling import outcome_notes
from ..engine import Engine, Local, open_engine
from ..explain import add_trees, check_vocabulary, draw_map, restore_explanation
from ..explain import explain as explain_audit
from ..hypothesis import OwnSlices, read_slices, untestable
from ..inputs import read
from ..report import to_html
from ..slicers import Slicer, restore
from ..slicers.gmm import Gmm
from ..version import __version__
from .findings import Findings, find_slices
from .influence import embed_searched, influence_options_read, rank_training_rows
from .judging import judgement_of
from .looks import audit_look, options_as_json
from .methods import Method, Options, build_slicers, default_methods, method_names, reads_influence
from .notes import drawn_note, input_notes, own_layer_notes
from .searching import SEARCH_ROWS, Effort, grown_trees, method_key
from .seeking import FEWEST_ROWS, Sought, seek
from .self_test import RepeatedSearch, SearchTest, measure_search


def audit(
    evaluation: Evaluation,
    *,
    methods: Sequence[Method] | None = None,
    options: Options | None = None,
    seed: int = 0,
    settings: Settings | None = None,
    within: str = "auto",
    crossfit: bool = False,
    groups: str = "auto",
    train: Evaluation | None = None,
    influence: Mapping[str, Any] | None = None,
    texts: Captions | None = None,
    vocabulary: Sequence[str] | None = None,
    slices: Mapping[str, Any] | None = None,
    metric: str = "error",
    positive: str | int | None = None,
    map: bool = False,
    self_test: bool | None = False,
    search_rows: int = SEARCH_ROWS,
    engine: str | Engine = "local",
    memory: int | str | None = None,
    progress: Progress = silent,
) -> Audit:
    """Find slices on the search rows, confirm them on the held-out rows, and explain them.

    Parameters
    ----------
    evaluation : Evaluation
        Rows that the model was not trained on, with its outcomes and a representation, or metadata, or both.
    methods : list of str, optional
        Names, each `NAME` or `NAME:PRESET`, or slicers of your own. Default: `consensus` where there are
        representations, `rules` where there is metadata, both where there are both.
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
    groups : str
        What rows belong together beside the evaluation's own `groups`: `auto`, copies, and a metadata column that looks
        like the id of a group; the name of a metadata column; `none`, nothing.
    train : Evaluation, optional
        The rows that the model was trained on, with the same representations, for methods that need them. Every
        slice then shows which of them pull it the wrong way.
    influence : mapping, optional
        How influence embeddings of the last layer are made, {"P": 500, "D": 100, "damping": 0.001} for one: products
        with the Hessian, directions, what is added to eigenvalues; also rows (a number or "all"), tolerance, seed, and
        basis, bytes.
    texts : Captions, optional
        Texts that may describe a slice.
    vocabulary : list of str, optional
        Words and phrases of your own that may describe a slice of texts. Default: all words and phrases of the texts.
    slices : mapping, optional
        Slices of your own that are tested with those that are found: name -> a condition such as "age < 5", a mask of
        the rows, or a clustering, (n,) whole numbers. How rows were chosen is not known here: a mask that was made by
        looking at errors confirms itself.
    metric : str
        What is searched for and confirmed: "error"; "fnr" or "fpr", false negatives among the rows of the positive
        class or false positives among the others, which alone are audited; "over_prediction" or "under_prediction" of
        a regression by more than the tolerance.
    positive : str or int, optional
        The class of "fnr" and "fpr"; of several labels, which. Default: the second of two classes.
    map : bool
        Draw a map of all rows, as the command does. It takes longer than most searches, and no number depends on it.
    self_test : bool, optional
        Repeat the search on these rows with groups planted in them, and with outcomes that have no pattern, to measure
        what it finds. It takes about forty times as long as the search. None, as the command has it: up to 50,000 rows.
    search_rows : int
        Search rows that methods are fitted to, at most; of more, as many are drawn. Every held-out row counts.
    engine : str or Engine
        Who works through all rows: `local`, this process; `cuda`, one GPU; `ray` or `ray://HOST:PORT`, a Ray cluster.
        The verdicts do not depend on it.
    memory : int or str, optional
        What arrays with a value for every row may take, such as "2GB", the default; larger ones lie on disk.
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
    _check_input(evaluation, train, texts, vocabulary)
    effort = Effort(open_engine(engine, memory), search_rows, progress)
    if methods is None:
        methods = default_methods(evaluation, required=slices is None)
    built = _build(methods, slices, options, seed, within)
    asked = influence_options_read(influence, built, evaluation, train)
    search = {"methods": methods, "options": options, "seed": seed, "within": within, "crossfit": crossfit}
    search |= {"metric": metric, "positive": positive, "groups": groups, "search_rows": search_rows}
    search["influence"] = dict(influence or {})
    look = audit_look(evaluation, settings, search, train=train, slices=slices)
    evaluation, discover, grouping = _split(evaluation, groups, settings.share)
    softness = _softness(evaluation, built)
    evaluation, ownership = settle_sources(evaluation, discover)
    said = [*input_notes(evaluation, built, texts), *outcome_notes(evaluation, discover)]
    sought = seek(evaluation, discover, metric, positive, train=train, slices=slices)
    evaluation = sought.evaluation
    discover = sought.discover
    train = sought.train
    said += drawn_note(discover, search_rows)
    alone = Effort(Local(threads=1), search_rows)  # repeats run side by side
    repeat = RepeatedSearch(evaluation, discover, dict(built), settings, crossfit, train, seed, alone, asked)
    embedded = embed_searched(built, evaluation, train, discover, asked)
    if sought.slices is not None:
        built[OwnSlices.name] = _own_slices(sought.slices, embedded.evaluation, discover)
    places: dict[str, Any] = {"crossfit": crossfit, "train": embedded.train, "seed": seed, "effort": effort}
    findings = find_slices(embedded.evaluation, built, discover, settings, **places)
    tested = measure_search(repeat, findings, self_test, progress)
    embedded, unranked = rank_training_rows(embedded, len(findings.slices), discover, asked)
    files = {"train": train, "slices": slices, "texts": texts, "vocabulary": vocabulary}
    said += [*unranked, *own_layer_notes(evaluation, built, findings.slices, _given(search), files, settings)]
    record = {**search, **_settings_record(settings, method_names(methods), options, train, findings, sought, said)}
    record |= {"look": look, "softness": softness, "ownership": ownership, "groups": grouping}
    record["influence"] = embedded.record or None
    plain = _unexplained(findings, embedded.evaluation, discover, record, tested)
    result = add_trees(_explain(plain, embedded.train, texts, vocabulary, seed), grown_trees(findings.fits))
    return add_map(result, seed=seed, progress=progress) if map else result


def _build(
    methods: Sequence[Method], slices: Mapping[str, Any] | None, options: Options, seed: int, within: str
) -> dict[str, Any]:
    """Return a slicer for each method. With slices of the user's own, nothing need be searched."""
    if not methods and slices is not None:
        return {}
    return dict(build_slicers(methods, options, seed, within))


def _given(search: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of `audit` that are not its defaults."""
    defaults = signature(audit).parameters
    given = {name: value for name, value in search.items() if value != defaults[name].default}
    if not search["influence"]:
        del given["influence"]
    return given


def _unexplained(
    findings: Findings, evaluation: Evaluation, discover: Array, settings: Mapping[str, Any], tested: SearchTest
) -> Audit:
    """Return what was found as an audit, without names and explanations."""
    return Audit(
        slices=findings.slices,
        evaluation=evaluation,
        discover=discover,
        overall=tuple((task, trial.overall()) for task, trial in findings.trials.items()),
        settings=settings,
        silence="\n".join([describe_silence(findings.trials, findings.tested), *tested.sentences]),
        self_test=tested.self_test,
        null_run=tested.null_run,
        slicers={key: slicer for fit in findings.fits for key, slicer in fit.slicers.items()},
        error_types=findings.error_types,
    )


def _own_slices(slices: Mapping[str, Any], evaluation: Evaluation, discover: Array) -> OwnSlices:
    """Return the user's own slices, with notes of those that cannot be tested."""
    own = read_slices(slices, evaluation)
    own.notes = tuple(dict.fromkeys(untestable(own, evaluation, discover)))
    return own


def add_map(audit: Audit, *, seed: int = 0, progress: Progress = silent) -> Audit:
    """Return the audit with a map of its rows, where it has none and has a representation to draw one from."""
    if any(explanation.kind == "map" for explanation in audit.explanations) or not audit.evaluation.representations:
        return audit
    return draw_map(audit, seed=seed, progress=progress)


def load(
    folder: str | Path, *, methods: Sequence[Any] = (), judged: bool = False, database: str | None = None
) -> Audit:
    """Load a saved audit, with its slicers ready for new rows.

    Parameters
    ----------
    folder : str or Path
        The folder that `save` or the command `errata audit` wrote.
    methods : list of classes
        Slicers of your own that the audit was made with. Without them it opens too, and `apply` says what it lacks.
    judged : bool
        Load the slices as people left them in `errata serve`: their names, what was merged and which rows were moved
        (`Slice.judged`). Plans, `recheck` and `compare` then start from the accepted ones.
    database : str, optional
        Where people's records are. Default: the file in the folder; without one, nobody decided anything.

    Returns
    -------
    Audit
        The audit as it was saved, or as people left it.

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
    others = {OwnSlices.name: OwnSlices, **{method.name: method for method in methods}}
    audit = store.load(folder, lambda state: restore(state, others), restore_explanation, read)
    if not judged:
        return audit
    return as_left(audit, judgement_of(audit, folder, database))


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


def _check_input(
    evaluation: Evaluation, train: Evaluation | None, texts: Captions | None, vocabulary: Sequence[str] | None
) -> None:
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
    # What `explain` would refuse after the search.
    if texts is not None:
        check_captions(texts)
        texts.check_with(evaluation)
    if vocabulary is not None:
        check_vocabulary(vocabulary, evaluation)


def _split(evaluation: Evaluation, groups: str, share: float) -> tuple[Evaluation, Array, dict[str, Any]]:
    """Return what `settle_groups` gives; refuse rows that cannot be split in two."""
    evaluation, discover, grouping = settle_groups(evaluation, groups, share)
    if discover.all() or not discover.any():
        kind = "id" if evaluation.groups is None else "group"
        raise InputError(f"the rows cannot be split in two: one {kind} holds nearly all of them; give smaller `groups`")
    return evaluation, discover, grouping


def _softness(evaluation: Evaluation, slicers: Mapping[str, Slicer]) -> float | None:
    """Return what hard predictions were made soft by, where a method reads probabilities and there are none."""
    if evaluation.probs is not None or evaluation.task not in ("classification", "multilabel"):
        return None
    makes_influence = reads_influence(slicers) and INFLUENCE not in evaluation.representations
    if makes_influence or any(getattr(slicer, "reads_probs", False) for slicer in slicers.values()):
        return SOFTNESS
    return None


def _settings_record(
    settings: Settings,
    methods: Sequence[str],
    options: Options,
    train: Evaluation | None,
    findings: Findings,
    sought: Sought,
    said: Sequence[str],
) -> dict[str, Any]:
    notes = [*said, *sought.notes, *(note for fit in findings.fits for note in getattr(fit.search.slicer, "notes", ()))]
    trained_on_these_rows = "not known" if train is None else "no"
    return {
        "version": __version__,
        "methods": list(methods),
        "options": options_as_json(options),
        **asdict(settings),
        "level": settings.level,
        "tested": findings.tested,
        "hypotheses": {"counted": 0, "kept": []},  # `keep` adds to them
        "notes": list(dict.fromkeys(notes)),
        "trained_on_these_rows": trained_on_these_rows,
        **sought.record,
    }


def describe_silence(trials: Mapping[str, SplitTask], family: int) -> str:
    """Return what the test could have missed, one sentence a task."""
    sentences = []
    for task, trial in trials.items():
        sentence = describe_sensitivity(trial, family)
        if task:
            sentence = f"{task}: {sentence}"
        sentences.append(sentence)
    return " ".join(sentences)


def drawn_clusters(audit: Audit) -> Array | None:
    """Return (n,) clusters to draw beside the slices (figure 5 of Spotlight), where a Gaussian mixture was searched."""
    if audit.evaluation.losses is None:
        return None
    for slicer in audit.slicers.values():
        if isinstance(slicer, Gmm):
            clusters: Array = slicer.membership(audit.evaluation).argmax(axis=1)
            return clusters
    return None


def own_members(audit: Audit) -> dict[str, Array]:
    """Return, for each approximation of a cluster of influence embeddings, (n,) bool: the rows of that cluster."""
    tasks = dict(audit.evaluation.tasks())
    found: dict[str, Array] = {}
    placed: dict[str, Array] = {}
    for slice_ in audit.slices:
        rule = slice_.rule.get("of") or {}
        key = method_key(slice_.slicer)
        if rule.get("representation") != INFLUENCE or "component" not in rule or key not in audit.slicers:
            continue
        if key not in placed:
            placed[key] = audit.slicers[key].membership(tasks[slice_.task])
        own = int(rule["component"])
        found[slice_.id] = placed[key][:, own] >= audit.slicers[key].thresholds_[own]
    return found


def _explain(
    plain: Audit, train: Evaluation | None, texts: Captions | None, vocabulary: Sequence[str] | None, seed: int
) -> Audit:
    arrays = {}
    if texts is not None:  # captions lie along directions that a slicer learned
        arrays = {key: slicer.to_state().arrays for key, slicer in plain.slicers.items()}
    return explain_audit(
        plain,
        seed=seed,
        clusters=drawn_clusters(plain),
        train=train,
        texts=texts,
        vocabulary=vocabulary,
        arrays=arrays,
        own=own_members(plain),
    )
