"""What is said above wrong members beside right rows: no more than was looked at."""

from __future__ import annotations

import numpy as np
import pytest

from errata.core import Evaluation
from errata.explain.examples import example, example_fields
from errata.explain.near import Near, NearExample
from errata.report.parts.rows import _near_note


@pytest.mark.parametrize(
    ("total", "words"),
    [
        (1200, "at least 1,200 such rows as near"),
        (1, "at least 1 such row as near"),
        (0, "none that was seen is as near"),
    ],
)
def test_a_count_of_a_sample_is_no_count_of_all(total: int, words: str) -> None:
    rows = Evaluation(labels=np.array([0, 0]), predictions=np.array([0, 1]), representations={"x": np.eye(2)})
    pair = NearExample(**example_fields(rows, 0), beside=example(rows, 1))
    assert words in _near_note(Near("discover", "confirm", "x", 0.5, total, (pair,)))
