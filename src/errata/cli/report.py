"""`errata report`: the report of a saved audit anew, with what people decided; and the slices as they left them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..core import InputError
from ..report.printing import echo
from .common import Chosen, Database, Dir, chosen_words, tell_choice

if TYPE_CHECKING:
    from ..core import Audit

FORMATS = (".html", ".json", ".csv", ".parquet")


def report(
    folder: Dir,
    output: Annotated[
        Path | None,
        typer.Option(
            "-o",
            "--output",
            metavar="FILE",
            help="A .html page, or the slices as .json, or their rows as .csv or .parquet. Default: DIR/report.html.",
        ),
    ] = None,
    people: Annotated[
        bool, typer.Option("--people/--no-people", help="Name who decided and when, and their notes.")
    ] = True,
    slices: Chosen = [],
    database: Database = None,
) -> None:
    """Write the report anew with what people decided: names, merged slices, moved rows."""
    from .. import store, workflow
    from ..core.judgement import as_left

    if output is not None:
        _check_format(output)
        store.check_output(output)
    words = chosen_words(slices)
    if words and (output is None or output.suffix == ".html"):
        raise InputError(
            "`--slices` chooses what a .json, .csv or .parquet file holds; a page shows all slices; leave it out"
        )
    found = workflow.load(folder)
    judgement = workflow.judgement_of(found, folder, database)
    if not people:
        judgement = judgement.without_people()
    audit = as_left(found, judgement)
    if output is None:
        output = folder / "report.html"
        with store.sole_writer(folder):
            _write(audit, output, words)
    else:
        _write(audit, output, words)
    if output.suffix != ".html":
        tell_choice(audit, words, "all", by_rule=False)
    echo(str(output))


def _check_format(output: Path) -> None:
    if output.suffix not in FORMATS:
        raise InputError(f"`-o` must end in {', '.join(FORMATS)}; got {output.name!r}")


def _write(audit: Audit, output: Path, words: list[str] | None) -> None:
    """Write the page; or the slices that are chosen, or their rows."""
    from .. import report as pages
    from .. import store
    from ..core.judgement import choose, judged_json, judged_rows

    slices = choose(audit, words, "all", no_loops="").slices
    with store.atomic_file(output, replace=output.suffix == ".html") as partial:
        if output.suffix == ".html":
            partial.write_text(pages.to_html(audit), encoding="utf-8")
        elif output.suffix == ".json":
            text = json.dumps(judged_json(audit, slices), indent=1, default=str)
            partial.write_text(text + "\n", encoding="utf-8")
        else:
            store.write_table(partial, judged_rows(audit, slices), output.suffix)
