"""A space for pictures and words, fitted to rows whose words are known."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.linear_model import Ridge

import errata
from errata import Evaluation, Source
from errata.core import InputError
from errata.core.gaps import wilson
from errata.inputs import Bridge, read_texts
from errata.inputs.bridge import FOLDS, FeatureSums, ZeroShot, _fits, _folds, _zero_shot

D, M = 12, 8


def world(k: int = 40, each: int = 10, seed: int = 0, noise: float = 0.3):
    """Texts (k, m) and features (k * each, d): a hidden linear map of a row's text, noise, and a far-off middle."""
    rng = np.random.default_rng(seed)
    texts = rng.normal(size=(k, M)) + 3
    labels = np.repeat(np.arange(k), each)
    features = texts[labels] @ np.random.default_rng(99).normal(size=(M, D)) + noise * rng.normal(size=(k * each, D))
    return features + 50, texts, labels


@pytest.mark.parametrize("method", ["cca", "ridge"])
def test_new_names_are_recognised_and_shuffled_ones_are_not(method):
    X, T, y = world()
    new, names, labels = world(seed=1)
    bridge = Bridge.fit(X, T, y, method=method)
    found = bridge.zero_shot(new, labels, names)
    assert found.accuracy > 0.85
    assert (found.chance, found.n, found.new_names) == (1 / 40, 400, None)
    assert found.interval == wilson(found.accuracy * 400, 400)
    assert bridge.score.new_names is True
    assert bridge.score.accuracy > 0.6  # of all 40 names, with eight in a fold never fitted to
    assert bridge.score.n == 80
    shuffled = Bridge.fit(X, np.random.default_rng(2).permutation(T), y, method=method)
    assert shuffled.score.accuracy < 0.15


def test_rows_and_texts_have_length_one_in_one_space():
    X, T, y = world()
    for method, columns in (("cca", M), ("ridge", M)):
        bridge = Bridge.fit(X, T, y, method=method)
        images, texts = bridge.transform_images(X), bridge.transform_texts(T)
        assert images.shape == (400, columns)
        assert texts.shape == (40, columns)
        np.testing.assert_allclose(np.linalg.norm(np.vstack([images, texts]), axis=1), 1, atol=1e-6)
    assert Bridge.fit(X, T, y, rank=3).transform_images(X).shape == (400, 3)


def test_the_ridge_is_scikit_learns():
    X, T, y = world()
    sums = FeatureSums.of(X, T, y)
    (maps,) = _fits(sums, [0.5], method="ridge", rank=1)
    penalty = 0.5 * len(X) * X.var(axis=0).mean()
    model = Ridge(alpha=penalty).fit(X, T[y])
    np.testing.assert_allclose(maps.images, model.coef_.T, atol=1e-8)
    np.testing.assert_allclose((X - maps.image_centre) @ maps.images + maps.text_centre, model.predict(X), atol=1e-8)


