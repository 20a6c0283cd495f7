"""What the planted worlds of the methods' tests have in common; each test file adds its own bad group.

All of them take the generator, and draw from it in the order in which they are called.
"""

from __future__ import annotations

import numpy as np

from errata.core import Array, Evaluation

CLUSTERS = 10
COLUMNS = 12


def ten_clusters(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """(n,) the cluster of each row, and (n, 12) where it lies."""
    cluster = rng.integers(0, CLUSTERS, n)
    centres = rng.normal(0, 3, (CLUSTERS, COLUMNS))
    return cluster, centres[cluster] + rng.normal(size=(n, COLUMNS))


def draw_errors(rng: np.random.Generator, bad: Array, rate: float, shuffled: bool) -> Array:
    """(n,) bool: bad rows fail at `rate`, others one in twenty. shuffled: as many errors, anywhere."""
    wrong = rng.random(len(bad)) < np.where(bad, rate, 0.05)
    return rng.permutation(wrong) if shuffled else wrong


def planted_world(rng: np.random.Generator, X: Array, wrong: Array, k: int) -> Evaluation:
    """Rows of k classes at random, with probabilities; a wrong one is taken for the next class."""
    n = len(X)
    labels = rng.integers(0, k, n)
    top = rng.uniform(0.7, 0.99, n)
    probs = np.repeat(((1 - top) / (k - 1))[:, None], k, axis=1)
    probs[np.arange(n), np.where(wrong, (labels + 1) % k, labels)] = top
    return Evaluation(labels=labels, probs=probs, representations={"e": X})
