"""Pictures of features: a planted study with a network trained here, and the drawing itself."""

from __future__ import annotations

import base64
import io
import json
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from PIL import Image

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402  # only once torch is known to be there

import errata  # noqa: E402
from errata.core import Audit, InputError, Slice  # noqa: E402
from errata.core.audit import of_kind  # noqa: E402
from errata.explain import explain  # noqa: E402
from errata.explain.group_trees import GroupTrees  # noqa: E402
from errata.explain.thumbnails import PX as LARGEST  # noqa: E402
from errata.explain.thumbnails import address, overlaid, overlay, upsampled  # noqa: E402
from errata.tensors import Attribution, Ball  # noqa: E402
from errata.train import normalise_pixels  # noqa: E402
from support.patched_images import PX, D, N, Study, planted_study  # noqa: E402

torch.set_num_threads(1)


@pytest.fixture(scope="module")
def study() -> Study:
    return planted_study()


@pytest.fixture(scope="module")
def pictured(study: Study) -> Audit:
    return errata.explain.draw_features(study.audit, study.model, study.images, prepare=normalise_pixels, steps=30)


def features_of(found: Slice) -> dict[str, Any]:
    return dict({e.kind: e.to_json() for e in found.explanations}["features"])


def test_the_planted_feature_is_the_first_split(study):
    """Of 16 features, one that tells rows with the patch from those without."""
    assert study.first.verdict == "confirmed"
    assert study.first.rule["scope"] == {"label": 1}
    told = study.areas()
    assert told[study.root] > 0.98
    assert told[study.root] > told.max() - 0.01
    assert told.min() < 0.9


def test_its_heat_map_covers_the_patch(study):
    """A quarter of the maps sees the patch, and holds most of the heat; without the patch there is next to none."""
    lens = Attribution(study.model, prepare=normalise_pixels)
    heat = lens.heat(study.images[study.rows(True)[:100]], study.root)
    assert heat.shape == (100, 4, 4)
    assert heat[:, :2, :2].sum() > 0.7 * heat.sum()
    elsewhere = lens.heat(study.images[study.rows(False)[:100]], study.root)
    assert elsewhere.sum() < 0.1 * heat.sum()


