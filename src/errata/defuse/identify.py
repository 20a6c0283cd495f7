"""Defuse's identification: codes of images, with a little noise, whose decoded image gets another class.

Every image has its own random numbers, from the seed and its row: the result depends neither on batches nor on the
device, beyond images that lie on a decision boundary to the last bit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from ..core import Array, InputError, Progress, silent
from ..tensors import Prepare, device_of, evaluating, on_device, to_pixels, validate_images
from ..train import predicted_classes
from .regions import Mistakes
from .vae import Vae

AT_ONCE = 1 << 12  # decoded images at a time,
AT_ONCE_GPU = 1 << 13  # and on a GPU


@dataclass(frozen=True)
class Noise:
    """The noise that is added to every dimension of a code: scale * (Beta(a, b) - its mean)."""

    a: float = 50.0
    b: float = 50.0
    scale: float = 2.0
    # False keeps the mean, as published: one half in every dimension, so that most of the noise is the same shift for
    # every image.
    centred: bool = True

    def __post_init__(self) -> None:
        if not (self.a > 0 and self.b > 0 and self.scale > 0):
            raise InputError(f"`a`, `b` and `scale` of the noise must be above 0; got {self.a}, {self.b}, {self.scale}")

    @property
    def mean(self) -> float:
        """Of every dimension."""
        if self.centred:
            return 0.0
        return self.scale * self.a / (self.a + self.b)

    @property
    def sd(self) -> float:
        """Standard deviation of every dimension."""
        total = self.a + self.b
        return float(self.scale * np.sqrt(self.a * self.b / (total**2 * (total + 1))))

    def draw(self, rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
        """Float32 noise of a shape."""
        centre = self.a / (self.a + self.b) if self.centred else 0.0
        return np.asarray(self.scale * (rng.beta(self.a, self.b, shape) - centre), np.float32)


@dataclass(frozen=True, eq=False)
class Classifier:
    """A network, and how pixels in [0, 1] become what it takes: normalised as it was trained."""

    model: nn.Module
    prepare: Prepare | None = None

    def logits(self, pixels: torch.Tensor) -> torch.Tensor:
        """(b, c, h, w) in [0, 1] -> (b, k), or (b, 1) of two classes."""
        if self.prepare is not None:
            pixels = self.prepare(pixels)
        logits: torch.Tensor = self.model(pixels)
        return logits

    def predict(self, pixels: torch.Tensor) -> torch.Tensor:
        """(b, c, h, w) in [0, 1] -> (b,) classes."""
        return predicted_classes(self.logits(pixels))


def predict_classes(
    classifier: Classifier, images: Array, *, device: torch.device | str | None = None, batch: int = 1024
) -> Array:
    """(n,) the classes that a classifier assigns to images."""
    images = validate_images(images)
    parts = [np.empty(0, np.int64)]
    with on_device(classifier.model, device) as where, evaluating(classifier.model):
        for start in range(0, len(images), batch):
            part = torch.from_numpy(np.ascontiguousarray(images[start : start + batch])).to(where)
            parts.append(classifier.predict(to_pixels(part)).cpu().numpy())
    return np.concatenate(parts)


def identify(
    vae: Vae,
    classifier: Classifier,
    images: Array,
    labels: Array,
    *,
    noise: Noise | None = None,
    q: int = 500,
    cap: int = 100,
    most: int = 50_000,
    device: torch.device | str | None = None,
    seed: int = 0,
    progress: Progress = silent,
    at_once: int | None = None,
) -> Mistakes:
    """Codes of images with noise whose decoded image the classifier assigns to another class than the image's label.

    noise: Default: `Noise()`. q: codes that are tried for each image. cap: mistakes that are kept of each image, the
    nearest first. most: mistakes that are kept in all, at random. at_once: decoded images at a time on the device.
    """
    images = validate_images(images)
    labels = np.asarray(labels)
    if len(images) != len(labels):
        raise InputError(f"`labels` has {len(labels)} rows and `images` {len(images)}; give one label per image")
    if not len(images):
        raise InputError("`images` is empty; give at least one image to search around")
    if min(q, cap, most) < 1:
        raise InputError(f"`q`, `cap` and `most` must be at least 1; got {q}, {cap}, {most}")
    where = device_of(classifier.model) if device is None else device  # decoded images go from one to the other
    with on_device(vae, where), on_device(classifier.model, device), evaluating(vae), evaluating(classifier.model):
        search = _MistakeSearch(vae, classifier, noise or Noise(), q, cap, seed, at_once)
        sample = _RandomSample(most)
        for rows, columns in search.over(images, labels):
            sample.add(columns)
            progress("identify mistakes", rows.stop / len(images))
    codes, source_rows, predictions, distances, _ = sample.columns()
    return Mistakes(
        codes=codes,
        rows=source_rows,
        labels=labels[source_rows].astype(np.int64),
        predictions=predictions.astype(np.int64),
        distances=distances,
        facts={"pictures": len(images), "tried": len(images) * q, "found": search.count, "kept": len(codes)},
    )


@dataclass(eq=False)
class _MistakeSearch:
    vae: Vae
    classifier: Classifier
    noise: Noise
    q: int
    cap: int
    seed: int
    at_once: int | None
    count: int = 0  # mistakes among all codes that were tried

    def over(self, images: Array, labels: Array) -> Iterator[tuple[range, tuple[Array, ...]]]:
        """Rows of images, a few at a time, with the columns of `_mistakes_of` of them."""
        where = next(self.vae.parameters()).device
        default = AT_ONCE_GPU if where.type == "cuda" else AT_ONCE
        limit = self.at_once or default
        size = max(1, limit // self.q)
        parts = [range(start, min(start + size, len(images))) for start in range(0, len(images), size)]
        latent = self.vae.architecture.latent
        for rows, (noise, distances, keys) in zip(parts, self._drawn_ahead(parts, latent), strict=True):
            batch = torch.from_numpy(np.ascontiguousarray(images[rows.start : rows.stop])).to(where)
            mean = self.vae.encode(to_pixels(batch))[0]
            codes = (mean[:, None] + torch.from_numpy(noise).to(where)).flatten(0, 1)
            classes, limit = self._classes_of(codes, limit)
            predictions = classes.cpu().numpy().reshape(len(rows), self.q)
            wrong = predictions != labels[rows.start : rows.stop, None]
            yield rows, self._mistakes_of(rows, codes, wrong, (predictions, distances, keys))

    def _drawn_ahead(self, parts: list[range], latent: int) -> Iterator[tuple[Array, ...]]:
        """What `_draw` gives of each part, in order, drawn while the part before it is decoded. One thread does so:
        sixteen took longer, since they wait for each other."""
        with ThreadPoolExecutor(1) as pool:
            waiting: deque[Future[tuple[Array, ...]]] = deque()
            for rows in parts:
                waiting.append(pool.submit(self._draw, rows, latent))
                if len(waiting) > 2:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()

    def _draw(self, rows: range, latent: int) -> tuple[Array, Array, Array]:
        """(b, q, latent) noise, its lengths (b, q), and (b, q) random keys; each row from its own generator."""
        rngs = [np.random.default_rng([self.seed, row]) for row in rows]
        noise = np.stack([self.noise.draw(rng, (self.q, latent)) for rng in rngs])
        keys = np.stack([rng.random(self.q) for rng in rngs])
        return noise, np.linalg.norm(noise, axis=2), keys

    def _classes_of(self, codes: torch.Tensor, limit: int) -> tuple[torch.Tensor, int]:
        """(m,) classes of codes, and how many fit at once: half as many after the device's memory was too small."""
        try:
            parts = torch.split(codes, limit)
            return torch.cat([self.classifier.predict(self.vae.decode(part)) for part in parts]), limit
        except torch.cuda.OutOfMemoryError:
            if limit == 1:
                raise
        return self._classes_of(codes, limit // 2)

    def _mistakes_of(
        self, rows: range, codes: torch.Tensor, wrong: Array, columns: tuple[Array, Array, Array]
    ) -> tuple[Array, ...]:
        """Codes, rows, predictions, distances and keys of the nearest mistakes of each row."""
        predictions, distances, keys = columns
        self.count += int(wrong.sum())
        order = np.where(wrong, distances, np.inf).argsort(axis=1, kind="stable")[:, : self.cap]  # nearest first
        row = np.arange(len(rows))[:, None].repeat(order.shape[1], axis=1)
        chosen = wrong[row, order]
        i = row[chosen]
        j = order[chosen]
        flat = torch.from_numpy(i * self.q + j).to(codes.device)
        return codes[flat].float().cpu().numpy(), i + rows.start, predictions[i, j], distances[i, j], keys[i, j]


class _RandomSample:
    """At most `most` rows of columns, at random: those with the smallest keys, which are the last column. Memory does
    not grow with what is added."""

    def __init__(self, most: int):
        self._most = most
        self._parts: list[tuple[Array, ...]] = []

    def add(self, columns: tuple[Array, ...]) -> None:
        """Add rows, given as columns of one length."""
        self._parts.append(columns)
        if sum(len(part[0]) for part in self._parts) > 2 * self._most:
            self._parts = [self.columns()]

    def columns(self) -> tuple[Array, ...]:
        """The columns of the sample, rows in the order in which they were added."""
        joined = tuple(np.concatenate(arrays) for arrays in zip(*self._parts, strict=True))
        chosen = np.sort(np.argsort(joined[-1], kind="stable")[: self._most])
        return tuple(array[chosen] for array in joined)
