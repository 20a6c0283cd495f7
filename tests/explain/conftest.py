"""Small audits made by hand, for explanations that can be computed on paper."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from errata.core import Audit, Evaluation, Overall, Slice


class FakeTexts:
    """One text a row."""

    kind = "text"

    def __init__(self, texts: list[str]):
        self._texts = list(texts)

    def __len__(self) -> int:
        return len(self._texts)

    def rows(self, index: Any) -> FakeTexts:
        return FakeTexts([self._texts[i] for i in index])

    def thumbnail(self, i: int, px: int) -> None:
        return None

    def text(self, i: int) -> str:
        return self._texts[i]


@pytest.fixture
def texts() -> Callable[[list[str]], FakeTexts]:
    return FakeTexts


def _overall(n: int) -> Overall:
    return Overall(n, None, None, n, 0, 0.0, (0.0, 0.1), "error")


def _slice(j: int, weights: Any, **changes: Any) -> Slice:
    plain: dict[str, Any] = {
        "id": f"s{j + 1}", "method": "spotlight", "name": "", "verdict": "confirmed", "threshold": 0.5, "rule": {},
        "column": j,
    }  # fmt: skip
    return Slice(**{**plain, **changes}, weights=np.asarray(weights, dtype=float))


@pytest.fixture
def make_audit() -> Callable[..., Audit]:
    """(evaluation, weights of each slice, discover): even rows search where nothing else is said."""

    def build(evaluation: Evaluation, *weights: Any, discover: Any = None, **changes: Any) -> Audit:
        n = len(evaluation)
        searched = np.arange(n) % 2 == 0 if discover is None else np.asarray(discover, dtype=bool)
        slices = tuple(_slice(j, given, **changes) for j, given in enumerate(weights))
        overall = tuple((name, _overall(n)) for name, _ in evaluation.tasks())
        return Audit(slices, evaluation, searched, overall, {}, "")

    return build


@pytest.fixture
def kinds() -> Callable[[Slice], dict[str, Any]]:
    return lambda found: {explanation.kind: explanation.to_json() for explanation in found.explanations}