def test_its_attack_raises_it(study):
    lens, rows = Attribution(study.model, prepare=normalise_pixels), study.rows(True)[:100]
    found, before, after, gone = lens.attack(study.images[rows], study.root, Ball(0.5, 20))
    assert (after > before).mean() > 0.9
    assert after.mean() > 1.3 * before.mean()
    assert gone.max() <= 0.5 + 1e-4
    change = (found - study.images[rows] / 255) ** 2
    assert change[:, : PX // 2, : PX // 2].sum() > 0.4 * change.sum()  # a quarter of the picture


def test_every_path_gets_its_pictures(study, pictured):
    assert len(pictured.slices) == len(study.audit.slices)
    for found in pictured.slices:
        data, told = features_of(found), {e.kind: e.to_json() for e in found.explanations}["path"]
        assert data["radius"] == pytest.approx(0.1 * np.sqrt(PX * PX * 3))
        assert (data["steps"], data["representation"]) == (30, "robust")
        assert data["step"] == pytest.approx(2.5 * data["radius"] / 30)
        for one, shown in zip(told["features"], data["features"], strict=True):
            assert (one["feature"], one["name"]) == (shown["feature"], shown["name"])
            assert [row["row"] for row in one["activating"]] == [row["row"] for row in shown["pictures"]]
            for row, picture in zip(one["activating"], shown["pictures"], strict=True):
                assert picture["before"] == pytest.approx(row["value"], abs=1e-3)
                assert picture["after"] > picture["before"]
                assert 0 < picture["moved"] <= data["radius"] * (1 + 1e-4)
                own = np.asarray(drawn(picture["picture"]))
                assert np.array_equal(own, study.images[row["row"]])
                assert drawn(picture["heat"]).size == drawn(picture["attack"]).size == (PX, PX)
                assert not np.array_equal(np.asarray(drawn(picture["attack"])), own)
    json.dumps(pictured.to_json(), allow_nan=False)


def test_pictures_outlive_the_model(pictured, tmp_path):
    errata.save(pictured, tmp_path / "audit")
    again = errata.load(tmp_path / "audit")
    assert features_of(again.slices[0]) == features_of(pictured.slices[0])
    assert (tmp_path / "audit" / "report.html").read_text().count("data:image/png") > 18


def test_settings_are_heard_and_asking_again_replaces(study, pictured):
    again = errata.explain.draw_features(
        pictured, study.model, study.images, prepare=normalise_pixels, radius=0.3, step=0.2, steps=2
    )
    data = features_of(again.slices[0])
    assert (data["radius"], data["step"], data["steps"]) == (0.3, 0.2, 2)
    assert [e.kind for e in again.slices[0].explanations].count("features") == 1
    assert all(p["moved"] <= 0.3 + 1e-5 for one in data["features"] for p in one["pictures"])


def test_explaining_again_keeps_the_pictures(pictured):
    kinds = [e.kind for e in explain(pictured).slices[0].explanations]
    assert kinds.count("path") == kinds.count("features") == 1


def test_the_pictures_of_a_feature_are_taken_once(study, monkeypatch):
    attacked, true = [], Attribution.attack
    monkeypatch.setattr(
        Attribution, "attack", lambda self, x, unit, ball: attacked.append(unit) or true(self, x, unit, ball)
    )
    twice = replace(study.audit, slices=(study.first, replace(study.first, id="s9")))
    errata.explain.draw_features(twice, study.model, study.images, prepare=normalise_pixels, steps=1)
    assert len(attacked) == len(set(attacked)) == len({one["feature"] for one in study.first.rule["conditions"]})


def test_slices_without_a_path_stay_as_they_are(study):
    plain = replace(study.audit, slices=(replace(study.first, rule={"kind": "ball"}),))
    with pytest.warns(UserWarning, match="nothing is drawn, since no slice is a path .* with `informative=10`"):
        assert errata.explain.draw_features(plain, study.model, study.images) is plain
    bare = replace(plain, explanations=())
    with pytest.warns(UserWarning, match="audit with method `barlow` on the features of `model`"):
        errata.explain.draw_features(bare, study.model, study.images, representation="robust", informative=10)
    with pytest.warns(UserWarning, match="audit with method `barlow` on the features of `model`"):
        elsewhere = errata.explain.draw_features(
            replace(plain, evaluation=study.audit.evaluation.with_representation("other", np.zeros((N, D)))),
            study.model, study.images, representation="other", informative=10,
        )  # fmt: skip
    assert elsewhere.explanations == plain.explanations
    (trees,) = of_kind(plain.explanations, GroupTrees)
    older = replace(trees, groups=tuple(replace(group, features=None) for group in trees.groups))
    others = tuple(explanation for explanation in plain.explanations if explanation is not trees)
    for informative in (0, 10):  # trees of an older audit, which lacks the features
        with pytest.warns(UserWarning, match="since no slice is a path .*; audit with method `barlow` on the features"):
            errata.explain.draw_features(
                replace(plain, explanations=(*others, older)), study.model, study.images, informative=informative
            )
    other = {**study.first.rule, "representation": "other"}
    evaluation = study.audit.evaluation.with_representation("other", np.zeros((N, D)))
    both = replace(study.audit, evaluation=evaluation, slices=(study.first, replace(study.first, rule=other)))
    with pytest.raises(InputError, match="paths were found in other and robust; name the one"):
        errata.explain.draw_features(both, study.model, study.images, prepare=normalise_pixels)
    done = errata.explain.draw_features(
        both, study.model, study.images, prepare=normalise_pixels, representation="robust", steps=1
    )
    assert features_of(done.slices[0])["features"]
    assert done.slices[1] is both.slices[1]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"prepare": None}, r"the features of `model` differ from `robust`, first in row \d+; give the model"),
        ({"images": lambda images: images[::-1]}, "in the order of the rows"),
        ({"images": lambda images: images[:9]}, "`images` has 9 rows and the audit 1600"),
        ({"images": lambda images: [image[: 8 + i % 2] for i, image in enumerate(images)]}, "differ in size"),
        ({"layer": "body"}, "has 256 features where `robust` has 16 columns"),
        ({"maps": "bodi"}, "unknown layer `bodi`"),
        ({"representation": "robus"}, "unknown representation `robus`; did you mean `robust`"),
        ({"radius": -1.0}, "`radius` must be a length"),
        ({"steps": 0}, "`steps` must be an integer of at least 1"),
    ],
)
def test_bad_input_is_one_sentence(study, change, words):
    images = change.pop("images", lambda images: images)(study.images)
    with pytest.raises(InputError, match=words):
        errata.explain.draw_features(study.audit, study.model, images, **{"prepare": normalise_pixels, **change})