def test_canonical_correlations_by_hand():
    """One column each, correlation .6: both sides whitened, and each times the correlation it has left."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=4000)
    t = 0.6 * x + 0.8 * rng.normal(size=4000)
    sums = FeatureSums.of(x[:, None], t[:, None], np.arange(4000))
    (maps,) = _fits(sums, [1.0], method="cca", rank=5)
    xx, tt, xt = x.var(), t.var(), np.cov(x, t, bias=True)[0, 1]
    left = xt / np.sqrt(2 * xx) / np.sqrt(2 * tt)  # both sides have a ridge of one variance
    np.testing.assert_allclose(np.abs(maps.images), left / np.sqrt(2 * xx), rtol=1e-9)
    np.testing.assert_allclose(np.abs(maps.texts), left / np.sqrt(2 * tt), rtol=1e-9)
    assert np.sign(maps.images * maps.texts) == 1


def test_sums_of_parts_are_sums_of_the_whole():
    X, T, y = world()
    whole, parts = FeatureSums.of(X, T, y), FeatureSums.of(X[:90], T, y[:90]) + FeatureSums.of(X[90:], T, y[90:])
    for name, value in vars(whole).items():
        np.testing.assert_allclose(value, vars(parts)[name], rtol=1e-12)
    xx, xt, tt = whole.centred()
    both = np.cov(np.hstack([X, T[y]]).T, bias=True)
    np.testing.assert_allclose(np.block([[xx, xt], [xt.T, tt]]), both, atol=1e-8)


def test_whole_texts_are_held_back_where_there_are_enough():
    labels = np.repeat(np.arange(3, 63, 3), 4)  # twenty of 63 texts are used
    folds, new = _folds(labels, seed=0)
    assert new
    assert sorted(np.concatenate(folds)) == list(range(80))
    held = [set(labels[rows]) for rows in folds]
    assert sum(map(len, held)) == 20
    assert [len(each) for each in held] == [4] * FOLDS
    folds, new = _folds(np.repeat(np.arange(19), 4), seed=0)
    assert not new
    assert max(map(len, folds)) - min(map(len, folds)) <= 1


def test_what_is_scored_was_neither_fitted_nor_chosen_by():
    """The first fold is out of every fit until the last."""
    X, T, y = world(k=10)  # few texts: rows are held back
    folds, _ = _folds(y, seed=0)
    strange = X.copy()
    strange[folds[0]] = np.random.default_rng(3).normal(size=(len(folds[0]), D)) + 50
    usual, odd = Bridge.fit(X, T, y), Bridge.fit(strange, T, y)
    assert usual.score.new_names is False
    assert usual.score.accuracy > 0.9
    assert odd.score.accuracy < 0.3  # fitted to the other rows, which say nothing of these
    assert odd.facts["tried"] == usual.facts["tried"]
    assert [alpha for alpha, _ in usual.facts["tried"]] == [0.1, 1.0, 10.0, 100.0]


def test_alpha_is_the_one_that_does_best_on_rows_held_back():
    X, T, _ = world(k=60, each=1, noise=0.01)
    assert Bridge.fit(X, T, alphas=(1e-4, 1e6)).facts["alpha"] == 1e-4
    noisy, T, _ = world(k=60, each=1, noise=1.0)
    # As many columns as rows to fit them to: without a ridge all of the noise is fitted.
    wide = np.hstack([noisy - 50, np.random.default_rng(0).normal(size=(60, 24))])
    assert Bridge.fit(wide, T, alphas=(1e-9, 1.0), method="ridge").facts["alpha"] == 1.0


def test_names_that_lie_equally_near_share_the_point():
    """A space that maps everything to one place is right by chance, not always."""
    placed, texts, labels = np.zeros((8, 3)), np.zeros((4, 3)), np.arange(8) % 4
    assert _zero_shot(placed, texts, labels) == ZeroShot(0.25, 0.25, 8, wilson(2, 8))
    twins = np.eye(3)[[0, 0, 1]]
    assert _zero_shot(np.eye(3)[[0, 1]], twins, np.array([1, 2])).accuracy == 0.75


def test_from_weights_and_a_new_middle():
    """Weights of a classifier lie round zero, pictures far from it."""
    rng = np.random.default_rng(5)
    mix = rng.normal(size=(M, D))
    names = rng.normal(size=(60, M))
    bridge = Bridge.from_weights(names @ mix, names)
    assert bridge.score.new_names is True
    new = rng.normal(size=(5, M))
    labels = np.arange(200) % 5
    pictures = new[labels] @ mix + 0.5 * rng.normal(size=(200, D)) + 40
    assert bridge.zero_shot(pictures, labels, new).accuracy < 0.5
    moved = bridge.recentred(pictures)
    assert moved.zero_shot(pictures, labels, new).accuracy > 0.8
    np.testing.assert_allclose(moved.maps.image_centre, pictures.mean(axis=0))
    assert bridge.maps.image_centre.max() < 5  # the first one is as it was


def test_captions_of_their_own_for_every_row():
    X, T, _ = world(k=1500, each=1)
    bridge = Bridge.fit(X, T)
    assert bridge.score.n == 300
    assert bridge.score.chance == 1 / 300  # chosen among the captions of the rows held back
    assert bridge.score.accuracy > 0.5
    assert bridge.facts["rows"] == 1500


def test_the_same_after_saving(tmp_path):
    X, T, y = world()
    bridge = Bridge.fit(X, T, y)
    again = Bridge.load(bridge.save(tmp_path / "bridge.safetensors"))
    np.testing.assert_array_equal(again.transform_images(X), bridge.transform_images(X))
    np.testing.assert_array_equal(again.transform_texts(T), bridge.transform_texts(T))
    assert again.score == bridge.score
    assert again.facts == json.loads(json.dumps(bridge.facts))


def test_a_file_that_is_none_is_refused(tmp_path):
    (tmp_path / "text").write_text("no")
    with pytest.raises(InputError, match=r"is not a saved bridge .*; save one with Bridge.save"):
        Bridge.load(tmp_path / "text")
    from errata.core import State
    from errata.inputs.fitted import save_state

    with pytest.raises(InputError, match="a saved bridge is called `bridge`; got 'other'"):
        Bridge.load(save_state(State("other", {}, {"x": np.zeros(1)}), tmp_path / "other.safetensors"))


def test_seeds_and_order():
    X, T, y = world()
    one, two = Bridge.fit(X, T, y, seed=3), Bridge.fit(X, T, y, seed=3)
    np.testing.assert_array_equal(one.maps.images, two.maps.images)
    mapped = Bridge.fit(X.astype(np.float32), T, y, seed=3)
    np.testing.assert_allclose(mapped.transform_images(X), one.transform_images(X), atol=1e-3)


def test_features_on_disk(tmp_path):
    X, T, y = world()
    np.save(tmp_path / "x.npy", X)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r", allow_pickle=False)
    bridge = Bridge.fit(mapped, T, y)
    np.testing.assert_array_equal(bridge.maps.images, Bridge.fit(X, T, y).maps.images)
    np.testing.assert_array_equal(bridge.transform_images(mapped), bridge.transform_images(X))


def test_an_evaluation_gains_a_representation_that_comes_from_where_its_features_do():
    X, T, y = world()
    bridge = Bridge.fit(X, T, y)
    given = {"labels": y, "predictions": y, "representations": {"backbone": X, "own": X}}
    evaluation = Evaluation(**given, sources={"backbone": Source(from_model=False)})
    added = bridge.embed(evaluation)
    np.testing.assert_array_equal(added.representations["bridge"], bridge.transform_images(X))
    assert added.source("bridge") == Source(from_model=False)
    assert bridge.embed(evaluation, "own").source("bridge").from_model is True


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"texts": np.ones((39, M))}, "`labels` must name one of the 39 texts, from 0 to 38; got 39 at row 390"),
        ({"labels": None}, "`texts` must have one row for each of `features`, 400; got 40; or give `labels`"),
        ({"labels": np.full(400, 0.5)}, "`labels` must be class indices"),
        ({"labels": np.zeros(3)}, "`labels` has 3 rows"),
        ({"features": np.ones((400, D))}, "`features` never vary"),
        ({"features": np.full((400, D), np.nan)}, "`features` has NaN, first at row 0"),
        ({"features": np.ones((19, D)), "labels": np.zeros(19)}, "20 rows and two texts; got 19 rows and 40 texts"),
        ({"method": "pca"}, "`method` must be `cca` or `ridge`; got 'pca'"),
        ({"rank": 0}, "`rank` must be at least 1; got 0"),
        ({"alphas": (1.0, 0.0)}, "`alphas` must be positive"),
        ({"alphas": ()}, "`alphas` must be positive"),
    ],
)
def test_what_cannot_be_fitted_is_said(changes, words):
    X, T, y = world()
    with pytest.raises(InputError, match=words):
        Bridge.fit(**{"features": X, "texts": T, "labels": y, **changes})


def test_other_encoders_are_refused():
    X, T, y = world()
    bridge = Bridge.fit(X, T, y)
    with pytest.raises(InputError, match="fitted on 12 columns of `features`; got 11; use the same encoder"):
        bridge.transform_images(X[:, 1:])
    with pytest.raises(InputError, match="fitted on 8 columns of `texts`; got 7"):
        bridge.transform_texts(T[:, 1:])
    with pytest.raises(InputError, match="`labels` must name one of the 40 texts"):
        bridge.zero_shot(X, y + 1, T)


# --- texts with their embeddings ------------------------------------------------------------------------------


def letters(texts):
    return np.array([[text.count("a"), text.count("b"), len(text)] for text in texts], dtype=float)


def test_captions_from_a_list_or_a_file(tmp_path):
    (tmp_path / "texts.txt").write_text("a boat\n\n  a cab \na boat\n")
    from_file = errata.inputs.embed_captions(tmp_path / "texts.txt", letters, "clip", references=["a", "b"])
    assert from_file.texts == ("a", "b", "a boat", "a cab")
    assert from_file.references == ("a", "b")
    np.testing.assert_array_equal(from_file.embeddings, letters(from_file.texts))
    plain = errata.inputs.embed_captions(["a boat", "a cab"], letters, "clip")
    assert (plain.texts, plain.references, plain.representation) == (("a boat", "a cab"), None, "clip")


def test_a_file_that_cannot_be_read(tmp_path):
    with pytest.raises(InputError, match=r"cannot be read .*one text a line"):
        errata.inputs.embed_captions(tmp_path / "none.txt", letters, "clip")
    (tmp_path / "bad.txt").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(InputError, match="cannot be read"):
        errata.inputs.embed_captions(str(tmp_path / "bad.txt"), letters, "clip")


def test_a_file_of_embedded_texts_may_say_which_are_the_references(tmp_path):
    texts = np.array(["a dog", "a cat", "snow"])
    np.savez(tmp_path / "texts.npz", texts=texts, **{"embedding:clip": letters(texts)}, references=texts[:2])
    assert read_texts(tmp_path / "texts.npz").references == ("a dog", "a cat")
    assert read_texts(tmp_path / "texts.npz").score == "correlation"
    np.savez(tmp_path / "paper.npz", texts=texts, **{"embedding:clip": letters(texts)}, score="difference")
    assert read_texts(tmp_path / "paper.npz").score == "difference"
    np.savez(tmp_path / "texts.npz", texts=texts, **{"embedding:clip": letters(texts)})
    assert read_texts(tmp_path / "texts.npz").references is None
