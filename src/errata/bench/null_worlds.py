"""Evaluations whose truth is known: four worlds without a slice to find, and one with a planted slice.

Five classes, 16 dimensions, 25 clusters. The representation is the model's own: its logits are linear in it, and
softer in some clusters than in others.

- `random`      every row is wrong with the same chance: no slice is true.
- `label`       the true class alone decides how often a row is wrong: slices are true, and explained by the class.
- `calibrated`  a row is wrong as often as the model says: slices are true, and explained by its confidence.
- `miscal`      the same, with another curve for each predicted class.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.special import softmax

from ..core import Array, Evaluation

CLASSES = 5
DIMENSIONS = 16
CLUSTERS = 25
BASE_RATE = 0.11
SPREAD = 0.6  # of the clusters' softness: some regions are hard, and the model knows it
LABEL_RATES = np.linspace(0.03, 0.35, CLASSES)
CURVES = ((0.6, 1.0), (0.9, 0.8), (1.0, 1.0), (1.1, 1.2), (1.4, 1.0))  # scale and power of each predicted class
WORLDS = ("random", "label", "calibrated", "miscal")


def world(kind: str, n: int, seed: int) -> Evaluation:
    """The evaluation of a world without a slice that class and confidence do not explain. kind: one of WORLDS."""
    return Evaluation(**world_arrays(kind, n, seed))


def world_arrays(kind: str, n: int, seed: int) -> dict[str, Any]:
    """Labels, probs, predictions and the model's representation of a world."""
    rng = np.random.default_rng([seed, WORLDS.index(kind)])
    X, cluster = _rows(rng, n)
    probs = _probabilities(rng, X, cluster)
    predictions = probs.argmax(axis=1)
    if kind == "label":
        # Clusters hold one true class each; a wrong row is one the model gives to another class, as surely as any.
        labels = cluster % CLASSES
        wrong = rng.random(n) < LABEL_RATES[labels]
        predictions = np.where(wrong, _another(rng, labels), labels)
        probs = _peaked(predictions, probs.max(axis=1))
    else:
        wrong = rng.random(n) < _error_rates(kind, probs, predictions)
        labels = np.where(wrong, _another(rng, predictions), predictions)
    columns = {"cluster": np.char.add("c", cluster.astype(str)), "first": X[:, 0], "second": X[:, 1].round(1)}
    return {
        "labels": labels,
        "probs": probs,
        "predictions": predictions,
        "representations": {"penultimate": X},
        "metadata": columns,
    }


def planted_world(n: int, share: float, gap: float, seed: int) -> tuple[Evaluation, Array]:
    """The calibrated world with one bad group, and (n,) bool which rows it holds.

    The group: a row and its nearest rows in three quarters of the coordinates, a metric that no method uses.
    Its correct rows are given another label until its error rate has risen by `gap`.
    """
    arrays = world_arrays("calibrated", n, seed)
    rng = np.random.default_rng([seed, 99])
    X = arrays["representations"]["penultimate"]
    labels = arrays["labels"]
    predictions = arrays["predictions"]
    some = rng.choice(DIMENSIONS, 3 * DIMENSIONS // 4, replace=False)
    distances = np.square(X[:, some] - X[rng.integers(n), some]).sum(axis=1)
    bad = np.argsort(distances, kind="stable")[: round(share * n)]
    inside = np.isin(np.arange(n), bad)
    rate = (labels[inside] != predictions[inside]).mean()
    broken = inside & (labels == predictions) & (rng.random(n) < gap / (1 - rate))
    return Evaluation(**{**arrays, "labels": np.where(broken, _another(rng, labels), labels)}), inside


def _rows(rng: np.random.Generator, n: int) -> tuple[Array, Array]:
    """(n, d) representation and (n,) cluster."""
    cluster = rng.integers(CLUSTERS, size=n)
    return rng.normal(0, 1.5, (CLUSTERS, DIMENSIONS))[cluster] + rng.normal(0, 1, (n, DIMENSIONS)), cluster


def _probabilities(rng: np.random.Generator, X: Array, cluster: Array) -> Array:
    """(n, k) softmax of logits, as sharp as makes the mean of 1 - top probability the base rate."""
    softness = np.exp(rng.normal(0, SPREAD, CLUSTERS))[cluster]
    logits = X @ rng.normal(size=(DIMENSIONS, CLASSES)) / softness[:, None]
    low = 0.0
    high = 100.0
    for _ in range(40):
        middle = (low + high) / 2
        doubt = 1 - softmax(middle * logits, axis=1).max(axis=1).mean()
        if doubt > BASE_RATE:
            low = middle
        else:
            high = middle
    probs: Array = softmax(high * logits, axis=1)
    return probs


def _error_rates(kind: str, probs: Array, predictions: Array) -> Array:
    """(n,) chance that each row is wrong."""
    doubt: Array = 1 - probs.max(axis=1)
    if kind == "random":
        return np.full(len(probs), BASE_RATE)
    if kind == "calibrated":
        return doubt
    scale, power = np.array(CURVES)[predictions].T
    rates: Array = np.clip(scale * doubt**power, 0, 1)
    return rates


def _another(rng: np.random.Generator, classes: Array) -> Array:
    """(n,) another class for each row, all equally likely."""
    return (classes + rng.integers(1, CLASSES, size=len(classes))) % CLASSES


def _peaked(predictions: Array, top: Array) -> Array:
    """(n, k) this much for the predicted class, the others alike."""
    others = np.repeat((1 - top)[:, None] / (CLASSES - 1), CLASSES, axis=1)
    others[np.arange(len(top)), predictions] = top
    return others