# --- drawing -----------------------------------------------------------------------------------------------------


def drawn(given: str | None) -> Image.Image:
    assert given is not None
    return Image.open(io.BytesIO(base64.b64decode(given.partition(",")[2])))


@pytest.mark.parametrize(("height", "width"), [(12, 40), (40, 12), (7, 7)])
def test_heat_lies_where_it_was_at_any_aspect_ratio(height, width):
    """One hot cell, in the upper right: rows are not taken for columns."""
    heat = np.zeros((2, 4))
    heat[0, 3] = 5.0
    full = upsampled(heat, height, width)
    assert full.shape == (height, width)
    assert full.max() == pytest.approx(1, abs=1e-6)
    assert full.min() >= 0
    row, column = np.unravel_index(full.argmax(), full.shape)
    assert row < height / 2
    assert column >= 3 * width / 4
    assert full[height // 2 :, : width // 2].sum() < 0.05 * full.sum()


def test_heat_is_divided_by_its_maximum_and_nothing_is_not_drawn():
    flat = upsampled(np.full((3, 3), 0.25), 6, 6)
    np.testing.assert_allclose(flat, 1)
    picture = np.full((6, 8, 3), 0.5)
    assert upsampled(np.zeros((3, 3)), 6, 8) is None
    assert overlaid(picture, np.zeros((3, 4))) is None
    assert overlay(picture, np.zeros((3, 4))) is None


def test_a_picture_shows_through_its_heat():
    heat = np.zeros((2, 2))
    heat[0, 0] = 1.0
    picture = np.random.default_rng(0).random((20, 20, 3))
    mixed = overlaid(picture, heat)
    assert mixed.shape == (20, 20, 3)
    assert mixed.min() >= 0
    assert mixed.max() <= 1
    cold = mixed[15:, 15:]
    np.testing.assert_allclose(cold, np.repeat(picture[15:, 15:].mean(axis=2, keepdims=True), 3, axis=2), atol=1e-6)
    hot = mixed[:4, :4]
    assert hot[..., 0].mean() > hot[..., 2].mean() + 0.3
    assert hot.std() > 0.01
    grey = overlaid(picture[..., 0], heat)
    assert grey.shape == (20, 20, 3)


def test_small_pictures_keep_their_pixels_and_large_ones_shrink():
    small = np.random.default_rng(0).random((9, 5, 3))
    found = drawn(address(small))
    assert found.format == "PNG"
    np.testing.assert_allclose(np.asarray(found) / 255, small, atol=1 / 255)
    assert np.asarray(drawn(address(small[..., :1]))).shape == (9, 5)
    large = drawn(address(np.random.default_rng(0).random((200, 400, 3))))
    assert large.format == "JPEG"
    assert large.size == (LARGEST, LARGEST // 2)


class Dead(nn.Module):
    """Its only feature is never on."""

    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Conv2d(3, 1, 3), nn.Linear(1, 2)

    def forward(self, x):
        return self.head(torch.relu(self.body(x) - 1e3).mean(dim=(2, 3)))


def test_a_dead_feature_is_said_and_not_drawn(make_audit):
    images = np.random.default_rng(0).integers(0, 256, (20, 8, 14, 3), dtype=np.uint8)
    path = [{"feature": 0, "op": "<=", "value": 0.5}]
    rule = {
        "kind": "path", "representation": "robust", "scope": {}, "conditions": path, "names": ["feature 0"],
        "leaves": [path, [{**path[0], "op": ">"}]], "leaf": 0, "tree": 0,
    }  # fmt: skip
    evaluation = errata.Evaluation(
        labels=np.zeros(20, int), predictions=np.arange(20) % 2, representations={"robust": np.zeros((20, 1))}
    )
    audit = explain(make_audit(evaluation, np.ones(20), rule=rule))
    found = errata.explain.draw_features(audit, Dead(), images, steps=2)
    (one,) = features_of(found.slices[0])["features"]
    assert len(one["pictures"]) == 6
    for picture in one["pictures"]:
        assert picture["heat"] is None
        assert picture["before"] == picture["after"] == picture["moved"] == 0
        assert drawn(picture["attack"]).size == (14, 8)
