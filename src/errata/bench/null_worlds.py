"""Evaluations whose truth is known: worlds without a slice to find, and one with a planted slice.

Five classes, 16 dimensions, 25 clusters. The representation is the model's own: its logits are linear in it, and
softer in some clusters than in others.

- `random`      every row is wrong with the same chance: no slice is true.
- `label`       the true class alone decides how often a row is wrong: slices are true, and explained by the class.
- `calibrated`  a row is wrong as often as the model says: slices are true, and explained by its confidence.
- `miscal`      the same, with another curve for each predicted class.

Worlds whose rows are not independent, made of `random`: no slice is true of new rows.

- `copied_world`    every row stands several times, exactly or nearly, with its label and prediction.
- `patients_world`  rows come from patients, each with a place in the representation and an error rate of its own.
"""

from __future__ import annotations

from dataclasses import replace
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
PATIENT_SPREAD = 1.0  # of a patient's place around its cluster
ROW_SPREAD = 0.5  # of a patient's rows around its place
RATE_ROWS = 2.0  # a patient's rate is Beta distributed, as spread as if it were known from so many rows


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


def with_logits(evaluation: Evaluation) -> Evaluation:
    """The same rows in a representation that has the logits too, as a last layer does: influence needs them."""
    assert evaluation.probs is not None
    name, X = next(iter(evaluation.representations.items()))
    return replace(evaluation, representations={name: np.hstack([X, np.log(evaluation.probs)])})


def copied_world(n: int, copies: int, noise: float, seed: int, share: float = 1.0) -> Evaluation:
    """The random world in which rows stand `copies` times; of n rows, `share` are copied ones or their copies.

    noise: standard deviation of what is added to each coordinate of a copy; that of a cluster is 1.
    """
    copied = round(share * n / copies)
    times = np.ones(n - copied * (copies - 1), dtype=np.int64)
    times[:copied] = copies
    arrays = world_arrays("random", len(times), seed)
    rng = np.random.default_rng([seed, 98])
    rows = rng.permutation(np.repeat(np.arange(len(times)), times))
    X = arrays["representations"]["penultimate"][rows]
    X = X + noise * (times[rows] > 1)[:, None] * rng.normal(size=X.shape)
    taken = {name: arrays[name][rows] for name in ("labels", "probs", "predictions")}
    return Evaluation(**taken, representations={"penultimate": X})


def patients_world(n: int, rows_each: int, seed: int, column: bool) -> Evaluation:
    """Rows of patients; where `column`, metadata says whose row it is. Patients err at rates of their own."""
    rng = np.random.default_rng([seed, 97])
    patient = rng.permutation(np.arange(n) // rows_each)
    count = int(patient.max()) + 1
    cluster = rng.integers(CLUSTERS, size=count)
    place = rng.normal(0, 1.5, (CLUSTERS, DIMENSIONS))[cluster] + rng.normal(0, PATIENT_SPREAD, (count, DIMENSIONS))
    X = place[patient] + rng.normal(0, ROW_SPREAD, (n, DIMENSIONS))
    probs = _probabilities(rng, X, cluster[patient])
    predictions = probs.argmax(axis=1)
    rates = rng.beta(RATE_ROWS * BASE_RATE, RATE_ROWS * (1 - BASE_RATE), size=count)
    wrong = rng.random(n) < rates[patient]
    labels = np.where(wrong, _another(rng, predictions), predictions)
    names = np.array([f"P{name:05d}" for name in rng.permutation(10 * count)[:count]])
    metadata = {"patient": names[patient]} if column else {}
    return Evaluation(
        labels=labels, probs=probs, predictions=predictions, representations={"penultimate": X}, metadata=metadata
    )


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
