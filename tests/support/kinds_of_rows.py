"""Rows of every kind that an audit can be of: texts, images, several labels, a regression, another byte order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from errata import Evaluation, Source
from errata.core import Origin
from errata.inputs import ImageArrays, Texts

N, D = 240, 4
METHODS = ("spotlight", "gmm", "confusion", "high-loss")


def _arrays() -> dict[str, Any]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)).astype(np.float32)
    corner = np.arange(N) % 6 == 0
    X[corner] = 0.3 * X[corner] + 4
    labels = rng.integers(0, 2, N)
    positive = np.where(labels ^ (corner | (rng.random(N) < 0.1)), 0.8, 0.3)
    return {"representations": {"deep": X}, "labels": labels, "probs": np.stack([1 - positive, positive], axis=1)}


def _plain() -> Evaluation:
    return Evaluation(**_arrays(), origin=Origin(model="m", data="d", code="c"))


def _texts() -> Evaluation:
    rng = np.random.default_rng(1)
    arrays = _arrays()
    X = arrays["representations"]["deep"]
    return Evaluation(
        **{**arrays, "representations": {"deep": X, "clip": X.astype(np.float64) * 2}},
        ids=np.array([f"zeile-{i}-ä" for i in rng.permutation(N)]),
        groups=np.array([f"patient {i // 3}" for i in range(N)]),
        media=Texts([f"Satz „{i}“\n\u2028 mit Zeilen" if i % 3 else "" for i in range(N)]),
        class_names=("nein", "ja"),
        sources={"clip": Source(from_model=False), "deep": Source(reads=frozenset({"label"}))},
        metadata={
            "age": np.where(np.arange(N) % 7 == 0, np.nan, np.arange(N)),
            "site": np.array(["a", "", "c"] * (N // 3)),
            "seen": np.array(["2020-01-01", "2021-05-05"] * (N // 2), dtype="datetime64[D]"),
            "flag": np.arange(N) % 2 == 0,
        },
    )


def _images() -> Evaluation:
    pictures = np.random.default_rng(2).integers(0, 255, (N, 8, 9, 3), dtype=np.uint8)
    return Evaluation(**_arrays(), media=ImageArrays(pictures))


def _multilabel() -> Evaluation:
    arrays = _arrays()
    labels = np.stack([arrays["labels"], 1 - arrays["labels"], np.arange(N) % 2], axis=1)
    probs = np.stack([arrays["probs"][:, 1], arrays["probs"][:, 0], np.full(N, 0.6)], axis=1)
    return Evaluation(
        representations=arrays["representations"], labels=labels, probs=probs, class_names=("a", "b", "c")
    )


def _regression() -> Evaluation:
    arrays, rng = _arrays(), np.random.default_rng(3)
    target = rng.normal(size=N)
    predicted = target + rng.normal(size=N) * np.where(np.arange(N) % 6 == 0, 4, 0.2)
    return Evaluation(representations=arrays["representations"], labels=target, predictions=predicted)


def _swapped() -> Evaluation:
    """Arrays in the other byte order, as some instruments write them."""
    arrays = _arrays()
    return Evaluation(
        representations={"deep": arrays["representations"]["deep"].astype(">f4")},
        losses=(3 * (np.arange(N) % 6 == 0) + np.random.default_rng(4).random(N)).astype(">f8"),
        ids=np.arange(N).astype(">i4"),
        metadata={
            "month": np.array(["2020-01", "2021-07"] * (N // 2), dtype="datetime64[M]"),
            "age": np.ones(N, ">i2"),
        },
    )


KINDS: dict[str, Callable[[], Evaluation]] = {
    "plain": _plain, "texts": _texts, "images": _images, "multilabel": _multilabel, "regression": _regression,
    "swapped": _swapped,
}  # fmt: skip
