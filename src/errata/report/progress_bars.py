"""Progress bars of long work, with the time left, on stderr."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..core import Progress

if TYPE_CHECKING:
    from rich.progress import Progress as RichProgress
    from rich.progress import TaskID

# Rich needs two steps within the period to say what time is left: a whole epoch may be one, the start is the other.
SPEED_SECONDS = 3600
SLIVER = 1e-9


@contextmanager
def progress_bar() -> Iterator[Progress]:
    """A progress bar with the time left, on stderr, where somebody can see it."""
    with _bar() as bars:
        bar = bars.add_task("audit", total=1.0)
        bars.update(bar, completed=SLIVER)

        def report(stage: str, share: float) -> None:
            if share < bars.tasks[0].completed:  # the next stage: what time is left of one says nothing of it
                bars.reset(bar)
                bars.update(bar, completed=SLIVER)
            bars.update(bar, description=stage, completed=share)

        yield report


@contextmanager
def stage_bar() -> Iterator[Progress]:
    """One after the other for every stage: what time is left of one says nothing of the next."""
    with _bar() as bars:
        tasks: dict[str, TaskID] = {}

        def report(stage: str, share: float) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=1.0)
                bars.update(tasks[stage], completed=SLIVER)
            bars.update(tasks[stage], completed=share)

        yield report


def _bar() -> RichProgress:
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
    from rich.progress import Progress as RichProgress

    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    return RichProgress(
        *columns, console=console, transient=True, disable=not console.is_terminal, speed_estimate_period=SPEED_SECONDS
    )
