"""CLIP's space, with a tiny random CLIP that is built from configs and saved in a folder."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from errata.core import InputError, MissingExtra
from errata.core.progress import silent
from errata.inputs import ClipSpace, ImageArrays, ImageBytes

torch = pytest.importorskip("torch")

PX = 16


def pictures(n: int = 7) -> list[Image.Image]:
    rng = np.random.default_rng(0)
    return [Image.fromarray(rng.integers(0, 255, (24, 20 + i, 3), dtype=np.uint8)) for i in range(n)]


TEXTS = ["a cat", "a dog on the grass", "cat", "a very long text " * 9]


def tiny_clip(folder: Path) -> Path:
    """Two transformers of one layer, and a tokenizer that knows letters and the word cat."""
    transformers = pytest.importorskip("transformers")
    folder.mkdir()
    letters = "abcdefghijklmnopqrstuvwxyz"
    vocabulary = [
        *letters,
        *(f"{letter}</w>" for letter in letters),
        "ca",
        "cat</w>",
        "<|startoftext|>",
        "<|endoftext|>",
    ]
    (folder / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate(vocabulary)}))
    (folder / "merges.txt").write_text("#version: 0.2\nc a\nca t</w>\n")
    end = len(vocabulary) - 1
    small = {"hidden_size": 16, "intermediate_size": 32, "num_hidden_layers": 1, "num_attention_heads": 2}
    config = transformers.CLIPConfig(
        text_config={
            **small, "vocab_size": end + 1, "max_position_embeddings": 20, "bos_token_id": end - 1,
            "eos_token_id": end, "pad_token_id": end,
        },
        vision_config={**small, "image_size": PX, "patch_size": 8},
        projection_dim=6,
    )  # fmt: skip
    torch.manual_seed(0)
    transformers.CLIPModel(config).save_pretrained(folder)
    transformers.CLIPTokenizer(str(folder / "vocab.json"), str(folder / "merges.txt")).save_pretrained(folder)
    size = {"size": {"shortest_edge": PX}, "crop_size": {"height": PX, "width": PX}}
    transformers.CLIPImageProcessor(**size).save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_clip(tmp_path_factory.mktemp("models") / "clip")


def test_pictures_and_texts_are_rows_of_length_one_in_one_space(folder: Path) -> None:
    space = ClipSpace(folder, progress=silent)
    images, texts = space.images(pictures()), space.texts(TEXTS)
    assert images.shape == (7, 6)
    assert texts.shape == (4, 6)
    assert images.dtype == texts.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(np.vstack([images, texts]), axis=1), 1, atol=1e-5)
    assert np.abs(texts[0] - texts[2]).max() > 1e-3
    np.testing.assert_array_equal(images, space.images(pictures()))


def test_it_is_the_models_own_embedding(folder: Path) -> None:
    from transformers import AutoProcessor, CLIPModel

    model, processor = CLIPModel.from_pretrained(folder).eval(), AutoProcessor.from_pretrained(folder)
    with torch.no_grad():
        said = model(**processor(text=TEXTS[:3], images=pictures(), return_tensors="pt", padding=True))
    space = ClipSpace(folder, progress=silent)
    np.testing.assert_allclose(space.images(pictures()), said.image_embeds.numpy(), atol=1e-5)
    np.testing.assert_allclose(space.texts(TEXTS[:3]), said.text_embeds.numpy(), atol=1e-5)


def test_batches_do_not_matter(folder: Path) -> None:
    one, two = ClipSpace(folder, progress=silent), ClipSpace(folder, batch=2, progress=silent)
    np.testing.assert_allclose(one.images(pictures()), two.images(pictures()), atol=1e-5)
    np.testing.assert_allclose(one.texts(TEXTS), two.texts(TEXTS), atol=1e-5)


def test_media_of_an_evaluation(folder: Path) -> None:
    """Grey and colour, rows taken out of order, pictures as they are and not their thumbnails."""
    pixels = np.random.default_rng(1).integers(0, 255, (5, PX, PX, 3), dtype=np.uint8)
    space = ClipSpace(folder, progress=silent)
    opened = [Image.fromarray(each) for each in pixels]
    media = ImageArrays(pixels)
    np.testing.assert_array_equal(space.images(media), space.images(opened))
    np.testing.assert_array_equal(space.images(media.rows(np.array([3, 1]))), space.images([opened[3], opened[1]]))
    assert space.images(ImageArrays(pixels[..., 0])).shape == (5, 6)


def test_a_missing_picture_is_named(folder: Path) -> None:
    with pytest.raises(InputError, match="the image of row 1 is missing or broken"):
        ClipSpace(folder, progress=silent).images(ImageBytes([_png(pictures()[0]), b"no picture"]))


def _png(picture: Image.Image) -> bytes:
    import io

    file = io.BytesIO()
    picture.save(file, "PNG")
    return file.getvalue()


def test_what_is_no_picture_or_text_is_refused(folder: Path) -> None:
    space = ClipSpace(folder, progress=silent)
    with pytest.raises(InputError, match="takes media or a list of Pillow's images; got ndarray at row 0"):
        space.images([np.zeros((3, 3, 3))])
    with pytest.raises(InputError, match="`images` is empty"):
        space.images([])
    for bad in ("a cat", [], ["a cat", 3]):
        with pytest.raises(InputError, match="`texts` must be a list of texts"):
            space.texts(bad)
    with pytest.raises(InputError, match="`batch` must be at least 1; got 0"):
        ClipSpace(folder, batch=0)


def test_a_folder_that_is_no_clip(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is not the folder of a CLIP: it has no readable config.json"):
        ClipSpace(tmp_path / "nowhere")
    for text in ("{", "[]"):
        (tmp_path / "config.json").write_text(text)
        with pytest.raises(InputError, match=r"no readable config.json"):
            ClipSpace(tmp_path)
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    with pytest.raises(InputError, match=r"its config.json says model_type 'bert'"):
        ClipSpace(tmp_path)


def test_half_a_clip(folder: Path, tmp_path: Path) -> None:
    """Only the config is there: nothing is downloaded instead."""
    (tmp_path / "config.json").write_text((folder / "config.json").read_text())
    with pytest.raises(InputError, match="holds no whole CLIP"):
        ClipSpace(tmp_path)


def test_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "config.json").write_text('{"model_type": "clip"}')
    (tmp_path / "weights.pt").touch()
    for name in ("transformers", "open_clip"):
        monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(MissingExtra, match=r"`transformers`.*pip install 'errata\[clip\]'"):
        ClipSpace(tmp_path)
    with pytest.raises(MissingExtra, match=r"`open_clip`.*pip install 'errata\[open-clip\]'"):
        ClipSpace(tmp_path / "weights.pt", architecture="ViT-B-32")


# --- open_clip, which no test may install: the calls it documents -----------------------------------------------


class FakeModel:
    training = True

    def eval(self) -> None:
        self.training = False

    def encode_image(self, batch: Any) -> Any:
        return batch.mean(dim=(2, 3)) * 5

    def encode_text(self, tokens: Any) -> Any:
        return tokens.float()


@pytest.fixture
def open_clip(monkeypatch: pytest.MonkeyPatch) -> types.ModuleType:
    fake: Any = types.ModuleType("open_clip")
    fake.asked = []

    def create(name: str, pretrained: str, device: Any) -> Any:
        fake.asked.append((name, pretrained))
        if name != "tiny":
            raise RuntimeError(f"Model config for {name} not found.")
        return (
            FakeModel(),
            None,
            lambda picture: torch.from_numpy(np.array(picture.resize((4, 4)))).permute(2, 0, 1).float(),
        )

    fake.create_model_and_transforms = create
    fake.get_tokenizer = lambda name: lambda texts: torch.tensor([[len(t), t.count("a"), 1] for t in texts])
    monkeypatch.setitem(sys.modules, "open_clip", fake)
    return fake


def test_open_clip_by_its_architecture_and_a_file(tmp_path: Path, open_clip: Any) -> None:
    weights = tmp_path / "weights.pt"
    with pytest.raises(InputError, match="is not a file; with `architecture` give the file"):
        ClipSpace(weights, architecture="tiny")
    weights.touch()
    space = ClipSpace(weights, architecture="tiny", batch=3, progress=silent)
    assert open_clip.asked == [("tiny", str(weights))]
    images, texts = space.images(pictures()), space.texts(["banana", "fig"])
    np.testing.assert_allclose(np.linalg.norm(images, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(texts, [np.array([6, 3, 1]) / 46**0.5, np.array([3, 0, 1]) / 10**0.5], atol=1e-6)
    with pytest.raises(InputError, match=r"open_clip cannot load .* as 'large': Model config for large not found"):
        ClipSpace(weights, architecture="large")
