"""Pipelines with random weights and a few channels, built from configs: they show what reaches them, no more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
diffusers = pytest.importorskip("diffusers")

D = 8  # columns of an embedding; unCLIP wants as many as its text encoder has
PX = 16
WORDS = 10  # tokens of a text

TOWER = {"hidden_size": D, "intermediate_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
SMALL = {"block_out_channels": (8, 8), "layers_per_block": 1, "norm_num_groups": 4}
CROSS = {"cross_attention_dim": 8, "attention_head_dim": 4}
ADDED = {  # blocks of UNets that add what they are told to keys and values, as DALL-E 2's do
    "down_block_types": ("ResnetDownsampleBlock2D", "SimpleCrossAttnDownBlock2D"),
    "up_block_types": ("SimpleCrossAttnUpBlock2D", "ResnetUpsampleBlock2D"),
    "mid_block_type": "UNetMidBlock2DSimpleCrossAttn",
    "resnet_time_scale_shift": "scale_shift",
}
PLAIN = {
    "down_block_types": ("CrossAttnDownBlock2D", "DownBlock2D"),
    "up_block_types": ("UpBlock2D", "CrossAttnUpBlock2D"),
}


def unclip(folder: Path) -> Any:
    size = {"size": {"shortest_edge": PX}, "crop_size": {"height": PX, "width": PX}}
    kind = diffusers.UnCLIPImageVariationPipeline
    tokens, text = _texts(folder, transformers.CLIPTextModelWithProjection)
    sharpen = {
        "sample_size": PX, "in_channels": 6, "out_channels": 3, "resnet_time_scale_shift": "scale_shift", **SMALL,
        "down_block_types": ("ResnetDownsampleBlock2D",) * 2, "up_block_types": ("ResnetUpsampleBlock2D",) * 2,
    }  # fmt: skip
    return _quiet(
        kind(
            decoder=diffusers.UNet2DConditionModel(
                sample_size=8, in_channels=3, out_channels=6, class_embed_type="identity", **SMALL, **CROSS, **ADDED
            ),
            text_encoder=text,
            tokenizer=tokens,
            text_proj=get_type_hints(kind.__init__)["text_proj"](
                clip_embeddings_dim=D, time_embed_dim=32, cross_attention_dim=8
            ),
            feature_extractor=transformers.CLIPImageProcessor(**size),
            image_encoder=_eyes(),
            super_res_first=diffusers.UNet2DModel(**sharpen),
            super_res_last=diffusers.UNet2DModel(**sharpen),
            decoder_scheduler=diffusers.UnCLIPScheduler(variance_type="learned_range", num_train_timesteps=100),
            super_res_scheduler=diffusers.UnCLIPScheduler(variance_type="fixed_small_log", num_train_timesteps=100),
        )
    )


def stable_unclip(folder: Path) -> Any:
    kind = diffusers.StableUnCLIPImg2ImgPipeline
    tokens, text = _texts(folder, transformers.CLIPTextModel)
    return _quiet(
        kind(
            feature_extractor=transformers.CLIPImageProcessor(),
            image_encoder=_eyes(),
            image_normalizer=get_type_hints(kind.__init__)["image_normalizer"](embedding_dim=D),
            image_noising_scheduler=diffusers.DDPMScheduler(),
            tokenizer=tokens,
            text_encoder=text,
            unet=diffusers.UNet2DConditionModel(
                sample_size=8,
                in_channels=4,
                out_channels=4,
                class_embed_type="projection",
                projection_class_embeddings_input_dim=2 * D,
                **SMALL,
                **CROSS,
                **PLAIN,
            ),
            scheduler=_scheduler(),
            vae=_vae(),
        )
    )


def kandinsky(folder: Path) -> Any:
    return _quiet(
        diffusers.KandinskyV22Pipeline(
            unet=diffusers.UNet2DConditionModel(
                sample_size=8,
                in_channels=4,
                out_channels=8,
                addition_embed_type="image",
                encoder_hid_dim=D,
                encoder_hid_dim_type="image_proj",
                **SMALL,
                **CROSS,
                **ADDED,
            ),
            scheduler=_scheduler(),
            movq=diffusers.VQModel(
                latent_channels=4,
                block_out_channels=(32, 32),
                norm_type="spatial",
                num_vq_embeddings=8,
                vq_embed_dim=4,
                down_block_types=("DownEncoderBlock2D",) * 2,
                up_block_types=("AttnUpDecoderBlock2D", "UpDecoderBlock2D"),
            ),
        )
    )


def stable(folder: Path) -> Any:
    tokens, text = _texts(folder, transformers.CLIPTextModel)
    return _quiet(
        diffusers.StableDiffusionPipeline(
            vae=_vae(),
            text_encoder=text,
            tokenizer=tokens,
            unet=diffusers.UNet2DConditionModel(
                sample_size=8, in_channels=4, out_channels=4, **SMALL, **CROSS, **PLAIN
            ),
            scheduler=_scheduler(),
            safety_checker=None,
            feature_extractor=None,
            requires_safety_checker=False,
        )
    )


def _quiet(pipeline: Any) -> Any:
    pipeline.set_progress_bar_config(disable=True)
    return pipeline


def _scheduler() -> Any:
    return diffusers.DDIMScheduler(
        num_train_timesteps=100, clip_sample=False, set_alpha_to_one=False, steps_offset=1, beta_end=0.012
    )


def _vae() -> Any:
    blocks = {"down_block_types": ("DownEncoderBlock2D",) * 2, "up_block_types": ("UpDecoderBlock2D",) * 2}
    return diffusers.AutoencoderKL(latent_channels=4, **SMALL, **blocks)


def _eyes() -> Any:
    config = transformers.CLIPVisionConfig(**TOWER, image_size=PX, patch_size=8, projection_dim=D)
    return transformers.CLIPVisionModelWithProjection(config)


def _texts(folder: Path, kind: Any) -> tuple[Any, Any]:
    """A tokenizer that knows letters, and its encoder."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    known = [*letters, *(f"{letter}</w>" for letter in letters), "<|startoftext|>", "<|endoftext|>"]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(known)}))
    (folder / "merges.txt").write_text("#version: 0.2\n")
    files = str(folder / "vocab.json"), str(folder / "merges.txt")
    end = len(known) - 1
    config = transformers.CLIPTextConfig(
        **TOWER, vocab_size=end + 1, max_position_embeddings=WORDS, projection_dim=D, bos_token_id=end - 1,
        eos_token_id=end, pad_token_id=end,
    )  # fmt: skip
    return transformers.CLIPTokenizer(*files, model_max_length=WORDS), kind(config)


BUILD = {"unclip": unclip, "stable_unclip": stable_unclip, "kandinsky": kandinsky, "stable": stable}


def built(name: str, folder: Path) -> Any:
    """The same weights every time; torch's own state is left as it was."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return BUILD[name](folder / name)


# --- what to draw with them ------------------------------------------------------------------------------------

EMPTY = np.linspace(-1, 1, D)  # what Kandinsky draws away from
ROWS = np.random.default_rng(0).normal(size=(3, D)) * 3
SIZES = {"unclip": {"super_res_num_inference_steps": 2}, "kandinsky": {"height": PX, "width": PX}}


def given(name: str, **more: Any) -> dict[str, Any]:
    """Few steps, small pictures, and what this decoder cannot do without."""
    away = {"negative": EMPTY} if name == "kandinsky" else {}
    return {"steps": 2, "options": SIZES.get(name), **away, **more}
