"""What is drawn, with pipelines of random weights: the embedding arrives, the seed decides, nothing else does.

No test says what a picture shows.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from errata.core import InputError
from errata.draw import decode, draw_captions
from errata.draw.images import _noise
from support.diffusion import EMPTY, ROWS, SIZES, D, built, given, torch

Pipelines = Callable[[str], Any]

DECODERS = ("unclip", "stable_unclip", "kandinsky")


def by_hand(pipeline: Any, name: str, rows: np.ndarray, numbers: list[int], seed: int = 0) -> np.ndarray:
    """The pipeline called as its own documentation says."""
    E = torch.tensor(rows, dtype=torch.float32)
    away = torch.tensor(EMPTY, dtype=torch.float32).expand(len(E), D)
    named = {
        "unclip": {"image_embeddings": E, "decoder_num_inference_steps": 2},
        "stable_unclip": {"image_embeds": E, "prompt": [""] * len(E), "num_inference_steps": 2},
        "kandinsky": {"image_embeds": E, "negative_image_embeds": away, "num_inference_steps": 2},
    }[name]
    noise = [_noise(seed, j) for j in numbers]
    drawn = pipeline(**named, **SIZES.get(name, {}), generator=noise, output_type="pil").images
    return np.stack([np.asarray(picture) for picture in drawn])


def apart(a: np.ndarray, b: np.ndarray) -> int:
    return int(np.abs(a.astype(int) - b.astype(int)).max())


@pytest.mark.parametrize("name", DECODERS)
def test_embeddings_reach_the_pipeline_as_they_are(pipelines: Pipelines, name: str) -> None:
    drawn = decode(ROWS, pipelines(name), **given(name), seed=5)
    assert drawn.shape == (3, 16, 16, 3)
    assert drawn.dtype == np.uint8
    np.testing.assert_array_equal(drawn, by_hand(pipelines(name), name, ROWS, [0, 0, 0], seed=5))
    assert apart(drawn[0], drawn[1]) > 1  # the noise is the same: only the embedding differs
    assert apart(drawn[1], drawn[2]) > 1


@pytest.mark.parametrize("name", DECODERS)
def test_the_seed_decides_and_each_number_has_its_noise(pipelines: Pipelines, name: str) -> None:
    pipeline, twice = pipelines(name), ROWS[[0, 0]]
    first = decode(twice, pipeline, per_embedding=2, batch=4, **given(name))
    np.testing.assert_array_equal(first, decode(twice, pipeline, per_embedding=2, batch=4, **given(name)))
    np.testing.assert_array_equal(first, by_hand(pipeline, name, ROWS[[0, 0, 0, 0]], [0, 1, 0, 1]))
    np.testing.assert_array_equal(first[:2], first[2:])
    assert apart(first[0], first[1]) > 1
    assert apart(first, decode(twice, pipeline, per_embedding=2, seed=1, **given(name))) > 1


@pytest.mark.parametrize("name", DECODERS)
def test_batches_do_not_matter(pipelines: Pipelines, name: str) -> None:
    shares: list[tuple[str, float]] = []
    many = decode(ROWS, pipelines(name), per_embedding=2, batch=6, **given(name))
    few = decode(ROWS, pipelines(name), per_embedding=2, batch=4, progress=lambda *at: shares.append(at), **given(name))
    assert apart(many, few) <= 1  # the last bits of a product depend on how many rows there are
    assert shares == [("draw images", 4 / 6), ("draw images", 1.0)]


def test_torch_s_own_noise_is_left_alone(pipelines: Pipelines) -> None:
    before = torch.random.get_rng_state()
    decode(ROWS, pipelines("stable_unclip"), **given("stable_unclip"))
    assert torch.equal(before, torch.random.get_rng_state())


def test_seeds_share_no_noise() -> None:
    starts = {float(torch.randn(1, generator=_noise(seed, j))) for seed in range(5) for j in range(5)}
    assert len(starts) == 25


def test_a_length_is_that_of_every_embedding(pipelines: Pipelines) -> None:
    pipeline, more = pipelines("kandinsky"), given("kandinsky")
    short = ROWS / np.linalg.norm(ROWS, axis=1, keepdims=True)
    natural = np.array([[3.0] + [0] * (D - 1), [0, 8.0] + [0] * (D - 2)])  # of length 3 and 8: 5.5 on average
    want = decode(5.5 * short, pipeline, **more)
    assert apart(want, decode(short, pipeline, **more)) > 1
    assert apart(want, decode(short, pipeline, length=5.5, **more)) <= 1
    assert apart(want, decode(ROWS, pipeline, length=natural, **more)) <= 1


def test_options_and_the_negative_reach_the_pipeline(pipelines: Pipelines) -> None:
    pipeline = pipelines("kandinsky")
    plain = decode(ROWS, pipeline, **given("kandinsky"))
    assert apart(plain, decode(ROWS, pipeline, **given("kandinsky", negative=-EMPTY))) > 1
    guided = given("kandinsky", options={**SIZES["kandinsky"], "guidance_scale": 9.0})
    assert apart(plain, decode(ROWS, pipeline, **guided)) > 1
    assert decode(ROWS[:1], pipeline, steps=1, negative=EMPTY, options={"height": 24, "width": 16}).shape[1] == 24
    assert apart(plain, decode(ROWS, pipeline, **given("kandinsky", steps=3))) > 1


@pytest.mark.parametrize("name", DECODERS[1:])  # unCLIP's enlarging knows no half precision on a CPU
def test_embeddings_take_the_precision_of_the_weights(name: str, tmp_path: Path) -> None:
    half = built(name, tmp_path).to(torch.bfloat16)  # a product of two precisions is an error
    drawn = decode(ROWS, half, **given(name))
    assert drawn.shape == (3, 16, 16, 3)
    assert apart(drawn[0], drawn[1]) > 1


@pytest.mark.parametrize(
    ("rows", "more", "words"),
    [
        (np.ones((2, 5)), {}, f"`embeddings` has 5 columns where the pipeline draws from {D}; embed with the image"),
        (np.ones(D), {}, rf"`embeddings` must have shape \(n, {D}\), at least one row; got \({D},\)"),
        (np.ones((0, D)), {}, "at least one row"),
        (np.array([[0.0] * D, [np.nan] * D]), {}, "`embeddings` has NaN or infinity, first at row 1"),
        (ROWS, {"length": 0}, "`length` must be positive; got 0.0"),
        (ROWS, {"length": np.ones(3)}, r"`length` must be a number, or rows \(m, d\) to take it .* shape \(3,\)"),
        (ROWS, {"steps": 0}, "`steps` must be at least 1; got 0"),
        (ROWS, {"per_embedding": 0}, "the number of images of each must be at least 1; got 0"),
        (ROWS, {"batch": 0}, "`batch` must be at least 1; got 0"),
        (ROWS, {"seed": -1}, "`seed` must be at least 0; got -1"),
        (ROWS, {"negative": EMPTY}, "UnCLIPImageVariationPipeline takes no `negative`; omit it"),
        (ROWS, {"options": {"decoder_guidance": 2}}, "unknown option of UnCLIP.* did you mean `decoder_guidance_sca"),
        (ROWS, {"options": {"generator": None}}, "`options` may not hold `generator`, which is set from the other"),
        (ROWS, {"options": {"image_embeddings": None}}, "`options` may not hold `image_embeddings`"),
        (ROWS, {"length": 1e38}, "the pipeline drew NaN for row 0; half precision may be too coarse: try float32"),
    ],
)  # fmt: skip
def test_bad_orders_are_refused(pipelines: Pipelines, rows: np.ndarray, more: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        decode(rows, pipelines("unclip"), **given("unclip", **more))


def test_kandinsky_needs_what_to_draw_away_from(pipelines: Pipelines) -> None:
    with pytest.raises(InputError, match="KandinskyV22Pipeline needs `negative`, what to draw away from"):
        decode(ROWS, pipelines("kandinsky"))
    with pytest.raises(InputError, match=f"`negative` has 5 columns where the pipeline draws from {D}"):
        decode(ROWS, pipelines("kandinsky"), negative=np.ones(5))


# --- captions --------------------------------------------------------------------------------------------------

TEXTS = ["a cat", "a dog", "a cat"]


def test_captions_are_drawn_in_order(pipelines: Pipelines) -> None:
    pipeline = pipelines("stable")
    drawn = draw_captions(TEXTS, pipeline, 2, steps=2, seed=3, batch=6)
    noise = [_noise(3, j) for j in (0, 1) * 3]
    prompt = [text for text in TEXTS for _ in range(2)]
    said = pipeline(prompt=prompt, num_inference_steps=2, generator=noise, output_type="pil").images
    np.testing.assert_array_equal(drawn, np.stack([np.asarray(picture) for picture in said]))
    assert drawn.shape == (6, 16, 16, 3)
    assert apart(drawn[0], drawn[2]) > 1  # another text
    assert apart(drawn[0], drawn[1]) > 1  # other noise
    assert apart(drawn[:2], drawn[4:]) <= 1  # the same text and noise
    np.testing.assert_array_equal(drawn, draw_captions(TEXTS, pipeline, 2, steps=2, seed=3, batch=6))
    assert apart(drawn, draw_captions(TEXTS, pipeline, 2, steps=2, seed=4)) > 1
    wide = draw_captions(TEXTS[:1], pipeline, steps=1, options={"height": 16, "width": 32})
    assert wide.shape == (1, 16, 32, 3)


def test_a_blackened_picture_is_not_counted_as_one(pipelines: Pipelines, monkeypatch: pytest.MonkeyPatch) -> None:
    pipeline = pipelines("stable")
    seen = lambda self, image, device, dtype: (image, [False, True])  # noqa: E731  # as the pipeline's own method
    monkeypatch.setattr(type(pipeline), "run_safety_checker", seen)
    with pytest.raises(InputError, match=r"safety checker blackened an image of row 1, .*\.safety_checker = None"):
        draw_captions(["a cat", "a dog"], pipeline, steps=1)


def test_what_draws_from_one_does_not_draw_from_the_other(pipelines: Pipelines) -> None:
    with pytest.raises(InputError, match=r"StableDiffusionPipeline is not known to draw from emb.*; known: UnCLIPIm"):
        decode(ROWS, pipelines("stable"))
    for name in DECODERS:  # Stable unCLIP takes texts too, but not alone
        with pytest.raises(InputError, match="does not draw from texts alone; give one that does, as StableDiffusionP"):
            draw_captions(TEXTS, pipelines(name))


@pytest.mark.parametrize(
    ("texts", "more", "words"),
    [
        ("a cat", {}, "`texts` must be a list of texts, at least one"),
        ([], {}, "`texts` must be a list of texts"),
        (["a cat", 3], {}, "`texts` must be a list of texts"),
        (TEXTS, {"per_caption": 0}, "the number of images of each must be at least 1; got 0"),
        (TEXTS, {"steps": 0}, "`steps` must be at least 1; got 0"),
        (TEXTS, {"options": {"num_inference_steps": 3}}, "`options` may not hold `num_inference_steps`"),
        (TEXTS, {"options": {"prompt": "a"}}, "`options` may not hold `prompt`"),
        (TEXTS, {"options": {"widht": 8}}, "unknown option of StableDiffusionPipeline `widht`; did you mean `width`?"),
    ],
)
def test_bad_captions_are_refused(pipelines: Pipelines, texts: Any, more: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        draw_captions(texts, pipelines("stable"), **more)
