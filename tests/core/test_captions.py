"""Candidate texts are checked once, where they are made."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from errata.core import Captions, InputError

X = np.ones((2, 3))


def test_texts_of_any_kind_are_a_tuple_of_words() -> None:
    for texts in (["a dog", "snow"], ("a dog", "snow"), np.array(["a dog", "snow"])):
        made = Captions(texts, X.tolist(), "clip")
        assert made.texts == ("a dog", "snow")
        assert all(type(text) is str for text in made.texts)
        assert made.embeddings.shape == (2, 3)
        assert len(made) == 2


BAD: list[tuple[Any, Any, str]] = [
    ([], np.ones((0, 3)), "`texts` is empty; give at least one"),
    ("a dog", X, "must be a list of texts, shape .m,.; got the text 'a dog'"),
    ([["a dog"], ["snow"]], X, r"got shape \(2, 1\)"),
    (["a dog", " "], X, "got ' ' at row 1; drop it"),
    (["a dog", 3], X, "got 3 at row 1"),
    (np.array([1.0, 2.0]), X, "got 1.0 at row 0"),
    (["a dog"], X, r"must have shape \(1, d\), one row a text; got \(2, 3\)"),
    (["a dog", "snow"], np.ones(2), r"must have shape \(2, d\), one row a text; got \(2,\)"),
    (["a dog", "snow"], X * np.nan, "`embeddings` has"),
    (["a dog", "snow"], np.array([["x"], ["y"]]), "`embeddings` must be numbers"),
    (["a dog", "snow"], np.ones((2, 0)), "with d at least 1"),
]


@pytest.mark.parametrize(("texts", "embeddings", "words"), BAD)
def test_what_is_no_list_of_texts(texts: Any, embeddings: Any, words: str) -> None:
    with pytest.raises(InputError, match=words) as told:
        Captions(texts, embeddings, "clip")
    assert "\n" not in str(told.value)


def test_a_score_that_does_not_exist() -> None:
    wrong: Any = "diffrence"
    with pytest.raises(InputError, match="unknown score of captions `diffrence`; did you mean `difference`"):
        Captions(["a dog", "snow"], X, "clip", score=wrong)
