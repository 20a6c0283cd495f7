"""`errata bench`: the benchmarks as commands."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast, get_args

import typer

from ..bench import settings as slice_settings
from ..bench import tables
from ..bench.methods import DEFAULT, audited_methods, expand, expand_audits, searched_methods
from ..bench.metrics import mean_and_error
from ..bench.planted import ALL_KINDS as PLANTED_KINDS
from ..bench.planted import GAPS as PLANTED_GAPS
from ..bench.planted import MANY, REPEATS
from ..bench.planted import ROWS as PLANTED_ROWS
from ..bench.planted import SIZES as PLANTED_SIZES
from ..bench.real_models import TABLES, expand_tables
from ..bench.results import check_json, write_rows
from ..core import InputError, require
from ..core.errors import unknown
from ..engine import open_engine
from ..report.printing import echo
from ..report.progress_bars import progress_bar
from ..workflow import check_methods
from .common import EngineName, Names, Sets, read_options

if TYPE_CHECKING:
    from ..bench.spotcheck import SpotCheckBenchmark

RESULTS = Path("bench-results")
READY = ("cifar10", "utkface", "scenes")
MODELS = ("synthetic", "trained")
PIXELS = ("bright", "warm", "contrasty")
ROWS = 25_000  # of a ready table
SETTING_ROWS = 5000
LR = 2e-3
# The stronger half of the published strengths, and for rare slices one share above them: a tenth of the published rows
# leaves too few members of a slice of 1% to find, or even to tell that the model is worse there.
STRENGTHS = {"rare": (0.05, 0.1), "correlation": (0.6, 0.8), "noisy": (0.3, 0.4)}

Positive = Literal["animal", "vehicle"]
Methods = Annotated[Names, typer.Option(help="NAME, NAME:PRESET or `all`; repeat, or separate by commas.")]
Audits = Annotated[
    Names,
    typer.Option(help="`default`, NAME, NAME:PRESET, several joined by +, or `all`; repeat, or separate by commas."),
]
Tables = Annotated[Names, typer.Option(help=f"{', '.join(TABLES)}, `tuning` or `all`; repeat, or separate by commas.")]
Seed = Annotated[int, typer.Option(min=0, help="The same seed gives the same table.")]


def _check_run(path: Path | None) -> Path | None:
    if path is not None and os.path.exists(path) and not os.path.isdir(path):
        raise InputError(f"`{path}` is no folder; name the folder of a run, or a new one")
    return path


Output = Annotated[
    Path | None,
    typer.Option(
        "-o", "--output", metavar="DIR", callback=_check_run, help="Folder of the run; an earlier run is resumed."
    ),
]
Json = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the rows.")]

app = typer.Typer(help="Benchmarks: how good are the methods?", no_args_is_help=False)


@app.command()
def spotcheck(
    configs: Annotated[int, typer.Option(help="Number of worlds, each with a model of its own.")] = 4,
    scale: Annotated[str, typer.Option(help="`small`, for two CPU cores, or `published`.")] = "small",
    size: Annotated[int | None, typer.Option(metavar="PX", help="Image size. Default: that of the scale.")] = None,
    method: Annotated[
        Names,
        typer.Option(
            help="NAME, NAME:PRESET or `all`; `audit`, the default audit; `audit:NAME+NAME`, an audit of these methods."
        ),
    ] = ["all"],
    judged: Annotated[
        str, typer.Option("--rows", help="`positive`: images with a square, as published; `both`: all of them.")
    ] = "positive",
    layer: Annotated[str, typer.Option(help="Search the model's `own` layer, or that of a `second` network.")] = "own",
    sets: Sets = [],
    device: Annotated[str, typer.Option(help="Where models are trained: cpu or cuda.")] = "cpu",
    jobs: Annotated[int, typer.Option(help="Processes that paint and judge.")] = 1,
    engine: EngineName = "local",
    seed: Seed = 0,
    output: Output = None,
    as_json: Json = None,
) -> None:
    """Models with planted blindspots: how many does each method find?"""
    from ..bench.spotcheck import Layer, Rows, SpotCheckBenchmark, run

    benchmark = SpotCheckBenchmark(
        scale, configs, seed, size, device, jobs, layer == "second", cast(Rows, judged), cast(Layer, layer)
    )
    methods = expand(method, audits=True)
    options = read_options(methods, sets, [])
    searched = searched_methods(methods)
    if searched or options:
        check_methods(searched, options, seed)
    check_json(as_json)
    worker = open_engine(engine)
    folder = output or RESULTS / _spotcheck_folder(benchmark)
    if benchmark.missing(folder):
        require("torch", "torch")
    with progress_bar() as progress:
        rows = run(benchmark, methods, folder, options=options, engine=worker, progress=progress)
    echo(f"{benchmark.name}; {configs} worlds, {rows[0]['replaced']} replaced; seed {seed}")
    echo(spotcheck_table(rows))
    write_rows(as_json, rows)


def _spotcheck_folder(benchmark: SpotCheckBenchmark) -> str:
    """Return the name of the default folder: worlds with the layer of a second network stand apart."""
    name = f"spotcheck-{benchmark.scale}-{benchmark.size}px-seed{benchmark.seed}"
    if benchmark.foreign:
        name += "-second"
    return name


def spotcheck_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return markdown: a table of the methods alone, one of the audits; rates with their standard errors."""
    alone = [row for row in rows if "raw" in row["sets"]]
    audits = [row for row in rows if "confirmed" in row["sets"]]
    parts = []
    if alone:
        names = {"dr": "DR", "fdr": "FDR", "fdr_prefix": "FDR, prefix"}
        columns = {f"{kind}_{key}": f"{kind}: {name}" for kind in ("raw", "screened") for key, name in names.items()}
        parts.append(_spotcheck_part(alone, {"preset": "preset", **columns, "screened_coherence": "coherence"}))
    if audits:
        words = {"confirmed": "confirmed", "error_types": "error types"}
        names = {"dr": "DR", "fdr": "FDR", "hypotheses": "number"}
        columns = {f"{kind}_{key}": f"{words[kind]}: {name}" for kind in words for key, name in names.items()}
        parts.append(_spotcheck_part(audits, columns))
    return "\n\n".join(parts)


