"""The leading eigenpairs of a symmetric matrix that is known only by its products (Lanczos' iteration).

Written once for numpy and torch: both have the few operations used here, so a basis stays on the device that the
products are computed on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ...core import Array, InputError

ROUNDING = 50  # times the machine's epsilon: a smaller share of the matrix is noise

Vector = Any  # (p,) a numpy array or a torch tensor


class Steps(Protocol):
    """Where a run that may be killed keeps what it has: basis vectors, and a column of the small matrix for each."""

    def vectors(self) -> Array: ...  # (j, p)

    def columns(self) -> list[list[float]]: ...  # one less

    def add_vector(self, vector: Vector) -> None: ...

    def add_column(self, column: list[float]) -> None: ...


@dataclass(frozen=True, eq=False)
class Krylov:
    """An orthonormal basis, and the matrix restricted to it."""

    basis: Any  # (s, p)
    small: Array  # (s, s) float64, symmetric


@dataclass(frozen=True, eq=False)
class Factor:
    """R with R'R near the inverse of the matrix: eigenvectors over the roots of their eigenvalues, largest first."""

    directions: Any  # (D, p)
    values: Array  # (D,) eigenvalues, without damping
    least: float  # the smallest eigenvalue seen: below zero where the loss curves downwards
    negative: int  # how many were


def krylov(
    product: Callable[[Vector], Vector],
    draw: Callable[[int], Vector],
    steps: int,
    *,
    kept: Steps | None = None,
    tell: Callable[[float], None] = lambda share: None,
) -> Krylov:
    """At most `steps` products. `draw(j)` gives a random vector, the same one for the same j.

    Every vector is made orthogonal to all earlier ones, twice, since the three-term recurrence forgets them. A basis
    that has become invariant goes on from a new random vector, so that repeated eigenvalues are found as well; where
    that one is mapped to nothing, so is all that is left.
    """
    first = draw(0)
    steps = min(steps, len(first))
    basis, small = _room(first, steps), np.zeros((steps, steps))
    size = _restore(kept, basis, small) or _add(basis, 0, first, kept)
    noise, scale = ROUNDING * _epsilon(first), float(np.abs(small).max())
    while True:
        inside, rest = _split(basis[:size], product(basis[size - 1]))
        small[:size, size - 1] = small[size - 1, :size] = inside
        if kept is not None:
            kept.add_column(inside.tolist())
        tell(size / steps)
        left, largest = _norm(rest), float(np.abs(inside).max())
        _check_finite(left + largest)
        scale = max(scale, left, largest)
        nothing = max(left, largest) <= noise * scale
        if size == steps or nothing:
            break
        if left <= noise * scale:
            _, rest = _split(basis[:size], draw(size))
        size = _add(basis, size, rest, kept)
    return Krylov(basis[:size], small[:size, :size])


def krylov_blocks(
    product: Callable[[Array], Array],
    draw: Callable[[int], Array],
    steps: int,
    block: int,
    *,
    tell: Callable[[float], None] = lambda share: None,
) -> Krylov:
    """As `krylov`, in numpy, for products (b, p) -> (b, p) that cost little more for some vectors than for one.

    The basis is one of block Krylov: of the same size, from fewer readings of the data. Leading eigenvalues agree;
    of the last ones, which neither has settled yet, it knows a little less.
    """
    first = draw(0)
    steps = min(steps, len(first))
    basis, small = _room(first, steps), np.zeros((steps, steps))
    noise, scale, size = ROUNDING * _epsilon(first), 0.0, 0
    new = _independent(np.stack([draw(j) for j in range(min(block, steps))]), 0.0)
    while True:
        new = new[: steps - size]
        size += len(new)
        own = slice(size - len(new), size)
        basis[own] = new
        inside, rest = _split_all(basis[:size], product(new))
        small[:size, own], small[own, :size] = inside, inside.T
        tell(size / steps)
        left, largest = float(np.abs(rest).max()), float(np.abs(inside).max())
        _check_finite(left + largest)
        scale = max(scale, largest)
        if size == steps or max(left, largest) <= noise * scale:
            break
        new = _independent(rest, noise * scale)
        if not len(new):
            others = np.stack([draw(size + j) for j in range(min(block, steps - size))])
            new = _independent(_split_all(basis[:size], others)[1], 0.0)
    return Krylov(basis[:size], (small[:size, :size] + small[:size, :size].T) / 2)


