"""Accuracy on drawn pictures, counted by hand: with a decoder whose pictures are its embeddings."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import errata
from errata.core import Evaluation, InputError, Source
from errata.core.gaps import wilson
from errata.draw import Accuracy, alpha_study, caption_study, normal_of, slerp

torch = pytest.importorskip("torch")

X, Y, Z = np.eye(3)


class KandinskyV22Pipeline:
    """Paints an embedding's three columns as one colour, a shade darker for each picture of it."""

    device = torch.device("cpu")
    unet = SimpleNamespace(config={"encoder_hid_dim": 3}, dtype=torch.float64)

    def __call__(
        self,
        image_embeds: Any,
        negative_image_embeds: Any,
        generator: Any,
        output_type: str,
        guidance_scale: float = 4.0,
    ) -> Any:
        shade = torch.stack([torch.rand(1, generator=one) for one in generator])
        colours = 0.5 + 0.4 * image_embeds - 0.05 * shade
        return SimpleNamespace(images=colours[:, None, None].repeat(1, 2, 2, 1).numpy())


class Typist:
    """Paints the length of a text in red, and the number of its a's in green."""

    def __call__(self, prompt: list[str], generator: Any, output_type: str, num_inference_steps: int = 50) -> Any:
        colours = np.array([[len(text) / 255, text.count("a") / 255, num_inference_steps / 255] for text in prompt])
        return SimpleNamespace(images=np.tile(colours[:, None, None], (1, 2, 2, 1)), nsfw_content_detected=None)


def colours(pictures: np.ndarray) -> np.ndarray:
    return (pictures[:, 0, 0] / 255 - 0.5) / 0.4  # the embeddings, and up to .125 less


def test_every_alpha_of_both_sides_after_the_reference() -> None:
    seen = []

    def classify(pictures: np.ndarray) -> np.ndarray:
        seen.append(colours(pictures))
        return np.arange(len(pictures)) % 3  # of four pictures two are class 0, one is class 1

    shares: list[float] = []
    table = alpha_study(
        np.stack([7 * X, Y]), np.stack([Z, Z]), KandinskyV22Pipeline(), classify, [0, 1], alphas=(0.1, 0.5),
        per_class=4, negative=np.zeros(3), batch=3, progress=lambda stage, share: shares.append(share),
    )  # fmt: skip
    want = [("reference", 0.0), ("hard", 0.1), ("hard", 0.5), ("easy", 0.1), ("easy", 0.5)]
    assert [(row.kind, row.alpha) for row in table] == want
    for row in table:
        assert (row.n, row.correct, row.by_class) == (8, 3, {0: (2, 4), 1: (1, 4)})
        assert row.accuracy == 3 / 8
        assert row.interval == wilson(3, 8)
    ends = {"reference": Z, "hard": -Z, "easy": Z}
    embeddings = [slerp(start, ends[kind], alpha) for kind, alpha in want for start in (X, Y)]
    for pictures, embedding in zip(seen, embeddings, strict=True):
        assert len(pictures) == 4
        shades = embedding - pictures
        assert shades.min() > -0.02
        assert shades.max() < 0.15
        np.testing.assert_allclose(pictures - pictures[0], seen[0] - seen[0][0], atol=0.02)  # the same noise for all
    expected = [done / 40 for start in range(0, 40, 4) for done in (start + 3, start + 4)]
    assert shares == pytest.approx(expected)


def test_a_class_with_two_directions_is_counted_once() -> None:
    (reference, *_) = alpha_study(
        np.stack([X, Y, X]), np.stack([Z, Z, Y]), KandinskyV22Pipeline(), lambda p: np.zeros(len(p)), [0, 1, 0],
        alphas=(0.2,), per_class=2, negative=np.zeros(3),
    )  # fmt: skip
    assert reference == Accuracy("reference", 0.0, 6, 4, {0: (4, 4), 1: (0, 2)})


