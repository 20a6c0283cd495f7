"""One GPU beside this process: sums with a form for it run there, everything else on this process's threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..core import InputError
from ..core.errors import require
from ..core.scratch import DEFAULT_MEMORY
from .contract import OnDevice, Totals
from .local import Local, LocalRows

if TYPE_CHECKING:
    import torch

    from ..tensors.rows import TensorRows


class Cuda(Local):
    """The GPU that torch has chosen, `CUDA_VISIBLE_DEVICES` considered.

    Parameters
    ----------
    memory : int
        Bytes that arrays with a value for every row may take on this side of the GPU.
    threads : int, optional
        Of this process. Default: one a core.
    device : torch.device, optional
        Another one of torch's.
    """

    name = "cuda"

    def __init__(self, memory: int = DEFAULT_MEMORY, threads: int | None = None, device: torch.device | None = None):
        super().__init__(memory, threads)
        self.device = device or _chosen_gpu()

    def hold(self, *columns: Any) -> CudaRows:
        """The rows, on the device from the first pass on that runs there."""
        return CudaRows(self, columns)


class CudaRows(LocalRows):
    """Rows of this process, and of its GPU."""

    def __init__(self, engine: Cuda, columns: tuple[Any, ...]):
        super().__init__(engine, columns)
        self._device = engine.device
        self._tensors: TensorRows | None = None

    def __exit__(self, *error: object) -> None:
        self._tensors = None

    def total(self, statistics: Callable[..., Totals], *shared: Any, on_device: OnDevice | None = None) -> Totals:
        """The sum over all rows, on the device where there is a form for it."""
        if on_device is None:
            return super().total(statistics, *shared)
        if self._tensors is None:
            from ..tensors.rows import TensorRows

            self._tensors = TensorRows(self._columns, self._device)
        return self._tensors.total(on_device(self._device, *shared))


def _chosen_gpu() -> torch.device:
    cuda = require("torch", "torch").cuda
    if not cuda.is_available():
        raise InputError("the engine `cuda` needs a GPU, and torch finds none here; use the engine `local`")
    device: torch.device = require("torch", "torch").device("cuda", cuda.current_device())
    return device
