"""Labelled images that a network is trained on or measured by, as pixels in [0, 1]: from arrays, or from a loader."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import nn

from ..core import InputError
from ..tensors import Prepare, to_pixels, unwrap
from .checks import Images, as_classes, as_tensor, check_classes, check_labelled
from .loop import normalise_pixels, resident
from .resnet import ResNet18
from .small import SmallCNN

Loader = Iterable[Any]  # of batches (images, classes): bytes, or floats in [0, 1], with channels second
PixelBatch = tuple[torch.Tensor, torch.Tensor]  # (b, c, h, w) in [0, 1], and (b,) classes


def prepare_of(model: nn.Module, prepare: Prepare | None) -> Prepare:
    """The given one, or that of the networks of this package; an error for others, which may normalise in any way."""
    if prepare is not None and not callable(prepare):
        raise InputError(f"`prepare` must be a function of pixels in [0, 1]; got {prepare!r}")
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
    return ArrayRows(*check_labelled(images, labels), batch)


class ArrayRows:
    """Images as bytes (n, h, w, c), which stay so until a batch is used, and classes (n,)."""

    def __init__(self, images: Images, labels: torch.Tensor, batch: int):
        self.images = images
        self.labels = labels
        self.batch = batch

    def __len__(self) -> int:
        return len(self.images)

    @property
    def steps(self) -> int:
        """Batches of an epoch."""
        return math.ceil(len(self) / self.batch)

    def first(self, where: torch.device) -> torch.Tensor:
        """Two images."""
        return to_pixels(as_tensor(self.images[:2]).to(where))

    def check_classes(self, logits: int) -> None:
        """An error unless every label has one of so many logits."""
        check_classes(logits, self.labels)

    def on(self, where: torch.device) -> ArrayRows:
        """The same rows on a device, where they fit."""
        return ArrayRows(resident(self.images, where), self.labels.to(where), self.batch)

    def shuffled(self, where: torch.device, generator: torch.Generator) -> Iterator[PixelBatch]:
        """Batches of nearly one size: a last one of a single row has no variance to normalise by."""
        images = as_tensor(self.images)
        for rows in torch.randperm(len(self), generator=generator).tensor_split(self.steps):
            part = images[rows.to(images.device)].to(where, non_blocking=True)
            yield to_pixels(part), self.labels[rows.to(self.labels.device)].to(where).long()

    def in_order(self, where: torch.device) -> Iterator[PixelBatch]:
        """All rows, a batch at a time."""
        for start in range(0, len(self), self.batch):
            part = as_tensor(self.images[start : start + self.batch]).to(where)
            yield to_pixels(part), self.labels[start : start + self.batch].to(where).long()


class LoaderRows:
    """The batches of a loader, in its order and of its size; it shuffles and distorts as it was made to."""

    def __init__(self, loader: Any):
        if not hasattr(loader, "__iter__") or not _has_length(loader):
            raise InputError(
                "give `labels` with arrays, or a loader that knows its number of batches; "
                f"got a {type(loader).__name__} without a length; "
                "a DataLoader over an IterableDataset has one where the dataset has `__len__`"
            )
        self.loader = loader
        self._logits: int | None = None

    @property
    def steps(self) -> int:
        """Batches of an epoch."""
        return len(self.loader)

    def first(self, where: torch.device) -> torch.Tensor:
        """Two images of the first batch."""
        for pixels, _ in self.in_order(where):
            return pixels[:2]
        raise InputError("the loader is empty; give at least one batch")

    def check_classes(self, logits: int) -> None:
        """An error unless every label has one of so many logits, batch by batch as the loader gives them."""
        self._logits = logits

    def on(self, where: torch.device) -> LoaderRows:
        """A loader brings its rows itself."""
        return self

    def shuffled(self, where: torch.device, generator: torch.Generator) -> Iterator[PixelBatch]:
        """As the loader gives them; a last batch of one row, which has no variance to normalise by, is put to the one
        before."""
        waiting: PixelBatch | None = None
        for number, batch in enumerate(self.in_order(where)):
            if len(batch[1]) > 1:
                if waiting is not None:
                    yield waiting
                waiting = batch
            elif waiting is not None and number == self.steps - 1:
                waiting = (torch.cat([waiting[0], batch[0]]), torch.cat([waiting[1], batch[1]]))
            else:
                raise InputError(
                    f"training needs batches of 2 images; batch {number} of the loader has 1; "
                    "make it with a larger `batch_size`"
                )
        if waiting is not None:
            yield waiting

    def in_order(self, where: torch.device) -> Iterator[PixelBatch]:
        """All batches, which must be as many as the loader's length says: learning rates follow it."""
        count = 0
        for raw in self.loader:
            if count == self.steps:
                raise InputError(f"the loader gives more batches than its length, {self.steps}; correct its `__len__`")
            if not isinstance(raw, Sequence) or len(raw) < 2:
                raise InputError(f"a batch must be images and classes, in that order; got a {type(raw).__name__}")
            labels = as_classes(raw[1])
            pixels = _checked_pixels(raw[0], labels)
            if self._logits is not None:
                check_classes(self._logits, labels, f" of batch {count}")
            yield pixels.to(where), labels.to(where).long()
            count += 1
        if count < self.steps:
            raise InputError(f"the loader gives {count} batches and its length is {self.steps}; correct its `__len__`")


def _has_length(loader: Any) -> bool:
    """Whether it knows its number of batches: a DataLoader has `__len__`, which fails over some datasets."""
    try:
        len(loader)
    except TypeError:
        return False
    return True


def _checked_pixels(images: Any, labels: torch.Tensor) -> torch.Tensor:
    """(b, c, h, w) in [0, 1], the images of a loader's batch."""
    if not isinstance(images, np.ndarray | torch.Tensor):
        raise InputError(f"a batch's images must be an array or a tensor; got a {type(images).__name__}")
    pixels = as_tensor(images)
    if pixels.ndim != 4 or pixels.shape[1] not in (1, 3) or not len(pixels) or len(labels) != len(pixels):
        raise InputError(
            "a batch must be images (b, 3, h, w) or (b, 1, h, w) and classes (b,); "
            f"got {tuple(pixels.shape)} and {tuple(labels.shape)}"
        )
    if pixels.dtype == torch.uint8:
        pixels = pixels.float() / 255
    low, high = pixels.aminmax()
    if not (low >= 0 and high <= 1):
        raise InputError(
            f"a loader's images must be bytes or floats in [0, 1]; got {low:.3g} to {high:.3g}; "
            "leave normalisation out of the loader and give it as `prepare`"
        )
    return pixels.float()
