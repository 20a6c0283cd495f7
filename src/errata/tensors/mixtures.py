"""Sums over rows weighted by mixture shares, on any device: what an M-step of a mixture or of k-means reads.

Rows are columns of one length, taken in chunks. Where they fit they stay on the device; else each chunk is copied from
page-locked memory while the one before it is worked on. Shares and sums are float64, which the GPUs of data centres
multiply as fast as float32 without its loss; the result is that of the CPU to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch

from ..core import Array

CHUNK_VALUES = 1 << 25  # of densities or features at a time: 256 MB
RESIDENT = 0.5  # share of the free memory of a device that rows may take
LOG_TWO_PI = float(np.log(2 * np.pi))
_cuda: Any = torch.cuda  # its streams and events have no annotations

Tensors = tuple[torch.Tensor, ...]
Densities = Callable[..., torch.Tensor]  # columns of b rows -> (b, s) log densities
Features = Callable[..., torch.Tensor]  # columns of b rows -> (b, f) what is summed


class TensorRows:
    """Columns of rows on a device, in chunks of `chunk` rows.

    resident: keep them there; None: where they fit.
    """

    def __init__(self, columns: Sequence[Array], device: torch.device, chunk: int, resident: bool | None = None):
        self.device = device
        self.n = len(columns[0])
        self._columns = columns
        self._parts = [slice(start, min(start + chunk, self.n)) for start in range(0, self.n, chunk)]
        if resident is None:
            resident = device.type != "cuda" or _fits(columns, device)
        self._held: tuple[torch.Tensor, ...] | None = None
        if resident:
            self._held = tuple(torch.tensor(np.asarray(column), device=device) for column in columns)

    def __iter__(self) -> Iterator[Tensors]:
        if self._held is not None:
            for rows in self._parts:
                yield tuple(column[rows] for column in self._held)
        elif self.device.type == "cuda":
            yield from self._copied_ahead()
        else:
            for rows in self._parts:
                yield tuple(torch.tensor(np.asarray(column[rows])) for column in self._columns)

    def _copied_ahead(self) -> Iterator[Tensors]:
        """One chunk is worked on, one is on its way, and one is read into page-locked memory."""
        copying = _cuda.Stream(self.device)
        stages = [_Stage(self._columns, self._parts[0].stop, self.device, copying) for _ in range(2)]
        waiting = stages[0].send(self._parts[0])
        for i in range(len(self._parts)):
            now = waiting
            torch.cuda.current_stream(self.device).wait_stream(copying)
            if i + 1 < len(self._parts):
                waiting = stages[(i + 1) % 2].send(self._parts[i + 1])
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


def chunk_for(*widths: int) -> int:
    """Rows of a chunk of which no array with so many columns takes more than the memory meant for it."""
    return max(1, CHUNK_VALUES // max(widths))


def weighted_sums(
    rows: TensorRows, densities: Densities, features: Features, hard: bool = False
) -> tuple[Array, Array, float]:
    """(s,) the sum of shares, (s, f) that of shares times features, and the sum of log-likelihoods.

    hard: the component with the largest density has all of a row, as in k-means; the last is then the sum of those.
    """
    mass: Any = 0.0
    sums: Any = 0.0
    total: Any = 0.0
    for columns in rows:
        density = densities(*columns)
        peak, best = density.max(dim=1, keepdim=True)
        if hard:
            shares = density.zero_().scatter_(1, best, 1.0)
            total = total + peak.sum()
        else:
            shares = torch.softmax(density, dim=1)
            total = total + (peak - shares.gather(1, best).log()).sum()  # log sum exp, without a pass of its own
        mass = mass + shares.sum(dim=0)
        sums = sums + shares.T @ features(*columns)
    return mass.cpu().numpy(), sums.cpu().numpy(), float(total)


def with_squares(z: torch.Tensor) -> torch.Tensor:
    """(b, 2 d) in float64: one product with it gives what a quadratic form needs, and one all moments."""
    z = z.double()
    return torch.cat([z, z.square()], dim=1)


def diagonal_densities(log_weights: Array, means: Array, variances: Array, device: torch.device) -> Densities:
    """(b, d) rows -> (b, s) log weight and density of Gaussians with diagonal covariances."""
    precisions = 1 / variances
    slopes = torch.tensor(np.hstack([means * precisions, -0.5 * precisions]).T, device=device)
    heights = (np.square(means) * precisions + np.log(variances) + LOG_TWO_PI).sum(axis=1)
    heights = torch.tensor(log_weights - 0.5 * heights, device=device)
    return lambda z, *others: torch.addmm(heights, with_squares(z), slopes)


def nearness(centres: Array, device: torch.device) -> Densities:
    """(b, d) rows -> (b, s) half the squared length of a row less half its squared distance from each centre."""
    towards = torch.tensor(np.asarray(centres, dtype=np.float64).T, device=device)
    heights = -0.5 * towards.square().sum(dim=0)
    return lambda z, *others: torch.addmm(heights, z.double(), towards)
