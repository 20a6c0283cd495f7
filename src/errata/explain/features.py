"""What the features of a path look like: heat maps and feature attacks on the rows that raise them most (Barlow).

A feature means something to people where it is a robust model's; nothing here asks how the model was trained.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core import Array, Audit, Evaluation, Explanation, InputError, Slice, require
from ..core.errors import unknown
from .path import path_rule
from .thumbnails import address, overlaid

if TYPE_CHECKING:
    import torch

    from ..tensors import Ball, Lens, Prepare

STEPS = 100
CHANGE = 0.1  # of an attack without a radius: so much of every value of a picture, in the mean square
CLOSE = 0.05  # of the largest value: features of the same model differ by less, also in half precision


def picture_features(
    audit: Audit,
    model: torch.nn.Module,
    images: Sequence[Any] | Array,
    *,
    representation: str | None = None,
    prepare: Prepare | None = None,
    layer: str | None = None,
    maps: str | None = None,
    radius: float | None = None,
    step: float | None = None,
    steps: int = STEPS,
    device: torch.device | str | None = None,
) -> Audit:
    """The audit with pictures for every path that method `barlow` found in features of `model`.

    images: (n, h, w, 3) or (n, h, w), or anything that gives the picture of row i; bytes, or floats in [0, 1].
    prepare: from pixels (b, c, h, w) in [0, 1] to what the model takes (`errata.train.scaled` for ours); left out,
    pixels as they are. representation: which one the model made; needed where paths were found in several.
    layer: the one that was collected, where it had a name. maps: the module whose maps make heat maps; left out, the
    last. radius, step, steps: of the attack, L2 in units of [0, 1] pixels; left out, the radius is .1 for every value
    of a picture and the step 2.5 radius / steps. The paper has step 1, 500 steps and no radius that ever binds.
    """
    require("torch", "torch")
    from ..tensors import Ball, Lens

    if len(images) != len(audit.evaluation):
        raise InputError(f"`images` has {len(images)} rows and the audit {len(audit.evaluation)}; give one a row")
    name = _representation(audit, representation)
    if name is None:
        return audit
    lens = Lens(model, prepare=prepare, layer=layer, maps=maps, device=device)
    first = np.asarray(images[0])
    size = CHANGE * math.sqrt(first.size) if radius is None else radius
    studio = _Studio(audit.evaluation, name, lens, images, Ball(size, steps, step))
    return replace(audit, slices=tuple(studio.pictured(found) for found in audit.slices))


def _representation(audit: Audit, asked: str | None) -> str | None:
    """The one that paths were found in; None where there are no paths."""
    rules = [rule for found in audit.slices if (rule := path_rule(found.rule)) is not None]
    found = sorted({rule["representation"] for rule in rules})
    if asked is not None and asked not in audit.evaluation.representations:
        raise unknown("representation", asked, audit.evaluation.representations)
    if asked is None and len(found) > 1:
        raise InputError(f"paths were found in {' and '.join(found)}; say which of them `model` made, `representation`")
    return asked if asked is not None else next(iter(found), None)


class _Studio:
    """Takes the pictures of one audit; those of a feature and some rows once."""

    def __init__(self, evaluation: Evaluation, name: str, lens: Lens, images: Any, ball: Ball):
        self._evaluation, self._name, self._lens, self._images, self._ball = evaluation, name, lens, images, ball
        self._taken: dict[tuple[int, ...], list[dict[str, Any]]] = {}

    def pictured(self, found: Slice) -> Slice:
        rule = path_rule(found.rule)
        shown = next((e.data for e in found.explanations if e.kind == "path"), None)
        if rule is None or rule["representation"] != self._name or shown is None:
            return found
        data = {
            "representation": self._name,
            "radius": self._ball.radius,
            "step": self._ball.stride,
            "steps": self._ball.steps,
            "features": [self._feature(one) for one in shown["features"]],
        }
        kept = [e for e in found.explanations if e.kind != "features"]
        return replace(found, explanations=(*kept, Explanation("features", data)))

    def _feature(self, one: Mapping[str, Any]) -> dict[str, Any]:
        rows = [row["row"] for row in one["activating"]]
        key = (one["feature"], *rows)
        if key not in self._taken:
            self._taken[key] = self._pictures(one["feature"], rows) if rows else []
        return {"feature": one["feature"], "name": one["name"], "pictures": self._taken[key]}

    def _pictures(self, feature: int, rows: Sequence[int]) -> list[dict[str, Any]]:
        images = _stacked(self._images, rows)
        self._check(images, rows)
        heats = self._lens.heat(images, feature)
        attacked, before, after, gone = self._lens.attack(images, feature, self._ball)
        plain = images / 255 if images.dtype == np.uint8 else images
        return [
            {
                "row": int(row),
                "picture": address(plain[i]),
                "heat": address(overlaid(plain[i], heats[i])),  # None: the feature is nowhere in it
                "attack": address(attacked[i]),
                "before": float(before[i]),
                "after": float(after[i]),
                "moved": float(gone[i]),
            }
            for i, row in enumerate(rows)
        ]

    def _check(self, images: Array, rows: Sequence[int]) -> None:
        """The model sees in the pictures what the audit has: else the pictures would be of something else."""
        held = np.asarray(self._evaluation.representations[self._name][np.asarray(rows)], dtype=np.float64)
        seen = self._lens.features(images)
        if seen.shape != held.shape:
            raise InputError(
                f"`model` has {seen.shape[1]} features where `{self._name}` has {held.shape[1]} columns; "
                "give the model that made them, and its `layer`"
            )
        wrong = np.abs(seen - held).max(axis=1) > CLOSE * max(np.abs(held).max(), np.abs(seen).max())
        if wrong.any():
            raise InputError(
                f"the features of `model` differ from `{self._name}`, first in row {rows[int(wrong.argmax())]}; "
                "give the model that made them, its `prepare`, and the pictures in the order of the rows"
            )


def _stacked(images: Any, rows: Sequence[int]) -> Array:
    pictures = [np.asarray(images[int(i)]) for i in rows]
    if len({picture.shape for picture in pictures}) > 1:
        raise InputError("`images` differ in size; give them as the model sees them, all of one size")
    return np.stack(pictures)