def test_a_planted_failure_is_drawn_on_the_hard_side() -> None:
    """From rows and a model's outcomes, through a fitted direction, to pictures that the same model fails on."""
    rng = np.random.default_rng(0)
    rows = errata.core.blocks.unit(X + 0.4 * rng.normal(size=(1500, 3)))
    fails = rows[:, 2] > 0.25
    labels = np.tile([0, 1], 750)
    evaluation = Evaluation(
        labels=labels, predictions=np.where(fails, 1 - labels, labels), representations={"clip": rows},
        sources={"clip": Source(from_model=False)},
    )  # fmt: skip
    audit = errata.audit(
        evaluation, methods=["directions"], options={"directions": {"standardise": False, "permutations": 0}}
    )
    (found,) = (found for found in audit.slices if found.rule["scope"] == {"label": 0})
    table = alpha_study(
        X[None], normal_of(audit, found)[None], KandinskyV22Pipeline(),
        lambda pictures: np.where(colours(pictures)[:, 2] > 0.25, 1, 0), [0],
        alphas=(0.1, 0.4), per_class=20, negative=np.zeros(3),
    )  # fmt: skip
    assert [row.accuracy for row in table] == [1, 1, 0, 1, 1]


def test_captions_by_kind() -> None:
    captions = {"hard": ["a cat asleep", "dog"], "easy": ["a cat", "a dog"], "reference": ["cat", "puppy"]}
    shares: list[float] = []
    table = caption_study(
        captions, Typist(), lambda pictures: pictures[:, 0, 0, 1], [2, 1], per_class=3, steps=7, batch=2,
        progress=lambda stage, share: shares.append(share),
    )  # fmt: skip
    # The number of a's is what it predicts: 3 and 0, 2 and 1, 1 and 0, where 2 and 1 are right.
    assert table == (
        Accuracy("hard", None, 6, 0, {2: (0, 3), 1: (0, 3)}),
        Accuracy("easy", None, 6, 6, {2: (3, 3), 1: (3, 3)}),
        Accuracy("reference", None, 6, 0, {2: (0, 3), 1: (0, 3)}),
    )
    assert shares[-1] == 1.0
    assert shares[0] == pytest.approx(2 / 18)


def test_what_draws_gets_the_rest() -> None:
    caption_study(
        {"easy": ["a"]}, Typist(), lambda p: [0 for each in p if each[0, 0, 2] == 9], [0], per_class=2, steps=9
    )
    with pytest.raises(TypeError, match="unexpected keyword argument 'stpes'"):
        caption_study({"easy": ["a"]}, Typist(), len, [0], stpes=3)
    with pytest.raises(TypeError, match="unexpected keyword argument 'stpes'"):
        alpha_study(X[None], Y[None], KandinskyV22Pipeline(), len, [0], stpes=3)
    with pytest.raises(InputError, match="`seed` must be at least 0"):
        alpha_study(X[None], Y[None], KandinskyV22Pipeline(), len, [0], seed=-1, negative=np.zeros(3))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"labels": []}, "`labels` must be a list of class indices, at least one"),
        ({"labels": [0.5, 1]}, "`labels` must be a list of class indices"),
        ({"labels": [0]}, r"must both have shape \(1, d\), a row for each of `labels`; got \(2, 3\) and \(2, 3\)"),
        ({"normals": np.ones((1, 3))}, r"must both have shape \(2, d\), .* got \(2, 3\) and \(1, 3\)"),
        ({"classify": lambda p: np.zeros((len(p), 2))}, r"`classify` must give a class for each image, shape \(2,\)"),
        ({"alphas": (2,)}, "`alpha` must be from 0 to 1"),
    ],
)
def test_bad_studies_are_refused(change: dict[str, Any], words: str) -> None:
    order = {
        "references": np.stack([X, Y]), "normals": np.stack([Z, Z]), "pipeline": KandinskyV22Pipeline(),
        "classify": lambda pictures: np.zeros(len(pictures)), "labels": [0, 1], "per_class": 2, "negative": np.zeros(3),
    }  # fmt: skip
    alpha_study(**order)
    with pytest.raises(InputError, match=words):
        alpha_study(**{**order, **change})


@pytest.mark.parametrize(
    ("captions", "words"),
    [
        ({}, "`captions` is empty; give at least one kind"),
        ({"hard": "ab"}, r"`captions\['hard'\]` must hold a text for each of 2 labels; got one text"),
        (
            {"easy": ["a", "b"], "hard": ["a"]},
            r"`captions\['hard'\]` must hold a text for each of 2 labels; got 1 texts",
        ),
    ],
)
def test_captions_that_do_not_fit_the_labels(captions: Any, words: str) -> None:
    with pytest.raises(InputError, match=words):
        caption_study(captions, Typist(), len, [0, 1])
