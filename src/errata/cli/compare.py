"""`errata compare`: two models on the same rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..core import InputError
from ..report.printing import echo, safe_console
from .common import Chosen, Database, Names, Sets, chosen_words, read_like, read_options
from .gates import Junit, Summary, check_gate, finish
from .plugins import Plugins, import_methods

if TYPE_CHECKING:
    from ..core import Audit


def compare(
    first: Annotated[Path, typer.Argument(metavar="A", help="The first model: a saved audit, or a file of rows.")],
    second: Annotated[Path, typer.Argument(metavar="B", help="The second model, on the same rows.")],
    output: Annotated[
        Path | None,
        typer.Option("-o", "--output", metavar="PATH", help="A .json or .html file, or a new folder with both."),
    ] = None,
    slices: Chosen = [],
    slices_of: Annotated[
        Path | None, typer.Option(metavar="DIR", help="A saved audit of other rows: compare its slices on these.")
    ] = None,
    database: Database = None,
    by: Annotated[
        Names, typer.Option(metavar="COLUMN", help="Compare each value of `label` or of a column; repeat.")
    ] = [],
    search: Annotated[
        bool, typer.Option("--search/--no-search", help="Search for slices where B is worse though nobody named them.")
    ] = True,
    method: Annotated[Names, typer.Option(help="Method of the search, as of `errata audit`.")] = [],
    sets: Sets = [],
    representation: Annotated[Names, typer.Option(metavar="[METHOD=]NAME", help="Which embedding to search.")] = [],
    metadata: Annotated[Names, typer.Option(metavar="COLUMN", help="A further column of A; `all` for all.")] = [],
    groups: Annotated[
        str, typer.Option(metavar="COLUMN", help="What rows belong together: auto, a metadata column, or none.")
    ] = "auto",
    plugin: Plugins = [],
    seed: Annotated[int, typer.Option(help="Seed of the search, never of the split.")] = 0,
    alpha: Annotated[float, typer.Option(help="Chance that any interval misses, on each side.")] = 0.05,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of the table.")] = False,
    fail_on: Annotated[str | None, typer.Option(metavar="worse", help="Exit 1 if any group of rows got worse.")] = None,
    junit: Junit = None,
    summary: Summary = None,
) -> None:
    """Compare two models on the same rows, in known slices and in slices that a search finds."""
    from rich.text import Text

    from .. import report, store, workflow
    from ..report.gates import comparison_gate
    from ..report.progress_bars import progress_bar

    if output is not None:
        store.check_output(output)
    check_gate(fail_on, ("worse",), junit, summary, read=(first, second, slices_of), output=output)
    methods = [name for names in method for name in names.split(",") if name]
    options = read_options(methods or workflow.COMPARE_METHODS, sets, representation)
    if methods:
        workflow.check_methods(methods, options, seed, "none")
    words = _check_words(slices)
    judged: dict[str, Any] = {"judged": True, "database": database, "methods": import_methods(plugin)}
    known = None if slices_of is None else workflow.load(slices_of, **judged)
    before = _read(first, metadata, **judged) if known is None else _read_for(known, first, metadata)
    after = _read(second, [])
    with progress_bar() as progress:
        comparison = workflow.compare(
            before,
            after,
            slices=known,
            which=words,
            by=by,
            search=search,
            methods=methods or None,
            options=options,
            seed=seed,
            groups=groups,
            alpha=alpha,
            progress=progress,
        )
    gate = comparison_gate(comparison, "compare", fail_on)
    text = json.dumps(comparison.to_json(), indent=1, default=str)
    if output is not None:
        rows = (workflow.rows_of(before), workflow.rows_of(after))
        _write(output, text + "\n", report.comparison_html(comparison, gate, first.name, second.name, rows))
    if as_json:
        echo(text)
    else:
        console = safe_console(highlight=False)
        console.print(report.comparison_table(comparison), *map(Text, comparison.facts["notes"]), sep="\n")
    if comparison.facts["chosen"]:
        echo(comparison.facts["chosen"], err=as_json)
    finish(gate, junit, summary, quiet=as_json)


def _write(output: Path, text: str, page: str) -> None:
    """Write what the name of the output asks for: the numbers as JSON, the page, or a folder with both."""
    from .. import store

    files = {".json": text, ".html": page}
    if output.suffix in files:
        with store.atomic_file(output) as partial:
            partial.write_text(files[output.suffix], encoding="utf-8")
        return
    with store.atomic_folder(output) as folder:
        (folder / "comparison.json").write_text(text, encoding="utf-8")
        (folder / "report.html").write_text(page, encoding="utf-8")


def _check_words(slices: Names) -> list[str] | None:
    """Return what `--slices` names; a folder is meant for another option, which had this name up to 0.4."""
    words = chosen_words(slices)
    for word in words or ():
        if Path(word).is_dir():
            raise InputError(f"`--slices` takes ids, accepted or confirmed; got the folder {word}; use --slices-of")
    return words


def _read_for(audit: Audit, path: Path, metadata: Names) -> Any:
    """Return the rows that slices of an audit of other rows are looked for in: its rules may read any column."""
    if path.is_dir() or metadata:
        return _read(path, metadata)
    return read_like(path, audit)


def _read(path: Path, metadata: Names, **loading: Any) -> Any:
    """Return a saved audit where the path is a folder, else the rows of a file."""
    from .. import workflow
    from ..inputs import read

    if path.is_dir():
        return workflow.load(path, **loading)
    return read(path, metadata=metadata)
