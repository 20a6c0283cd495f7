"""Devices of models and tensors, and moving them there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from itertools import chain
from typing import Any

import torch

from ..core import InputError

# How a CPU, a GPU and its libraries say it in a RuntimeError: OutOfMemoryError is of torch's own allocator alone.
OUT_OF_MEMORY = (
    "out of memory",
    "DefaultCPUAllocator",
    "bad_alloc",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
)


def to_device(nested: Any, device: torch.device | str) -> Any:
    """The same nest of dicts, lists and tuples with its tensors on `device`; anything else stays as it is."""
    if isinstance(nested, torch.Tensor):
        return nested.to(device)
    if isinstance(nested, Mapping):
        return {key: to_device(value, device) for key, value in nested.items()}
    if isinstance(nested, tuple) and hasattr(nested, "_fields"):  # a namedtuple takes its values one by one
        return type(nested)(*(to_device(value, device) for value in nested))
    if isinstance(nested, list | tuple):
        return type(nested)(to_device(value, device) for value in nested)
    return nested


def device_of(model: torch.nn.Module) -> torch.device:
    """The device of the first parameter or buffer, which is where inputs must go; the CPU where there is neither."""
    first = next(chain(model.parameters(), model.buffers()), None)
    return torch.device("cpu") if first is None else first.device


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that the memory of a GPU or of a CPU was too small."""
    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error) for words in OUT_OF_MEMORY)


@contextmanager
def on_device(model: torch.nn.Module, device: torch.device | str | None) -> Iterator[torch.device]:
    """Moves a model to a device, yields the device, and moves it back. None: stays where it is."""
    home = device_of(model)
    if device is None:
        yield home
        return
    target = _available_device(device)
    homes = {tensor.device for tensor in chain(model.parameters(), model.buffers())}
    if len(homes) > 1:
        raise InputError(f"the model is spread over {len(homes)} devices and cannot be moved; leave `device` out")
    try:
        model.to(target)
        yield target
    finally:
        model.to(home)


def _available_device(device: torch.device | str) -> torch.device:
    try:
        known = torch.device(device)
    except RuntimeError as error:
        raise InputError(f"`device` must be one that torch knows, as 'cpu' or 'cuda:0'; got {device!r}") from error
    if known.type == "cuda" and not torch.cuda.is_available():
        raise InputError(f"`device` is {device!r}, but torch finds no GPU here; use 'cpu'")
    return known
