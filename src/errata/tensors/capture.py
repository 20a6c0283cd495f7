"""Looking into a model while it runs, and leaving it as it was found."""

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
    """The user's own module: hooks set later are not seen by a compiled model nor by parallel replicas."""
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


class Tap:
    """Keeps what one layer saw during the last forward pass, as (b, d) float32 on the CPU.

    With a name, the layer's output, flattened. Without one, the input of the last head that ran
    (`is_head`), averaged over positions where the head runs at many (pixels, tokens).
    """

    def __init__(self, model: nn.Module, layer: str | None = None):
        self.layer = layer  # without a name: None until the first batch has shown which head runs last
        self._last: tuple[str, torch.Tensor] | None = None
        modules = {name: module for name, module in model.named_modules() if name}
        if layer is not None and layer not in modules:
            raise unknown("layer", layer, modules)
        if layer is None:
            # A model that is itself one linear layer has no other name than "".
            tapped = {name: module for name, module in model.named_modules() if is_head(module)}
        else:
            tapped = {layer: modules[layer]}
        keep = self._keep_input if layer is None else self._keep_output
        self._handles = {
            name: module.register_forward_hook(keep(name), with_kwargs=True) for name, module in tapped.items()
        }

    def take(self, rows: int) -> torch.Tensor:
        """(b, d) float32 of the last forward pass, which is then forgotten; `rows` is the size of the batch."""
        if self._last is None:
            who = "no linear layer" if self.layer is None else f"the layer `{self.layer}` never"
            raise InputError(f"{who} ran in the model's forward pass; name one that does with `layer`")
        (name, seen), self._last = self._last, None
        self._settle(name)
        if len(seen) != rows:
            raise InputError(
                f"the layer `{name}` has {len(seen)} rows for a batch of {rows}; name one with a row an example "
                "with `layer`"
            )
        return seen.to(device="cpu", dtype=torch.float32)

    def remove(self) -> None:
        for handle in self._handles.values():
            handle.remove()

    def _settle(self, name: str) -> None:
        """Stop listening to all but the layer that was found."""
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
def tapped(model: nn.Module, layer: str | None = None) -> Iterator[Tap]:
    """A `Tap` whose hooks are gone afterwards, also after an error."""
    tap = Tap(model, layer)
    try:
        yield tap
    finally:
        tap.remove()


def mean_over_positions(module: nn.Module, value: torch.Tensor) -> torch.Tensor:
    """(b, d) of a head's input: channels are last for a linear layer and second for a convolution."""
    if isinstance(module, nn.Linear):
        return value.reshape(len(value), -1, value.shape[-1]).mean(dim=1) if value.ndim > 2 else value.clone()
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
        return next((found for item in nested if (found := _first_tensor(item)) is not None), None)
    return None
