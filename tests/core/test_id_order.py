"""Rows by the texts of their ids, without a table of all of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from errata.core.id_order import positions_of

ASKED = ["7", "-3", "07", "+7", " 7", "7.0", "", "none", "b'x'", "x", str(2**70), "²", "300000"]


@pytest.mark.parametrize(
    "ids",
    [
        np.arange(-5, 300_001),
        np.arange(300_001)[::-1].copy(),
        np.array([7, 3], dtype=np.uint8),
        np.array(["7", "x", "07", ""]),
        np.array([b"x", b"7"]),
        np.array([], dtype=np.int64),
    ],
    ids=["ascending", "descending", "small", "text", "bytes", "none"],
)
def test_positions_are_those_of_a_table(ids: Any) -> None:
    table = {str(id): i for i, id in enumerate(ids.tolist())}
    assert positions_of(ids, ASKED) == {text: table[text] for text in ASKED if text in table}
    assert positions_of(ids, []) == {}
