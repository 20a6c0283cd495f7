"""Which rows of an audit a person wants to see, and in which order."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from functools import cached_property
from threading import Lock
from typing import Annotated, Literal

import numpy as np
from fastapi import Query

from .. import hypothesis
from ..core import Array, Audit, InputError
from ..core.blocks import Matrix, blocks
from ..core.judgement import kept
from ..report.column_bars import ColumnBars, all_column_bars
from ..report.script_data import map_representation
from .served_audit import ServedAudit

CACHED = 64 << 20  # bytes of positions of rows that were asked for
LONGEST_LOOP = 5000  # points
BLOCK = 8 << 20  # bytes of a representation that are read at a time
NEAR = "near"

Order = Literal["", "random", "loss", "confidence", "depth", "near", "given"]


@dataclass(frozen=True)
class RowQuery:
    """What an address of rows says; every field is a parameter of it.

    slice, side: members of a slice, the rows outside of it, or any. where: a condition, or words. outcome: wrong or
    right rows. verdict: rows in a slice of that verdict, or in none. role: search or held-out rows. moved: rows that
    people put in or out of the slice. loop: "x,y;x,y;…" on the map. like: the id of a row that others are to be near
    to. order, up, seed: sorted by what, smallest first or not, and which of the random orders.
    """

    slice: str = ""
    side: Literal["in", "out", "any"] = "in"
    where: str = ""
    outcome: Literal["", "wrong", "right"] = ""
    verdict: Literal["", "confirmed", "not confirmed", "too few to tell", "none"] = ""
    role: Literal["", "search", "held-out"] = ""
    moved: Literal["", "in", "out"] = ""
    loop: str = ""
    like: str = ""
    order: Order = ""
    up: bool = False
    seed: Annotated[int, Query(ge=0, lt=2**63)] = 0


class RowFinder:
    """Answers queries about the rows of one audit; any number of threads may ask."""

    def __init__(self, served: ServedAudit) -> None:
        self._served = served
        self._evaluation = served.audit.evaluation
        self._found: OrderedDict[RowQuery, Array] = OrderedDict()
        self._left = served.left()
        self._lock = Lock()

    def find(self, query: RowQuery) -> Array:
        """(m,) positions of the rows that match, in the order that was asked for."""
        left = self._served.left()  # people may move rows at any time: then nothing that was found counts
        with self._lock:
            if left is not self._left:
                self._found.clear()
                self._left = left
            if query in self._found:
                self._found.move_to_end(query)
                return self._found[query]
        return self._remember(query, self._sort(query, self.matching(query)), left)

    def _remember(self, query: RowQuery, rows: Array, left: Audit) -> Array:
        with self._lock:
            if left is self._left:
                self._found[query] = rows
            while sum(found.nbytes for found in self._found.values()) > CACHED and len(self._found) > 1:
                self._found.popitem(last=False)
        return rows

    def mask(self, query: RowQuery) -> Array:
        """(n,) bool: the rows that match."""
        inside = np.zeros(len(self._evaluation), dtype=bool)
        inside[self.find(query)] = True
        return inside

    def matching(self, query: RowQuery) -> Array:
        """(n,) bool: the rows that meet all that a query asks."""
        inside = self._slice_rows(query) & self._verdict_rows(query.verdict) & self._outcome_rows(query.outcome)
        if query.role:
            inside &= self._served.audit.discover == (query.role == "search")
        if query.moved:
            moved = self._served.moved(query.slice)
            inside &= self._served.rows.mask(id for id, put in moved.items() if put == (query.moved == "in"))
        if query.loop and self._served.rows.map is None:
            raise InputError("This audit has no map to draw a loop on.")
        if query.loop:
            inside &= self._served.rows.in_loop(read_loop(query.loop))
        if query.where.strip() and not self.searches(query):
            inside &= hypothesis.parse(query.where, self._evaluation).mask(self._evaluation)
        return inside

    def _slice_rows(self, query: RowQuery) -> Array:
        everything = np.ones(len(self._evaluation), dtype=bool)
        if not query.slice:
            return everything
        members = self._served.members(query.slice)
        if query.moved == "in":  # they are not members
            return everything
        return {"in": members, "out": ~members, "any": everything}[query.side].copy()

    def _verdict_rows(self, verdict: str) -> Array:
        if not verdict:
            return np.ones(len(self._evaluation), dtype=bool)
        inside = np.zeros(len(self._evaluation), dtype=bool)
        for slice_ in kept(self._served.left()):
            if verdict in (slice_.verdict, "none"):
                inside |= slice_.members
        return ~inside if verdict == "none" else inside

    def _outcome_rows(self, outcome: str) -> Array:
        if not outcome:
            return np.ones(len(self._evaluation), dtype=bool)
        errors = self._evaluation.errors
        if errors is None:
            raise InputError("Rows are neither wrong nor right: this audit has no label and prediction of each.")
        return errors if outcome == "wrong" else ~errors

    def searches(self, query: RowQuery) -> bool:
        """Whether an encoder orders all rows by how near they are to the words of a query."""
        if self._served.search is None or not query.where.strip():
            return False
        return isinstance(hypothesis.parse(query.where, self._evaluation).meaning, hypothesis.WordQuery)

    def order_of(self, query: RowQuery) -> str:
        """What rows are sorted by: where nothing is said, at random, or by what they are to be near to."""
        near = bool(query.like) or self.searches(query)
        if query.order == NEAR and not near:
            raise InputError("Near to what? Name a row with “like”, or write words.")
        if query.order:
            return query.order
        return NEAR if near else "random"

    def _sort(self, query: RowQuery, inside: Array) -> Array:
        rows = np.flatnonzero(inside)
        order = self.order_of(query)
        if order == "random":
            keys: Array = np.random.default_rng([query.seed, 7]).random(len(inside))[rows]
        elif order == "given":
            keys = rows
        else:
            values = self._values(query, order)[rows]
            keys = values if query.up else -values
        return rows[np.argsort(keys, kind="stable")].astype(np.int32)

    def _values(self, query: RowQuery, order: str) -> Array:
        """(n,) what rows are sorted by, the largest first unless asked otherwise."""
        if order == NEAR:
            if query.like:
                return -self.distances(self._served.position(query.like))
            assert self._served.search is not None
            return np.asarray(self._served.search(query.where), dtype=np.float64)
        if order == "depth":
            return self._depth(query.slice)
        values = self._evaluation.losses if order == "loss" else self.confidence
        if values is None:
            raise InputError(f"The rows of this audit have no {order} to sort by.")
        return np.asarray(values, dtype=np.float64)

    def _depth(self, slice_id: str) -> Array:
        for slice_ in self._served.left().slices:
            if slice_.id == slice_id:
                return np.asarray(slice_.weights, dtype=np.float64)
        raise InputError("Depth is how firmly a row belongs to a slice that was found; name one.")

    @cached_property
    def confidence(self) -> Array | None:
        """(n,) the probability of the most likely class; None where there are none, or several labels a row."""
        probs = self._evaluation.probs
        if probs is None or self._evaluation.task != "classification":
            return None
        return np.concatenate([np.asarray(block).max(axis=1) for _, block in blocks(probs, BLOCK)])

    @cached_property
    def columns(self) -> tuple[ColumnBars, ...]:
        """Every column as bars."""
        return tuple(all_column_bars(self._evaluation))

    @property
    def representation(self) -> Matrix | None:
        """What nearness is measured in: what the map is of, or the first there is."""
        name = map_representation(self._served.audit)
        return None if name is None else self._evaluation.representations[name]

    def distances(self, row: int) -> Array:
        """(n,) squared distances of all rows to one."""
        X = self._needed_representation()
        centre = np.asarray(X[row : row + 1], dtype=np.float32)
        parts = [np.square(np.asarray(block, dtype=np.float32) - centre).sum(axis=1) for _, block in blocks(X, BLOCK)]
        return np.concatenate(parts)

    def _needed_representation(self) -> Matrix:
        if self.representation is None:
            raise InputError("This audit has no representation to measure nearness in.")
        return self.representation

    def right_neighbours(self, rows: list[int], count: int) -> list[list[int]]:
        """For each of some rows, the nearest others that have its label and are right, nearest first."""
        labels = self._evaluation.labels
        errors = self._evaluation.errors
        if errors is None or labels is None or self.representation is None:
            return [[] for _ in rows]
        X = self.representation
        asked = np.concatenate([np.asarray(X[row : row + 1], dtype=np.float32) for row in rows])
        near = np.full((len(rows), count), -1)
        far = np.full((len(rows), count), np.inf)
        for where, block in blocks(X, BLOCK):
            distances = _squared(asked, np.asarray(block, dtype=np.float32))
            candidates = np.arange(where.start, where.stop)
            fits = (labels[where] == labels[rows][:, None]) & ~errors[where] & (candidates != np.array(rows)[:, None])
            distances[~fits] = np.inf
            some = np.argpartition(distances, min(count, len(block)) - 1, axis=1)[:, :count]  # sorting all takes long
            both = np.concatenate([far, np.take_along_axis(distances, some, axis=1)], axis=1)
            of = np.concatenate([near, candidates[some]], axis=1)
            best = np.argsort(both, axis=1, kind="stable")[:, :count]
            far = np.take_along_axis(both, best, axis=1)
            near = np.take_along_axis(of, best, axis=1)
        return [row[np.isfinite(distance)].tolist() for row, distance in zip(near, far, strict=True)]


def _squared(a: Array, b: Array) -> Array:
    """(m, n) squared distances, from the mean of both: lengths that are large beside them lose no digits."""
    centre = b.mean(axis=0)
    a = a - centre
    b = b - centre
    squares: Array = np.square(a).sum(axis=1)[:, None] + np.square(b).sum(axis=1) - 2 * a @ b.T
    return np.maximum(squares, 0)


def read_loop(text: str) -> Array:
    """(m, 2) the points of a loop, from "x,y;x,y;…"."""
    try:
        points = [tuple(map(float, pair.split(","))) for pair in text.split(";")]
    except ValueError as error:
        raise InputError("A loop is written as “x,y;x,y;…”, numbers between -1 and 1.") from error
    loop = np.array(points) if {len(point) for point in points} == {2} else np.empty((0, 2))
    if not 3 <= len(loop) <= LONGEST_LOOP or not np.isfinite(loop).all():
        raise InputError(f"A loop has 3 to {LONGEST_LOOP:,} points, two finite numbers each.")
    return loop
