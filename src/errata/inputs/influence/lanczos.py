"""The leading eigenpairs of a symmetric matrix that is known only by its products (Lanczos' iteration).

Where not all basis vectors fit into memory, the iteration restarts from its leading eigenvectors (thick restart, Wu and
Simon, 2000): as many products, fewer vectors.

Written once for numpy and torch: both have the few operations used here, so a basis stays on the device that the
products are computed on.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from ...core import Array, InputError, Progress, silent

ROUNDING = 50  # times the machine's epsilon: a smaller share of the matrix is noise
STAGE = "curvature"  # under which progress is reported

CHUNK = 1 << 16  # columns of a basis that are rotated at a time

Vector = Any  # (p,) a numpy array or a torch tensor


class Checkpoint(Protocol):
    """Where a run that may be killed saves its steps: basis vectors, and the small matrix column by column."""

    def vectors(self) -> Array:
        """(j, p) the basis vectors of an earlier run."""

    def columns(self) -> list[list[float]]:
        """Columns of the small matrix, one less than there are vectors."""

    def add_vector(self, vector: Vector) -> None:
        """Save the next basis vector (p,)."""

    def add_column(self, column: list[float]) -> None:
        """Save the next column."""


@dataclass(frozen=True, eq=False)
class Krylov:
    """An orthonormal basis, and the matrix restricted to it."""

    basis: Any  # (s, p)
    small: Array  # (s, s) float64, symmetric
    let_go: Array = field(default_factory=lambda: np.empty(0))  # eigenvalues that the last restart left behind


@dataclass(frozen=True, eq=False)
class Factor:
    """R with R'R near the inverse of the matrix: eigenvectors over the roots of their eigenvalues, largest first."""

    directions: Any  # (D, p)
    values: Array  # (D,) eigenvalues, without damping
    least: float  # the smallest eigenvalue seen: below zero where the loss curves downwards
    negative: int  # how many were


def krylov(
    product: Callable[[Any], Any],
    draw: Callable[[int], Vector],
    steps: int,
    *,
    block: int = 1,
    most: int | None = None,
    keep: int = 0,
    checkpoint: Checkpoint | None = None,
    progress: Progress = silent,
) -> Krylov:
    """A basis of at most `steps` vectors, and the matrix restricted to it, by block Lanczos.

    most: vectors held at a time; where `steps` are more, the `keep` leading ones are what it goes on with.

    product: (b, p) -> (b, p), the matrix times each of b vectors. draw: `draw(j)` gives a random vector (p,), the same
    one for the same j. block: vectors multiplied at a time; more need fewer readings of the data for a basis of the
    same size, whose last eigenvalues are less settled. It must be 1 for tensors and with a checkpoint.
    checkpoint: where steps are saved and resumed from.

    Every vector is made orthogonal to all earlier ones, twice, since the three-term recurrence forgets them. A basis
    that has become invariant continues from new random vectors, so that repeated eigenvalues are found as well; where
    those are mapped to nothing, so is all that is left.
    """
    first = draw(0)
    steps = min(steps, len(first))
    most = steps if most is None else min(most, steps)
    _check_plan(first, block, checkpoint, keep, most, steps)
    basis = _empty_like(first, most)
    small = np.zeros((most, most))
    let_go = np.empty(0)
    size = _restore(checkpoint, basis, small)
    noise = ROUNDING * _epsilon(first)
    scale = float(np.abs(small).max())
    if size:
        new = basis[size - 1 : size]  # saved before its product was
        size -= 1
    else:
        new = _orthonormal(_stack([draw(j) for j in range(min(block, steps))]), 0.0)
        _save_vectors(checkpoint, new)
    done = size
    while True:
        own = slice(size, size + len(new))
        size += len(new)
        basis[own] = new
        inside, rest = _split(basis[:size], product(new))
        small[:size, own] = inside
        small[own, :size] = inside.T
        if checkpoint is not None:
            checkpoint.add_column(inside[:, 0].tolist())
        done += len(new)
        progress(STAGE, done / steps)
        largest = float(np.abs(inside).max())
        left = float(abs(rest).max())
        _check_finite(left + largest)
        scale = max(scale, largest)
        if done >= steps or max(left, largest) <= noise * scale:
            break
        new = _continue(basis[:size], rest, noise * scale, draw, min(block, steps - done), done)
        if size + len(new) > most:
            let_go = _restart(basis[:size], small, keep)
            size = keep
        _save_vectors(checkpoint, new)
    return Krylov(basis[:size], _symmetric(small[:size, :size]), let_go)


def _symmetric(matrix: Array) -> Array:
    return (matrix + matrix.T) / 2


def _check_plan(first: Vector, block: int, checkpoint: Checkpoint | None, keep: int, most: int, steps: int) -> None:
    if block != 1 and (checkpoint is not None or not isinstance(first, np.ndarray)):
        raise ValueError(f"`block` must be 1 for tensors and with a checkpoint; got {block}")
    if most < steps and (checkpoint is not None or not 0 < keep <= most - block):
        raise ValueError(f"a restart keeps 1 to {most - block} of {most} vectors, without a checkpoint; got {keep}")


