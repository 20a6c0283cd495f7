"""Pipelines of diffusers: reading one from a folder of this machine, and how each kind is called.

Nothing is downloaded, no code of the folder is run, and weights are read from safetensors only, never from pickles.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from textwrap import shorten
from typing import Any, get_type_hints

from safetensors import SafetensorError

from ..core import InputError, require
from ..core.errors import unknown
from ..core.json_text import parse_json

EXTRA = "diffusion"
OURS = frozenset({"generator", "output_type", "num_images_per_prompt", "return_dict", "prompt"})  # never an option
BY_PARTS = "UnCLIPImageVariationPipeline"


@dataclass(frozen=True)
class Decoder:
    """How a kind of pipeline takes embeddings of images."""

    embeddings: str  # its names of arguments
    steps: str
    part: str  # the part that reads embeddings, and what its config calls their number of columns
    columns: str
    negative: str | None = None  # the argument for what to draw away from, where the user must give it
    prompt: bool = False  # whether it wants a text beside, which stays empty


DECODERS: Mapping[str, Decoder] = {
    "UnCLIPImageVariationPipeline": Decoder(
        "image_embeddings", "decoder_num_inference_steps", "text_proj", "clip_embeddings_dim"
    ),
    "StableUnCLIPImg2ImgPipeline": Decoder(
        "image_embeds", "num_inference_steps", "image_normalizer", "embedding_dim", prompt=True
    ),
    "KandinskyV22Pipeline": Decoder(
        "image_embeds", "num_inference_steps", "unet", "encoder_hid_dim", negative="negative_image_embeds"
    ),
}


def load_pipeline(folder: str | Path, *, device: Any = None) -> Any:
    """The pipeline that diffusers' save_pretrained wrote to `folder`. device: Default: a GPU if available."""
    folder = Path(folder)
    name = _class_name(folder)
    for package in ("torch", "transformers", "diffusers"):
        require(package, EXTRA)
    import diffusers
    import torch

    kind = getattr(diffusers, name, None)
    if not (isinstance(kind, type) and issubclass(kind, diffusers.DiffusionPipeline)):
        raise InputError(f"`{folder}` is for a pipeline {name!r} that the installed diffusers does not have")
    try:
        if name == BY_PARTS:
            pipeline = _by_parts(kind, folder)
        else:
            pipeline = _whole(kind, folder)
    except (OSError, ValueError, RuntimeError, SafetensorError) as error:
        words = shorten(str(error), 300)
        raise InputError(f"`{folder}` holds no whole {name} with weights in safetensors: {words}") from error
    pipeline.set_progress_bar_config(disable=True)  # one bar for each batch says little: `progress` counts images
    if device is None:
        device = "cuda" if torch.cuda.is_available() else "cpu"
    return pipeline.to(torch.device(device))


def _class_name(folder: Path) -> str:
    """What kind of pipeline lies in the folder, once it is known to hold all of its parts and no code."""
    try:
        index = dict(parse_json((folder / "model_index.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError) as error:
        raise InputError(
            f"`{folder}` is not the folder of a pipeline: it has no readable model_index.json ({error}); "
            "give a folder that diffusers' save_pretrained wrote"
        ) from error
    name = index.get("_class_name")
    code = next(folder.rglob("*.py"), None)
    if code is not None or not isinstance(name, str):
        what = f"holds code, `{code.name}`" if code else f"asks for code by its class name {name!r}"
        raise InputError(f"`{folder}` {what}, which is not run; give a pipeline of diffusers' own")
    for part, where in index.items():  # [library, class], or two nulls for a part that is left out
        # transformers makes an empty tokenizer where there is none, and says nothing.
        if isinstance(where, list) and where and where[0] is not None and not (folder / part).is_dir():
            raise InputError(f"`{folder}` lacks the folder of its part `{part}`; copy the pipeline whole")
    return name


def _whole(kind: Any, folder: Path) -> Any:
    # Without accelerate this is what diffusers falls back to, with a warning for every part.
    sparing = find_spec("accelerate") is not None
    return kind.from_pretrained(folder, local_files_only=True, use_safetensors=True, low_cpu_mem_usage=sparing)


def _by_parts(kind: Any, folder: Path) -> Any:
    """Each part by the class that the pipeline itself declares: since unCLIP was put among diffusers' deprecated
    pipelines, its loader no longer finds the part that only unCLIP has."""
    import torch

    parts = {name: part for name, part in get_type_hints(kind.__init__).items() if name != "return"}
    loaded = {}
    for name, part in parts.items():
        options = {"use_safetensors": True} if issubclass(part, torch.nn.Module) else {}
        loaded[name] = part.from_pretrained(folder / name, local_files_only=True, **options)
    return kind(**loaded)


def decoder_of(pipeline: Any) -> Decoder:
    """How this pipeline takes embeddings; an error where it is not known to take any."""
    for cls in type(pipeline).__mro__:
        if cls.__name__ in DECODERS:
            return DECODERS[cls.__name__]
    known = ", ".join(DECODERS)
    raise InputError(f"{_name(pipeline)} is not known to draw from embeddings of images; known: {known}")


def check_texts_are_drawn(pipeline: Any) -> None:
    """Raise InputError where the pipeline cannot draw from texts alone."""
    takes = _arguments(pipeline)
    also = any(cls.__name__ in DECODERS for cls in type(pipeline).__mro__)
    if also or not {"prompt", "num_inference_steps", "generator", "output_type"} <= takes:
        raise InputError(
            f"{_name(pipeline)} does not draw from texts alone; give one that does, as StableDiffusionPipeline"
        )


def checked_options(pipeline: Any, options: Mapping[str, Any] | None, taken: set[str]) -> dict[str, Any]:
    """Further arguments of the pipeline's call, none of them unknown or set by us already."""
    known = _arguments(pipeline) - OURS - taken
    for name in options or {}:
        if name in OURS | taken:
            raise InputError(f"`options` may not hold `{name}`, which is set from the other arguments")
        if name not in known:
            raise unknown(f"option of {_name(pipeline)}", name, known)
    return dict(options or {})


def _arguments(pipeline: Any) -> set[str]:
    return set(inspect.signature(type(pipeline).__call__).parameters) - {"self", "kwargs"}


def _name(pipeline: Any) -> str:
    return type(pipeline).__name__
