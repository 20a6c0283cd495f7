"""One GPU beside this process: methods with a form for it run there, everything else on this process's threads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..core import InputError
from ..core.errors import require
from ..core.scratch import DEFAULT_MEMORY
from .local import Local

if TYPE_CHECKING:
    import torch


class Cuda(Local):
    """The GPU that torch has chosen, `CUDA_VISIBLE_DEVICES` considered.

    Parameters
    ----------
    memory : int
        Bytes that arrays with a value for every row may take on this side of the GPU.
    threads : int, optional
        Of this process. Default: one a core.
    """

    name = "cuda"

    def __init__(self, memory: int = DEFAULT_MEMORY, threads: int | None = None):
        super().__init__(memory, threads)
        cuda = require("torch", "torch").cuda
        if not cuda.is_available():
            raise InputError("the engine `cuda` needs a GPU, and torch finds none here; use the engine `local`")
        self.device: torch.device = require("torch", "torch").device("cuda", cuda.current_device())
