"""This process: parts of rows on as many threads as there are cores, memory maps read where they lie."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from itertools import islice
from typing import Any, Self, TypeVar

import numpy as np
from threadpoolctl import threadpool_limits

from ..core import Array
from ..core.scratch import DEFAULT_MEMORY, empty_array
from ..core.shared_context import SharedContext
from .contract import OnDevice, Totals, add_up
from .parts import cut, parts_of

T = TypeVar("T")


def count_cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def count_threads() -> int:
    """Threads, one a core; OMP_NUM_THREADS bounds them as it bounds those of numpy."""
    cores = count_cores()
    bound = os.environ.get("OMP_NUM_THREADS", "")
    return min(cores, int(bound)) if bound.isdigit() and int(bound) else cores


# Products on several threads each would wait for each other, and their sums depend on how many there are.
_one_thread_each = SharedContext(partial(threadpool_limits, 1))


class Local:
    """Threads of this process.

    Parameters
    ----------
    memory : int
        Bytes that arrays with a value for every row may take.
    threads : int, optional
        Default: one a core. The result does not depend on it.
    """

    name = "local"

    def __init__(self, memory: int = DEFAULT_MEMORY, threads: int | None = None):
        self.memory = memory
        self.threads = threads or count_threads()

    def hold(self, *columns: Any) -> LocalRows:
        """The rows, as they are."""
        return LocalRows(self, columns)

    def each(self, function: Callable[..., T], items: Iterable[Any], *shared: Any) -> Iterator[T]:
        """Results in the order of items; a few of them at work or waiting at any time."""
        work = iter(items)
        with _one_thread_each, ThreadPoolExecutor(self.threads) as pool:
            waiting: deque[Future[T]] = deque()
            for item in islice(work, self.threads + 1):
                waiting.append(pool.submit(function, item, *shared))
            while waiting:
                yield waiting.popleft().result()
                for item in islice(work, 1):
                    waiting.append(pool.submit(function, item, *shared))

    def empty(self, shape: tuple[int, ...], dtype: Any = np.float64) -> Array:
        """A new array to fill."""
        return empty_array(shape, dtype, self.memory, "F")


class LocalRows:
    """Rows of this process."""

    def __init__(self, engine: Local, columns: tuple[Any, ...]):
        self._engine = engine
        self._columns = columns
        self.parts = parts_of(*columns)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def each(self, function: Callable[..., T], *shared: Any) -> Iterator[tuple[slice, T]]:
        """Results of the parts, in the order of rows."""
        if len(self.parts) == 1:  # no thread for it: numpy may use its own
            yield self.parts[0], function(*self._columns, *shared)
            return
        results = self._engine.each(self._on_part, self.parts, function, shared)
        yield from zip(self.parts, results, strict=True)

    def total(self, statistics: Callable[..., Totals], *shared: Any, on_device: OnDevice | None = None) -> Totals:
        """The sum over parts, in the order of rows."""
        return add_up(self.each(statistics, *shared))

    def _on_part(self, rows: slice, function: Callable[..., T], shared: tuple[Any, ...]) -> T:
        return function(*(cut(column, rows) for column in self._columns), *shared)
