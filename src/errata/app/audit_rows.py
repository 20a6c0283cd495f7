"""What the server reads of an audit's rows: by id, as thumbnails, inside a loop."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from functools import cached_property
from threading import Lock
from typing import Any

import numpy as np

from ..core import Array, Audit
from ..core.id_order import positions_of
from ..report.script_data import UNKNOWN, WRONG, map_data, outcomes, unit_positions

SIZES = (72, 112, 256, 640)  # pixels that a thumbnail may have: as many as pages ask for
MOST_DRAWN = 20_000
CACHED = 64 << 20  # bytes of thumbnails


class AuditRows:
    """The rows of one audit; any number of threads may ask."""

    def __init__(self, audit: Audit):
        self.audit = audit
        self._thumbnails: OrderedDict[tuple[int, int], bytes] = OrderedDict()
        self._bytes_cached = 0
        self._lock = Lock()

    def find(self, id: str) -> int | None:
        """The position of the row with this id; None where the audit has no such row."""
        return positions_of(self.audit.evaluation.row_ids, [id]).get(id)

    def mask(self, ids: Iterable[str]) -> Array:
        """(n,) bool: the rows with these ids, as far as the audit has them."""
        inside = np.zeros(len(self.audit.evaluation), dtype=bool)
        inside[list(positions_of(self.audit.evaluation.row_ids, ids).values())] = True
        return inside

    def thumbnail(self, row: int, px: int) -> bytes | None:
        """None where the row has no image, or it cannot be read."""
        media = self.audit.evaluation.media
        if media is None or media.kind != "image" or not 0 <= row < len(self.audit.evaluation):
            return None
        if (cached := self.cached(row, px)) is not None:
            return cached
        try:
            image = media.thumbnail(row, _size(px))
        except Exception:  # a file that has gone or is broken, in any of the ways a decoder may say so
            return None
        return None if image is None else self._cache((row, _size(px)), image)

    def cached(self, row: int, px: int) -> bytes | None:
        """A thumbnail that was made before."""
        key = (row, _size(px))
        with self._lock:
            if key in self._thumbnails:
                self._thumbnails.move_to_end(key)
            return self._thumbnails.get(key)

    def _cache(self, key: tuple[int, int], image: bytes) -> bytes:
        with self._lock:
            if key not in self._thumbnails:
                self._thumbnails[key] = image
                self._bytes_cached += len(image)
            while self._bytes_cached > CACHED and len(self._thumbnails) > 1:
                self._bytes_cached -= len(self._thumbnails.popitem(last=False)[1])
        return image

    @cached_property
    def map(self) -> dict[str, Any] | None:
        """All rows, or as many as a browser draws with ease; members of slices are the last to go."""
        if len(self.audit.evaluation) <= MOST_DRAWN:
            return map_data(self.audit, None)
        return map_data(self.audit, self._thinned)

    @property
    def drawn(self) -> Array | None:
        """(m,) the rows that the map draws; None where there is no map."""
        if self.map is None:
            return None
        n = len(self.audit.evaluation)
        return np.arange(n) if n <= MOST_DRAWN else self._thinned

    @cached_property
    def _thinned(self) -> Array:
        """Members first, then others at random; drawn, never counted."""
        member = np.zeros(len(self.audit.evaluation), dtype=bool)
        for slice_ in self.audit.slices:
            member |= slice_.members
        order = np.lexsort((np.random.default_rng(0).random(len(member)), ~member))
        return np.sort(order[:MOST_DRAWN])

    @cached_property
    def outcome(self) -> Array:
        """(n,) the outcome of each row of the audit, as the map encodes it."""
        return outcomes(self.audit)

    def in_loop(self, loop: Array) -> Array:
        """(n,) bool: rows of the whole audit inside a polygon (m, 2) of positions in [-1, 1]."""
        points = unit_positions(self.audit)
        assert points is not None
        low = loop.min(axis=0)
        high = loop.max(axis=0)
        inside = np.zeros(len(points), dtype=bool)
        near = np.flatnonzero(((points >= low) & (points <= high)).all(axis=1))
        inside[near] = _within(points[near].astype(np.float64), loop)
        return inside

    def counts(self, inside: Array) -> dict[str, Any]:
        """How many rows are inside, how many of them are wrong, and the same of the others."""
        wrong = self.outcome == WRONG
        return {
            "n": int(inside.sum()),
            "wrong": int((wrong & inside).sum()),
            "others": int((~inside).sum()),
            "others_wrong": int((wrong & ~inside).sum()),
            "known": bool(len(self.outcome) and self.outcome[0] != UNKNOWN),
        }


def _size(px: int) -> int:
    return next((size for size in SIZES if size >= px), SIZES[-1])


def _within(points: Array, loop: Array) -> Array:
    """Even-odd rule: as many crossings to the right."""
    inside = np.zeros(len(points), dtype=bool)
    for (ax, ay), (bx, by) in zip(loop, np.roll(loop, 1, axis=0), strict=True):
        crosses = (ay > points[:, 1]) != (by > points[:, 1])
        if ay != by:
            inside ^= crosses & (points[:, 0] < (bx - ax) * (points[:, 1] - ay) / (by - ay) + ax)
    return inside
