"""Columns as conditions compare them: quick ways give what the slow ones do."""

from __future__ import annotations

import numpy as np

from errata.core.columns import as_printed, lower_case, type_column


def test_numbers_of_single_precision_are_what_is_printed() -> None:
    rng = np.random.default_rng(0)
    bits = rng.integers(0, 2**32, 50_000, dtype=np.uint64).astype(np.uint32).view(np.float32)
    numbers = np.concatenate([bits[np.isfinite(bits)], rng.gamma(2, 3, 50_000).astype(np.float32)])
    edges = np.array([0, -0.0, 0.1, 1e-12, 1e15, 9.9999999e14, 123456792, np.nan, np.inf, -np.inf], dtype=np.float32)
    half = rng.normal(size=2000).astype(np.float16)
    for column in (numbers, -numbers, edges, half):
        np.testing.assert_array_equal(as_printed(column), column.astype(str).astype(np.float64))
    assert type_column("x", np.array([0.1], dtype=np.float32)).matches("=", [0.1]).all()


def test_text_in_lower_case_is_what_numpy_says() -> None:
    for texts in (["North", "", "aZ[@`{", "SITE 1"], ["Ärger", "É", "İstanbul", "ok"], [""], []):
        text = np.array(texts, dtype=np.str_)
        np.testing.assert_array_equal(lower_case(text), np.char.lower(text))
    some = np.array(["A", "B", "C", "D"])[::2]  # not one piece of memory
    assert lower_case(some).tolist() == ["a", "c"]
