"""The published search on one GPU, where X stays for all lights.

With Triton, two kernels are a step (`kernels`), and read only rows near the edge of the light. Without it, plain torch
operations in float64 read all rows in every step; they also run on CPU tensors. Both follow `published_sphere` of the
preset `as_published` to rounding, plateau rule included. On a GPU many steps are captured as one CUDA graph, since
launching a kernel would otherwise take longer than running it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING

import numpy as np

from ...core import Array, Matrix
from ...core.blocks import blocks
from .shape import Sphere
from .slicer import AdamSettings, Schedule

if TYPE_CHECKING:
    import torch

GRAPH_STEPS = 50
BLOCK_BYTES = 1 << 26
ROWS = 128  # of one program of the kernel: 50,000 rows are one wave on an H200
TILE_VALUES = 2048  # that a program holds at a time
BITS = 61  # of a sum of integers: the sign and one bit are left


class DeviceRows:
    """X of shape (n, d) on a device, in its own precision.

    fused: use the Triton kernels; None: where Triton and a GPU exist.
    """

    def __init__(self, X: Matrix, device: torch.device, fused: bool | None = None):
        import torch

        self.device = device
        self.n: int = X.shape[0]
        self.d: int = X.shape[1]
        if fused is None:
            fused = device.type == "cuda" and find_spec("triton") is not None
        self.fused = fused
        kind = {"float16": torch.float16, "float32": torch.float32}.get(str(X.dtype), torch.float64)
        if not fused:
            kind = torch.float64  # torch multiplies like with like, and would convert all rows in every step
        self.X = torch.empty((self.n, self.d), dtype=kind, device=device)
        self.centre = torch.zeros(self.d, dtype=torch.float64, device=device)
        for rows, block in blocks(X, BLOCK_BYTES):
            part = torch.tensor(block, device=device)
            self.X[rows] = part
            self.centre += part.double().sum(0)
        self.centre /= self.n

    def blocks(self) -> Iterator[torch.Tensor]:
        """x - centre in float64, a part of the rows at a time."""
        step = max(1, BLOCK_BYTES // (8 * self.d))
        for start in range(0, self.n, step):
            yield self.X[start : start + step].double() - self.centre

    def weights(self, light: Sphere) -> Array:
        """(n,) as `Sphere.weights`."""
        import torch

        mu = torch.as_tensor(light.centre, device=self.device) - self.centre
        distances = torch.cat([(block - mu).square().sum(1) for block in self.blocks()])
        k: Array = (1 - float(light.factor) ** 2 * distances).clamp_(min=0).cpu().numpy()
        return k


class DeviceSearch:
    """`published_sphere` on the rows' device, for one set of losses after the other."""

    def __init__(self, rows: DeviceRows, settings: AdamSettings):
        self.rows = rows
        self.settings = settings
        self._search: FusedSearch | PlainSearch
        self._search = FusedSearch(rows, settings) if rows.fused else PlainSearch(rows, settings)
        self._graph: torch.cuda.CUDAGraph | None = None

    def light(self, losses: Array) -> Sphere:
        """The light that the published steps end with."""
        import torch

        search = self._search
        y = torch.as_tensor(losses, dtype=torch.float64, device=self.rows.device)
        if self.rows.device.type == "cuda" and self._graph is None:
            search.start(y)
            self._graph = _captured(search.step, self.rows.device)
        search.start(y)
        if self._graph is None:
            for _ in range(self.settings.steps):
                search.step()
        else:  # the last run may do more steps, which a search ignores
            for _ in range(-(-self.settings.steps // GRAPH_STEPS)):
                self._graph.replay()
        mu, log_tau = search.light()
        return Sphere((mu + self.rows.centre).cpu().numpy(), np.exp(float(log_tau) / 2))


def _captured(step: Callable[[], None], device: torch.device) -> torch.cuda.CUDAGraph:
    """Some steps as one graph."""
    import torch

    with torch.cuda.device(device):
        step()  # compiles the kernels and opens libraries, which a capture must not
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(GRAPH_STEPS):
                step()
    return graph


def _schedule(settings: AdamSettings, rows: DeviceRows) -> torch.Tensor:
    """(steps, 3) the barrier's width, and what corrects the bias of Adam's first and second moments."""
    import torch

    i = np.arange(1, settings.steps + 1)
    columns = (Schedule(settings, rows.n).widths, 1 - 0.9**i, 1 - 0.999**i)
    return torch.as_tensor(np.stack(columns, axis=1), device=rows.device)


def _log_tau(settings: AdamSettings) -> float:
    return float(np.log(settings.initial_precision or 1e-4))


class PlainSearch:
    """Plain torch operations on all rows. The state is tensors, changed in place, so that a graph can run it."""

    def __init__(self, rows: DeviceRows, settings: AdamSettings):
        import torch

        self.rows = rows
        self.settings = settings
        self.schedule = _schedule(settings, rows)
        self.squares = torch.cat([block.square().sum(1) for block in rows.blocks()])
        self.weights = torch.ones((2, rows.n), dtype=torch.float64, device=rows.device)  # one, and the loss
        self.at = torch.zeros(rows.d + 1, dtype=torch.float64, device=rows.device)  # mu and log tau
        self.last = torch.zeros_like(self.at)
        self.first = torch.zeros_like(self.at)
        self.second = torch.zeros_like(self.at)
        self.rate = torch.zeros((), dtype=torch.float64, device=rows.device)
        self.best = torch.zeros_like(self.rate)
        self.bad = torch.zeros((), dtype=torch.int64, device=rows.device)
        self.i = torch.zeros_like(self.bad)
        self.dark = torch.zeros((), dtype=torch.bool, device=rows.device)

    def start(self, losses: torch.Tensor) -> None:
        """Begin afresh."""
        self.weights[1] = losses
        self.at[:-1] = -self.rows.centre
        self.at[-1] = _log_tau(self.settings)
        self.last.copy_(self.at)
        self.rate.fill_(self.settings.learning_rate)
        self.best.fill_(np.inf)
        for zero in (self.first, self.second, self.bad, self.i, self.dark):
            zero.zero_()

    def light(self) -> tuple[torch.Tensor, torch.Tensor]:
        """mu, relative to the rows' centre, and log tau."""
        return self.at[:-1], self.at[-1]

    def step(self) -> None:
        """One step of Adam; nothing after the last one, or once no row is lit."""
        import torch

        ended = self.dark | (self.i >= self.settings.steps)
        line = self.i.clamp(max=self.settings.steps - 1).reshape(
            1
        )  # an index of no dimension would be read by the host
        width, for_first, for_second = self.schedule.index_select(0, line)[0].unbind()
        total, mean, slope_of = self._moments()
        dark = total <= 0
        total = torch.where(dark, 1.0, total)
        short = (self.settings.size + width - total).clamp(min=0) / width
        objective = mean - self.settings.barrier * short * short
        slope = slope_of(1 / total, 2 * self.settings.barrier * short / width - mean / total)
        first = 0.9 * self.first + 0.1 * slope
        second = 0.999 * self.second + 0.001 * slope * slope
        move = self.rate * (first / for_first) / ((second / for_second).sqrt() + 1e-8)
        there = torch.where(dark, self.last, self.at + move)  # of a dark light, the last one that shone
        _put(self.last, torch.where(dark, self.last, self.at), ended)
        _put(self.at, there, ended)
        _put(self.first, first, ended)
        _put(self.second, second, ended)
        self._watch(objective, ended | dark)
        self.dark |= dark & ~ended
        self.i += 1

    def _moments(self) -> tuple[torch.Tensor, torch.Tensor, Callable[[torch.Tensor, torch.Tensor], torch.Tensor]]:
        """sum k, the mean loss, and the slope for the factors a and b of `Schedule.slopes`."""
        import torch

        X = self.rows.X
        centre = self.rows.centre
        mu = self.at[:-1]
        tau = self.at[-1].exp()
        along = X @ mu - centre @ mu  # of the centred rows, without a copy of them
        distances = (self.squares + mu @ mu - 2 * along).clamp(min=0)
        lit = self.weights * (tau * distances < 1)
        sums = lit.sum(1)
        pulls = lit @ X - sums[:, None] * (centre + mu)
        reaches = lit @ distances
        totals = sums - tau * reaches
        mean = torch.where(totals[0] > 0, totals[1] / totals[0], 0.0)

        def slope_of(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            pull = 2 * tau * (a * pulls[1] + b * pulls[0])
            return torch.cat([pull, (-tau * (a * reaches[1] + b * reaches[0]))[None]])

        return totals[0], mean, slope_of

    def _watch(self, objective: torch.Tensor, ended: torch.Tensor) -> None:
        """As `Schedule.watch`."""
        import torch

        better = torch.isinf(self.best) | (-objective < self.best * (1 - 1e-4))
        bad = torch.where(better, 0, self.bad + 1)
        plateau = bad > self.settings.patience
        half = torch.where(self.rate / 2 > 1e-8, self.rate / 2, self.rate)
        best = torch.where(better, -objective, self.best)
        _put(self.rate, torch.where(plateau, half, self.rate), ended)
        _put(self.best, torch.where(plateau, torch.inf, best), ended)
        _put(self.bad, torch.where(plateau, 0, bad), ended)


def _put(old: torch.Tensor, new: torch.Tensor, ended: torch.Tensor) -> None:
    """The new values in the place of the old ones, unless the search has ended."""
    old.copy_(old.where(ended, new))


class FusedSearch:
    """Two kernels a step, which read only the rows near the edge of the light."""

    def __init__(self, rows: DeviceRows, settings: AdamSettings):
        import torch

        from . import kernels

        self.kernels = kernels
        self.rows = rows
        self.settings = settings
        self.columns = 1 << max(4, (rows.d - 1).bit_length())  # a power of two, as Triton has it
        self.schedule = _schedule(settings, rows)
        self.losses = torch.zeros(rows.n, dtype=torch.float64, device=rows.device)
        self.mu = torch.zeros_like(rows.centre)
        self.last_mu = torch.zeros_like(self.mu)
        self.first = torch.zeros_like(self.mu)
        self.second = torch.zeros_like(self.mu)
        self.keys = torch.zeros(rows.n, dtype=torch.float32, device=rows.device)
        self.sides = torch.zeros_like(self.keys)
        self.sums = torch.zeros(2 * self.columns + 4, dtype=torch.int64, device=rows.device)
        self.numbers = torch.zeros(12, dtype=torch.float64, device=rows.device)
        self.constants = torch.zeros(9, dtype=torch.float64, device=rows.device)
        self.largest = max(float(block.abs().max()) for block in rows.blocks())
        self.farthest = max(float(block.square().sum(1).max()) for block in rows.blocks())

    def start(self, losses: torch.Tensor) -> None:
        """Begin afresh: all rows are dark, and have to be read."""
        import torch

        self.losses.copy_(losses)
        self.mu.copy_(-self.rows.centre)
        self.last_mu.copy_(self.mu)
        self.keys.fill_(torch.inf)
        self.sides.fill_(-1)
        for zero in (self.first, self.second, self.sums):
            zero.zero_()
        log_tau = _log_tau(self.settings)
        numbers = torch.zeros(len(self.numbers), dtype=torch.float64)
        numbers[self.kernels.LOG_TAU.value] = log_tau
        numbers[self.kernels.LAST_LOG_TAU.value] = log_tau
        numbers[self.kernels.TAU.value] = np.exp(log_tau)
        numbers[self.kernels.RADIUS.value] = np.exp(-log_tau / 2)
        numbers[self.kernels.RATE.value] = self.settings.learning_rate
        numbers[self.kernels.BEST.value] = np.inf
        self.numbers.copy_(numbers)
        chosen = self.settings
        constants = [
            chosen.size,
            chosen.barrier,
            chosen.patience,
            chosen.steps,
            *self._units(float(losses.abs().max())),
        ]
        self.constants.copy_(torch.tensor(constants, dtype=torch.float64))

    def _units(self, loss: float) -> list[float]:
        """How many integers one unit of x, l x, l, |x|^2 and l |x|^2 is, such that no sum over all rows overflows."""
        x = self.largest
        square = self.farthest
        most = np.maximum([x, loss * x, loss, square, loss * square], 1e-300)
        return list(2.0 ** np.minimum(np.floor(BITS - np.log2(most) - np.log2(self.rows.n)), 1000.0))

    def light(self) -> tuple[torch.Tensor, torch.Tensor]:
        """mu, relative to the rows' centre, and log tau."""
        return self.mu, self.numbers[self.kernels.LOG_TAU.value]

    def step(self) -> None:
        """One step of Adam; nothing after the last one, or once no row is lit."""
        rows = self.rows
        programs = -(-rows.n // ROWS)
        self.kernels.update_lit_rows[(programs,)](
            rows.X,
            self.losses,
            rows.centre,
            self.mu,
            self.keys,
            self.sides,
            self.sums,
            self.numbers,
            self.constants,
            rows.n,
            rows.d,
            ROWS=ROWS,
            TILE=max(1, min(16, TILE_VALUES // self.columns)),
            D=self.columns,
            num_warps=4,
        )
        self.kernels.move_light[(1,)](
            self.sums,
            self.mu,
            self.last_mu,
            self.first,
            self.second,
            self.schedule,
            self.numbers,
            self.constants,
            rows.d,
            D=self.columns,
            num_warps=8,
        )
