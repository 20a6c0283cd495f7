"""The command: argv -> one call -> exit code. 0 done, 1 a gate failed, 2 bad input, 70 a fault of ours.

`COMMANDS` is the list of commands. A room with its own flow keeps its command (`defuse/command.py`), and is named
here; other packages join through the entry point `errata.commands`.
"""

from __future__ import annotations

import os
import sys
import traceback
import warnings
from collections.abc import Callable
from importlib.metadata import entry_points
from typing import Annotated, Any

import typer

from ..core import ErrataError
from ..core.extensions import ExtensionWarning, load_extensions
from ..defuse.command import defuse
from ..report.printing import OutputClosed, echo
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
BAD_INPUT = 2
OUR_FAULT = 70  # what sysexits.h calls an internal software error
INTERRUPTED = 130
BROKEN_PIPE = 141
TRACEBACK = "ERRATA_TRACEBACK"  # an environment variable
# click's UsageError, or typer's own copy of it: newer releases do not bring click, and neither exports it by name.
USAGE_ERROR: Any = typer.BadParameter.__bases__[0]


def registry() -> dict[str, Command]:
    """Return our commands and those that other packages offer through the entry point `errata.commands`, by name."""
    outside = load_extensions(entry_points(group="errata.commands"), ("__call__",))
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
        echo(f"errata {__version__}")
        raise typer.Exit


def _start(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Find, explain and fix the systematic errors of a trained model."""


def main() -> None:
    """Run the command; every error of the user's is one sentence and exit code 2, every one of ours exit code 70."""
    with warnings.catch_warnings():
        warnings.showwarning = _show_warning(warnings.showwarning)
        sys.exit(_run())


def _run() -> int:
    """Run the command, and return its exit code."""
    try:
        code = create_app()(args=sys.argv[1:] or ["--help"], standalone_mode=False)
    except ErrataError as error:
        return _fail(str(error), BAD_INPUT)
    except USAGE_ERROR as error:
        return _fail(error.format_message().strip(), BAD_INPUT)
    except (typer.Abort, KeyboardInterrupt):
        return INTERRUPTED
    except OutputClosed:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else Python fails once more at its end
        return BROKEN_PIPE
    except Exception as error:
        return _fail(_our_fault(error), OUR_FAULT)
    # typer returns what the command returned, or the code of an Exit
    return code if isinstance(code, int) else 0


def _our_fault(error: Exception) -> str:
    if os.environ.get(TRACEBACK):
        traceback.print_exception(error)
    if isinstance(error, MemoryError):
        return "the memory is not enough for this; give fewer rows or columns, or use a machine with more"
    reason = f"{type(error).__name__}: {error}".partition("\n")[0].rstrip(": ")
    return (
        f"something failed that should not ({reason:.300}); please report it with what the same command prints after "
        f"`export {TRACEBACK}=1`"
    )


def _fail(sentence: str, code: int) -> int:
    """Print one line on stderr, whatever names are in it."""
    echo("errata: " + sentence.replace("\n", "\\n"), err=True)
    return code


def _show_warning(show_other: Callable[..., None]) -> Callable[..., None]:
    """Return what prints a broken extension once and as one line, and any other warning as before."""
    printed = set()

    def show(message: Warning | str, category: type[Warning], *place: Any) -> None:
        if not issubclass(category, ExtensionWarning):
            show_other(message, category, *place)
        elif str(message) not in printed:
            printed.add(str(message))
            echo(f"Warning: {message}", err=True)

    return show
