"""What an engine can do: run a function on parts of rows, or on tasks of their own, and give the results in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import reduce
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

import numpy as np

from ..core import Array

if TYPE_CHECKING:
    from ..tensors.rows import TensorWork

T = TypeVar("T")
Totals = tuple[Any, ...]  # of arrays and numbers that are added
OnDevice = Callable[..., "TensorWork"]  # from a device and what is shared


class HeldRows(Protocol):
    """Columns of rows that an engine holds where it works on them."""

    parts: tuple[slice, ...]

    def each(self, function: Callable[..., T], *shared: Any) -> Iterator[tuple[slice, T]]:
        """(rows, function(*columns of these rows, *shared)) for each part, in the order of rows."""
        ...

    def total(self, statistics: Callable[..., Totals], *shared: Any, on_device: OnDevice | None = None) -> Totals:
        """The sum over all parts of what `statistics(*columns, *shared)` gives, added in the order of rows.

        on_device: the same sums on tensors, for an engine that has a device.
        """
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *error: object) -> None: ...


class Engine(Protocol):
    """Who does the work. The result does not depend on it, to rounding.

    Functions that are handed over are defined at the top of a module and change nothing: an engine may run them in
    another process, and once more where a process died.
    """

    name: str
    memory: int  # bytes that arrays with a value for every row may take; larger ones are on disk

    def hold(self, *columns: Any) -> HeldRows:
        """Rows to work on more than once: arrays of one length, or evaluations. To be used in a `with` block."""
        ...

    def each(self, function: Callable[..., T], items: Iterable[Any], *shared: Any) -> Iterator[T]:
        """function(item, *shared) for each item, in their order."""
        ...

    def empty(self, shape: tuple[int, ...], dtype: Any = np.float64) -> Array:
        """A new array to fill, column by column in memory or, where it is large, in a file without a name."""
        ...


def add_up(results: Iterable[tuple[slice, Totals]]) -> Totals:
    """The sum of what parts give, in their order; there is at least one."""
    return reduce(_add, (totals for _, totals in results))


def _add(totals: Totals, more: Totals) -> Totals:
    return tuple(a + b for a, b in zip(totals, more, strict=True))
