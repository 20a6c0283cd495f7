"""`errata bench settings`: which table, which models, and the rows as a markdown table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ..bench import settings, tables
from ..bench.files import check_json, write_rows
from ..bench.methods import expand
from ..bench.metrics import mean_and_error
from ..core import InputError, require
from ..core.errors import unknown

READY = ("cifar10", "utkface", "scenes")
MODELS = ("synthetic", "trained")
POSITIVES = ("animal", "vehicle")
PIXELS = ("bright", "warm", "contrasty")
ROWS, N = 25_000, 5000
LR = 2e-3
# The stronger half of the published strengths, and for rare slices one share above them: a tenth of the published rows
# leaves too few members of a slice of 1% to find, or even to say that the model is worse there.
STRENGTHS = {"rare": (0.05, 0.1), "correlation": (0.6, 0.8), "noisy": (0.3, 0.4)}

Many = list[str]


def command(
    source: Annotated[str, typer.Argument(metavar="TABLE", help="cifar10, utkface, scenes, or a file of your own.")],
    target: Annotated[
        str | None, typer.Option(metavar="COLUMN", help="Of a file: what is predicted; the larger of two values is 1.")
    ] = None,
    attribute: Annotated[Many, typer.Option(metavar="COLUMN", help="Of a file: its values are slices; repeat.")] = [],  # noqa: B006
    model: Annotated[str, typer.Option(help="`synthetic`, drawn from Beta distributions, or `trained`.")] = "synthetic",
    kind: Annotated[Many, typer.Option(help="rare, correlation, noisy; repeat, or separate by commas.")] = list(  # noqa: B006
        STRENGTHS
    ),
    method: Annotated[Many, typer.Option(help="NAME, NAME:PRESET or `all`; repeat, or separate by commas.")] = ["all"],  # noqa: B006
    sets: Annotated[Many, typer.Option("--set", metavar="METHOD.KEY=VALUE", help="An option of a method.")] = [],  # noqa: B006
    positive: Annotated[str, typer.Option(help="Of cifar10: animal or vehicle.")] = "animal",
    foreign: Annotated[
        bool, typer.Option("--foreign", help="Read trained models by the table's representation.")
    ] = False,
    n: Annotated[int | None, typer.Option(help="Rows of a setting; 5,000, or half of the table.")] = None,
    rows: Annotated[int | None, typer.Option(help="Of a ready table; 25,000. 40% of pictures teach.")] = None,
    keep: Annotated[int, typer.Option("--settings", help="Settings of each kind to keep.")] = 4,
    tries: Annotated[int, typer.Option(help="Models of each kind at most; sound ones are dropped.")] = 20,
    epochs: Annotated[int, typer.Option(help="Of a trained network.")] = 6,
    seed: Annotated[int, typer.Option(help="The same seed gives the same table.")] = 0,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="Where a run goes on from.")
    ] = None,
    as_json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the rows.")] = None,
) -> None:
    """Models that fail on a known slice of a table: how high does each method rank its rows?"""
    from ..report.progress import progress_bar
    from ..workflow import check_methods
    from .audit import read_options

    kinds, methods = _kinds(kind), expand(method)
    options = read_options(methods, sets, [])
    check_methods(methods, options, seed)
    _check_numbers({"settings": keep, "tries": tries, "epochs": epochs, "rows": rows, "n": n})
    check_json(as_json)
    _check_model(model, foreign)
    folder = output or Path("bench-results") / f"settings-{_name(source, positive)}-seed{seed}"
    with progress_bar() as progress:
        progress("reading the table", 0.0)
        table = read_table(source, target, attribute, rows, folder / "cache", positive)
        size = min(N, len(table) // 2) if n is None else n
        named = _attributes(table) if source == "cifar10" else {}
        plan = settings.Plan(size, keep, tries, seed=seed, own=not foreign, strengths=STRENGTHS, attributes=named)
        train = trainer(table, model, epochs)
        found = settings.run(table, kinds, methods, folder, plan=plan, train=train, options=options, progress=progress)
    typer.echo(f"{table.name}, {model} models; {plan.n:,} rows a setting; seed {seed}")
    typer.echo(as_table(found, kinds))
    write_rows(as_json, found)


def _kinds(given: Sequence[str]) -> list[str]:
    names = [name for part in given for name in part.split(",") if name]
    if not names:
        raise InputError(f"`--kind` is empty; name at least one of {', '.join(STRENGTHS)}")
    return [_one_of("kind of setting", name, STRENGTHS) for name in dict.fromkeys(names)]


def _check_numbers(given: Mapping[str, int | None]) -> None:
    for name, value in given.items():
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


def _name(source: str, positive: str) -> str:
    return f"{source}-{positive}" if source == "cifar10" else Path(source).stem


def read_table(
    source: str, target: str | None, attributes: Sequence[str], rows: int | None, cache: Path, positive: str
) -> tables.Table:
    """A ready table, or a file with the columns that were named."""
    animals = _one_of("positive class", positive, POSITIVES) == "animal"
    if not animals and source != "cifar10":
        raise InputError(f"`--positive` is for cifar10; got it with `{source}`; leave it out")
    if source not in READY:
        return _own(source, target, attributes, rows)
    if target is not None or attributes:
        raise InputError(f"`--target` and `--attribute` are for a file; got them with `{source}`; leave them out")
    rows = rows or ROWS
    if source == "scenes":
        return tables.from_scenes(rows)
    require("torch", "torch")  # for the representation that pictures are searched by
    if source == "cifar10":
        return tables.cifar10(rows=rows, cache=cache, positive="animal" if animals else "vehicle")
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
    """Of cifar10: classes lie within the target, so that they can be rare or noisy, but not correlated with it."""
    classes = tuple(name for name in table.attributes if name not in PIXELS)
    return {"rare": classes, "noisy": classes, "correlation": PIXELS}


def trainer(table: tables.Table, model: str, epochs: int) -> settings.Train | None:
    """None for a synthetic model; a network where there are pictures, else logistic regression on the features."""
    if model == "synthetic":
        return None
    if table.images is None:
        return tables.train_logistic(table.features)
    return tables.train_network(table.images, epochs=epochs, lr=LR)


def as_table(rows: Sequence[dict[str, Any]], kinds: Sequence[str]) -> str:
    """Methods by kinds: precision at 10 with its standard error, average precision, difference to `confusion`."""
    by = {(f"{row['method']}:{row['preset']}", row["kind"]): row for row in rows}
    methods = list(dict.fromkeys(name for name, _ in by))
    counts = [by[methods[0], kind] for kind in kinds]
    lines = [
        f"| method | {' | '.join(f'{kind}: P@10 | AP' for kind in kinds)} | minus `confusion`, all settings | seconds "
        "| representation |",
        "|---" * (2 * len(kinds) + 4) + "|",
        f"| *settings* | {' | '.join('{settings} kept, {dropped} dropped | '.format(**one) for one in counts)} | | | |",
        f"| *chance* | {' | '.join(_number(one['base']) + ' | ' for one in counts)} | | | |",
    ]
    for method in methods:
        ours = [by[method, kind] for kind in kinds]
        theirs = [by.get(("confusion:recommended", kind)) for kind in kinds]
        lines.append(_line(method, ours, theirs))
    return "\n".join(lines)


def _line(method: str, ours: list[dict[str, Any]], theirs: list[dict[str, Any] | None]) -> str:
    cells = [f"{_number(one['p10'])} ± {_number(one['p10_se'])} | {_number(one['ap'])}" for one in ours]
    seconds, _ = mean_and_error([one["seconds"] for one in ours])
    used = next((one["representation"] for one in ours if one["representation"]), "–")
    return f"| {method} | {' | '.join(cells)} | {_beside(ours, theirs)} | {_number(seconds)} | {used} |"


def _beside(ours: list[dict[str, Any]], theirs: list[dict[str, Any] | None]) -> str:
    """Paired differences over all settings of the row; nothing where `confusion` was not asked."""
    mine = [value for one, other in zip(ours, theirs, strict=True) if other for value in one["each"]]
    known = [value for other in theirs if other for value in other["each"]]
    mean, error = mean_and_error([a - b for a, b in zip(mine, known, strict=True)])
    return "" if mean is None else f"{mean:+.2f} ± {_number(error)}"


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.2f}"