def factor(found: Krylov, rank: int, *, tolerance: float, damping: float = 0.0) -> Factor:
    """The `rank` largest eigenvalues above `tolerance` of the largest; negative curvature has no inverse root."""
    values, vectors = np.linalg.eigh(found.small)
    most = float(values[-1])
    if not most > ROUNDING * _epsilon(found.basis) * float(np.abs(values).max()):
        raise InputError(
            f"the mean Hessian has no positive eigenvalue (largest {most:.3g}), so nothing can be influential; "
            "check that the loss depends on the layers chosen, or give more rows or steps"
        )
    chosen = np.flatnonzero(values > tolerance * most)[::-1][:rank]
    vectors = vectors[:, chosen]
    vectors = vectors * np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(len(chosen))])
    scaled = vectors / np.sqrt(values[chosen] + damping)
    downwards = int(np.count_nonzero(values < -tolerance * most))
    return Factor(_like(found.basis, scaled.T) @ found.basis, values[chosen], float(values[0]), downwards)


def _split(basis: Any, vector: Vector) -> tuple[Array, Vector]:
    """What of a vector lies in the basis, and what is left of it; twice is enough (Kahan)."""
    inside = basis @ vector
    rest = vector - inside @ basis
    more = basis @ rest
    return np.array((inside + more).tolist()), rest - more @ basis


def _split_all(basis: Array, vectors: Array) -> tuple[Array, Array]:
    """`_split` for some vectors (b, p) at a time: (s, b), (b, p)."""
    inside = basis @ vectors.T
    rest = vectors - inside.T @ basis
    more = basis @ rest.T
    return (inside + more).astype(np.float64), rest - more.T @ basis


def _independent(vectors: Array, least: float) -> Array:
    """(b', p) an orthonormal basis of some vectors (b, p), without those that add less than `least` to the others."""
    columns, triangle = np.linalg.qr(vectors.T)
    kept: Array = np.ascontiguousarray(columns.T[np.abs(np.diag(triangle)) > least])
    return kept


def _check_finite(value: float) -> None:
    if not math.isfinite(value):
        raise InputError(
            "a product with the mean Hessian is not finite; look for a row whose loss or gradient is not, "
            "or a loss without a second derivative"
        )


def _add(basis: Any, size: int, vector: Vector, kept: Steps | None) -> int:
    basis[size] = vector / _norm(vector)
    if kept is not None:
        kept.add_vector(basis[size])
    return size + 1


def _restore(kept: Steps | None, basis: Any, small: Array) -> int:
    """The number of vectors kept by an earlier run, put where they belong; the last has its product made again."""
    if kept is None:
        return 0
    vectors = kept.vectors()[: len(basis)]
    for j, vector in enumerate(vectors):
        basis[j] = _like(basis, vector)
    for j, column in enumerate(kept.columns()[: max(0, len(vectors) - 1)]):
        small[: j + 1, j] = small[j, : j + 1] = column
    return len(vectors)


def _room(like: Vector, steps: int) -> Any:
    shape = (steps, len(like))
    return like.new_empty(shape) if hasattr(like, "new_empty") else np.empty(shape, dtype=like.dtype)


def _like(other: Any, values: Array) -> Any:
    return other.new_tensor(values) if hasattr(other, "new_tensor") else np.asarray(values, dtype=other.dtype)


def _norm(vector: Vector) -> float:
    square = float(vector @ vector)
    return math.sqrt(square)


def _epsilon(vector: Vector) -> float:
    return float(np.finfo(str(vector.dtype).removeprefix("torch.")).eps)
