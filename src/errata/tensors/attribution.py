"""What single features of a model look at in pictures: their values, where they are, and what would raise them."""

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
from .devices import moved

Prepare = Callable[[torch.Tensor], torch.Tensor]  # (b, c, h, w) pixels in [0, 1] -> what the model takes


class Watch:
    """Keeps, with their graph, the features that a `Tap` would keep and the last feature maps on the way to them.

    `layer` as for a `Tap`. `maps`: the module whose output (b, c, h, w) is meant; left out, the last that has rows
    and columns.
    """

    def __init__(self, model: nn.Module, layer: str | None = None, maps: str | None = None):
        modules = dict(model.named_modules())
        for name in (layer, maps):
            if name is not None and name not in modules:
                raise unknown("layer", name, [other for other in modules if other])
        self._seen: torch.Tensor | None = None
        self._last: tuple[torch.Tensor, torch.Tensor | None] | None = None
        watched = modules.values() if maps is None else [modules[maps]]
        self._handles = [module.register_forward_hook(self._keep_map) for module in watched]
        if layer is not None:
            self._handles.append(modules[layer].register_forward_hook(self._keep_output(layer)))
        else:
            heads = [module for module in modules.values() if is_head(module)]
            # Before a head runs: what a head of size one gives is a map as well, but comes after the features.
            self._handles += [head.register_forward_pre_hook(self._keep_input, with_kwargs=True) for head in heads]

    def take(self) -> tuple[torch.Tensor, torch.Tensor | None]:
        """(b, d) features and (b, c, h, w) maps of the last forward pass, which is then forgotten."""
        if self._last is None:
            raise InputError("no linear layer ran in the model's forward pass; name one that does with `layer`")
        found, self._last, self._seen = self._last, None, None
        return found

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()

    def _keep_map(self, module: nn.Module, args: Any, output: Any) -> None:
        if isinstance(output, torch.Tensor) and output.ndim == 4 and output.shape[2] * output.shape[3] > 1:
            self._seen = output

    def _keep_input(self, module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        value = args[0] if args else next(iter(kwargs.values()))
        self._last = mean_over_positions(module, value), self._seen

    def _keep_output(self, name: str) -> Any:
        def hook(module: nn.Module, args: Any, output: Any) -> None:
            self._last = rows_of(output, name), self._seen

        return hook


class Lens:
    """Looks at pictures (n, h, w, 3) or (n, h, w), bytes or floats in [0, 1], through the features of a model.

    prepare: from pixels (b, c, h, w) in [0, 1] to what the model takes; left out, it takes pixels as they are.
    The model is left as it was found.
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
        self._model, self._prepare, self._batch = unwrap(model), prepare or (lambda pixels: pixels), batch
        self._layer, self._maps, self._device = layer, maps, device

    def features(self, images: Array) -> Array:
        """(n, d)"""
        with self._open() as (see, where), torch.no_grad():
            return _joined(see(part.to(where))[0] for part in self._parts(images))

    def maps(self, images: Array) -> Array:
        """(n, c, h', w') the last feature maps."""
        with self._open() as (see, where), torch.no_grad():
            return _joined(_known(see(part.to(where))[1]) for part in self._parts(images))

    def heat(self, images: Array, unit: int) -> Array:
        """(n, h', w') how much each place of the last feature maps adds to the unit; nothing where it lowers it.

        The product of maps and the unit's gradient, summed over channels. Where a unit is the mean of its own map,
        as in the paper (appendix B), that is the map itself, over the number of places; it holds for other heads too.
        """
        with self._open() as (see, where):
            return _joined(self._heat(see, part.to(where), unit) for part in self._parts(images))

    def attack(self, images: Array, unit: int, ball: Ball) -> tuple[Array, Array, Array, Array]:
        """Pictures changed so that the unit rises (appendix C): (n, h, w, c) in [0, 1]; (n,) its value before, and
        after; (n,) how far each picture went."""
        with self._open() as (see, where):
            parts = [self._attack(see, part.to(where), unit, ball) for part in self._parts(images)]
        pictures, before, after, gone = (torch.cat(kind).float().cpu().numpy() for kind in zip(*parts, strict=True))
        return np.moveaxis(pictures, 1, -1), before, after, gone

    def _heat(self, see: _See, pixels: torch.Tensor, unit: int) -> torch.Tensor:
        values, seen = see(pixels.requires_grad_(True))
        maps = _known(seen)
        (gradient,) = torch.autograd.grad(values[:, unit].sum(), maps, allow_unused=True)
        if gradient is None:
            raise InputError("the features do not depend on the last feature maps; name others with `maps`")
        return (gradient * maps).sum(dim=1).clamp_min(0).detach()

    def _attack(self, see: _See, pixels: torch.Tensor, unit: int, ball: Ball) -> tuple[torch.Tensor, ...]:
        def value(points: torch.Tensor) -> torch.Tensor:
            return see(points)[0][:, unit]

        found = ascend(value, pixels, ball)
        with torch.no_grad():
            return found, value(pixels), value(found), distances(found, pixels)

    @contextmanager
    def _open(self) -> Iterator[tuple[_See, torch.device]]:
        """A function from pixels to features and maps, and where it runs; gradients are kept."""
        watch = Watch(self._model, self._layer, self._maps)

        def see(pixels: torch.Tensor) -> _Seen:
            self._model(self._prepare(pixels))
            values, maps = watch.take()
            if len(values) != len(pixels):
                raise InputError(f"the features have {len(values)} rows for {len(pixels)} pictures; name a `layer`")
            return values, maps

        try:
            with moved(self._model, self._device) as where, evaluating(self._model), torch.enable_grad():
                yield see, where
        finally:
            watch.remove()

    def _parts(self, images: Array) -> Iterator[torch.Tensor]:
        """(b, c, h, w) float32 in [0, 1], a batch at a time."""
        for start in range(0, len(images), self._batch):
            yield as_pixels(images[start : start + self._batch])


_Seen = tuple[torch.Tensor, torch.Tensor | None]
_See = Callable[[torch.Tensor], _Seen]


def as_pixels(images: Array) -> torch.Tensor:
    """(n, h, w, c) or (n, h, w) bytes, or floats in [0, 1] -> (n, c, h, w) float32 in [0, 1]."""
    images = np.asarray(images)
    images = images[..., None] if images.ndim == 3 else images
    if images.ndim != 4 or images.shape[-1] not in (1, 3):
        raise InputError(f"pictures must have shape (n, h, w) or (n, h, w, 3), channels last; got {images.shape}")
    if images.dtype != np.uint8 and images.dtype.kind != "f":
        raise InputError(f"pictures must be bytes, or floats in [0, 1]; got {images.dtype}")
    pixels = torch.tensor(np.moveaxis(images, -1, 1), dtype=torch.float32)
    pixels = pixels / 255 if images.dtype == np.uint8 else pixels
    if pixels.numel() and not (pixels.min() >= 0 and pixels.max() <= 1):
        raise InputError("pictures as floats must lie in [0, 1]; undo the normalisation and give it as `prepare`")
    return pixels


def _known(maps: torch.Tensor | None) -> torch.Tensor:
    if maps is None:
        raise InputError("no layer on the way to the features gives maps (b, c, h, w); name one that does with `maps`")
    return maps


def _joined(parts: Iterator[torch.Tensor]) -> Array:
    return torch.cat([part.detach().float().cpu() for part in parts]).numpy()