def _spotcheck_part(rows: Sequence[dict[str, Any]], columns: Mapping[str, str]) -> str:
    """Return a table of rows; columns: key of a row -> heading."""
    headings = ["method", *columns.values(), "representation", "seconds"]
    lines = [f"| {' | '.join(headings)} |", "|---" * len(headings) + "|"]
    for row in rows:
        name = row["method"]
        if row["rows"] == "both":
            name += ", both classes"
        cells = [name, *(_cell(row, key) for key in columns), row["representation"], f"{row['seconds']:.1f}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(row: dict[str, Any], key: str) -> str:
    """Return a text as it is, a rate with its standard error, and a dash for what a row does not have."""
    value = row.get(key)
    if isinstance(value, str):
        return value
    error = row.get(f"{key}_se")
    if value is None or error is None:
        return _number(value)
    return f"{_number(value)} ({error:.2f})"


@app.command()
def settings(
    source: Annotated[str, typer.Argument(metavar="TABLE", help="cifar10, utkface, scenes, or a file of your own.")],
    target: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Of a file: what is predicted; the larger of two values is 1.")
    ] = None,
    attribute: Annotated[
        Names, typer.Option(metavar="COLUMN", help="Of a file: a column whose values are slices; repeat.")
    ] = [],
    model: Annotated[str, typer.Option(help="`synthetic`, drawn from Beta distributions, or `trained`.")] = "synthetic",
    kind: Annotated[Names, typer.Option(help="rare, correlation, noisy; repeat, or separate by commas.")] = list(
        STRENGTHS
    ),
    method: Methods = ["all"],
    sets: Sets = [],
    positive: Annotated[str, typer.Option(help="Of cifar10: animal or vehicle.")] = "animal",
    foreign: Annotated[
        bool, typer.Option("--foreign", help="Search trained models by the table's representation.")
    ] = False,
    n: Annotated[int | None, typer.Option(help="Rows of a setting. Default: 5,000, or half of the table.")] = None,
    rows: Annotated[
        int | None, typer.Option(help="Rows of a ready table; 40% of images train the encoder. Default: 25,000.")
    ] = None,
    keep: Annotated[int, typer.Option("--settings", help="Settings of each kind to keep.")] = 4,
    tries: Annotated[int, typer.Option(help="Models of each kind, at most; sound ones are dropped.")] = 20,
    epochs: Annotated[int, typer.Option(help="Epochs of a trained network.")] = 6,
    seed: Seed = 0,
    output: Output = None,
    as_json: Json = None,
) -> None:
    """Models that fail on a known slice of a table: how high does each method rank its rows?"""
    kinds = _kinds("kind of setting", kind, tuple(STRENGTHS))
    methods = expand(method, beside=[slice_settings.NO_EMBEDDING])
    options = read_options(methods, sets, [])
    check_methods(methods, options, seed)
    _check_numbers({"settings": keep, "tries": tries, "epochs": epochs, "rows": rows, "n": n})
    check_json(as_json)
    _check_model(model, foreign)
    name = f"{source}-{positive}" if source == "cifar10" else Path(source).stem
    folder = output or RESULTS / f"settings-{name}-seed{seed}"
    with progress_bar() as progress:
        progress("reading the table", 0.0)
        table = read_table(source, target, attribute, rows, folder / "cache", positive)
        size = n or min(SETTING_ROWS, len(table) // 2)
        attributes = _attributes(table) if source == "cifar10" else {}
        benchmark = slice_settings.SettingsBenchmark(
            size, keep, tries, seed=seed, own=not foreign, strengths=STRENGTHS, attributes=attributes
        )
        train = trainer(table, model, epochs)
        results = slice_settings.run(
            table, kinds, methods, folder, benchmark=benchmark, train=train, options=options, progress=progress
        )
    echo(f"{table.name}, {model} models; {benchmark.n:,} rows a setting; seed {seed}")
    echo(settings_table(results, kinds))
    write_rows(as_json, results)


def _kinds(what: str, texts: Sequence[str], known: Sequence[str]) -> list[str]:
    names = [name for text in texts for name in text.split(",") if name]
    if not names:
        raise InputError(f"`--kind` is empty; name at least one of {', '.join(known)}")
    return [_one_of(what, name, known) for name in dict.fromkeys(names)]


def _check_numbers(numbers: Mapping[str, int | None]) -> None:
    for name, value in numbers.items():
        if value is not None and value < 1:
            raise InputError(f"`--{name}` must be at least 1; got {value}")


def _check_model(model: str, foreign: bool) -> None:
    if _one_of("model", model, MODELS) == "synthetic" and foreign:
        raise InputError(
            "`--foreign` is for `--model trained`: synthetic models have no layer of their own; leave it out"
        )


def _one_of(what: str, name: str, known: Sequence[str] | Mapping[str, Any]) -> str:
    if name not in known:
        raise unknown(what, name, known)
    return name


def read_table(
    source: str, target: str | None, attributes: Sequence[str], rows: int | None, cache: Path, positive: str
) -> tables.Table:
    """Return a ready table, or a file with the named columns."""
    _one_of("positive class", positive, get_args(Positive))
    if positive != "animal" and source != "cifar10":
        raise InputError(f"`--positive` is for cifar10; got it with `{source}`; leave it out")
    if source not in READY:
        return _own(source, target, attributes, rows)
    if target is not None or attributes:
        raise InputError(f"`--target` and `--attribute` are for a file; got them with `{source}`; leave them out")
    rows = rows or ROWS
    if source == "scenes":
        return tables.from_scenes(rows)
    require("torch", "torch")  # for the representation that images are searched by
    if source == "cifar10":
        return tables.cifar10(rows=rows, cache=cache, positive=cast(Positive, positive))
    return tables.utkface(rows=rows, cache=cache)


def _own(source: str, target: str | None, attributes: Sequence[str], rows: int | None) -> tables.Table:
    from ..bench.own import from_file

    if not Path(source).suffix:
        raise unknown("table", source, (*READY, "a .parquet, .csv or .npz file"))
    if rows is not None:
        raise InputError(f"`--rows` is for {', '.join(READY)}; `{source}` is read whole; leave it out")
    if target is None or not attributes:
        raise InputError(f"`{source}` needs `--target COLUMN` and at least one `--attribute COLUMN`")
    return from_file(Path(source), target, attributes)


def _attributes(table: tables.Table) -> dict[str, Sequence[str]]:
    """Return the attributes of cifar10 that each kind of setting uses.

    A class lies within the target, so that it can be rare or noisy, but not correlated with it.
    """
    classes = tuple(name for name in table.attributes if name not in PIXELS)
    return {"rare": classes, "noisy": classes, "correlation": PIXELS}


def trainer(table: tables.Table, model: str, epochs: int) -> slice_settings.Train | None:
    """Return None for a synthetic model; a network where there are images, else logistic regression on the features."""
    if model == "synthetic":
        return None
    if table.images is None:
        return tables.train_logistic(table.features)
    return tables.train_network(table.images, epochs=epochs, lr=LR)


def settings_table(rows: Sequence[dict[str, Any]], kinds: Sequence[str]) -> str:
    """Return methods by kinds: precision at 10 with its standard error, average precision, gain over `confusion`."""
    by_method = {(f"{row['method']}:{row['preset']}", row["kind"]): row for row in rows}
    methods = list(dict.fromkeys(name for name, _ in by_method))
    of_kinds = [by_method[methods[0], kind] for kind in kinds]
    counts = " | ".join(f"{row['settings']} kept, {row['dropped']} dropped | " for row in of_kinds)
    chances = " | ".join(f"{_number(row['base'])} | " for row in of_kinds)
    lines = [
        f"| method | {' | '.join(f'{kind}: P@10 | AP' for kind in kinds)} | minus `confusion`, all settings | seconds "
        "| representation |",
        "|---" * (2 * len(kinds) + 4) + "|",
        f"| *settings* | {counts} | | | |",
        f"| *chance* | {chances} | | | |",
    ]
    for method in methods:
        own = [by_method[method, kind] for kind in kinds]
        baseline = [by_method.get(("confusion:recommended", kind)) for kind in kinds]
        lines.append(_settings_line(method, own, baseline))
    return "\n".join(lines)


def _settings_line(method: str, rows: list[dict[str, Any]], baseline: list[dict[str, Any] | None]) -> str:
    cells = [f"{_number(row['p10'])} ± {_number(row['p10_se'])} | {_number(row['ap'])}" for row in rows]
    seconds, _ = mean_and_error([row["seconds"] for row in rows])
    representation = next((row["representation"] for row in rows if row["representation"]), "–")
    return f"| {method} | {' | '.join(cells)} | {_gain(rows, baseline)} | {_number(seconds)} | {representation} |"


def _gain(rows: list[dict[str, Any]], baseline: list[dict[str, Any] | None]) -> str:
    """Return the paired difference over all settings of a line; nothing where `confusion` did not run."""
    pairs = [
        (value, other_value)
        for row, other in zip(rows, baseline, strict=True)
        if other
        for value, other_value in zip(row["each"], other["each"], strict=True)
    ]
    mean, error = mean_and_error([value - other_value for value, other_value in pairs])
    return "" if mean is None else f"{mean:+.2f} ± {_number(error)}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"


@app.command()
def captured(
    data: Tables = ["all"],
    method: Audits = [DEFAULT],
    sets: Sets = [],
    seed: Seed = 0,
    output: Output = None,
    as_json: Json = None,
) -> None:
    """Real models on real data: what share of their errors do confirmed slices hold?"""
    from ..bench.captured import run, summarise

    names = expand_tables(data)
    methods = expand_audits(method)
    options = _audit_options(methods, sets, seed)
    check_json(as_json)
    folder = output or RESULTS / f"models-seed{seed}"
    with progress_bar() as progress:
        rows = run(names, methods, folder, seed=seed, options=options, progress=progress)
    echo(f"Hard predictions of real models; seed {seed}")
    echo(captured_table(rows))
    echo(f"\nMeans\n{captured_means(summarise(rows))}")
    write_rows(as_json, rows)


def _audit_options(methods: Sequence[str], sets: Sequence[str], seed: int) -> dict[str, Any]:
    """Return the options of the methods that are named; the default audit takes none."""
    named = audited_methods(methods)
    options = read_options(named, sets, [])
    if named:
        check_methods(named, options, seed)
    elif options:
        raise InputError(f"`--set {sets[0]}` is for a method that is not run; name it with `--method`")
    return options


def captured_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return one line an audit: what its confirmed slices hold, beside the ceiling at its share and the plain tree."""
    lines = [
        "| data | representation | n | error | method | slices | rows | captured | ceiling there | captured / ceiling "
        "| tree: rows | captured | ceiling at 10, 20, 30% (fitted within) | seconds |",
        "|---" * 14 + "|",
    ]
    for row in rows:
        ceilings = ", ".join(_number(row[f"ceiling_{share}"]) for share in (10, 20, 30))
        cells = [row["table"], row["kind"], f"{row['n']:,}", _number(row["error_rate"]), row["method"]]
        cells += _captured_cells(row)
        cells += [_number(row["tree_share"]), _number(row["tree_captured"]), f"{ceilings} ({row['ceiling_scope']})"]
        cells.append(_number(row.get("seconds")))
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def captured_means(rows: Sequence[dict[str, Any]]) -> str:
    """Return one line a method and kind of representation: means over the tables."""
    names = {"share": "rows", "ceiling": "ceiling there", "of_ceiling": "captured / ceiling"}
    names |= {"tree_share": "tree: rows", "tree_captured": "tree: captured"}
    columns = ("slices", "share", "captured", "ceiling", "of_ceiling", "tree_share", "tree_captured", "seconds")
    headings = ["method", "representation", *(names.get(name, name) for name in columns), "at least the tree"]
    lines = [f"| {' | '.join(headings)} |", "|---" * len(headings) + "|"]
    for row in rows:
        reached = f"{row['at_least_tree']} of {row['tables']}"
        cells = [row["method"], row["kind"], *(_number(row[key]) for key in columns), reached]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _captured_cells(row: dict[str, Any]) -> list[str]:
    """Return slices, rows, captured, ceiling and their ratio; a method that cannot run says why."""
    if row["note"]:
        return [row["note"], "–", "–", "–", "–"]
    ratio = None
    if row["ceiling"] > 0:
        ratio = row["captured"] / row["ceiling"]
    numbers = [row["share"], row["captured"], row["ceiling"], ratio]
    return [str(row["slices"]), *map(_number, numbers)]


@app.command()
def planted(
    data: Tables = ["all"],
    kind: Annotated[
        Names, typer.Option(help="metadata, class, neighbourhood, many; repeat, or separate by commas.")
    ] = [*PLANTED_KINDS],
    method: Audits = [DEFAULT],
    sets: Sets = [],
    n: Annotated[list[int], typer.Option(help="Rows of a trial; repeat.")] = [*PLANTED_ROWS],
    size: Annotated[list[float], typer.Option(help="The group's share of them; repeat.")] = [*PLANTED_SIZES],
    gap: Annotated[list[float], typer.Option(help="What is added to its error rate; repeat.")] = [*PLANTED_GAPS],
    repeats: Annotated[int, typer.Option(help="Trials of each combination, on tables in turn.")] = REPEATS,
    many_rows: Annotated[int, typer.Option(help="Rows of `many`.")] = 100_000,
    seed: Seed = 0,
    output: Output = None,
    as_json: Json = None,
) -> None:
    """Errors planted in groups of real rows: which of them does an audit find?"""
    from ..bench.many import check_rows, judge_many
    from ..bench.planted import PlantedBenchmark, run, summarise

    names = expand_tables(data)
    kinds = _kinds("kind of group", kind, PLANTED_KINDS)
    methods = expand_audits(method)
    options = _audit_options(methods, sets, seed)
    check_json(as_json)
    folder = output or RESULTS / f"models-seed{seed}"
    rows: list[dict[str, Any]] = []
    real = [name for name in kinds if name != MANY]
    benchmark = PlantedBenchmark(real, n, size, gap, repeats, seed)
    check_rows(many_rows)
    if real:
        with progress_bar() as progress:
            rows += run(benchmark, names, methods, folder, options=options, progress=progress)
        echo(f"Groups of real rows with planted errors; seed {seed}")
        echo(planted_table([*summarise(rows), *summarise(rows, ("method", "kind"))]))
    if MANY in kinds:
        many = [judge_many(many_rows, name, seed, options) for name in methods]
        echo(many_table(many))
        rows += many
    write_rows(as_json, rows)


def planted_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return one line a method, kind, number of rows, size and gap; `all` where a row is of all of them."""
    names = {"tree_in_parts": "tree, in parts", "in_parts": "found in parts", "errors": "errors held"}
    bounds = ("given", "visible", "tree", "tree_in_parts")
    columns = (*bounds, "found", "in_parts", "errors", "precision", "recall", "seconds")
    headings = ["method", "groups by", "n", "size", "gap", "trials", *(names.get(name, name) for name in columns)]
    lines = [f"| {' | '.join(headings)} |", "|---" * len(headings) + "|"]
    for row in rows:
        setting = [str(row.get(key, "all")) for key in ("method", "kind", "n", "size", "gap", "trials")]
        lines.append("| " + " | ".join([*setting, *(_cell(row, key) for key in columns)]) + " |")
    return "\n".join(lines)


def many_table(rows: Sequence[dict[str, Any]]) -> str:
    """Return one line a method: how many of the bad groups among two hundred it finds."""
    lines = [
        "| method | n | bad groups found | precision | recall | confirmed slices | seconds | memory / X |",
        "|---" * 8 + "|",
    ]
    for row in rows:
        cells = [row["method"], f"{row['n']:,}"]
        if row["note"]:
            cells += [row["note"], *["–"] * 5]
        else:
            cells += [f"{row['found']} of {row['groups']}", _number(row["precision"]), _number(row["recall"])]
            cells += [str(row["slices"]), _number(row["seconds"]), _number(row["memory"])]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)
