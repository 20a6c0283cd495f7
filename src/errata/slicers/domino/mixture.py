"""The mixture behind `domino`: Gaussians on the embedding, with a label and a prediction for each component.

Row i under component s has the log density

    log pi_s + log N(z_i; mu_s, diag v_s) + g log p_s[y_i] + h a(q_i, p^_s)

with label y_i, soft prediction q_i, and a one of two agreements: "inner", log sum_j q_ij p^_sj, or
"cross-entropy", sum_j q_ij log p^_sj. The M-step averages y and q by responsibility whatever g and h are. That
average maximises the label term and the cross-entropy, so EM cannot go down with them; of "inner" it is the
maximiser only where predictions are 0 or 1. Both agree there.

Nothing here is larger than (n, s) beside the rows themselves: one pass over blocks of rows is an E-step and
the sums of the next M-step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

import numpy as np

from ...core import Array, Progress, silent
from ...core.blocks import blocks
from ...engine import HeldRows, Totals

if TYPE_CHECKING:
    import torch
    from scipy import sparse

    from ...tensors.rows import TensorWork

AgreementTerm = Literal["cross-entropy", "inner"]

LEAST = 1e-12  # a probability below it counts as this: one row of an unseen class is unlikely, not impossible
DEAD = 1e-8  # rows in a component that has none: it has no mean of its own
LOG_TWO_PI = float(np.log(2 * np.pi))


@dataclass(frozen=True, eq=False)
class MixtureRows:
    """What a mixture is fitted to."""

    Z: Array  # (n, d) centred, so that sums of squares lose nothing
    labels: Array  # (n,) class indices
    probs: Array  # (n, k)

    def blocks(self) -> Iterator[tuple[slice, Array, Array, sparse.csr_matrix]]:
        """(rows, z beside its squares (b, 2 d), probs (b, k), one-hot labels (b, k)) in float64."""
        from scipy import sparse

        k = self.probs.shape[1]
        for rows, z in blocks(self.Z):
            y = self.labels[rows]
            cells = np.ones(len(y)), y, np.arange(len(y) + 1)
            yield rows, with_squares(z), self.probs[rows].astype(np.float64), sparse.csr_matrix(cells, (len(y), k))


def with_squares(z: Array) -> Array:
    """(b, 2 d): one product with it gives what a quadratic form needs, and one all moments."""
    b, d = z.shape
    both = np.empty((b, 2 * d))
    both[:, :d] = z
    np.multiply(both[:, :d], both[:, :d], out=both[:, d:])
    return both


@dataclass(frozen=True, eq=False)
class Weights:
    """How much the label (g) and the prediction (h) count beside the embedding, and how predictions agree."""

    label: float = 1.0
    prediction: float = 1.0
    agreement: AgreementTerm = "cross-entropy"


@dataclass(frozen=True, eq=False)
class Variance:
    """What keeps a component from closing on single rows: at least `floor`, then `added` on top.

    A floor is the constrained maximiser, so the likelihood still cannot go down.
    """

    whole: Array  # (d,) of all rows: what a component without rows has
    floor: Array | float = 0.0
    added: float = 0.0


@dataclass(frozen=True, eq=False)
class DominoMixture:
    """The parameters of s components: a Gaussian with a diagonal covariance, and shares of labels and predictions."""

    log_weights: Array  # (s,)
    means: Array  # (s, d)
    variances: Array  # (s, d)
    labels: Array  # (s, k) probability of each label
    predictions: Array  # (s, k) and of each prediction

    def embedding(self, both: Array) -> Array:
        """(b, s) log pi_s + log N(z), from z beside its squares: what is known before label and prediction."""
        precisions = 1 / self.variances
        slopes = np.hstack([self.means * precisions, -0.5 * precisions])
        heights = np.square(self.means) * precisions + np.log(self.variances) + LOG_TWO_PI
        density: Array = both @ slopes.T
        density += self.log_weights - 0.5 * heights.sum(axis=1)
        return density

    def outcome(self, labels: Array, probs: Array, weights: Weights) -> Array:
        """(b, s) g log p_s[y] + h a(q, p^_s)."""
        seen = self.labels.shape[1]
        unseen = np.full((len(self.labels), 1), LEAST)  # of new rows, a class that the rows of the fit did not show
        by_label = weights.label * np.log(np.maximum(np.hstack([self.labels, unseen]), LEAST)).T
        if weights.agreement == "inner":
            agreement = weights.prediction * np.log(probs @ self.predictions.T + LEAST)
        else:
            agreement = probs @ (weights.prediction * np.log(np.maximum(self.predictions, LEAST)).T)
        agreement += by_label[np.minimum(labels, seen)]
        return agreement


@dataclass(eq=False)
class Sums:
    """Over rows, weighted by responsibility: all that an M-step reads."""

    mass: Array  # (s,)
    moments: Array  # (s, 2 d) of z and of its squares
    labels: Array  # (s, k)
    predictions: Array  # (s, k)

    @classmethod
    def none(cls, s: int, d: int, k: int) -> Sums:
        """Sums over no rows, for s components, d columns and k classes."""
        return cls(np.zeros(s), np.zeros((s, 2 * d)), np.zeros((s, k)), np.zeros((s, k)))

    def add(self, shares: Array, both: Array, probs: Array, onehot: sparse.csr_matrix) -> None:
        """Add a block of rows with their responsibilities."""
        self.mass += shares.sum(axis=0)
        self.moments += shares.T @ both
        self.labels += (onehot.T @ shares).T
        self.predictions += shares.T @ probs


Expect = Callable[[DominoMixture, MixtureRows, Weights], tuple[Sums, float]]


def normalise(density: Array) -> tuple[Array, Array]:
    """(b, s) responsibilities and (b,) log sums, in place of the log densities."""
    peak = density.max(axis=1, keepdims=True)
    density -= peak
    np.exp(density, out=density)
    total = density.sum(axis=1, keepdims=True)
    density /= total
    return density, (np.log(total) + peak)[:, 0]


def expect(mixture: DominoMixture, rows: MixtureRows, weights: Weights) -> tuple[Sums, float]:
    """The sums of the next M-step, and the mean log-likelihood of this mixture."""
    *sums, total = part_sums(rows.Z, rows.labels, rows.probs, mixture, weights)
    return Sums(*sums), total / len(rows.Z)


def expect_in(held: HeldRows) -> Expect:
    """`expect` of the rows that an engine holds: their embedding, labels and probabilities."""

    def expect_parts(mixture: DominoMixture, rows: MixtureRows, weights: Weights) -> tuple[Sums, float]:
        *sums, total = held.total(part_sums, mixture, weights, on_device=_on_device)
        return Sums(*sums), total / len(rows.Z)

    return expect_parts


def _on_device(device: torch.device, mixture: DominoMixture, weights: Weights) -> TensorWork:
    from .device import chunk_sums

    return chunk_sums(device, mixture, weights)


def part_sums(Z: Array, labels: Array, probs: Array, mixture: DominoMixture, weights: Weights) -> Totals:
    """What some rows add to the sums of an M-step, and to the log-likelihood."""
    rows = MixtureRows(Z, labels, probs)
    sums = Sums.none(len(mixture.means), Z.shape[1], probs.shape[1])
    total = 0.0
    for where, both, some, onehot in rows.blocks():
        density = mixture.embedding(both)
        density += mixture.outcome(labels[where], some, weights)
        shares, log_sums = normalise(density)
        sums.add(shares, both, some, onehot)
        total += float(log_sums.sum())
    return sums.mass, sums.moments, sums.labels, sums.predictions, total


def sums_of(shares: Array, rows: MixtureRows) -> Sums:
    """The sums for given (n, s) responsibilities: where EM starts."""
    sums = Sums.none(shares.shape[1], rows.Z.shape[1], rows.probs.shape[1])
    for where, both, probs, onehot in rows.blocks():
        sums.add(shares[where], both, probs, onehot)
    return sums


def maximise(sums: Sums, variance: Variance) -> DominoMixture:
    """Weighted means, variances and averages; a component without rows becomes the whole, with no weight."""
    d = sums.moments.shape[1] // 2
    alive = sums.mass > DEAD
    mass = np.where(alive, sums.mass, 1.0)[:, None]
    means = np.where(alive[:, None], sums.moments[:, :d] / mass, 0.0)
    variances = np.maximum(sums.moments[:, d:] / mass - means**2, variance.floor) + variance.added
    shares = np.maximum(sums.mass / sums.mass.sum(), np.finfo(float).tiny)
    return DominoMixture(
        log_weights=np.log(shares),
        means=means,
        variances=np.where(alive[:, None], variances, variance.whole + variance.added),
        labels=_distribution(sums.labels),
        predictions=_distribution(sums.predictions),
    )


def _distribution(counts: Array) -> Array:
    """(s, k) rows that sum to one; even where nothing was counted."""
    totals = counts.sum(axis=1, keepdims=True)
    even = np.full_like(counts, 1 / counts.shape[1])
    shares: Array = np.divide(counts, totals, out=even, where=totals > DEAD)
    return shares


def run(
    rows: MixtureRows,
    shares: Array,
    weights: Weights,
    variance: Variance,
    *,
    tolerance: float = 1e-3,
    steps: int = 100,
    progress: Progress = silent,
    expectation: Expect = expect,
) -> tuple[DominoMixture, list[float]]:
    """EM from (n, s) responsibilities, and the mean log-likelihood before each M-step.

    expectation: the E-step; `expect`, or its form for an engine or a device.
    """
    mixture = maximise(sums_of(shares, rows), variance)
    values: list[float] = []
    for i in range(steps):
        sums, value = expectation(mixture, rows, weights)
        mixture = maximise(sums, variance)
        values.append(value)
        progress("domino", (i + 1) / steps)
        if i and abs(value - values[-2]) < tolerance:
            break
    return mixture, values
