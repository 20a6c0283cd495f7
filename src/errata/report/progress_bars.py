"""Progress bars of long work, with the time left, on stderr."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

# Rich needs two steps within the period to say what time is left: a whole epoch may be one, the start is the other.
SPEED_SECONDS = 3600
SLIVER = 1e-9


@contextmanager
def progress_bar() -> Iterator[Any]:
    """A progress bar with the time left, on stderr, where somebody can see it."""
    with _bar() as progress:
        bar = progress.add_task("audit", total=1.0)
        progress.update(bar, completed=SLIVER)

        def report(stage: str, share: float) -> None:
            if share < progress.tasks[0].completed:  # the next stage: what time is left of one says nothing of it
                progress.reset(bar)
                progress.update(bar, completed=SLIVER)
            progress.update(bar, description=stage, completed=share)

        yield report


@contextmanager
def stage_bar() -> Iterator[Any]:
    """One after the other for every stage: what time is left of one says nothing of the next."""
    with _bar() as progress:
        bars: dict[str, Any] = {}

        def report(stage: str, share: float) -> None:
            if stage not in bars:
                bars[stage] = progress.add_task(stage, total=1.0)
                progress.update(bars[stage], completed=SLIVER)
            progress.update(bars[stage], completed=share)

        yield report


def _bar() -> Progress:
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    return Progress(
        *columns, console=console, transient=True, disable=not console.is_terminal, speed_estimate_period=SPEED_SECONDS
    )
