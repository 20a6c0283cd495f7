"""Influence embeddings as every room sees them: which of their columns carry what a search clusters."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .evaluation import INFLUENCE, Evaluation

AXES = 4  # leading columns for each class that a search clusters unless told otherwise


def columns_used(evaluation: Evaluation, d: int, axes: int | None = AXES) -> int:
    """How many of the first columns are clustered: so many for each class; None: all d.

    The columns of an influence embedding come in the order of the Hessian's eigenvalues. A few for each class stand
    out from the others, which hold noise, and noise of the same size: k-means sees nothing else where there are many.
    """
    if axes is None:
        return d
    probs = evaluation.probs
    labels = evaluation.labels
    classes = 2  # a regression has as few directions as two classes
    if evaluation.task == "classification" and labels is not None:
        classes = probs.shape[1] if probs is not None else len(set(labels.tolist()))
    return min(d, axes * max(2, classes))


def clustered_columns(rule: Mapping[str, Any], evaluation: Evaluation, d: int) -> int:
    """How many leading columns a slice was clustered in, by its rule; the usual number where it was not."""
    own = rule.get("of") or rule
    if own.get("representation") == INFLUENCE and own.get("columns"):
        return min(d, int(own["columns"]))
    return columns_used(evaluation, d)
