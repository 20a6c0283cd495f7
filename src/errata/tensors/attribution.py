"""What single features of a model respond to in images: their values, where in the image, and what raises them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import nn

from ..core import Array, InputError
from ..core.errors import unknown
from .ascent import Ball, ascend, distances
from .capture import evaluating, is_head, mean_over_positions, rows_of, unwrap
from .devices import on_device

Prepare = Callable[[torch.Tensor], torch.Tensor]  # (b, c, h, w) pixels in [0, 1] -> what the model takes


class FeatureCapture:
    """Captures the features that a `LayerCapture` would, with their graph, and the last feature maps before them.

    layer: as for a `LayerCapture`. maps: the module whose output (b, c, h, w) is captured. Default: the last that has
    rows and columns.
    """

    def __init__(self, model: nn.Module, layer: str | None = None, maps: str | None = None):
        modules = dict(model.named_modules())
        for name in (layer, maps):
            if name is not None and name not in modules:
                raise unknown("layer", name, [other for other in modules if other])
        self._maps: torch.Tensor | None = None
        self._last: tuple[torch.Tensor, torch.Tensor | None] | None = None
        with_maps = modules.values() if maps is None else [modules[maps]]
        self._handles = [module.register_forward_hook(self._keep_map) for module in with_maps]
        if layer is not None:
            self._handles.append(modules[layer].register_forward_hook(self._keep_output(layer)))
        else:
            heads = [module for module in modules.values() if is_head(module)]
            # Before a head runs: the output of a head of size one is a map as well, but comes after the features.
            self._handles += [head.register_forward_pre_hook(self._keep_input, with_kwargs=True) for head in heads]

    def take(self) -> tuple[torch.Tensor, torch.Tensor | None]:
        """(b, d) features and (b, c, h, w) maps of the last forward pass, once."""
        if self._last is None:
            raise InputError("no linear layer ran in the model's forward pass; name one that does with `layer`")
        captured = self._last
        self._last = None
        self._maps = None
        return captured

    def remove(self) -> None:
        """Take the hooks off the model."""
        for handle in self._handles:
            handle.remove()

    def _keep_map(self, module: nn.Module, args: Any, output: Any) -> None:
        if isinstance(output, torch.Tensor) and output.ndim == 4 and output.shape[2] * output.shape[3] > 1:
            self._maps = output

    def _keep_input(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        value = args[0] if args else next(iter(kwargs.values()))
        self._last = mean_over_positions(module, value), self._maps

    def _keep_output(self, name: str) -> Any:
        def hook(module: nn.Module, args: Any, output: Any) -> None:
            self._last = rows_of(output, name), self._maps

        return hook


class Attribution:
    """Features of a model on images (n, h, w, 3) or (n, h, w), bytes or floats in [0, 1], and what they respond to.

    prepare: from pixels (b, c, h, w) in [0, 1] to what the model takes. Default: pixels as they are. layer, maps: as
    for a `FeatureCapture`. device: where the model runs. Default: where it is. batch: images at a time. The model is
    left as it was.
    """

    def __init__(
        self,
        model: nn.Module,
        *,
        prepare: Prepare | None = None,
        layer: str | None = None,
        maps: str | None = None,
        device: torch.device | str | None = None,
        batch: int = 64,
    ):
        self._model = unwrap(model)
        self._prepare = prepare
        self._layer = layer
        self._maps = maps
        self._device = device
        self._batch = batch

    def features(self, images: Array) -> Array:
        """(n, d) features."""
        with self._capturing() as (run, where), torch.no_grad():
            return _concatenate(run(part.to(where))[0] for part in self._parts(images))

    def maps(self, images: Array) -> Array:
        """(n, c, h', w') the last feature maps."""
        with self._capturing() as (run, where), torch.no_grad():
            return _concatenate(_require_maps(run(part.to(where))[1]) for part in self._parts(images))

    def heat(self, images: Array, unit: int) -> Array:
        """(n, h', w') how much each position of the last feature maps adds to a unit; 0 where it lowers it.

        The product of maps and the unit's gradient, summed over channels. Where a unit is the mean of its own map,
        as in the paper (appendix B), that is the map over its number of positions; it holds for other heads too.
        """
        with self._capturing() as (run, where):
            return _concatenate(_heat(run, part.to(where), unit) for part in self._parts(images))

    def attack(self, images: Array, unit: int, ball: Ball) -> tuple[Array, Array, Array, Array]:
        """Images changed so that a unit rises (appendix C): (n, h, w, c) in [0, 1]; (n,) its value before, and
        after; (n,) the distance of each from the original."""
        with self._capturing() as (run, where):
            parts = [_attack(run, part.to(where), unit, ball) for part in self._parts(images)]
        changed, before, after, moved = (torch.cat(column).float().cpu().numpy() for column in zip(*parts, strict=True))
        return np.moveaxis(changed, 1, -1), before, after, moved

    @contextmanager
    def _capturing(self) -> Iterator[tuple[_Run, torch.device]]:
        """A function from pixels to features and maps with their graph, and the device that it runs on."""
        capture = FeatureCapture(self._model, self._layer, self._maps)

        def run(pixels: torch.Tensor) -> _Captured:
            inputs = pixels if self._prepare is None else self._prepare(pixels)
            self._model(inputs)
            values, maps = capture.take()
            if len(values) != len(pixels):
                raise InputError(f"the features have {len(values)} rows for {len(pixels)} images; name a `layer`")
            return values, maps

        try:
            with on_device(self._model, self._device) as where, evaluating(self._model), torch.enable_grad():
                yield run, where
        finally:
            capture.remove()

    def _parts(self, images: Array) -> Iterator[torch.Tensor]:
        """(b, c, h, w) float32 in [0, 1], a batch at a time."""
        for start in range(0, len(images), self._batch):
            yield as_pixels(images[start : start + self._batch])


_Captured = tuple[torch.Tensor, torch.Tensor | None]
_Run = Callable[[torch.Tensor], _Captured]


def _heat(run: _Run, pixels: torch.Tensor, unit: int) -> torch.Tensor:
    values, captured = run(pixels.requires_grad_(True))
    maps = _require_maps(captured)
    (gradient,) = torch.autograd.grad(values[:, unit].sum(), maps, allow_unused=True)
    if gradient is None:
        raise InputError("the features do not depend on the last feature maps; name others with `maps`")
    return (gradient * maps).sum(dim=1).clamp_min(0).detach()


def _attack(run: _Run, pixels: torch.Tensor, unit: int, ball: Ball) -> tuple[torch.Tensor, ...]:
    def value(points: torch.Tensor) -> torch.Tensor:
        return run(points)[0][:, unit]

    changed = ascend(value, pixels, ball)
    with torch.no_grad():
        return changed, value(pixels), value(changed), distances(changed, pixels)


def as_pixels(images: Array) -> torch.Tensor:
    """(n, h, w, c) or (n, h, w) bytes, or floats in [0, 1] -> (n, c, h, w) float32 in [0, 1]."""
    images = np.asarray(images)
    if images.ndim == 3:
        images = images[..., None]
    if images.ndim != 4 or images.shape[-1] not in (1, 3):
        raise InputError(f"images must have shape (n, h, w) or (n, h, w, 3), channels last; got {images.shape}")
    if images.dtype != np.uint8 and images.dtype.kind != "f":
        raise InputError(f"images must be bytes, or floats in [0, 1]; got {images.dtype}")
    pixels = torch.tensor(np.moveaxis(images, -1, 1), dtype=torch.float32)
    if images.dtype == np.uint8:
        pixels = pixels / 255
    if pixels.numel() and not (pixels.min() >= 0 and pixels.max() <= 1):
        raise InputError("images as floats must lie in [0, 1]; undo the normalisation and give it as `prepare`")
    return pixels


def _require_maps(maps: torch.Tensor | None) -> torch.Tensor:
    if maps is None:
        raise InputError("no layer before the features gives maps (b, c, h, w); name one that does with `maps`")
    return maps


def _concatenate(parts: Iterator[torch.Tensor]) -> Array:
    return torch.cat([part.detach().float().cpu() for part in parts]).numpy()
