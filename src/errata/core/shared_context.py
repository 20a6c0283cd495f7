"""A context that several threads, or results that are read by turns, are in at the same time."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, ExitStack
from threading import Lock


class SharedContext:
    """Entered by the first who comes, left by the last who goes.

    What a context puts back is what it found: of two that overlap, each with its own, the last to go would put back
    what the other one had set.

    Parameters
    ----------
    make : callable
        Gives the context, once for all who are in it together.
    """

    def __init__(self, make: Callable[[], AbstractContextManager[object]]):
        self._make = make
        self._lock = Lock()
        self._inside = 0
        self._context = ExitStack()

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._context.enter_context(self._make())
            self._inside += 1

    def __exit__(self, *error: object) -> None:
        with self._lock:
            self._inside -= 1
            if not self._inside:
                self._context.close()
