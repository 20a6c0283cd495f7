"""What somebody at a terminal sees while rows are read: a bar with the time left, on stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any


def line(text: str) -> None:
    from rich.console import Console

    Console(stderr=True).print(text, markup=False, highlight=False)


def silence(text: str) -> None:
    """Nobody wants to hear."""


def shown(loader: Iterable[Any], progress: bool, what: str = "collect") -> Iterable[Any]:
    """The batches, with a bar and the time left where somebody can see it."""
    from rich.console import Console
    from rich.progress import track

    console = Console(stderr=True)
    if not progress or not console.is_terminal:
        return loader
    try:
        total = len(loader)  # type: ignore[arg-type]  # not every loader knows
    except (TypeError, NotImplementedError):
        total = None
    return track(loader, description=what, total=total, console=console, transient=True)


@contextmanager
def bar(what: str, progress: bool) -> Iterator[Callable[[float], None]]:
    """A bar for work that knows the share it has done."""
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not (progress and console.is_terminal)) as drawn:
        task = drawn.add_task(what, total=1.0)
        yield lambda share: drawn.update(task, completed=share)
