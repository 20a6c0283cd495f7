"""Pipelines from folders: what was saved is what draws; no network, no pickles, no code."""

from __future__ import annotations

import json
import shutil
import socket
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from errata.core import InputError, MissingExtra
from errata.draw import decode, draw_captions, load_pipeline
from support.diffusion import BUILD, ROWS, given, torch

Folders = Callable[[str], Path]


@pytest.fixture(scope="module")
def folders(pipelines: Callable[[str], Any], tmp_path_factory: pytest.TempPathFactory) -> Folders:
    """Where each pipeline was saved; a copy of it is the test's own."""
    saved = tmp_path_factory.mktemp("saved")

    def folder(name: str) -> Path:
        if not (saved / name).exists():
            pipelines(name).save_pretrained(saved / name)
        return Path(shutil.copytree(saved / name, tmp_path_factory.mktemp("copies") / name))

    return folder


@pytest.fixture(autouse=True)
def no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> None:
        raise AssertionError("somebody asked the network")

    monkeypatch.setattr(socket.socket, "connect", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)


@pytest.mark.parametrize("name", BUILD)
def test_what_was_saved_is_what_draws(
    pipelines: Callable[[str], Any], folders: Folders, name: str, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = folders(name)
    pipeline = load_pipeline(folder, device="cpu")
    shutil.rmtree(folder)
    capfd.readouterr()
    if name == "stable":
        drawn, want = (draw_captions(["a cat"], each, 2, steps=2) for each in (pipeline, pipelines(name)))
    else:
        drawn, want = (decode(ROWS, each, **given(name)) for each in (pipeline, pipelines(name)))
    np.testing.assert_array_equal(drawn, want)
    assert capfd.readouterr().err == ""  # no bar for every batch


def test_unclip_is_read_though_its_index_names_a_place_that_is_gone(folders: Folders) -> None:
    folder = folders("unclip")
    index = json.loads((folder / "model_index.json").read_text())
    index["text_proj"] = ["unclip", "UnCLIPTextProjModel"]
    (folder / "model_index.json").write_text(json.dumps(index))
    assert type(load_pipeline(folder, device="cpu")).__name__ == "UnCLIPImageVariationPipeline"


@pytest.mark.parametrize(
    ("name", "part"),
    [("kandinsky", "unet"), ("stable", "text_encoder"), ("unclip", "text_proj"), ("unclip", "text_encoder")],
)
def test_pickled_weights_are_not_read(folders: Folders, name: str, part: str) -> None:
    from safetensors.torch import load_file

    folder = folders(name)
    (weights,) = (folder / part).glob("*.safetensors")
    pickled = "pytorch_model.bin" if part == "text_encoder" else "diffusion_pytorch_model.bin"
    torch.save(load_file(weights), folder / part / pickled)
    weights.unlink()
    with pytest.raises(InputError, match=r"holds no whole .* with weights in safetensors: "):
        load_pipeline(folder)


@pytest.mark.parametrize(("name", "part"), [("kandinsky", "scheduler"), ("unclip", "decoder"), ("stable", "tokenizer")])
def test_half_a_pipeline(folders: Folders, name: str, part: str) -> None:
    folder = folders(name)
    shutil.rmtree(folder / part)
    with pytest.raises(InputError, match=f"`{folder}` lacks the folder of its part `{part}`; copy the pipeline whole"):
        load_pipeline(folder)


def test_broken_weights_and_weights_of_another_shape(folders: Folders) -> None:
    folder = folders("kandinsky")
    (folder / "unet" / "diffusion_pytorch_model.safetensors").write_bytes(b"nothing")
    with pytest.raises(InputError, match="holds no whole KandinskyV22Pipeline with weights in safetensors: "):
        load_pipeline(folder)
    folder = folders("unclip")
    config = json.loads((folder / "decoder" / "config.json").read_text())
    (folder / "decoder" / "config.json").write_text(json.dumps({**config, "cross_attention_dim": 16}))
    with pytest.raises(InputError, match=r"holds no whole UnCLIPImageVariationPipeline .* loading state_dict") as error:
        load_pipeline(folder)
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 600  # and not a line for every tensor


def test_code_in_a_folder_is_not_run(folders: Folders, tmp_path: Path) -> None:
    folder = folders("kandinsky")
    code = folder / "unet" / "own.py"
    code.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\nclass Own:\n    pass\n")
    index = json.loads((folder / "model_index.json").read_text())
    (folder / "model_index.json").write_text(json.dumps({**index, "unet": ["own", "Own"]}))
    with pytest.raises(InputError, match=r"holds code, `own.py`, which is not run; give a pipeline of diffusers' own"):
        load_pipeline(folder)
    code.unlink()
    (folder / "model_index.json").write_text(json.dumps({**index, "_class_name": ["own", "Own"]}))
    with pytest.raises(InputError, match=r"asks for code by its class name \['own', 'Own'\], which is not run"):
        load_pipeline(folder)
    assert not (tmp_path / "ran").exists()


def test_a_folder_that_is_no_pipeline(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is not the folder of a pipeline: it has no readable model_index.json"):
        load_pipeline("someone/some-pipeline")
    for text in ("{", "[1]", "3"):
        (tmp_path / "model_index.json").write_text(text)
        with pytest.raises(InputError, match=r"no readable model_index.json .* that diffusers' save_pretrained wrote"):
            load_pipeline(tmp_path)
    for name in ("NoSuchPipeline", "UNet2DModel"):
        (tmp_path / "model_index.json").write_text(json.dumps({"_class_name": name}))
        with pytest.raises(InputError, match=f"is for a pipeline '{name}' that the installed diffusers does not have"):
            load_pipeline(tmp_path)


def test_without_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "model_index.json").write_text('{"_class_name": "KandinskyV22Pipeline"}')
    for name in ("diffusers", "transformers"):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, name, None)
            with pytest.raises(MissingExtra, match=rf"`{name}`.*pip install 'errata\[diffusion\]'"):
                load_pipeline(tmp_path)
