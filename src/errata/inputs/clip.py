"""`clip`: CLIP's space, from weights that lie on this machine. Nothing is downloaded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import Array, InputError, Progress, require
from ..core.blocks import unit
from ..core.json_text import parse_json
from .media import Images
from .progress import report_batches, terminal_progress

if TYPE_CHECKING:
    import torch
    from PIL import Image

PX = 448  # images are read at twice the usual input or more, so that the encoder's own resizing decides

Encode = Callable[[list[Any]], Any]  # images or texts of one batch -> tensor (b, d)


class ClipSpace:
    """Images and texts as rows of length one in one space.

    path: a folder that holds a CLIP as transformers saves it; or, with `architecture`, a file with its weights.
    architecture: the name of an open_clip architecture such as "ViT-B-32". device: where to run. Default: a GPU where
    there is one. batch: images or texts at a time. progress: `silent` for no bar.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        architecture: str | None = None,
        device: torch.device | str | None = None,
        batch: int = 64,
        progress: Progress = terminal_progress,
    ):
        if batch < 1:
            raise InputError(f"`batch` must be at least 1; got {batch}")
        require("torch", "clip")
        import torch

        self.batch = batch
        self.progress = progress
        if device is None:
            device = "cuda" if torch.cuda.is_available() else "cpu"
        where = torch.device(device)
        if architecture is None:
            self._images, self._texts = _from_transformers(Path(path), where)
        else:
            self._images, self._texts = _from_open_clip(Path(path), architecture, where)

    def images(self, images: Images | Sequence[Image.Image]) -> Array:
        """(n, d) float32, from an evaluation's media or from images that Pillow has opened."""
        if not len(images):
            raise InputError("`images` is empty; give at least one image")
        return self._embed(lambda rows: [_open_image(images, i) for i in rows], len(images), self._images)

    def texts(self, texts: Sequence[str]) -> Array:
        """(m, d) float32; what is longer than the encoder reads is cut."""
        if isinstance(texts, str) or not len(texts) or not all(isinstance(text, str) for text in texts):
            raise InputError("`texts` must be a list of texts, at least one")
        return self._embed(lambda rows: [texts[i] for i in rows], len(texts), self._texts)

    def _embed(self, taken: Callable[[range], list[Any]], n: int, encode: Encode) -> Array:
        import torch

        parts = []
        with torch.inference_mode():
            for start in report_batches(range(0, n, self.batch), self.progress, "clip"):
                rows = encode(taken(range(start, min(start + self.batch, n))))
                parts.append(unit(rows.float().cpu().numpy()).astype(np.float32))
        return np.concatenate(parts)


def _open_image(images: Any, i: int) -> Image.Image:
    if isinstance(images, Images):
        image = images.image(i, PX)
    else:
        image = images[i]
    if image is None:
        raise InputError(f"the image of row {i} is missing or broken; leave that row out")
    if not hasattr(image, "convert"):
        got = type(image).__name__
        raise InputError(f"`images` takes media or a list of Pillow's images; got {got} at row {i}")
    converted: Image.Image = image.convert("RGB")
    return converted


def _from_transformers(folder: Path, device: Any) -> tuple[Encode, Encode]:
    _check_folder(folder)
    transformers: Any = require("transformers", "clip")
    try:
        model = transformers.CLIPModel.from_pretrained(folder, local_files_only=True).to(device).eval()
        processor = transformers.AutoProcessor.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError) as error:
        raise InputError(f"`{folder}` holds no whole CLIP: {error}") from error

    def encode_images(images: list[Any]) -> Any:
        ready = processor.image_processor(images=images, return_tensors="pt").to(device)
        return _features(model.get_image_features(pixel_values=ready["pixel_values"]))

    def encode_texts(texts: list[Any]) -> Any:
        longest = model.config.text_config.max_position_embeddings
        ready = processor.tokenizer(texts, padding=True, truncation=True, max_length=longest, return_tensors="pt")
        return _features(model.get_text_features(**ready.to(device)))

    return encode_images, encode_texts


def _features(output: Any) -> Any:
    """The projected rows; since version 5 they come inside an output object."""
    return output if hasattr(output, "float") else output.pooler_output


def _check_folder(folder: Path) -> None:
    config = folder / "config.json"
    try:
        kind = parse_json(config.read_text(encoding="utf-8")).get("model_type")
    except (OSError, ValueError, AttributeError) as error:
        raise InputError(
            f"`{folder}` is not the folder of a CLIP: it has no readable config.json ({error}); "
            "give a folder that transformers' save_pretrained wrote"
        ) from error
    if kind != "clip":
        raise InputError(f"`{folder}` is not the folder of a CLIP: its config.json says model_type {kind!r}")


def _from_open_clip(weights: Path, architecture: str, device: Any) -> tuple[Encode, Encode]:
    if not weights.is_file():
        raise InputError(f"`{weights}` is not a file; with `architecture` give the file that holds its weights")
    open_clip = require("open_clip", "open-clip")
    import torch

    try:
        model, _, prepare = open_clip.create_model_and_transforms(architecture, pretrained=str(weights), device=device)
    except RuntimeError as error:  # its way of saying that it knows no such architecture, or that weights do not fit
        raise InputError(f"open_clip cannot load `{weights}` as {architecture!r}: {error}") from error
    tokens = open_clip.get_tokenizer(architecture)
    model.eval()

    def encode_images(images: list[Any]) -> Any:
        return model.encode_image(torch.stack([prepare(image) for image in images]).to(device))

    def encode_texts(texts: list[Any]) -> Any:
        return model.encode_text(tokens(texts).to(device))

    return encode_images, encode_texts
