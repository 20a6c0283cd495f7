"""From logits and labels to probabilities, predictions and losses, in numpy and a block at a time."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import special

from ..core import Array, InputError
from ..core.blocks import blocks
from ..core.validate import FLOOR, classes_in_range
from .outputs import are_probabilities


def settle_outcome(outputs: Array, labels: Array) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The outcome of a network's outputs, which may be probabilities already, and what was decided about them.

    Logits that all lie in [0, 1], and sum to one where there are several, do not occur: a second softmax or sigmoid
    would only flatten them.
    """
    flat = outputs.reshape(len(outputs), -1)
    classes = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    if flat.shape[1] > 1:
        finished = classes.ndim == 1 and are_probabilities(flat)
        if finished:
            note = "the model's outputs sum to one, so they are read as probabilities and not as logits"
            return outcome_of(np.log(np.maximum(flat, FLOOR)), labels), (note,)
        return outcome_of(outputs, labels), ()
    if classes.ndim != 1 or classes.dtype.kind not in "biuf" or (classes != np.round(classes)).any():
        return outcome_of(outputs, labels), ()
    distinct = np.unique(classes)
    if np.isin(distinct, (0, 1)).all():
        if flat.min() >= 0 and flat.max() <= 1:
            note = "the model's outputs lie in [0, 1] and labels are 0 and 1, so they are read as probabilities of 1"
            return outcome_of(special.logit(np.clip(flat.astype(np.float64), FLOOR, 1 - FLOOR)), labels), (note,)
        return outcome_of(outputs, labels), ()
    note = (
        f"labels are whole numbers ({len(distinct)} values, {distinct[0]:g} to {distinct[-1]:g}) and the model gives "
        "one number a row, so this is read as a regression"
    )
    outcome = outcome_of(outputs, labels)
    return {**outcome, "task": "regression"}, (note,)


def outcome_of(logits: Array, labels: Array) -> dict[str, Array]:
    """Labels, probs or predictions, and losses in nats or squared units. The logits are overwritten.

    (n,) or (n, 1) logits with labels 0 and 1: binary; with other labels: regression. (n, k) logits:
    classes. (n, t) logits with (n, t) labels of 0 and 1: multi-label; with shares that sum to one: soft classes.
    """
    labels = labels[:, 0] if labels.ndim == 2 and labels.shape[1] == 1 else labels
    logits = logits.reshape(len(logits), -1)
    if labels.dtype.kind not in "biuf":
        raise InputError(f"labels must be numbers; got {labels.dtype}; number the classes from 0")
    if labels.ndim == 2:
        if are_shares(labels):
            return _soft_classes(logits, labels)
        return _multilabel(logits, labels)
    if labels.ndim != 1:
        raise InputError(f"labels must have shape (n,), or (n, t) for multi-label; got shape {labels.shape}")
    if logits.shape[1] > 1:
        return _classes(logits, labels)
    flat = logits[:, 0].astype(np.float64)
    if np.isin(labels, (0, 1)).all():
        return _binary(flat, labels)
    return _regression(flat, labels)


def _binary(logits: Array, labels: Array) -> dict[str, Array]:
    probs = np.stack([special.expit(-logits), special.expit(logits)], axis=1)
    signs = np.where(labels == 1, -1.0, 1.0)
    return {"labels": labels.astype(np.int64), "probs": probs, "losses": np.logaddexp(0, signs * logits)}


def _regression(predictions: Array, targets: Array) -> dict[str, Array]:
    return {"labels": targets, "predictions": predictions, "losses": np.square(targets - predictions)}


def _classes(logits: Array, labels: Array) -> dict[str, Array]:
    n, k = logits.shape
    if labels.dtype.kind == "f" and (labels != np.round(labels)).any():
        row = int(np.flatnonzero(labels != np.round(labels))[0])
        raise InputError(
            f"the model gives {k} logits a row, so labels must be class indices; got {labels[row]} at row {row}"
        )
    labels = labels.astype(np.int64)
    classes_in_range("labels", labels, k)
    losses = np.empty(n)
    for rows, block in blocks(logits):
        log_probs = special.log_softmax(block.astype(np.float64), axis=1)
        losses[rows] = -log_probs[np.arange(len(block)), labels[rows]]
        logits[rows] = np.exp(log_probs)
    return {"labels": labels, "probs": logits, "losses": losses}


def are_shares(labels: Array) -> bool:
    """Soft labels: shares of the classes that sum to one, at least one of them neither 0 nor 1."""
    return bool(
        not np.isin(labels, (0, 1)).all() and (labels >= 0).all() and np.allclose(labels.sum(axis=1), 1, atol=1e-3)
    )


def _soft_classes(logits: Array, labels: Array) -> dict[str, Array]:
    """The largest share is the label; the loss is the cross-entropy with all of them."""
    if logits.shape != labels.shape:
        raise InputError(
            f"soft labels have shape {labels.shape} and logits {logits.shape}; give a share for each class"
        )
    losses = np.empty(len(logits))
    for rows, block in blocks(logits):
        log_probs = special.log_softmax(block.astype(np.float64), axis=1)
        losses[rows] = -(log_probs * labels[rows]).sum(axis=1)
        logits[rows] = np.exp(log_probs)
    return {"labels": labels.argmax(axis=1), "probs": logits, "losses": losses}


def _multilabel(logits: Array, labels: Array) -> dict[str, Array]:
    """Each label a task of its own; the loss is their mean, as core has it."""
    if logits.shape != labels.shape:
        raise InputError(
            f"labels have shape {labels.shape} and logits {logits.shape}; a multi-label model gives one logit a label"
        )
    if not np.isin(labels, (0, 1)).all():
        row = int(np.flatnonzero(~np.isin(labels, (0, 1)).all(axis=1))[0])
        raise InputError(f"labels of shape (n, t) must be 0 or 1; row {row} is not; collect each target apart")
    losses = np.empty(len(logits))
    for rows, block in blocks(logits):
        wide = block.astype(np.float64)
        losses[rows] = np.logaddexp(0, np.where(labels[rows] == 1, -wide, wide)).mean(axis=1)
        logits[rows] = special.expit(wide)
    return {"labels": labels.astype(np.int64), "probs": logits, "losses": losses}


def plain(value: Any) -> Array:
    """A tensor, list or scalar of a batch as a numpy array."""
    if hasattr(value, "detach"):
        value = value.detach().cpu()
        if value.dtype.itemsize == 2 and value.is_floating_point():
            value = value.float()  # numpy has no bfloat16
        return np.asarray(value.numpy())
    return np.asarray(value)
