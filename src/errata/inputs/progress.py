"""Progress of reading rows, for a person at a terminal: a bar with the time left, on stderr."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import Any

from ..core import Progress

WIDTH = 24  # characters of the bar
PAUSE = 0.1  # seconds between two drawings
WIPE = "\r\x1b[K"  # back to the first column, and clear the line


class TerminalProgress:
    """A Progress that draws a bar on stderr where that is a terminal, and prints notes there in any case.

    One bar at a time: a new stage replaces the old one, and a stage that is done is wiped off. Nothing runs in the
    background, so an error in the middle of a stage leaves nothing to be closed.
    """

    def __init__(self) -> None:
        self._stage = ""
        self._start = 0.0
        self._drawn_at = 0.0

    def __call__(self, stage: str, share: float) -> None:
        """Draw the bar of `stage`, of which `share` (0 to 1) is done."""
        from rich.console import Console

        console = Console(stderr=True)
        if not console.is_terminal:
            return
        now = time.monotonic()
        if stage != self._stage:
            self._stage = stage
            self._start = now
            self._drawn_at = 0.0
        if share >= 1:
            self._stage = ""
            console.file.write(WIPE)
        elif now - self._drawn_at >= PAUSE:
            self._drawn_at = now
            console.file.write(WIPE + _bar(stage, share, now - self._start))
        console.file.flush()

    def note(self, text: str) -> None:
        """Print a line that stays, above the bar."""
        from rich.console import Console

        console = Console(stderr=True)
        if self._stage:
            console.file.write(WIPE)
            self._drawn_at = 0.0
        console.print(text, markup=False, highlight=False, soft_wrap=True)


terminal_progress = TerminalProgress()


def note(progress: Progress, text: str) -> None:
    """Print a line where progress goes to the terminal; who watches in another way gets shares only."""
    if isinstance(progress, TerminalProgress):
        progress.note(text)


def report_batches(loader: Iterable[Any], progress: Progress, stage: str) -> Iterator[Any]:
    """The batches of a loader, with the share of them reported before each and when all are done.

    A loader without a length has no share: it stays at 0 until the end.
    """
    try:
        total = len(loader)  # type: ignore[arg-type]  # not every loader has a length
    except (TypeError, NotImplementedError):
        total = 0
    for i, batch in enumerate(loader):
        share = 0.0
        if total:
            share = min(i / total, 1.0)
        progress(stage, share)
        yield batch
    progress(stage, 1.0)


def _bar(stage: str, share: float, seconds: float) -> str:
    """One line: the stage, a bar, the share done and the time left."""
    done = round(WIDTH * share)
    bar = "━" * done + " " * (WIDTH - done)
    if share <= 0:
        return f"{stage} {bar}"
    left = round(seconds * (1 - share) / share)
    minutes, rest = divmod(left, 60)
    return f"{stage} {bar} {share:4.0%}, {minutes}:{rest:02d} left"
