"""Small audits with images or texts and a known bad group, for tests and benchmarks of the app."""

from __future__ import annotations

import io
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from errata import workflow
from errata.core import Audit, Evaluation
from errata.explain.map import RowMap
from errata.inputs.media import ImageBytes, Texts

DARK = 0.15  # share of the rows, on which the model errs


def image_evaluation(
    n: int = 1000, *, seed: int = 0, classes: tuple[str, ...] = ("cat", "dog"), **changes: Any
) -> Evaluation:
    """Small images of two classes; the model fails on the dark ones.

    changes: arguments of Evaluation that replace these.
    """
    rng = np.random.default_rng(seed)
    dark = rng.random(n) < DARK
    label = rng.integers(0, 2, n)
    wrong = rng.random(n) < np.where(dark, 0.65, 0.05)
    predictions = np.where(wrong, 1 - label, label)
    confidence = rng.uniform(0.6, 0.99, n)
    probs = np.empty((n, 2))
    probs[np.arange(n), predictions] = confidence
    probs[np.arange(n), 1 - predictions] = 1 - confidence
    features = rng.normal(size=(n, 6))
    features[:, 0] += 8 * dark
    features[:, 1] += 4 * label
    arguments: dict[str, Any] = {
        "ids": np.array([f"row-{i}" for i in range(n)]),
        "labels": label,
        "predictions": predictions,
        "probs": probs,
        "losses": -np.log(probs[np.arange(n), label]),
        "class_names": classes,
        "representations": {"features": features},
        "metadata": {"light": np.where(dark, "night", "day"), "size": rng.uniform(1, 9, n).round(2)},
        "media": ImageBytes([draw_image(i, bool(dark[i]), int(label[i])) for i in range(n)]),
    }
    return Evaluation(**{**arguments, **changes})


def draw_image(i: int, dark: bool, label: int, px: int = 32) -> bytes:
    """A square (label 1) or a bar on a grey background, as PNG; `i` moves it."""
    from PIL import Image

    grey = 40 + i % 20 if dark else 190 + i % 40
    pixels = np.full((px, px, 3), grey, dtype=np.uint8)
    start = 4 + i % 12
    width = 4
    colour = (60, 110, 190)
    if label:
        width = 12
        colour = (200, 90, 60)
    pixels[start : start + 12, start : start + width] = colour
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()


def text_evaluation(n: int = 600, texts: Any = None, **changes: Any) -> Evaluation:
    """The rows of `image_evaluation` with texts instead of images."""
    if texts is None:
        light = ["dim", *["bright"] * 6]
        texts = [f"a {light[i % 7]} room, number {i}" for i in range(n)]
    return image_evaluation(n, **{"media": Texts(texts), **changes})


def quick_audit(evaluation: Evaluation, names: Mapping[str, str] | None = None, method: str = "domino") -> Audit:
    """An audit by one fast method, with a map of the first two features.

    names: slice id -> the name it gets.
    """
    audit = workflow.audit(evaluation, methods=[method], groups="none")  # the same few images stand many times
    if names:
        slices = tuple(replace(slice_, name=names.get(slice_.id, slice_.name)) for slice_ in audit.slices)
        audit = replace(audit, slices=slices)
    return _add_map(audit)


def _add_map(audit: Audit) -> Audit:
    xy = audit.evaluation.representations["features"][:, :2]
    low = xy.min(axis=0)
    high = xy.max(axis=0)
    places = np.round((2 * (xy - low) / (high - low) - 1) * 32_767).astype("<i2")
    data = {"representation": "features", "n": len(places), "xy": b64encode(places.tobytes()).decode()}
    return replace(audit, explanations=(*audit.explanations, RowMap.from_json(data)))


def tile_audit(audit: Audit, times: int) -> Audit:
    """Every row that often, a little apart on the map, and without images: a large audit in no time."""
    rows = audit.evaluation
    n = len(rows) * times
    assert rows.labels is not None
    assert rows.predictions is not None
    features = np.tile(rows.representations["features"], (times, 1)) + np.random.default_rng(0).normal(0, 0.1, (n, 6))
    evaluation = Evaluation(
        ids=np.arange(n),
        labels=np.tile(rows.labels, times),
        predictions=np.tile(rows.predictions, times),
        class_names=rows.class_names,
        representations={"features": features},
        metadata={name: np.tile(column, times) for name, column in rows.metadata.items()},
    )
    slices = tuple(replace(slice_, weights=np.tile(slice_.weights, times)) for slice_ in audit.slices[:3])
    others = tuple(item for item in audit.explanations if item.kind != "map")
    whole = replace(audit, evaluation=evaluation, slices=slices, discover=np.tile(audit.discover, times))
    return _add_map(replace(whole, explanations=others))
