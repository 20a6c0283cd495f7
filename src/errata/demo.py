"""The embedded example: a model with a weakness that nobody labelled, and an audit that should find it.

Handwritten digits, asked only whether the digit is five or more. One digit is almost missing from the
training rows, so the model fails on it; no label says so, since the label is not the digit.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass, replace

import numpy as np
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.neural_network import MLPClassifier

from .collect import ImageArrays, collect
from .core import Array, Audit, Evaluation
from .core.gaps import wilson

HIDDEN = 7
KEPT = 0.1  # of the hidden digit's training rows
TRAIN_SHARE = 0.25
CLASS_NAMES = ("below five", "five or more")
OPTIONS = {"spotlight": {"size": 0.05}}  # of some 1,350 test rows half are searched: 2% would be 13


@dataclass(frozen=True, eq=False)
class Example:
    evaluation: Evaluation
    hidden: Array  # (n,) bool: rows of the digit that was made rare
    trained_on: int
    hidden_trained_on: int


def example(seed: int = 0) -> Example:
    """Train the small network and collect what it does on rows it never saw."""
    pixels, digits = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    in_train = rng.random(len(digits)) < TRAIN_SHARE
    kept = in_train & ((digits != HIDDEN) | (rng.random(len(digits)) < KEPT))
    model = MLPClassifier((32,), max_iter=60, random_state=seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # sixty rounds are enough to fail for one reason
        model.fit(pixels[kept] / 16, digits[kept] >= 5)
    test = ~in_train
    evaluation = collect(model, (pixels[test] / 16, digits[test] >= 5))
    evaluation = replace(
        evaluation,
        representations={"penultimate": evaluation.representations["penultimate"]},
        sources={},
        class_names=CLASS_NAMES,
        metadata={"digit": digits[test].astype(str)},
        media=ImageArrays(1 - pixels[test].reshape(-1, 8, 8) / 16),
    )
    return Example(evaluation, digits[test] == HIDDEN, int(kept.sum()), int((kept & (digits == HIDDEN)).sum()))


def answer(example: Example, audit: Audit) -> str:
    """Whether a confirmed slice is the hidden group: chosen by importance, never by knowing the answer."""
    known = (
        f"The model saw {example.hidden_trained_on} of {example.trained_on} training rows with the digit {HIDDEN}; "
        "the audit was not told."
    )
    if not audit.confirmed:
        return f"{known} No slice was confirmed, so the hidden group was not found."
    found = audit.confirmed[0]
    confirm = ~audit.discover
    members, hidden = found.members & confirm, example.hidden & confirm
    both, n = int((members & hidden).sum()), int(members.sum())
    low, high = wilson(both, n)
    share = f" ({100 * both / n:.1f}%, 95% interval {100 * low:.1f} to {100 * high:.1f})" if n >= 20 else ""
    word = "is" if both > n / 2 else "is not"
    return (
        f"{known} The first confirmed slice ({found.id}) {word} the hidden group: {both} of its {n} confirm rows are "
        f"the digit {HIDDEN}{share}, and it holds {both} of all {int(hidden.sum())}."
    )
