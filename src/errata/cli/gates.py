"""What the commands with a gate share: their options, the files for a build server, and the exit code."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..core import InputError
from ..core.errors import unknown
from ..report.printing import echo

if TYPE_CHECKING:
    from ..report.gates import Gate

Junit = Annotated[Path | None, typer.Option(metavar="FILE", help="JUnit XML to write, one test case a slice.")]
Summary = Annotated[Path | None, typer.Option(metavar="FILE.md", help="Markdown to write, for a pull request.")]


def check_gate(
    fail_on: str | None,
    choices: Sequence[str],
    junit: Path | None,
    summary: Path | None,
    *,
    read: Sequence[Path | None],
    output: Path | None,
) -> None:
    """Refuse, before any work, what the gate cannot fail on, and files that cannot be written or would destroy others.

    read: files and folders that the command reads. output: what else it writes.
    """
    from ..store import check_replaceable

    if fail_on is not None and fail_on not in choices:
        raise unknown("`--fail-on`", fail_on, choices)
    reports = [path for path in (junit, summary) if path is not None]
    for path in reports:
        check_replaceable(path)
        if any(_is_part(path, source) for source in read if source is not None):
            raise InputError(f"`{path}` is read by this command, and would be replaced; name another file to write")
        if output is not None and os.path.realpath(path) == os.path.realpath(output):
            raise InputError(f"`{path}` is the output already; name another file to write")
    if len({os.path.realpath(path) for path in reports}) < len(reports):
        raise InputError(f"`--junit` and `--summary` both write `{junit}`; name two files")


def _is_part(path: Path, source: Path) -> bool:
    """Whether a path is this file, or a file of this audit."""
    own = Path(os.path.realpath(path))
    other = Path(os.path.realpath(source))
    is_audit = os.path.isfile(other / "audit.json")  # which, unlike pathlib, takes names that are too long
    return own == other or (is_audit and os.path.exists(own) and other in own.parents)


def finish(gate: Gate, junit: Path | None, summary: Path | None, *, quiet: bool = False) -> None:
    """Write the files, print whether the gate passed, and exit with 1 where it did not.

    Parameters
    ----------
    gate
        What was checked.
    junit, summary
        Files to write, or to replace; written whether the gate passes or not.
    quiet
        Print on standard error: standard output is for a program.
    """
    from ..report.gate_files import to_junit, to_markdown
    from ..store import atomic_file

    for path, text in ((junit, to_junit), (summary, to_markdown)):
        if path is not None:
            with atomic_file(path, replace=True) as partial:
                partial.write_text(text(gate), encoding="utf-8")
    if gate.sentence:
        echo(gate.sentence, err=quiet)
    if gate.failed:
        raise typer.Exit(1)
