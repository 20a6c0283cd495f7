"""`errata audit`, `errata apply` and `errata methods`."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core import InputError
from ..report.printing import echo
from .common import (
    Chosen,
    Database,
    Dir,
    EngineName,
    Names,
    Sets,
    chosen_words,
    plain_warnings,
    read_like,
    read_options,
    read_value,
    tell_choice,
    write_audit,
)
from .further import further_commands
from .gates import Junit, Summary, check_gate, finish
from .plugins import Plugins, build_own, import_methods, without_own

if TYPE_CHECKING:
    from ..core import Evaluation, Slice

Memory = Annotated[
    str, typer.Option(metavar="SIZE", help="What arrays with a value for every row may take; others lie on disk.")
]


def audit(
    context: typer.Context,
    source: Annotated[
        Path, typer.Argument(metavar="INPUT", help="A .npz, .parquet, .csv or .json file, a log, or a folder of files.")
    ],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="The folder to write; must not exist.")],
    method: Annotated[
        Names,
        typer.Option(help="NAME or NAME:PRESET; repeat, or separate by commas. Default: the best that read INPUT."),
    ] = [],
    plugin: Plugins = [],
    slices: Annotated[
        Names,
        typer.Option("--slice", metavar="NAME=CONDITION", help="A slice of your own to test, kids=“age < 5”; repeat."),
    ] = [],
    sets: Sets = [],
    representation: Annotated[
        Names, typer.Option(metavar="[METHOD=]NAME", help="Which embedding to search. Default: the first.")
    ] = [],
    metadata: Annotated[
        Names, typer.Option(metavar="COLUMN", help="A further column to search and explain with; `all` for all.")
    ] = [],
    foreign: Annotated[Names, typer.Option(metavar="NAME", help="An embedding that is not the audited model's.")] = [],
    task: Annotated[
        str | None,
        typer.Option(metavar="TASK", help="classification or regression, where whole numbers could be either."),
    ] = None,
    train: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The rows that the model was trained on, with the same columns.")
    ] = None,
    influence: Annotated[
        Names,
        typer.Option(
            metavar="KEY=VALUE",
            help="How influence is computed: P=500, D=100, damping=0, rows=5000 or rows=all, tolerance=1e-5, seed=0, "
            "basis=4294967296 bytes; repeat. Needs a method that reads influence, or --train.",
        ),
    ] = [],
    texts: Annotated[Path | None, typer.Option(metavar="FILE", help="A .npz of texts to describe slices by.")] = None,
    vocabulary: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Your own words and phrases to describe texts by, one a line."),
    ] = None,
    after: Annotated[list[Path], typer.Option(metavar="DIR", help="An earlier audit of the same rows.")] = [],
    alpha: Annotated[float, typer.Option(help="Chance of any false confirmation.")] = 0.05,
    delta: Annotated[
        float | None, typer.Option(help="Margin that a slice must beat. Default: half the error rate, at most 0.05.")
    ] = None,
    tolerance: Annotated[float | None, typer.Option(help="Loss that is bad, where there are no errors.")] = None,
    within: Annotated[
        str, typer.Option(metavar="SCOPE", help="Search within each label or prediction, or none.")
    ] = "auto",
    metric: Annotated[
        str, typer.Option(metavar="NAME", help="Search for error, fnr, fpr, over_prediction or under_prediction.")
    ] = "error",
    positive: Annotated[
        str | None, typer.Option(metavar="CLASS", help="The class of fnr and fpr. Default: the second of two.")
    ] = None,
    crossfit: Annotated[
        bool, typer.Option("--crossfit", help="Search both halves; for fewer than 5,000 rows.")
    ] = False,
    groups: Annotated[
        str, typer.Option(metavar="COLUMN", help="What rows belong together: auto, a metadata column, or none.")
    ] = "auto",
    reference: Annotated[bool, typer.Option("--reference", help="Refer to INPUT instead of copying it.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of the search, never of the split.")] = 0,
    draw_map: Annotated[
        bool, typer.Option("--map/--no-map", help="Draw a map of all rows, which takes a while.")
    ] = True,
    self_test: Annotated[
        bool | None,
        typer.Option(
            "--self-test/--no-self-test",
            help="Measure what the search finds: plant groups in these rows. Default: up to 50,000 rows.",
        ),
    ] = None,
    search_rows: Annotated[
        int, typer.Option(metavar="N", help="Search rows that methods look at, at most; every held-out row counts.")
    ] = 200_000,
    engine: EngineName = "local",
    memory: Memory = "2GB",
    as_json: Annotated[bool, typer.Option("--json", help="Print audit.json instead of the summary.")] = False,
    fail_on: Annotated[
        str | None,
        typer.Option(metavar="confirmed|beyond", help="Exit 1 if a slice is confirmed, or nothing explains one."),
    ] = None,
    junit: Junit = None,
    summary: Summary = None,
) -> None:
    """Find slices on half of the rows, confirm them on the other half, and write a report."""
    from .. import store, workflow
    from ..core.confirm import Settings
    from ..core.looks import run_number
    from ..engine import open_engine
    from ..inputs.changes import WatchedFiles
    from ..report.gates import audit_gate
    from ..report.progress_bars import progress_bar

    store.check_output(output)
    work: dict[str, Any] = {"engine": open_engine(engine, memory), "map": draw_map, "self_test": self_test}
    reading: dict[str, Any] = {"metadata": metadata, "foreign": foreign, "task": task}
    saved_reference = _reference(reference, source, reading, metric)
    read = (source, train, texts, vocabulary, *after)
    check_gate(fail_on, ("confirmed", "beyond"), junit, summary, read=read, output=output)
    inputs = WatchedFiles(source, train, texts, vocabulary)
    work |= _read_descriptions(texts, vocabulary)
    methods = _named_methods(method)
    options = read_options(methods, sets, representation)
    classes = import_methods(plugin)
    _check_methods(methods, classes, options, seed, within)  # before the file is read, which can take an hour
    own_slices = _read_slices(slices)
    evaluation, training_rows = _read_rows(source, reading, train)
    settings = Settings(alpha=alpha, delta=delta, tolerance=tolerance)
    search: dict[str, Any] = {
        "methods": build_own(_methods_for(evaluation, method, own_slices), classes, options, seed),
        "options": without_own(options, classes),
        "seed": seed,
        "search_rows": search_rows,
    }
    search |= {"within": within, "crossfit": crossfit, "metric": metric, "positive": positive, "groups": groups}
    search |= {"influence": _read_influence(influence)}
    look = workflow.audit_look(evaluation, settings, search, train=training_rows, slices=own_slices)
    run = run_number(look, store.earlier_looks(evaluation.fingerprint, after, output))
    with inputs, progress_bar() as progress:
        result = workflow.audit(
            evaluation,
            settings=replace(settings, run=run),
            train=training_rows,
            slices=own_slices,
            **search,
            **work,
            progress=progress,
        )
    commands = further_commands(result.settings["notes"], context, source, output, reading)
    write_audit(result, output, as_json=as_json, reference=saved_reference, commands=commands, check=inputs.check)
    finish(audit_gate(result, fail_on), junit, summary, quiet=as_json)


def _read_rows(source: Path, reading: dict[str, Any], train: Path | None) -> tuple[Evaluation, Evaluation | None]:
    """Return the rows to audit, and those that the model was trained on."""
    from ..inputs import read

    with plain_warnings():
        evaluation = read(source, **reading)
    if train is None:
        return evaluation, None
    return evaluation, _read_train(train, evaluation, reading)


def _read_train(train: Path, evaluation: Evaluation, reading: dict[str, Any]) -> Evaluation:
    """Return the training rows, with the columns of metadata that the audited rows have and these have too."""
    from ..inputs import read

    named = reading["metadata"]
    if not named:
        return read(train, task=reading["task"])
    rows = read(train, metadata=["all"], task=reading["task"])
    if "all" in named:
        return rows
    shared = {name: values for name, values in rows.metadata.items() if name in evaluation.metadata}
    return replace(rows, metadata=shared)


def _read_descriptions(texts: Path | None, vocabulary: Path | None) -> dict[str, Any]:
    """Return the texts and the words that slices may be described by, as arguments of `audit`."""
    from ..inputs import read_texts, read_vocabulary

    captions = None if texts is None else read_texts(texts)
    phrases = None if vocabulary is None else read_vocabulary(vocabulary)
    return {"texts": captions, "vocabulary": phrases}


def _reference(wanted: bool, source: Path, reading: dict[str, Any], metric: str) -> dict[str, Any] | None:
    """Return what an audit refers to in place of a copy of INPUT; None where it is copied."""
    if not wanted:
        return None
    if metric != "error":
        raise InputError(f"`--reference` keeps INPUT as it is, and `--metric {metric}` audits other rows or losses")
    return {"path": str(source.absolute()), **reading}


def _named_methods(method: Names) -> list[str]:
    """Return the methods that are named; where none is, all that may be run by default."""
    from .. import workflow

    if not method:
        return list(workflow.DEFAULT_METHODS)
    return [name for names in method for name in names.split(",") if name]


def _methods_for(evaluation: Evaluation, method: Names, own_slices: Mapping[str, str] | None) -> list[str]:
    """Return the methods that are named; where none is, those that these rows have something for."""
    from .. import workflow

    if method:
        return _named_methods(method)
    return list(workflow.default_methods(evaluation, required=own_slices is None))


def _check_methods(methods: Names, classes: list[Any], options: dict[str, Any], seed: int, within: str) -> None:
    """Refuse unknown methods and bad options; those of a module are checked when they are built."""
    from .. import workflow

    build_own(methods, classes, options, seed)
    own = {method.name for method in classes}
    named = [method for method in methods if method.partition(":")[0] not in own]
    if named:
        workflow.check_methods(named, without_own(options, classes), seed, within)


def _read_influence(texts: Names) -> dict[str, Any]:
    """Return {"P": 500} from KEY=VALUE, checked."""
    from .. import workflow

    given = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not (equals and name.strip()):
            raise InputError(f"`--influence` takes KEY=VALUE; got {text!r}; for example damping=0.001")
        given[name.strip()] = read_value(value)
    workflow.influence_options(given)
    return given


def _read_slices(texts: Names) -> dict[str, str] | None:
    """Return {"kids": "age < 5"} from NAME=CONDITION; None where there are none."""
    slices = {}
    for text in texts:
        name, equals, condition = text.partition("=")
        if not (equals and name.strip() and condition.strip()):
            raise InputError(f"`--slice` takes NAME=CONDITION; got {text!r}; for example kids='age < 5'")
        slices[name.strip()] = condition.strip()
    return slices or None


def apply(
    folder: Dir,
    source: Annotated[Path, typer.Argument(metavar="INPUT", help="New rows; no labels are needed.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The .parquet to write.")],
    fail_on: Annotated[
        float | None, typer.Option(metavar="SHARE", help="Exit 1 if a confirmed or accepted slice holds more.")
    ] = None,
    slices: Chosen = [],
    database: Database = None,
    plugin: Plugins = [],
    engine: EngineName = "local",
    memory: Memory = "2GB",
    junit: Junit = None,
    summary: Summary = None,
) -> None:
    """Find the members of saved slices among new rows."""
    from .. import store, workflow
    from ..core.judgement import choose
    from ..engine import open_engine
    from ..report.gates import shares_gate
    from ..report.progress_bars import progress_bar

    if fail_on is not None and not 0 <= fail_on <= 1:
        raise InputError(f"`--fail-on` must be a share of the rows between 0 and 1; got {fail_on}")
    check_gate(None, (), junit, summary, read=(folder, source), output=output)
    store.check_parquet_output(output)
    saved = workflow.load(folder, methods=import_methods(plugin), judged=True, database=database)
    words = chosen_words(slices)
    chosen = choose(saved, words, "all").slices
    rows = read_like(source, saved)
    worker = open_engine(engine, memory)
    some = replace(saved, slices=chosen)
    with progress_bar() as progress:
        weights = workflow.apply(some, rows, place=lambda slicer, part: workflow.place(slicer, part, worker, progress))
    thresholds = {slice_.id: slice_.threshold for slice_ in chosen}
    with store.atomic_file(output) as partial:
        store.write_memberships(partial, rows.row_ids, weights, thresholds)
    placed = [slice_ for slice_ in chosen if slice_.id in weights]
    shares = {slice_.id: float((weights[slice_.id] >= slice_.threshold).mean()) for slice_ in placed}
    tell_choice(saved, words, "all")
    for slice_ in placed:
        echo(f"{slice_.id} {slice_.name}: {shares[slice_.id]:.2%} of {len(rows):,} rows ({slice_.verdict})")
    for slice_ in chosen:
        if slice_.id not in weights:
            echo(f"{slice_.id} {slice_.name}: not placed, since {_why_not(slice_)}")
    echo(str(output))
    finish(shares_gate(chosen, shares, len(rows), fail_on), junit, summary)


def _why_not(slice_: Slice) -> str:
    """Why a slice has no members among new rows."""
    merged = () if slice_.judged is None else slice_.judged.merged
    for part in (slice_, *merged):
        if part.rule.get("scope"):
            return f"these rows have no {' and '.join(f'{key}s' for key in part.rule['scope'])}"
        if part.rule.get("kind") == "ids":
            return "it is a list of other rows"
    return "only its outcomes define it"


def methods(as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """List the methods, their presets and their options."""
    from ..slicers import describe

    entries = describe()
    if as_json:
        echo(json.dumps(entries, indent=1))
        return
    for entry in entries:
        echo(f"{entry['name']}: {entry['summary']}")
        echo(f"  needs {', '.join(entry['needs']) or 'nothing'}; presets {', '.join(entry['presets'])}")
        echo(f"  options {', '.join(f'{name}={value!r}' for name, value in entry['options'].items())}")
