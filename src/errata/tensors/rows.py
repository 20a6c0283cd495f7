"""Columns of rows on a device, and sums of what chunks of them give.

Where they fit they stay on the device; else each chunk is copied from page-locked memory while the one before it is
worked on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
import torch

from ..core import Array

CHUNK_VALUES = 1 << 25  # of densities or features at a time: 256 MB
RESIDENT = 0.5  # share of the free memory of a device that rows may take
_cuda: Any = torch.cuda  # its streams and events have no annotations

Tensors = tuple[torch.Tensor, ...]


class TensorWork(NamedTuple):
    """What a chunk of rows adds to totals, on a device."""

    sums: Callable[..., Tensors]  # columns of b rows -> tensors that are added
    width: int  # values that the widest array in between has for a row


class TensorRows:
    """Columns of rows on a device.

    resident: keep them there; None: where they fit.
    """

    def __init__(self, columns: Sequence[Array], device: torch.device, resident: bool | None = None):
        self.device = device
        self.n = len(columns[0])
        self._columns = columns
        if resident is None:
            resident = device.type != "cuda" or _fits(columns, device)
        self._held: tuple[torch.Tensor, ...] | None = None
        if resident:
            self._held = tuple(torch.tensor(np.asarray(column), device=device) for column in columns)

    def total(self, work: TensorWork, most: int | None = None) -> tuple[Any, ...]:
        """The sum over all chunks, as arrays and numbers on this side. most: rows of a chunk."""
        chunk = most or max(1, CHUNK_VALUES // work.width)
        totals = reduce(_add, (work.sums(*columns) for columns in self.chunks(chunk)))
        return tuple(total.cpu().numpy()[()] for total in totals)

    def chunks(self, most: int) -> Iterator[Tensors]:
        """All rows in their order, so many at a time."""
        parts = [slice(start, min(start + most, self.n)) for start in range(0, self.n, most)]
        if self._held is not None:
            for rows in parts:
                yield tuple(column[rows] for column in self._held)
        elif self.device.type == "cuda":
            yield from self._copied_ahead(parts)
        else:
            for rows in parts:
                yield tuple(torch.tensor(np.asarray(column[rows])) for column in self._columns)

    def _copied_ahead(self, parts: list[slice]) -> Iterator[Tensors]:
        """One chunk is worked on, one is on its way, and one is read into page-locked memory."""
        copying = _cuda.Stream(self.device)
        stages = [_Stage(self._columns, parts[0].stop, self.device, copying) for _ in range(2)]
        waiting = stages[0].send(parts[0])
        for i in range(len(parts)):
            now = waiting
            torch.cuda.current_stream(self.device).wait_stream(copying)
            if i + 1 < len(parts):
                waiting = stages[(i + 1) % 2].send(parts[i + 1])
            for column in now:
                column.record_stream(torch.cuda.current_stream(self.device))
            yield now


class _Stage:
    """Page-locked memory for one chunk."""

    def __init__(self, columns: Sequence[Array], rows: int, device: torch.device, stream: Any):
        self._columns = columns
        self._device = device
        self._stream = stream
        self._sent = _cuda.Event()
        empty = [np.empty((rows, *column.shape[1:]), dtype=column.dtype) for column in columns]
        self._memory = [torch.from_numpy(memory).pin_memory() for memory in empty]

    def send(self, rows: slice) -> Tensors:
        """Start to copy some rows to the device."""
        self._sent.synchronize()  # the copy before it has left this memory
        sent = []
        for column, memory in zip(self._columns, self._memory, strict=True):
            part = memory[: rows.stop - rows.start]
            np.copyto(part.numpy(), column[rows])
            with torch.cuda.stream(self._stream):
                sent.append(part.to(self._device, non_blocking=True))
        self._sent.record(self._stream)
        return tuple(sent)


def _fits(columns: Sequence[Array], device: torch.device) -> bool:
    size = sum(int(np.prod(column.shape)) * column.dtype.itemsize for column in columns)
    return size <= RESIDENT * torch.cuda.mem_get_info(device)[0]


def _add(totals: Tensors, more: Tensors) -> Tensors:
    return tuple(a + b for a, b in zip(totals, more, strict=True))
