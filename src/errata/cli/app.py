"""The command: argv -> one call -> exit code. 0 done, 1 a gate failed, 2 bad input, 70 a fault of ours.

`COMMANDS` is the list of commands. A room with its own flow keeps its command (`defuse/command.py`), and is named
here; other packages join through the entry point `errata.commands`. The module of a command is imported when that
command is run, completed or asked for its help; what `errata --help` lists is written here.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
import traceback
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup

from ..core import ErrataError
from ..core.extensions import ExtensionWarning, load_extensions
from ..core.words import clipped
from ..report.printing import OutputClosed, echo
from ..version import __version__

Command = Callable[..., None] | typer.Typer  # a command, or a group of commands


@dataclass(frozen=True)
class OwnCommand:
    """A command of this package: where it is, and its line of help (a test compares it with the command's own)."""

    place: str  # MODULE:NAME, the module relative to `errata.cli`
    help: str
    builds: bool = False  # the name is that of a function that returns the command

    def load(self) -> Command:
        """Import the command."""
        module, _, name = self.place.partition(":")
        found = getattr(importlib.import_module(module, __package__), name)
        command: Command = found() if self.builds else found
        return command


COMMANDS: dict[str, OwnCommand] = {
    "audit": OwnCommand(
        ".audit:audit", "Find slices on half of the rows, confirm them on the other half, and write a report."
    ),
    "demo": OwnCommand(
        ".demo:demo", "Train a small model with hidden weaknesses, audit it, and report which of them the audit found."
    ),
    "apply": OwnCommand(".audit:apply", "Find the members of saved slices among new rows."),
    "methods": OwnCommand(".audit:methods", "List the methods, their presets and their options."),
    "by": OwnCommand(
        ".by:measure_by", "Measure error, recall and other metrics in the groups of a column, with intervals."
    ),
    "test": OwnCommand(
        ".hypotheses:run_tests",
        "Test whether rows that match are worse than the others, on held-out rows; "
        "every one counts against the others.",
    ),
    "recheck": OwnCommand(
        ".fix:recheck", "Compare two models in the slices of an audit, on rows that were not audited."
    ),
    "compare": OwnCommand(
        ".compare:compare", "Compare two models on the same rows, in known slices and in slices that a search finds."
    ),
    "serve": OwnCommand(
        ".serve:serve", "Look at an audit in a browser: slices, maps, hypotheses, annotations, decisions."
    ),
    "defuse": OwnCommand(
        "..defuse.command:defuse",
        "Find generated images that a classifier gets wrong, have them labelled, and correct it.",
    ),
    "report": OwnCommand(
        ".report:report", "Write the report anew with what people decided: names, merged slices, moved rows."
    ),
    "annotations": OwnCommand(".serve:annotations_app", "Import, export or list what people recorded about an audit."),
    "people": OwnCommand(".access:people_app", "Who may sign in to a server, each with a token of their own."),
    "bench": OwnCommand(".bench:app", "Benchmarks: how good are the methods?"),
    "plan": OwnCommand(
        ".fix:plan_commands",
        "Plan how to fix a slice: rows that count more, labels to change, rows to add, images to draw.",
        builds=True,
    ),
}
BAD_INPUT = 2
NO_PATH = (errno.ENAMETOOLONG, errno.ELOOP)  # of a path that no file can have
LONGEST_PATH = 60  # characters of it that are repeated
OUR_FAULT = 70  # what sysexits.h calls an internal software error
INTERRUPTED = 130
BROKEN_PIPE = 141
TRACEBACK = "ERRATA_TRACEBACK"  # an environment variable
# click's UsageError, or typer's own copy of it: newer releases do not bring click, and neither exports it by name.
USAGE_ERROR: Any = typer.BadParameter.__bases__[0]


def create_app(words: Sequence[str] = ()) -> typer.Typer:
    """Return the command `errata`: our commands by their names, and those of other packages.

    words: of the command line. Where the first is the name of a command of ours, other packages are not imported.
    """
    app = _empty_app()
    if not words or words[0] not in COMMANDS:
        for name, command in outside_commands().items():
            _add(app, name, command)
    for name, own in COMMANDS.items():
        app.command(name, cls=ListedCommand, help=own.help)(lambda: None)
    return app


def outside_commands() -> dict[str, Command]:
    """Return what other packages offer through the entry point `errata.commands`; a name of ours stays ours."""
    from importlib.metadata import entry_points

    outside = load_extensions(entry_points(group="errata.commands"), ("__call__",))
    return {name: command for name, command in outside.items() if name not in COMMANDS}


def load_command(name: str) -> Any:
    """Import a command of ours; return it as typer runs it."""
    app = _empty_app()
    _add(app, name, COMMANDS[name].load())
    return typer.main.get_group(app).commands[name]


class ListedCommand(TyperCommand):
    """A command as `errata --help` and a shell's completion list it: its name and its line of help."""


class LazyGroup(TyperGroup):
    """The commands as they are listed; the one that is asked for is imported."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """The command that words name: its name, the command, the words that are left."""
        name, command, rest = super().resolve_command(ctx, args)
        if isinstance(command, ListedCommand):
            command = load_command(str(name))
        return name, command, rest


def _empty_app() -> typer.Typer:
    app = typer.Typer(cls=LazyGroup, rich_markup_mode=None, pretty_exceptions_enable=False)
    app.callback()(_start)
    return app


def _add(app: typer.Typer, name: str, command: Command) -> None:
    if isinstance(command, typer.Typer):
        app.add_typer(command, name=name)
    else:
        app.command(name)(command)


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
    words = sys.argv[1:] or ["--help"]
    try:
        code = create_app(words)(args=words, standalone_mode=False)
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
        if isinstance(error, OSError) and error.errno in NO_PATH:
            return _fail(_no_path(error), BAD_INPUT)
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


def _no_path(error: OSError) -> str:
    """A sentence for a path that no file can have, wherever it was first looked at."""
    path = clipped(os.fsdecode(error.filename or ""), LONGEST_PATH)
    return f"`{path}` is no path of a file ({(error.strerror or str(error)).lower()}); give another"


def _show_warning(show_other: Callable[..., None]) -> Callable[..., None]:
    """Return what prints a broken extension or an odd input once and as one line, any other warning as before."""
    printed = set()

    def show(message: Warning | str, category: type[Warning], *place: Any) -> None:
        # By its name: the room that has it is imported by few commands.
        if not issubclass(category, ExtensionWarning) and category.__name__ != "InputWarning":
            show_other(message, category, *place)
        elif str(message) not in printed:
            printed.add(str(message))
            echo(f"Warning: {message}", err=True)

    return show
