"""How Spotlight reads X: a block at a time, in float64, centred, and only the rows that a light can reach.

One pass gives everything a step needs. Rows that no light near the last one can touch are skipped: a row
at distance r from an anchor is dark for every light whose radius and distance from the anchor add up to
less than r. Nothing of the size of X is ever copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from ...core import Array, Matrix, RowView
from ...core.blocks import block_rows

SLACK = 1.1  # how much farther than the light's radius the near rows reach
COPIED = 0.1  # share of rows up to which the near ones are copied together
SKIPPED = 0.4  # share of rows up to which picking the near ones pays
BUFFER_BYTES = 1 << 20


@dataclass(frozen=True, eq=False)
class Moments:
    """What the published step needs, from one pass. `pull` is the sum of x - mu over lit rows, `reach` the sum
    of their squared distances; the others are weighted by loss."""

    total: float  # sum k
    mean: float  # sum k l / sum k
    pull: Array
    loss_pull: Array
    reach: float
    loss_reach: float


@dataclass(frozen=True, eq=False)
class LitRows:
    """The rows a light falls on."""

    index: Array  # row numbers in X
    distances: Array  # squared
    X: Matrix


@dataclass(frozen=True, eq=False)
class Neighbourhood:
    """The rows within `reach` of `anchor`."""

    anchor: Array
    reach: float
    index: Array
    X: Matrix
    squares: Array

    def covers(self, mu: Array, radius: float) -> bool:
        """Whether all rows within `radius` of `mu` are among these."""
        return float(np.linalg.norm(mu - self.anchor)) + radius <= self.reach


class Reader:
    """X of shape (n, d), read in blocks. All positions are relative to `centre`, the mean of X."""

    def __init__(self, X: Matrix, centre: Array | None = None):
        self.X = X
        self.n: int = X.shape[0]
        self.d: int = X.shape[1]
        self.reads = 0.0  # of all of X
        self._step = max(1, min(block_rows(X), BUFFER_BYTES // (8 * self.d)))
        self._buffer = np.empty((self._step, self.d))
        self.centre = np.zeros(self.d) if centre is None else centre
        if centre is None:
            self.centre = sum(block.sum(axis=0) for _, block in self.blocks(X)) / self.n
        self.squares = np.empty(self.n)
        for rows, block in self.blocks(X):
            np.einsum("ij,ij->i", block, block, out=self.squares[rows])
        self.scale = float(np.sqrt(self.squares.mean())) or 1.0
        self._near: Neighbourhood | None = None

    def blocks(self, X: Matrix) -> Iterator[tuple[slice, Array]]:
        """(rows, centred float64 block); the block is overwritten by the next one."""
        for start in range(0, len(X), self._step):
            rows = slice(start, min(start + self._step, len(X)))
            block = self._buffer[: rows.stop - rows.start]
            np.subtract(X[rows], self.centre, out=block)
            yield rows, block
        self.reads += len(X) / self.n

    def sketch(self, index: Array) -> Reader:
        """A reader of some of the rows, in the same coordinates."""
        few = Reader(RowView(self.X, index), self.centre)
        few.scale = self.scale
        return few

    def distances(self, mu: Array) -> Array:
        """(n,) squared distances of all rows."""
        return self._distances(self.X, self.squares, mu)

    def _distances(self, X: Matrix, squares: Array, mu: Array) -> Array:
        out = np.empty(len(X))
        for rows, block in self.blocks(X):
            np.dot(block, mu, out=out[rows])
        out *= -2
        out += squares
        out += mu @ mu
        return np.maximum(out, 0, out=out)

    def lit(self, mu: Array, precision: Callable[[Array], float]) -> tuple[LitRows, float]:
        """(lit rows, tau): `precision` finds tau from the distances it is given."""
        near = self._near
        if near is not None and near.covers(mu, 0.0):
            distances = self._distances(near.X, near.squares, mu)
            tau = precision(distances)
            if near.covers(mu, 1 / np.sqrt(tau)):
                within = np.flatnonzero(tau * distances < 1)
                return LitRows(near.index[within], distances[within], RowView(near.X, within)), tau
        distances = self.distances(mu)
        tau = precision(distances)
        self._gather(mu, distances, 1 / np.sqrt(tau))
        index = np.flatnonzero(tau * distances < 1)
        return LitRows(index, distances[index], RowView(self.X, index)), tau

    def _gather(self, mu: Array, distances: Array, radius: float) -> None:
        """Remember the rows near this light, where that saves reading the others."""
        self._near = None
        reach = SLACK * radius
        if np.count_nonzero(distances <= reach * reach) > SKIPPED * self.n:
            return
        index = np.flatnonzero(distances <= reach * reach)
        view = RowView(self.X, index)
        X = np.asarray(view) if len(index) <= COPIED * self.n else view
        self._near = Neighbourhood(mu.copy(), reach, index, X, self.squares[index])

    def forget(self) -> None:
        """Let go of the near rows; the next pass reads all of X."""
        self._near = None

    def weighted_sum(self, X: Matrix, weights: Array) -> Array:
        """(d,) sum of weights times rows."""
        total = np.zeros(self.d)
        for at, block in self.blocks(X):
            total += weights[at] @ block
        return total

    def moments(self, mu: Array, tau: float, losses: Array) -> Moments:
        """One pass: distances, weights and both pulls of each block while it is in the cache."""
        near = self._near
        radius = 1 / np.sqrt(tau)
        if near is not None and near.covers(mu, radius):
            return self._moments(near.X, near.squares, losses[near.index], mu, tau)[0]
        moments, distances = self._moments(self.X, self.squares, losses, mu, tau)
        self._gather(mu, distances, radius)
        return moments

    def _moments(self, X: Matrix, squares: Array, losses: Array, mu: Array, tau: float) -> tuple[Moments, Array]:
        distances = np.empty(len(X))
        offset = float(mu @ mu)
        sums = np.zeros(6)
        pulls = np.zeros((2, self.d))
        for rows, block in self.blocks(X):
            d = np.maximum(squares[rows] + offset - 2 * (block @ mu), 0)
            distances[rows] = d
            lit = tau * d < 1
            if lit.any():
                d = d[lit]
                k = 1 - tau * d
                lit_losses = losses[rows][lit]
                sums += (k.sum(), k @ lit_losses, len(d), lit_losses.sum(), d.sum(), d @ lit_losses)
                both = np.zeros((2, len(lit)))
                both[0, lit] = 1
                both[1, lit] = lit_losses
                pulls += both @ block
        total, lit_loss, count, loss, reach, loss_reach = sums
        mean = lit_loss / total if total > 0 else 0.0
        return Moments(total, mean, pulls[0] - count * mu, pulls[1] - loss * mu, reach, loss_reach), distances