def _restart(basis: Any, small: Array, keep: int) -> Array:
    """Put the leading eigenvectors first, and their eigenvalues into the small matrix; returns the others."""
    size = len(basis)
    values, vectors = np.linalg.eigh(_symmetric(small[:size, :size]))
    rotate(basis, vectors[:, ::-1][:, :keep])
    small[:] = 0
    small[np.arange(keep), np.arange(keep)] = values[::-1][:keep]
    return np.asarray(values[::-1][keep:])


def rotate(basis: Any, rotation: Array) -> Any:
    """The first rows of a basis (s, p) become `rotation.T @ basis`, a few columns at a time; returns those rows."""
    turned = _like(basis, np.ascontiguousarray(rotation.T))
    for start in range(0, basis.shape[1], CHUNK):
        columns = slice(start, start + CHUNK)
        basis[: len(turned), columns] = turned @ basis[:, columns]
    return basis[: len(turned)]


def factor(krylov: Krylov, rank: int, *, tolerance: float, damping: float = 0.0, in_place: bool = False) -> Factor:
    """The `rank` largest eigenvalues above `tolerance` of the largest; negative curvature has no inverse root.

    in_place: the directions take the place of the basis, which is lost, instead of standing beside it.
    """
    values, vectors = np.linalg.eigh(krylov.small)
    most = float(values[-1])
    if not most > ROUNDING * _epsilon(krylov.basis) * float(np.abs(values).max()):
        raise InputError(
            f"the mean Hessian has no positive eigenvalue (largest {most:.3g}), so nothing can be influential; "
            "check that the loss depends on the layers chosen, or give more rows or steps"
        )
    chosen = np.flatnonzero(values > tolerance * most)[::-1][:rank]
    vectors = vectors[:, chosen]
    vectors = vectors * np.sign(vectors[np.abs(vectors).argmax(axis=0), np.arange(len(chosen))])
    scaled = vectors / np.sqrt(values[chosen] + damping)
    seen = np.concatenate([values, krylov.let_go])
    downwards = int(np.count_nonzero(seen < -tolerance * most))
    directions = rotate(krylov.basis, scaled) if in_place else _like(krylov.basis, scaled.T) @ krylov.basis
    return Factor(directions, values[chosen], float(seen.min()), downwards)


def _split(basis: Any, vectors: Any) -> tuple[Array, Any]:
    """Of vectors (b, p): (s, b) what lies in the basis, and (b, p) what is left; twice is enough (Kahan)."""
    inside = basis @ vectors.T
    rest = vectors - inside.T @ basis
    more = basis @ rest.T
    return np.asarray((inside + more).tolist()), rest - more.T @ basis


def _orthonormal(vectors: Any, least: float) -> Any:
    """(b', p) an orthonormal basis of some vectors (b, p), without those that add less than `least` to the others."""
    if not isinstance(vectors, np.ndarray):  # a tensor of one vector
        norm = math.sqrt(float(vectors[0] @ vectors[0]))
        if norm <= least:
            return vectors[:0]
        return vectors / norm
    columns, triangle = np.linalg.qr(vectors.T)
    return np.ascontiguousarray(columns.T[np.abs(np.diag(triangle)) > least])


def _continue(basis: Any, rest: Any, least: float, draw: Callable[[int], Vector], count: int, done: int) -> Any:
    """At most `count` vectors to extend a basis by: what a product left over, or random ones where that is noise."""
    new = _orthonormal(rest, least)[:count]
    if len(new):
        return new
    random = _stack([draw(done + j) for j in range(count)])
    return _orthonormal(_split(basis, random)[1], 0.0)


def _check_finite(value: float) -> None:
    if not math.isfinite(value):
        raise InputError(
            "a product with the mean Hessian is not finite; look for a row whose loss or gradient is not, "
            "or a loss without a second derivative"
        )


def _save_vectors(checkpoint: Checkpoint | None, vectors: Any) -> None:
    if checkpoint is not None:
        for vector in vectors:
            checkpoint.add_vector(vector)


def _restore(checkpoint: Checkpoint | None, basis: Any, small: Array) -> int:
    """The number of vectors that an earlier run saved, put where they belong."""
    if checkpoint is None:
        return 0
    vectors = checkpoint.vectors()[: len(basis)]
    for j, vector in enumerate(vectors):
        basis[j] = _like(basis, vector)
    for j, column in enumerate(checkpoint.columns()[: max(0, len(vectors) - 1)]):
        small[: j + 1, j] = column
        small[j, : j + 1] = column
    return len(vectors)


def _empty_like(vector: Vector, rows: int) -> Any:
    """(rows, p) of the same kind, on the same device."""
    shape = (rows, len(vector))
    if hasattr(vector, "new_empty"):
        return vector.new_empty(shape)
    return np.empty(shape, dtype=vector.dtype)


def _stack(vectors: list[Any]) -> Any:
    whole = _empty_like(vectors[0], len(vectors))
    for j, vector in enumerate(vectors):
        whole[j] = vector
    return whole


def _like(other: Any, values: Array) -> Any:
    if hasattr(other, "new_tensor"):
        return other.new_tensor(values)
    return np.asarray(values, dtype=other.dtype)


def _epsilon(vector: Vector) -> float:
    return float(np.finfo(str(vector.dtype).removeprefix("torch.")).eps)
