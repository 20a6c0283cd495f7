"""What is printed in a terminal. Names come from files of others: none of their characters may command it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import Console
    from rich.segment import Segment

# Control characters but newline and tab, line separators, changes of direction, and halves of characters.
COMMANDING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """The text with every character that a terminal would obey, or could not show, as an escape such as \\x1b."""
    return COMMANDING.sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}"


class OutputClosed(Exception):
    """Whoever reads the output has seen enough, as in `errata methods | head`. No OSError: typer would exit with 1."""


def echo(text: str, *, err: bool = False, nl: bool = True) -> None:
    """Print a text; err: on standard error. nl: with a line break at the end."""
    try:
        typer.echo(printable(text), err=err, nl=nl)
    except BrokenPipeError as error:
        raise OutputClosed from error


def safe_console(**options: Any) -> Console:
    """A console whose colours and lines are its own; those of a text are shown, not obeyed.

    options: of rich's Console.
    """
    from rich.console import Console
    from rich.segment import Segment

    class SafeConsole(Console):
        def on_broken_pipe(self) -> None:
            """Raise what `echo` raises too."""
            raise OutputClosed

        def render(self, renderable: Any, options: Any = None) -> Iterable[Segment]:
            """What is printed, piece by piece."""
            for segment in super().render(renderable, options):
                if segment.control or not COMMANDING.search(segment.text):
                    yield segment
                else:
                    yield Segment(printable(segment.text), segment.style)

    return SafeConsole(**options)
