"""The places of all rows on a map, as part of an audit."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ..core import Audit, Explanation
from .layout import place

LANDMARKS = 1_000  # rows that t-SNE places; the others lie between them
FULL = 32_767  # places are whole numbers of two bytes: a screen has fewer pixels


def draw_map(
    audit: Audit,
    representation: str | None = None,
    *,
    seed: int = 0,
    progress: Callable[[float], None] | None = None,
) -> Audit:
    """The audit with a map: rows that are alike to the model, or to whoever made the representation, lie together.

    representation: its name; left out, that of the first slice, or the first there is. Without one, no map.
    """
    name = representation or _of_slices(audit)
    if name is None:
        return audit
    xy = place(audit.evaluation, name, seed=seed, landmarks=LANDMARKS, progress=progress)
    places = np.round(np.clip(xy, -1, 1) * FULL).astype("<i2")
    data = {"representation": name, "n": len(places), "xy": b64encode(places.tobytes()).decode()}
    kept = tuple(one for one in audit.explanations if one.kind != "map")
    return replace(audit, explanations=(*kept, Explanation("map", data)))


def _of_slices(audit: Audit) -> str | None:
    names = audit.evaluation.representations
    asked = (found.rule.get("representation") for found in audit.slices)
    return next((str(name) for name in asked if name in names), next(iter(names), None))
