"""Images from embeddings, or from captions, drawn by a pipeline of diffusers.

The j-th image of every embedding or caption starts from the same noise, whatever the batches: images of one j differ
by what they were drawn from and by nothing else.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core import Array, InputError, Progress, silent
from ..core.blocks import unit
from .pipelines import Decoder, check_texts_are_drawn, checked_options, decoder_of

BATCH = 4  # images at once

Call = Callable[[Array], dict[str, Any]]  # rows of one batch -> the arguments that name what to draw


@dataclass(frozen=True)
class Order:
    """How many images are drawn, from which noise, and how many at once."""

    rows: int
    each: int  # images of a row
    seed: int
    batch: int

    def __post_init__(self) -> None:
        least = {"the number of images of each": (self.each, 1), "`batch`": (self.batch, 1), "`seed`": (self.seed, 0)}
        for name, (got, want) in least.items():
            if got < want:
                raise InputError(f"{name} must be at least {want}; got {got}")


def decode(
    embeddings: Array,
    pipeline: Any,
    *,
    per_embedding: int = 1,
    seed: int = 0,
    steps: int | None = None,
    length: float | Array | None = None,
    negative: Array | None = None,
    batch: int = BATCH,
    options: Mapping[str, Any] | None = None,
    progress: Progress = silent,
) -> Array:
    """(n * per_embedding, h, w, 3) uint8: images of embeddings (n, d), all of the first one first.

    pipeline: one of `pipelines.DECODERS`, as `load_pipeline` gives it. steps: Default: the pipeline's own number.
    length: scales every embedding to it; a number, or rows (m, d) as the decoder's own image encoder gives them, whose
    mean length is taken. `walk` gives rows of length one, and decoders are trained with the encoder's natural length.
    negative: (d,) what Kandinsky draws away from, at its natural length: the embedding of an empty image. options:
    further arguments of the pipeline's call, by its names. batch: images at once.
    """
    import torch

    decoder = decoder_of(pipeline)
    part = getattr(pipeline, decoder.part)
    columns = int(part.config[decoder.columns])
    rows = _scaled(_checked_rows("embeddings", embeddings, columns), length)
    more = _steps(decoder.steps, steps) | checked_options(pipeline, options, _taken(decoder))
    away = _checked_negative(negative, columns, decoder, pipeline)

    def tensor(values: Array) -> Any:
        return torch.from_numpy(values).to(device=pipeline.device, dtype=part.dtype)

    def call(which: Array) -> dict[str, Any]:
        arguments = {decoder.embeddings: tensor(rows[which]), **more}
        if decoder.negative is not None:
            arguments[decoder.negative] = tensor(np.repeat(away, len(which), axis=0))
        if decoder.prompt:
            arguments["prompt"] = [""] * len(which)
        return arguments

    return _draw(pipeline, call, Order(len(rows), per_embedding, seed, batch), progress)


def draw_captions(
    texts: Sequence[str],
    pipeline: Any,
    per_caption: int = 1,
    *,
    seed: int = 0,
    steps: int | None = None,
    batch: int = BATCH,
    options: Mapping[str, Any] | None = None,
    progress: Progress = silent,
) -> Array:
    """(m * per_caption, h, w, 3) uint8: images of texts (m,), all of the first one first; the rest as for `decode`.

    pipeline: one that draws from texts, as Stable Diffusion.
    """
    if isinstance(texts, str) or not len(texts) or not all(isinstance(text, str) for text in texts):
        raise InputError("`texts` must be a list of texts, at least one")
    check_texts_are_drawn(pipeline)
    more = _steps("num_inference_steps", steps) | checked_options(pipeline, options, {"num_inference_steps"})

    def call(which: Array) -> dict[str, Any]:
        return {"prompt": [texts[i] for i in which], **more}

    return _draw(pipeline, call, Order(len(texts), per_caption, seed, batch), progress)


def _draw(pipeline: Any, call: Call, order: Order, progress: Progress) -> Array:
    total = order.rows * order.each
    parts = []
    for start in range(0, total, order.batch):
        stop = min(start + order.batch, total)
        row, j = np.divmod(np.arange(start, stop), order.each)
        noise = [_noise(order.seed, int(each)) for each in j]
        parts.append(_bytes(pipeline(**call(row), generator=noise, output_type="np"), row))
        progress("draw images", stop / total)
    return np.concatenate(parts)


def _noise(seed: int, j: int) -> Any:
    """A generator of the CPU, so that every device starts from the same noise; seeds share none of it."""
    import torch

    return torch.Generator().manual_seed(int(np.random.SeedSequence([seed, j]).generate_state(1, np.uint64)[0] >> 1))


def _bytes(output: Any, row: Array) -> Array:
    """(b, h, w, 3) uint8; an error for an image that is none, since a classifier would count it."""
    blackened = np.array(getattr(output, "nsfw_content_detected", None) or [False] * len(row))
    if blackened.any():
        raise InputError(
            f"the pipeline's safety checker blackened an image of row {row[blackened][0]}, and black is no image of "
            "it; take another seed or text, or set `pipeline.safety_checker = None`"
        )
    broken = ~np.isfinite(output.images).all(axis=(1, 2, 3))
    if broken.any():
        raise InputError(
            f"the pipeline drew NaN for row {row[broken][0]}; half precision may be too coarse: try float32"
        )
    images: Array = (output.images * 255).round().astype(np.uint8)
    return images


def _checked_rows(name: str, values: Any, columns: int) -> Array:
    rows = np.asarray(values, dtype=np.float32)
    if rows.ndim != 2 or not len(rows):
        raise InputError(f"`{name}` must have shape (n, {columns}), at least one row; got {rows.shape}")
    if rows.shape[1] != columns:
        raise InputError(
            f"`{name}` has {rows.shape[1]} columns where the pipeline draws from {columns}; "
            "embed with the image encoder that the pipeline was trained with"
        )
    if not np.isfinite(rows).all():
        raise InputError(f"`{name}` has NaN or infinity, first at row {np.argwhere(~np.isfinite(rows))[0, 0]}; drop it")
    return rows


def _scaled(rows: Array, length: float | Array | None) -> Array:
    """(n, d) float32, all of one length; unchanged where `length` is None."""
    if length is None:
        return rows
    if np.ndim(length) not in (0, 2):
        raise InputError(f"`length` must be a number, or rows (m, d) to take it from; got shape {np.shape(length)}")
    natural = np.asarray(length, dtype=np.float64)
    if natural.ndim:
        number = float(np.linalg.norm(natural, axis=1).mean())
    else:
        number = float(natural)
    if not (np.isfinite(number) and number > 0):
        raise InputError(f"`length` must be positive; got {number}")
    return (unit(rows) * number).astype(np.float32)


def _checked_negative(negative: Array | None, columns: int, decoder: Decoder, pipeline: Any) -> Array:
    """(1, d), used only where the pipeline takes it."""
    name = type(pipeline).__name__
    if negative is not None and decoder.negative is None:
        raise InputError(f"{name} takes no `negative`; omit it")
    if negative is None and decoder.negative is not None:
        raise InputError(f"{name} needs `negative`, what to draw away from: the embedding (d,) of an empty image")
    if negative is None:
        return np.zeros((1, columns))
    return _checked_rows("negative", np.atleast_2d(negative), columns)


def _steps(name: str, steps: int | None) -> dict[str, int]:
    if steps is not None and steps < 1:
        raise InputError(f"`steps` must be at least 1; got {steps}")
    if steps is None:
        return {}
    return {name: steps}


def _taken(decoder: Decoder) -> set[str]:
    return {name for name in (decoder.embeddings, decoder.steps, decoder.negative) if name is not None}
