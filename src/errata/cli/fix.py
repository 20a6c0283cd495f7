"""`errata plan` and `errata recheck`: what to change, and whether it helped."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

app = typer.Typer(help="Make a plan that mends a slice: rows that count more, rows to add, pictures to draw.")

Many = list[str]
Dir = Annotated[Path, typer.Argument(metavar="DIR", help="A saved audit.")]
Output = Annotated[Path, typer.Option("-o", "--output", metavar="FILE", help="The .parquet to write.")]
Slices = Annotated[Many, typer.Option("--slice", metavar="ID", help="Left out: the confirmed ones.")]


@app.command()
def weights(
    folder: Dir,
    train: Annotated[Path, typer.Argument(metavar="TRAIN", help="The rows the model learns from.")],
    output: Output,
    factor: Annotated[float, typer.Option(help="How often a row of a slice counts.")] = 2.0,
    slices: Slices = [],  # noqa: B006
) -> None:
    """Count the rows of a slice more often in training."""
    from .. import fix, store
    from ..inputs import read

    store.check_parquet_output(output)
    found = _load(folder)
    _finish(fix.plan_weights(found, read(train), factor, slices=slices or None), output)


@app.command()
def select(
    folder: Dir,
    pool: Annotated[Path, typer.Argument(metavar="POOL", help="Rows that could be added.")],
    output: Output,
    per_class: Annotated[int, typer.Option(help="Rows to add, at most.")] = 100,
    by: Annotated[str, typer.Option(help="`slices`; `confidence` or `random` to compare with.")] = "slices",
    slices: Slices = [],  # noqa: B006
    seed: Annotated[int, typer.Option(help="Of `random`.")] = 0,
) -> None:
    """Take the rows of a pool that lie deepest in a slice."""
    from .. import fix, store
    from ..inputs import read

    store.check_parquet_output(output)
    found, way = _load(folder), by
    plan = fix.plan_selection(found, read(pool), per_class, slices=slices or None, by=way, seed=seed)  # type: ignore[arg-type]  # a wrong one is refused by name
    _finish(plan, output)


@app.command()
def prompts(
    folder: Dir,
    output: Output,
    count: Annotated[int, typer.Option(help="Pictures for each slice.")] = 100,
    captions: Annotated[int, typer.Option(help="Captions that share them.")] = 1,
    side: Annotated[str, typer.Option(help="`hard`; `easy` or `reference` to compare with.")] = "hard",
    slices: Slices = [],  # noqa: B006
) -> None:
    """Have pictures drawn from the captions of a slice."""
    from .. import fix, store

    store.check_parquet_output(output)
    found = _load(folder)
    plan = fix.plan_prompts(found, count, captions=captions, side=side, slices=slices or None)  # type: ignore[arg-type]  # likewise
    _finish(plan, output)


def recheck(
    folder: Dir,
    before: Annotated[Path, typer.Argument(metavar="BEFORE", help="Rows kept apart, under the audited model.")],
    after: Annotated[Path, typer.Argument(metavar="AFTER", help="The same rows under the other model.")],
    output: Annotated[Path | None, typer.Option("-o", "--output", metavar="FILE", help="A .json to write.")] = None,
    slices: Slices = [],  # noqa: B006
    alpha: Annotated[float, typer.Option(help="Chance that any interval misses, on each side.")] = 0.05,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the table.")] = False,
) -> None:
    """See what another model changed in the slices of an audit, on rows kept apart from it."""
    from .. import fix, report, store
    from ..inputs import read

    if output is not None:
        store.check_output(output)
    comparison = fix.recheck(_load(folder), read(before), read(after), slices=slices or None, alpha=alpha)
    text = json.dumps(comparison.to_json(), indent=1)
    if output is not None:
        with store.atomic_file(output) as partial:
            partial.write_text(text + "\n")
    if as_json:
        typer.echo(text)
    else:
        Console(highlight=False).print(report.comparison_table(comparison))


def _load(folder: Path) -> Any:
    from .. import workflow

    return workflow.load(folder)


def _finish(plan: Any, output: Path) -> None:
    from .. import store

    store.save_plan(plan, output)
    typer.echo(plan.why)
    typer.echo(str(output))
