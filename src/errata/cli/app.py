"""The command: argv -> one call -> exit code. 0 done, 1 a gate failed, 2 bad input.

`COMMANDS` is the list of commands. A room with its own flow keeps its command (`defuse/command.py`), and is named
here; other packages join through the entry point `errata.commands`.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Annotated, Any

import typer

from ..core import ErrataError
from ..defuse.command import defuse
from ..version import __version__
from . import audit, bench, by, compare, demo, fix, hypotheses, serve

Command = Callable[..., None] | typer.Typer  # a command, or a group of commands

COMMANDS: dict[str, Command] = {
    "audit": audit.audit,
    "demo": demo.demo,
    "apply": audit.apply,
    "methods": audit.methods,
    "by": by.measure_by,
    "test": hypotheses.run_tests,
    "recheck": fix.recheck,
    "compare": compare.compare,
    "serve": serve.serve,
    "defuse": defuse,
    "annotations": serve.annotations_app,
    "bench": bench.app,
}
# click's UsageError, or typer's own copy of it: newer releases do not bring click, and neither exports it by name.
USAGE_ERROR: Any = typer.BadParameter.__bases__[0]


def registry() -> dict[str, Command]:
    """Return our commands and those that other packages offer through the entry point `errata.commands`, by name."""
    outside = {entry.name: entry.load() for entry in entry_points(group="errata.commands")}
    return {**outside, **COMMANDS, "plan": fix.plan_commands()}


def create_app() -> typer.Typer:
    """Return the command `errata` with every command of the registry."""
    app = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.callback()(_start)
    for name, command in registry().items():
        if isinstance(command, typer.Typer):
            app.add_typer(command, name=name)
        else:
            app.command(name)(command)
    return app


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"errata {__version__}")
        raise typer.Exit


def _start(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Find, explain and fix the systematic errors of a trained model."""


def main() -> None:
    """Run the command; every error of the user's is one sentence and exit code 2."""
    try:
        code = create_app()(args=sys.argv[1:] or ["--help"], standalone_mode=False)
        if not isinstance(code, int):  # typer returns what the command returned, or the code of an Exit
            code = 0
    except ErrataError as error:
        _fail(str(error))
    except USAGE_ERROR as error:
        _fail(error.format_message().strip())
    except (typer.Abort, KeyboardInterrupt):
        sys.exit(130)
    else:
        sys.exit(code)


def _fail(sentence: str) -> None:
    typer.echo(f"errata: {sentence}", err=True)
    sys.exit(2)
