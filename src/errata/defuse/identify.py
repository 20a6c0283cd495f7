"""Defuse's identification: codes of pictures, disturbed a little, whose drawing the classifier calls something else.

Every picture has its own chance, drawn from the seed and its place: what is found depends neither on batches nor on
the device, beyond pictures that lie on a boundary to the last bit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from ..core import Array, InputError
from ..tensors import Prepare, checked_pictures, device_of, evaluating, moved, pixels_of
from ..train import said
from .regions import Mistakes
from .vae import Vae

AT_ONCE = {"cuda": 1 << 13, "cpu": 1 << 12}  # drawings
Progress = Callable[[float], None]


@dataclass(frozen=True)
class Noise:
    """What is added to every dimension of a code: scale * (Beta(a, b) - its mean).

    centred: False leaves the mean in, as published: one half in every dimension, so that nearly all of it is the same
    shift for every picture.
    """

    a: float = 50.0
    b: float = 50.0
    scale: float = 2.0
    centred: bool = True

    def __post_init__(self) -> None:
        if not (self.a > 0 and self.b > 0 and self.scale > 0):
            raise InputError(f"`a`, `b` and `scale` of the noise must be above 0; got {self.a}, {self.b}, {self.scale}")

    @property
    def mean(self) -> float:
        return 0.0 if self.centred else self.scale * self.a / (self.a + self.b)

    @property
    def sd(self) -> float:
        whole = self.a + self.b
        return float(self.scale * np.sqrt(self.a * self.b / (whole**2 * (whole + 1))))

    def draw(self, chance: np.random.Generator, shape: tuple[int, ...]) -> Array:
        drawn = chance.beta(self.a, self.b, shape)
        return np.asarray(self.scale * (drawn - (self.a / (self.a + self.b) if self.centred else 0.0)), np.float32)


@dataclass(frozen=True, eq=False)
class Classifier:
    """A network, and how pixels in [0, 1] become what it takes: normalised as it was trained."""

    model: nn.Module
    prepare: Prepare | None = None

    def logits(self, pixels: torch.Tensor) -> torch.Tensor:
        """(b, c, h, w) in [0, 1] -> (b, k), or (b, 1) of two classes."""
        logits: torch.Tensor = self.model(pixels if self.prepare is None else self.prepare(pixels))
        return logits

    def predict(self, pixels: torch.Tensor) -> torch.Tensor:
        """(b, c, h, w) in [0, 1] -> (b,) classes."""
        return said(self.logits(pixels))


def predicted(
    classifier: Classifier, images: Array, *, device: torch.device | str | None = None, batch: int = 1024
) -> Array:
    """(n,) classes that a classifier gives to pictures."""
    images, parts = checked_pictures(images), []
    with moved(classifier.model, device) as where, evaluating(classifier.model):
        for start in range(0, len(images), batch):
            part = torch.from_numpy(np.ascontiguousarray(images[start : start + batch])).to(where)
            parts.append(classifier.predict(pixels_of(part)).cpu().numpy())
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


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
    progress: Progress | None = None,
    at_once: int | None = None,
) -> Mistakes:
    """Of each picture `q` disturbed codes; of those that are called something else the `cap` nearest, of all `most`.

    at_once: drawings on the device at a time.
    """
    images, labels = checked_pictures(images), np.asarray(labels)
    if len(images) != len(labels):
        raise InputError(f"`labels` has {len(labels)} rows and `images` {len(images)}; give one label a picture")
    if not len(images):
        raise InputError("`images` has no picture to search around; give at least one")
    if min(q, cap, most) < 1:
        raise InputError(f"`q`, `cap` and `most` must be at least 1; got {q}, {cap}, {most}")
    where = device_of(classifier.model) if device is None else device  # drawings go from one to the other
    with moved(vae, where), moved(classifier.model, device), evaluating(vae), evaluating(classifier.model):
        search = _Search(vae, classifier, noise or Noise(), q, cap, seed, at_once)
        kept = _Kept(most)
        for rows, parts in search.over(images, labels):
            kept.add(*parts)
            if progress is not None:
                progress(rows.stop / len(images))
    return kept.mistakes(labels, {"pictures": len(images), "tried": len(images) * q, "found": search.found})


@dataclass(eq=False)
class _Search:
    vae: Vae
    classifier: Classifier
    noise: Noise
    q: int
    cap: int
    seed: int
    at_once: int | None
    found: int = 0

    def over(self, images: Array, labels: Array) -> Iterator[tuple[range, tuple[Array, ...]]]:
        where = next(self.vae.parameters()).device
        limit = self.at_once or AT_ONCE["cuda" if where.type == "cuda" else "cpu"]
        size = max(1, limit // self.q)
        for start in range(0, len(images), size):
            rows = range(start, min(start + size, len(images)))
            batch = torch.from_numpy(np.ascontiguousarray(images[rows.start : rows.stop])).to(where)
            mean = self.vae.encode(pixels_of(batch))[0]
            chances = [np.random.default_rng([self.seed, row]) for row in rows]
            eps = np.stack([self.noise.draw(chance, (self.q, mean.shape[1])) for chance in chances])
            codes = (mean[:, None] + torch.from_numpy(eps).to(where)).flatten(0, 1)
            drawn_as, limit = self._called(codes, limit)
            keys = np.stack([chance.random(self.q) for chance in chances])
            yield rows, self._wrong(rows, labels, (codes, drawn_as, eps, keys))

    def _called(self, codes: torch.Tensor, limit: int) -> tuple[torch.Tensor, int]:
        """(m,) classes of codes, and how many fit at once: half as many where the device's memory did not do."""
        try:
            parts = torch.split(codes, limit)
            return torch.cat([self.classifier.predict(self.vae.decode(part)) for part in parts]), limit
        except torch.cuda.OutOfMemoryError:
            if limit == 1:
                raise
        return self._called(codes, limit // 2)

    def _wrong(
        self, rows: range, labels: Array, tried: tuple[torch.Tensor, torch.Tensor, Array, Array]
    ) -> tuple[Array, ...]:
        codes, drawn_as, eps, keys = tried
        called = drawn_as.cpu().numpy().reshape(len(rows), self.q)
        distance = np.linalg.norm(eps, axis=2)
        wrong = called != labels[rows.start : rows.stop, None]
        self.found += int(wrong.sum())
        order = np.where(wrong, distance, np.inf).argsort(axis=1, kind="stable")[:, : self.cap]  # nearest first
        which = np.arange(len(rows))[:, None].repeat(order.shape[1], axis=1)
        chosen = wrong[which, order]
        i, j = which[chosen], order[chosen]
        flat = torch.from_numpy(i * self.q + j).to(codes.device)
        return codes[flat].float().cpu().numpy(), i + rows.start, called[i, j], distance[i, j], keys[i, j]


class _Kept:
    """Of all that was found at most `most`, at random: those with the smallest keys. Memory does not grow with rows."""

    def __init__(self, most: int):
        self.most, self.parts = most, []  # type: int, list[tuple[Array, ...]]

    def add(self, *part: Array) -> None:
        self.parts.append(part)
        if sum(len(one[0]) for one in self.parts) > 2 * self.most:
            self.parts = [self._smallest()]

    def _smallest(self) -> tuple[Array, ...]:
        joined = tuple(np.concatenate(arrays) for arrays in zip(*self.parts, strict=True))
        chosen = np.sort(np.argsort(joined[-1], kind="stable")[: self.most])
        return tuple(array[chosen] for array in joined)

    def mistakes(self, labels: Array, facts: dict[str, int]) -> Mistakes:
        codes, rows, called, distances, _ = self._smallest()
        whole = {**facts, "kept": len(codes)}
        return Mistakes(codes, rows, labels[rows].astype(np.int64), called.astype(np.int64), distances, whole)
