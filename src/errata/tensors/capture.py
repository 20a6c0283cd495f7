"""Activations of a model while it runs; the model is left as it was."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from ..core import InputError
from ..core.errors import unknown

_CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)


def unwrap(model: nn.Module) -> nn.Module:
    """The user's own module: a compiled model and parallel replicas ignore hooks that are set later."""
    while True:
        if isinstance(getattr(model, "_orig_mod", None), nn.Module):
            model = model._orig_mod  # type: ignore[assignment]  # what torch.compile wraps
        elif isinstance(model, nn.DataParallel | nn.parallel.DistributedDataParallel):
            model = model.module
        else:
            return model


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode without gradients; every mode and `requires_grad` flag is restored, also after an error.

    no_grad rather than inference_mode: a tensor that a model caches while it runs (positions, masks)
    must stay usable when the user trains on.
    """
    modes = [(module, module.training) for module in model.modules()]
    flags = [(parameter, parameter.requires_grad) for parameter in model.parameters()]
    try:
        model.eval()
        with torch.no_grad():
            yield
    finally:
        for module, mode in modes:
            module.training = mode
        for parameter, flag in flags:
            parameter.requires_grad_(flag)


def is_head(module: nn.Module) -> bool:
    """Whether a module can be the linear head of a network: linear, or a convolution of size one."""
    return isinstance(module, nn.Linear) or (
        isinstance(module, _CONVOLUTIONS) and all(size == 1 for size in module.kernel_size)
    )


class LayerCapture:
    """Captures one layer's activations in the last forward pass, as (b, d) float32 on the CPU.

    With a name, the layer's output, flattened. Without one, the input of the last head that ran
    (`is_head`), averaged over positions where the head runs at many (pixels, tokens).
    """

    def __init__(self, model: nn.Module, layer: str | None = None):
        self.layer = layer  # without a name: None until the first batch shows which head runs last
        self._last: tuple[str, torch.Tensor] | None = None
        modules = {name: module for name, module in model.named_modules() if name}
        if layer is not None and layer not in modules:
            raise unknown("layer", layer, modules)
        if layer is None:
            # A model that is itself one linear layer has no other name than "".
            hooked = {name: module for name, module in model.named_modules() if is_head(module)}
            make_hook = self._keep_input
        else:
            hooked = {layer: modules[layer]}
            make_hook = self._keep_output
        self._handles = {
            name: module.register_forward_hook(make_hook(name), with_kwargs=True) for name, module in hooked.items()
        }

    def take(self, rows: int) -> torch.Tensor:
        """(b, d) float32 of the last forward pass, once; rows: the size of the batch."""
        if self._last is None:
            subject = "no linear layer" if self.layer is None else f"the layer `{self.layer}` never"
            raise InputError(f"{subject} ran in the model's forward pass; name one that does with `layer`")
        name, activations = self._last
        self._last = None
        self._keep_only(name)
        if len(activations) != rows:
            raise InputError(
                f"the layer `{name}` has {len(activations)} rows for a batch of {rows}; name one with a row per "
                "example with `layer`"
            )
        return activations.to(device="cpu", dtype=torch.float32)

    def remove(self) -> None:
        """Take the hooks off the model."""
        for handle in self._handles.values():
            handle.remove()

    def _keep_only(self, name: str) -> None:
        """Remove the hooks of all other layers."""
        self.layer = name
        for other in set(self._handles) - {name}:
            self._handles.pop(other).remove()

    def _keep_input(self, name: str) -> Any:
        def hook(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
            value = args[0] if args else next(iter(kwargs.values()))
            self._last = name, mean_over_positions(module, value.detach())

        return hook

    def _keep_output(self, name: str) -> Any:
        def hook(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
            self._last = name, rows_of(output, name).detach()

        return hook


@contextmanager
def capture_layer(model: nn.Module, layer: str | None = None) -> Iterator[LayerCapture]:
    """A `LayerCapture` whose hooks are gone afterwards, also after an error."""
    tap = LayerCapture(model, layer)
    try:
        yield tap
    finally:
        tap.remove()


def mean_over_positions(module: nn.Module, value: torch.Tensor) -> torch.Tensor:
    """(b, d) of a head's input: channels are last for a linear layer and second for a convolution."""
    if isinstance(module, nn.Linear):
        if value.ndim > 2:
            return value.reshape(len(value), -1, value.shape[-1]).mean(dim=1)
        return value.clone()
    return value.flatten(2).mean(dim=2)


def rows_of(output: Any, name: str) -> torch.Tensor:
    """(b, d) of a layer's output, flattened; a copy, since the next layer may write over it in place."""
    value = _first_tensor(output)
    if value is None or value.ndim == 0:
        raise InputError(f"the layer `{name}` gives no tensor of rows but {type(output).__name__}; name another")
    return value.reshape(len(value), -1).clone()


def _first_tensor(nested: Any) -> torch.Tensor | None:
    if isinstance(nested, torch.Tensor):
        return nested
    if isinstance(nested, Mapping):
        nested = list(nested.values())
    if isinstance(nested, list | tuple):
        tensors = (_first_tensor(item) for item in nested)
        return next((tensor for tensor in tensors if tensor is not None), None)
    return None
