"""Many independent runs on a few cores: each on one thread, some at a time, in the order they were asked for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from ..core import Progress
from ..engine import Local
from ..engine.local import count_threads

MOST_AT_ONCE = 4  # each holds a copy of the rows that it searches

Item = TypeVar("Item")
Result = TypeVar("Result")


def run_side_by_side(
    function: Callable[[Item], Result], items: Sequence[Item], stage: str, progress: Progress
) -> list[Result]:
    """Return the result of each item.

    Two runs on a thread each take half as long as one after the other on two: small matrices gain nothing by threads.

    Parameters
    ----------
    function
        Depends on its item alone.
    items
        What it is called with.
    stage, progress
        Called with the stage and the share that is done.
    """
    results = []
    progress(stage, 0.0)
    for result in Local(threads=min(MOST_AT_ONCE, count_threads())).each(function, items):
        results.append(result)
        progress(stage, len(results) / len(items))
    return results
