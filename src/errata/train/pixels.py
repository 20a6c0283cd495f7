"""Labelled images that a network is trained on or measured by, as pixels in [0, 1]: from arrays, or from a loader."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import torch
from torch import nn

from ..core import InputError
from ..tensors import Prepare, to_pixels, unwrap
from .loop import Images, as_bytes, as_tensor, normalise_pixels, resident
from .resnet import ResNet18
from .small import SmallCNN

Loader = Iterable[Any]  # of batches (images, classes): bytes, or floats in [0, 1], with channels second
PixelBatch = tuple[torch.Tensor, torch.Tensor]  # (b, c, h, w) in [0, 1], and (b,) classes


def prepare_of(model: nn.Module, prepare: Prepare | None) -> Prepare:
    """The given one, or that of the networks of this package; an error for others, which may normalise in any way."""
    if prepare is not None:
        return prepare
    if isinstance(unwrap(model), ResNet18 | SmallCNN):
        return normalise_pixels
    raise InputError(
        f"`{type(unwrap(model)).__name__}` is no network of errata.train: say with `prepare` how it takes pixels in "
        "[0, 1]; `lambda pixels: pixels` where it normalises them itself, `errata.train.normalise_pixels` where "
        "`errata.train.fit` trained it"
    )


def open_rows(images: Images | Loader, labels: Images | None, batch: int) -> ArrayRows | LoaderRows:
    """Rows of arrays, or of a loader where there are no labels."""
    if labels is None:
        return LoaderRows(images)
    return ArrayRows(as_bytes(images), labels, batch)


class ArrayRows:
    """Images as bytes (n, h, w, c), which stay so until a batch is used, and classes (n,)."""

    def __init__(self, images: Images, labels: Images, batch: int):
        if len(images) != len(labels):
            raise InputError(f"`labels` has {len(labels)} rows and `images` {len(images)}; give one label per image")
        self.images = images
        self.labels = labels
        self.batch = batch

    def __len__(self) -> int:
        return len(self.images)

    @property
    def steps(self) -> int:
        """Batches of an epoch."""
        return math.ceil(len(self) / self.batch)

    def first(self, where: torch.device) -> PixelBatch:
        """Two images, and all labels."""
        return to_pixels(as_tensor(self.images[:2]).to(where)), as_tensor(self.labels).to(where)

    def on(self, where: torch.device) -> ArrayRows:
        """The same rows on a device, where they fit."""
        return ArrayRows(resident(self.images, where), as_tensor(self.labels).to(where), self.batch)

    def shuffled(self, where: torch.device, generator: torch.Generator) -> Iterator[PixelBatch]:
        """Batches of nearly one size: a last one of a single row has no variance to normalise by."""
        images = as_tensor(self.images)
        labels = as_tensor(self.labels)
        for rows in torch.randperm(len(self), generator=generator).tensor_split(self.steps):
            part = images[rows.to(images.device)].to(where, non_blocking=True)
            yield to_pixels(part), labels[rows.to(labels.device)].to(where).long()

    def in_order(self, where: torch.device) -> Iterator[PixelBatch]:
        """All rows, a batch at a time."""
        for start in range(0, len(self), self.batch):
            part = as_tensor(self.images[start : start + self.batch]).to(where)
            yield to_pixels(part), as_tensor(self.labels[start : start + self.batch]).to(where).long()


class LoaderRows:
    """The batches of a loader, in its order and of its size; it shuffles and distorts as it was made to."""

    def __init__(self, loader: Any):
        if not hasattr(loader, "__len__") or not hasattr(loader, "__iter__"):
            raise InputError(
                "give `labels` with arrays, or a loader that knows its number of batches; "
                f"got a {type(loader).__name__}"
            )
        self.loader = loader

    @property
    def steps(self) -> int:
        """Batches of an epoch."""
        return len(self.loader)

    def first(self, where: torch.device) -> PixelBatch:
        """The first batch."""
        for pixels, targets in self.in_order(where):
            return pixels[:2], targets
        raise InputError("the loader is empty; give at least one batch")

    def on(self, where: torch.device) -> LoaderRows:
        """A loader brings its rows itself."""
        return self

    def shuffled(self, where: torch.device, generator: torch.Generator) -> Iterator[PixelBatch]:
        """As the loader gives them."""
        return self.in_order(where)

    def in_order(self, where: torch.device) -> Iterator[PixelBatch]:
        """All batches."""
        for raw in self.loader:
            if not isinstance(raw, Sequence) or len(raw) < 2:
                raise InputError(f"a batch must be images and classes, in that order; got a {type(raw).__name__}")
            yield _checked(as_tensor(raw[0]), as_tensor(raw[1]), where)


def _checked(images: torch.Tensor, labels: torch.Tensor, where: torch.device) -> PixelBatch:
    """Pixels in [0, 1] of a loader's batch."""
    if images.ndim != 4 or images.shape[1] not in (1, 3) or labels.shape != (len(images),):
        raise InputError(
            "a batch must be images (b, 3, h, w) or (b, 1, h, w) and classes (b,); "
            f"got {tuple(images.shape)} and {tuple(labels.shape)}"
        )
    if images.dtype == torch.uint8:
        images = images.float() / 255
    low, high = images.aminmax()
    if not (low >= 0 and high <= 1):
        raise InputError(
            f"a loader's images must be bytes or floats in [0, 1]; got {low:.3g} to {high:.3g}; "
            "leave normalisation out of the loader and give it as `prepare`"
        )
    return images.float().to(where), labels.to(where).long()
