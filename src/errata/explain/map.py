"""The positions of all rows on a map, as part of an audit."""

from __future__ import annotations

from base64 import b64decode, b64encode
from dataclasses import dataclass, replace

import numpy as np

from ..core import Array, Audit, Explanation, Progress, silent
from .layout import lay_out

LANDMARKS = 1_000  # rows that t-SNE lays out; the others lie between them
FULL_SCALE = 32_767  # positions are whole numbers of two bytes: a screen has fewer pixels


@dataclass(frozen=True)
class RowMap(Explanation):
    """Where each row lies on a map of one representation."""

    kind = "map"

    representation: str
    n: int
    xy: str  # base64 of n pairs of whole numbers of two bytes

    def positions(self) -> Array:
        """(n, 2) whole numbers from -32767 to 32767."""
        positions: Array = np.frombuffer(b64decode(self.xy), dtype="<i2").reshape(-1, 2)
        return positions


def draw_map(
    audit: Audit,
    representation: str | None = None,
    *,
    seed: int = 0,
    progress: Progress = silent,
) -> Audit:
    """The audit with a map on which rows that are alike in one representation lie together.

    audit: with any slices, or none. representation: its name. Default: that of the first slice, or the first there is;
    without one there is no map. seed: another one gives another map. progress: gets "map" and the share done.
    """
    name = representation or _default_representation(audit)
    if name is None:
        return audit
    xy = lay_out(audit.evaluation, name, seed=seed, landmarks=LANDMARKS, progress=progress)
    whole = np.round(np.clip(xy, -1, 1) * FULL_SCALE).astype("<i2")
    row_map = RowMap(name, len(whole), b64encode(whole.tobytes()).decode())
    others = tuple(explanation for explanation in audit.explanations if explanation.kind != RowMap.kind)
    return replace(audit, explanations=(*others, row_map))


def _default_representation(audit: Audit) -> str | None:
    representations = audit.evaluation.representations
    named = (slice_.rule.get("representation") for slice_ in audit.slices)
    return next((str(name) for name in named if name in representations), next(iter(representations), None))
