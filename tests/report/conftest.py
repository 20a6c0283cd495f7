"""Audits made by hand, with every number chosen, so that pages can be compared word for word."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from errata.core import Audit, Evaluation, Explanation, HeldOutMeasure, Overall, SearchMeasure, Slice
from errata.explain.exemplars import Exemplars

CONFIRMED = {
    "n": 214, "errors": 98, "rate": 98 / 214, "error_rate": 98 / 214, "rest_n": 4786, "rest_rate": 0.0763, "gap": 0.382,
    "interval": (0.316, 0.449), "gap_in_class": None, "excess": (81.7, 67.6, 96.1), "p_value": 1e-9, "q_value": 2e-9,
    "power": 0.99, "visible_gap": 0.1, "rows_needed": None, "mean_loss": 1.2, "loss_gap": 0.8, "loss_interval": None,
}  # fmt: skip


@pytest.fixture
def confirmed() -> Callable[..., HeldOutMeasure]:
    return lambda **changes: HeldOutMeasure(**{**CONFIRMED, **changes})


@pytest.fixture
def make_slice(confirmed: Callable[..., HeldOutMeasure]) -> Callable[..., Slice]:
    def build(**changes: Any) -> Slice:
        plain: dict[str, Any] = {
            "id": "s1", "method": "spotlight", "name": "small triangles", "verdict": "confirmed", "threshold": 0.5,
            "rule": {}, "weights": (np.arange(100) < 20).astype(float), "confirm": confirmed(),
            "discover": SearchMeasure(200, 0.31, 0.31, 0.2, 1.0), "beyond": ("class", "confidence"),
            "found_by": ("spotlight",),
        }  # fmt: skip
        return Slice(**{**plain, **changes})

    return build


@pytest.fixture
def make_audit() -> Callable[..., Audit]:
    """A hundred rows, odd ones confirm; rows 1, 3, 5 and 51 are wrong."""

    def build(*slices: Slice, **changes: Any) -> Audit:
        wrong = np.isin(np.arange(100), (1, 3, 5, 51))
        evaluation = changes.pop("evaluation", Evaluation(labels=np.zeros(100, int), predictions=wrong.astype(int)))
        overall = Overall(100, 0.04, 0.04, 50, 4, 0.08, (0.03, 0.19), "error")
        plain: dict[str, Any] = {
            "evaluation": evaluation, "discover": np.arange(100) % 2 == 0, "overall": (("", overall),),
            "settings": {"version": "0.1.0", "methods": ["spotlight", "domino"], "seed": 0, "alpha": 0.05},
            "silence": "Below 50 rows, silence says little.",
        }  # fmt: skip
        return Audit(slices=slices, **{**plain, **changes})

    return build


class FakePictures:
    """One grey PNG a row, of a size one can choose."""

    kind = "image"

    def __init__(self, n: int, px: int = 8, noise: int = 0):
        self._n, self._px, self._noise = n, px, noise

    def __len__(self) -> int:
        return self._n

    def rows(self, index: Any) -> FakePictures:
        return FakePictures(len(index), self._px, self._noise)

    def thumbnail(self, i: int, px: int) -> bytes | None:
        return png(self._px, i % 256) + bytes(self._noise)

    def text(self, i: int) -> None:
        return None


class FakeTexts:
    """The same text in every row."""

    kind = "text"

    def __init__(self, n: int, text: str):
        self._n, self._text = n, text

    def __len__(self) -> int:
        return self._n

    def rows(self, index: Any) -> FakeTexts:
        return FakeTexts(len(index), self._text)

    def thumbnail(self, i: int, px: int) -> None:
        return None

    def text(self, i: int) -> str:
        return self._text


def png(px: int, grey: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", px, px, 8, 0, 0, 0, 0)
    rows = zlib.compress((b"\0" + bytes([grey]) * px) * px)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


@pytest.fixture
def pictures() -> type[FakePictures]:
    return FakePictures


@pytest.fixture
def texts() -> type[FakeTexts]:
    return FakeTexts


def _facts(i: int, picked: str) -> dict[str, Any]:
    wrong = i in (1, 3, 5, 51)
    return {
        "row": i, "id": i, "label": "triangle", "prediction": "star" if wrong else "triangle", "loss": 1.0,
        "wrong": wrong, "picked": picked,
    }  # fmt: skip


@pytest.fixture
def exemplars() -> Explanation:
    """Eight members, four of them at random, and one row each of the other two groups."""
    members = [_facts(i, "weight") for i in (1, 3)] + [_facts(i, "random") for i in (5, 7, 9, 11)]
    groups = [
        {"which": "slice", "of": 10, "rows": members},
        {"which": "highest loss", "of": 50, "rows": [_facts(51, "loss")]},
        {"which": "random", "of": 50, "rows": [_facts(61, "random")]},
    ]
    return Exemplars.from_json({"drawn_from": "confirm", "seed": 0, "groups": groups})


@pytest.fixture
def value_row() -> Callable[..., dict[str, Any]]:
    def build(value: str | None, **changes: Any) -> dict[str, Any]:
        plain: dict[str, Any] = {
            "value": value, "slice": [40, 50], "rest": [10, 100], "slice_share": 0.8, "rest_share": 0.1, "lift": 8.0,
            "n": 50, "errors": 21, "error_rate": 0.42, "mean_loss": 1.0, "found_points": 60.0,
            "found": {"slice_share": 0.7, "rest_share": 0.1},
        }  # fmt: skip
        return {**plain, **changes}

    return build
