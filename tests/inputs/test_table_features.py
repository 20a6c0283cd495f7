"""Columns and words as features: scaled, encoded, filled in, and with their names."""

import numpy as np
import pytest

from errata.core import InputError
from errata.inputs import encode_columns, encode_words
from errata.inputs.features import SHARED, encode_matrix, encode_rows


def test_each_kind_of_column():
    rng = np.random.default_rng(0)
    n = 200
    age = rng.normal(40, 10, n)
    age[:20] = np.nan
    job = rng.choice(["nurse", "cook"], n).astype(object)
    job[5:20] = None
    dates = np.array(["2024-01-01", "2024-02-01"] * 100, dtype="datetime64[D]")
    columns = {
        "age": age,
        "job": job,
        "flag": rng.random(n) < 0.1,
        "when": dates,
        "name": np.array([f"n{i}" for i in range(n)]),
    }
    features = encode_columns(columns | {"same": np.ones(n)})
    assert sorted(features.names) == [
        "age", "age is missing", "flag", "job = cook", "job = nurse", "job is missing", "when",
    ]  # fmt: skip
    assert features.left_out == ("name", "same")
    assert np.isfinite(features.matrix).all()
    named = dict(zip(features.names, features.matrix.T, strict=True))
    filled = np.where(np.isnan(age), np.nanmedian(age), age)
    assert np.allclose(named["age"], (filled - filled.mean()) / filled.std(), atol=1e-5)
    assert np.array_equal(named["age is missing"] > 0, np.isnan(age))
    assert np.allclose(np.unique(named["flag"]), [0, SHARED])  # not stretched, though it is rare
    nurse = named["job = nurse"][job == "nurse"]
    assert np.allclose(nurse, SHARED)


def test_rare_categories_share_a_column():
    values = np.array(["a"] * 100 + ["b"] * 95 + ["c"] * 3 + ["d"] * 2)
    features = encode_columns({"kind": values})
    assert features.names == ("kind = a", "kind = b", "kind = any other")
    assert (features.matrix[:, 2] > 0).sum() == 5


def test_two_rows_of_different_categories_are_one_apart():
    features = encode_columns({"kind": np.array(["a", "b"] * 20)}).matrix
    assert np.isclose(np.linalg.norm(features[0] - features[1]), 1, atol=1e-6)


def test_columns_that_tell_nothing_are_one_sentence():
    with pytest.raises(InputError, match="none of the columns `x` is a feature: each is constant"):
        encode_columns({"x": np.ones(10)})
    with pytest.raises(InputError, match="share no words"):
        encode_words(["", ""])


def test_a_matrix_is_scaled_where_its_columns_have_different_units():
    rng = np.random.default_rng(0)
    alike = rng.normal(size=(100, 3))
    assert encode_matrix(alike) is alike
    units = alike * [1.0, 1.0, 1000.0]
    assert np.allclose(encode_matrix(units).std(axis=0), 1, atol=1e-5)


def test_words_and_columns_together_and_one_where_the_other_is_empty():
    rng = np.random.default_rng(0)
    texts = [" ".join(rng.choice(["one", "two", "three", "four", "five"], 6)) for _ in range(80)]
    both = encode_rows({"age": rng.normal(size=80)}, texts)
    assert both.names[:2] == ("age", "words 1")
    assert np.isclose(both.matrix[:, 1:].var(axis=0).sum(), 1, atol=1e-3)  # all words count as one column
    assert encode_rows({"age": np.ones(80)}, texts).names[0] == "words 1"
    assert encode_rows({"age": rng.normal(size=80)}, [""] * 80).names == ("age",)
    with pytest.raises(InputError):
        encode_rows({"age": np.ones(80)}, [""] * 80)
