"""`errata bench`: the exams as commands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from ..bench.files import check_json, write_rows
from ..bench.methods import expand
from ..core import require
from .bench_settings import command as settings

app = typer.Typer(help="Exams: how good are the methods?", no_args_is_help=False)

Many = list[str]


@app.callback()
def _start() -> None:
    """Exams: how good are the methods?"""


@app.command()
def spotcheck(
    configs: Annotated[int, typer.Option(help="How many worlds, each with a model of its own.")] = 4,
    scale: Annotated[str, typer.Option(help="`small`, for two CPU cores, or `published`.")] = "small",
    size: Annotated[int | None, typer.Option(metavar="PX", help="Other than the scale's picture size.")] = None,
    method: Annotated[Many, typer.Option(help="NAME, NAME:PRESET or `all`; repeat, or separate by commas.")] = ["all"],  # noqa: B006
    sets: Annotated[Many, typer.Option("--set", metavar="METHOD.KEY=VALUE", help="An option of a method.")] = [],  # noqa: B006
    device: Annotated[str, typer.Option(help="Where models are trained: cpu or cuda.")] = "cpu",
    jobs: Annotated[int, typer.Option(help="Processes that paint and judge.")] = 1,
    seed: Annotated[int, typer.Option(help="The same seed gives the same table.")] = 0,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", metavar="DIR", help="Where a run goes on from.")
    ] = None,
    as_json: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the rows.")] = None,
) -> None:
    """Models with planted blindspots: how many does each method find?"""
    from ..bench.spotcheck import Exam, run
    from ..report.progress import progress_bar
    from ..workflow import check_methods
    from .audit import read_options

    exam = Exam(scale, configs, seed, size, device, jobs)
    methods = expand(method)
    options = read_options(methods, sets, [])
    check_methods(methods, options, seed)
    check_json(as_json)
    require("torch", "torch")
    folder = output or Path("bench-results") / f"spotcheck-{scale}-{exam.size}px-seed{seed}"
    with progress_bar() as progress:
        rows = run(exam, methods, folder, options=options, progress=progress)
    typer.echo(f"{exam.name}; {configs} worlds, {rows[0]['replaced']} replaced; seed {seed}")
    typer.echo(as_table(rows))
    write_rows(as_json, rows)


app.command("settings")(settings)


def as_table(rows: Sequence[dict[str, Any]]) -> str:
    """A markdown table: rates with their standard errors."""
    lines = [
        "| method | preset | DR | FDR | FDR, prefix | coherence | representation | seconds |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        cells = [row["method"], row["preset"], *(_rate(row, key) for key in ("dr", "fdr", "fdr_prefix"))]
        close = "–" if row["coherence"] is None else f"{row['coherence']:.2f}"
        lines.append("| " + " | ".join([*cells, close, row["representation"], f"{row['seconds']:.1f}"]) + " |")
    return "\n".join(lines)


def _rate(row: dict[str, Any], key: str) -> str:
    if row[key] is None:
        return "–"
    error = row[f"{key}_se"]
    return f"{row[key]:.2f}" + (f" ({error:.2f})" if error is not None else "")
