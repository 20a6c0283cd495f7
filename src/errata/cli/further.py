"""The commands that the notes of an audit recommend, with its files and options: as they can be copied and run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

# By a new folder, and by the method and where it shall search; files of a gate are the first audit's.
REPLACED = ("output", "method", "within", "junit", "summary")


def further_commands(
    notes: Sequence[str], context: typer.Context, source: Path, output: Path, reading: Mapping[str, Any]
) -> list[str]:
    """Return the commands and lines of Python in notes, with what this audit was given.

    context: of the command that was run. reading: how its input was read, as arguments of `errata.inputs.read`.
    """
    from ..workflow.notes import COMMAND, ROWS

    given = [f"{name}={value!r}" for name, value in reading.items() if value]
    read = f"errata.inputs.read({', '.join([repr(str(source)), *given])})"
    commands = []
    # Note by note: a name of a column may hold a single backtick.
    for code in [code for note in notes for code in re.findall("`([^`]*)`", note)]:
        if code.startswith(COMMAND):
            changes = shlex.split(code.removeprefix(COMMAND))
            method = changes[changes.index("--method") + 1]
            folder = f"{output}-{method.replace(':', '-')}-prediction"
            words = ["errata", "audit", str(source), "-o", folder, *_typed(context, method), *changes]
            commands.append(shlex.join(words))
        elif code.startswith("errata.audit("):
            commands.append(code.replace(f"({ROWS},", f"({read},", 1))
    return commands


def _typed(context: typer.Context, method: str) -> Iterator[str]:
    """The options that were typed, as words again: read from the command itself, so that a new one is never lost."""
    for option in context.command.params:
        name = str(option.name)
        source = context.get_parameter_source(name)
        if option.param_type_name != "option" or name in REPLACED or source is None or source.name != "COMMANDLINE":
            continue
        value = context.params[name]
        if value is False:
            yield option.secondary_opts[0]
        elif value is True:
            yield option.opts[0]
        elif isinstance(value, list | tuple):
            for text in value:
                if _concerns(method, name, text):
                    yield from (option.opts[0], str(text))
        else:
            yield from (option.opts[0], str(value))


def _concerns(method: str, option: str, text: Any) -> bool:
    """Whether an option holds for a method: one of another method would be refused where that is not run."""
    owner = ""
    if option == "sets":
        owner = str(text).partition(".")[0]
    if option == "representation":
        owner = str(text).rpartition("=")[0]
    return owner in ("", method, method.partition(":")[0])
