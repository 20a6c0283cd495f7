"""Samples of a region with their outcome: what the classifier says of each before and after, and what is right."""

from __future__ import annotations

import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch", reason="torch is not installed: nothing is generated")

import torch

from errata.defuse.pages import overview, page, to_html
from errata.defuse.stages import RunFolder
from errata.defuse.view import RunView, load_run
from support import digits


@pytest.fixture(scope="module")
def corrected(digits_run: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, torch.nn.Module]:
    folder = shutil.copytree(digits_run, tmp_path_factory.mktemp("defuse") / "run")
    images, labels = digits.images()

    def oracle(pictures: np.ndarray) -> np.ndarray:
        known, asked = (part.reshape(len(part), -1).astype(float) for part in (images, pictures))
        return labels[np.square(asked[:, None] - known).sum(axis=2).argmin(axis=1)]

    result = digits.run_defuse(folder, oracle=oracle)
    assert result.stage == "corrected"
    return folder, result.model


def entries_of(run: RunView) -> list[dict]:
    shown = overview(run, lambda id, i: f"{id}-{i}")
    return [*shown["lines"], *shown["folded"]]


def test_every_sample_says_what_the_corrected_model_makes_of_it(corrected: tuple[Path, torch.nn.Module]) -> None:
    folder, model = corrected
    run = load_run(folder)
    pictures = run.images.reshape(-1, *run.images.shape[2:])
    pixels = torch.from_numpy(pictures.reshape(len(pictures), 1, 8, 8) / np.float32(255))
    predicted = model.eval()(pixels).argmax(dim=1).numpy().reshape(run.predictions.shape)  # by another way
    for entry in entries_of(run):
        region = run.judged[run.index(entry["id"])]
        for i, sample in enumerate(entry["samples"]):
            after = predicted[run.index(entry["id"]), i]
            assert sample["after"]["prediction"] == run.class_names[after]
            expected = "" if region.label is None else ["wrong", "right"][int(after == region.label)]
            assert sample["after"]["mark"] == expected


def test_pages_show_both_outcomes_of_a_sample(corrected: tuple[Path, torch.nn.Module]) -> None:
    run = load_run(corrected[0])
    region = next(region for region in run.judged if region.verdict == "misclassified")
    for html in (to_html(run), page(run, "regions"), page(run, "region", id=region.id)):
        words = " ".join(re.sub(r"<[^>]*>", " ", html).split())
        assert re.search(r"wrong \d → right \d", words)
    assert "before → after the correction" in " ".join(to_html(run).split())


@pytest.mark.parametrize("known", [1, 2])
def test_nearness_to_a_single_known_mistake_is_no_comparison(
    corrected: tuple[Path, torch.nn.Module], known: int
) -> None:
    """There are no distances between known mistakes that others could be farther than."""
    run = load_run(corrected[0])
    facts = {**run.correction["novelty"], "known": known}
    if known == 1:
        facts |= {"usual": None, "farther": None}
    html = " ".join(to_html(replace(run, correction={**run.correction, "novelty": facts})).split())
    assert "not measured of the samples" not in html
    assert ("of the one training image that the classifier gets wrong (Euclidean" in html) == (known == 1)
    assert ("of one of 2 training images that" in html) == (known == 2)
    assert ("of the samples are farther than that." in html) == (known == 2)


def test_a_correction_of_an_older_version_shows_what_it_has(
    corrected: tuple[Path, torch.nn.Module], tmp_path: Path
) -> None:
    folder = shutil.copytree(corrected[0], tmp_path / "old")
    run = RunFolder(folder)
    content = run.read("correction")
    run.write("correction", {key: value for key, value in content.items() if key != "after"})
    old = load_run(folder)
    assert all(sample["after"] is None for entry in entries_of(old) for sample in entry["samples"])
    assert ">→ <i" not in to_html(old)


def test_without_a_correction_there_is_only_a_before(corrected: tuple[Path, torch.nn.Module]) -> None:
    run = replace(load_run(corrected[0]), comparison=None, after=None)
    assert ">→ <i" not in to_html(run)
