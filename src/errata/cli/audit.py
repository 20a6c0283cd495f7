"""The command: argv -> one call -> exit code. 0 done, 1 a gate failed, 2 bad input."""

from __future__ import annotations

import json
import math
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.text import Text

from ..report.progress import progress_bar
from ..version import __version__

app = typer.Typer(
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Find, explain and fix the systematic errors of a trained model.",
)

Many = list[str]
# click's UsageError, or typer's own copy of it: newer releases do not bring click, and neither exports it by name.
USAGE_ERROR: Any = typer.BadParameter.__bases__[0]


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"errata {__version__}")
        raise typer.Exit


@app.callback()
def _start(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Find, explain and fix the systematic errors of a trained model."""


@app.command()
def audit(
    source: Annotated[Path, typer.Argument(metavar="INPUT", help="A .npz, .parquet or .csv file.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="The folder to write; must not exist.")],
    method: Annotated[
        Many, typer.Option(help="NAME or NAME:PRESET; repeat, or separate by commas. Left out: the best.")
    ] = [],  # noqa: B006
    sets: Annotated[Many, typer.Option("--set", metavar="METHOD.KEY=VALUE", help="An option of a method.")] = [],  # noqa: B006
    representation: Annotated[Many, typer.Option(metavar="[METHOD=]NAME", help="Which embedding to search.")] = [],  # noqa: B006
    metadata: Annotated[Many, typer.Option(metavar="COLUMN", help="A further column to explain slices with.")] = [],  # noqa: B006
    foreign: Annotated[Many, typer.Option(metavar="NAME", help="An embedding that is not the audited model's.")] = [],  # noqa: B006
    train: Annotated[Path | None, typer.Option(metavar="FILE", help="The rows the model learnt from.")] = None,
    texts: Annotated[Path | None, typer.Option(metavar="FILE", help="A .npz of texts to describe slices by.")] = None,
    after: Annotated[list[Path], typer.Option(metavar="DIR", help="An earlier audit of the same rows.")] = [],  # noqa: B006
    alpha: Annotated[float, typer.Option(help="Chance of any false confirmation.")] = 0.05,
    delta: Annotated[float | None, typer.Option(help="Margin a slice must beat.")] = None,
    tolerance: Annotated[float | None, typer.Option(help="Loss that is bad, where there are no errors.")] = None,
    crossfit: Annotated[
        bool, typer.Option("--crossfit", help="Search both halves; for fewer than 5,000 rows.")
    ] = False,
    reference: Annotated[bool, typer.Option("--reference", help="Refer to INPUT instead of copying it.")] = False,
    seed: Annotated[int, typer.Option(help="Drives the search, never the split.")] = 0,
    drawn: Annotated[bool, typer.Option("--map/--no-map", help="Draw a map of all rows, which takes a while.")] = True,
    as_json: Annotated[bool, typer.Option("--json", help="Print audit.json instead of the summary.")] = False,
) -> None:
    """Find slices on half of the rows, confirm them on the other half, and write a report."""
    from .. import store, workflow
    from ..core.confirm import Settings
    from ..inputs import read, read_texts

    store.check_output(output)
    captions = None if texts is None else read_texts(texts)
    methods = [name for given in method for name in given.split(",") if name]
    if method:
        workflow.check_methods(methods, read_options(methods, sets, representation), seed)
    evaluation = read(source, metadata=metadata, foreign=foreign)
    methods = methods or list(workflow.default_methods(evaluation, read_options([], sets, [])))
    options = read_options(methods, sets, representation)
    runs = store.earlier_audits(evaluation.fingerprint, after, output)
    settings = Settings(alpha=alpha, delta=delta, tolerance=tolerance, run=1 + len(runs))
    with progress_bar() as progress:
        found = workflow.audit(
            evaluation,
            methods=methods,
            options=options,
            seed=seed,
            settings=settings,
            crossfit=crossfit,
            train=None if train is None else read(train),
            texts=captions,
            progress=progress,
        )
    if drawn:
        found = with_map(found, seed)
    refer = {"path": str(source.absolute()), "metadata": metadata, "foreign": foreign} if reference else None
    _finish(found, output, as_json, refer)


@app.command()
def demo(
    output: Annotated[Path, typer.Option("-o", "--output", metavar="DIR", help="The folder to write.")] = Path(
        "demo-audit"
    ),
    example: Annotated[str, typer.Option(help="`scenes`, which needs torch, or `digits`, which does not.")] = "scenes",
    seed: Annotated[int, typer.Option(help="Seed of the model and of the search.")] = 0,
) -> None:
    """Train a small model with hidden weaknesses, audit it, and say which of them the audit found."""
    from .. import store, workflow
    from ..core.errors import unknown
    from .examples import EXAMPLES, answer

    store.check_output(output)
    if example not in EXAMPLES:
        raise unknown("example", example, EXAMPLES)
    with progress_bar() as progress:
        made = EXAMPLES[example](seed, progress)
    with progress_bar() as progress:  # a bar of its own: its time left has nothing to do with the training's
        found = workflow.audit(made.evaluation, options=made.options, seed=seed, progress=progress)
    _finish(with_map(found, seed), output, as_json=False, reference=None, words=answer(made, found))


@app.command()
def apply(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A saved audit.")],
    source: Annotated[Path, typer.Argument(metavar="INPUT", help="New rows; no labels are needed.")],
    output: Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The .parquet to write.")],
    fail_on: Annotated[
        float | None, typer.Option(metavar="SHARE", help="Exit 1 if a confirmed slice holds more.")
    ] = None,
) -> None:
    """Find the members of saved slices among new rows."""
    import pyarrow.parquet as pq

    from .. import slicers, store, workflow
    from ..core import InputError
    from ..inputs import read

    if fail_on is not None and not 0 <= fail_on <= 1:
        raise InputError(f"`--fail-on` takes a share of the rows from 0 to 1; got {fail_on}")
    store.check_parquet_output(output)
    found = store.load(folder, slicers.restore, read)
    rows = read(source)
    weights = workflow.apply(found, rows)
    with store.atomic_file(output) as partial:
        pq.write_table(store.membership_table(rows.row_ids, weights), partial)
    shares = {s.id: float((weights[s.id] >= s.threshold).mean()) for s in found.slices if s.id in weights}
    for item in found.slices:
        if item.id in shares:
            _say(f"{item.id} {item.name}: {shares[item.id]:.2%} of {len(rows):,} rows ({item.verdict})")
    _say(str(output))
    over = [s.id for s in found.confirmed if fail_on is not None and shares.get(s.id, 0) > fail_on]
    if over:
        _say(f"Gate fails: {', '.join(over)} hold more than {fail_on:.2%} of the rows.")
        raise typer.Exit(1)


@app.command()
def methods(as_json: Annotated[bool, typer.Option("--json", help="As JSON.")] = False) -> None:
    """List the methods, their presets and their options."""
    from ..slicers import describe

    listed = describe()
    if as_json:
        typer.echo(json.dumps(listed, indent=1))
        return
    for item in listed:
        _say(f"{item['name']}: {item['summary']}")
        _say(f"  needs {', '.join(item['needs']) or 'nothing'}; presets {', '.join(item['presets'])}")
        _say(f"  options {', '.join(f'{name}={value!r}' for name, value in item['options'].items())}")


def read_options(methods: Many, sets: Many, representations: Many) -> dict[str, dict[str, Any]]:
    """{"spotlight": {"size": 0.05}} from METHOD.KEY=VALUE and [METHOD=]NAME; values are JSON, else text."""
    from ..core import InputError

    options: dict[str, dict[str, Any]] = {}
    for given in sets:
        place, equals, value = given.partition("=")
        method, dot, key = place.partition(".")
        if not (equals and dot and method and key):
            raise InputError(f"`--set` takes METHOD.KEY=VALUE; got {given!r}; for example spotlight.size=0.05")
        options.setdefault(method, {})[key] = _value(value)
    for given in representations:
        method, equals, name = given.rpartition("=")
        searching = [method] if equals else _searching(methods)
        if not searching:
            raise InputError(f"`--representation {name}`: none of {', '.join(methods)} searches one; leave it out")
        for one in searching:
            options.setdefault(one, {})["representation"] = name
    return options


def _searching(methods: Many) -> list[str]:
    """The methods that search a representation; unknown ones too, which are refused by name later."""
    from ..slicers import registry

    known = registry()
    names = {method.partition(":")[0] for method in methods}
    return [name for name in sorted(names) if name not in known or "representation" in known[name].options()]


def _value(text: str) -> Any:
    from ..core import InputError

    try:
        value = json.loads(text)
    except ValueError:
        return text
    if isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"`--set` takes finite numbers; got {text!r}; give a number")
    return value


def _finish(
    found: Any, output: Path, as_json: bool, reference: dict[str, Any] | None, words: str | None = None
) -> None:
    """Write the folder, then say what is in it and where the report lies."""
    from .. import report, store

    store.save(found, output, report=report.to_html(found), reference=reference)
    if as_json:
        typer.echo((output / "audit.json").read_text(), nl=False)
        return
    console = Console(highlight=False)
    console.print(report.to_terminal(found))
    if words:
        console.print(Text(f"\n{words}"))
    _say(f"\n{output / 'report.html'}")


def with_map(found: Any, seed: int = 0) -> Any:
    """The audit with a map of its rows, where it has none and something to draw them by."""
    from ..explain import draw_map

    if any(one.kind == "map" for one in found.explanations) or not found.evaluation.representations:
        return found
    with progress_bar() as progress:
        return draw_map(found, seed=seed, progress=lambda share: progress("map", share))


def _add_others() -> None:
    """Commands that have files of their own; here they are only named."""
    from ..defuse.command import defuse
    from .bench import app as bench
    from .fix import app as plan
    from .fix import recheck
    from .serve import people, serve

    app.add_typer(bench, name="bench")
    app.add_typer(plan, name="plan")
    app.command()(recheck)
    app.command()(serve)
    app.command()(defuse)
    app.add_typer(people, name="annotations")


def _say(text: str) -> None:
    """One line, whole: a path that is wrapped cannot be copied."""
    typer.echo(text)


def main() -> None:
    """Run the command; every error of the user's is one sentence and exit code 2."""
    from ..core import ErrataError

    _add_others()
    try:
        code = app(args=sys.argv[1:] or ["--help"], standalone_mode=False)
        sys.exit(code if isinstance(code, int) else 0)
    except ErrataError as error:
        _fail(str(error))
    except USAGE_ERROR as error:
        _fail(error.format_message().strip())
    except (typer.Abort, KeyboardInterrupt):
        sys.exit(130)


def _fail(sentence: str) -> None:
    typer.echo(f"errata: {sentence}", err=True)
    sys.exit(2)


if __name__ == "__main__":
    main()
