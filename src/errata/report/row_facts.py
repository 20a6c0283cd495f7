"""One row of an audit as plain values: what it is, what the model said, and what else is known of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import Audit, Evaluation
from ..core.words import clipped
from . import numbers
from .image_sources import LinkedImages
from .row_items import FEW_COLUMNS, LONG, column_value, loss_text


def row_facts(audit: Audit, row: int) -> dict[str, Any]:
    """One row by its position: what it is, what the model said, and what else is known of it."""
    evaluation = audit.evaluation
    media = evaluation.media
    losses = evaluation.losses
    loss = None if losses is None else float(losses[row])
    role = "discover" if audit.discover[row] else "confirm"
    text = None
    if media is not None and media.kind == "text":
        text = media.text(row)
    probs = None if evaluation.probs is None else evaluation.probs[row]
    probabilities = []
    if probs is not None:
        order = np.argsort(-probs, kind="stable")[:10].tolist()
        probabilities = [(evaluation.class_name(j), float(probs[j]), f"{100 * probs[j]:.1f}%") for j in order]
    return {
        **row_outcome(evaluation, row),
        "loss": loss,
        "loss_text": loss_text(loss),
        "role": role,
        "probabilities": probabilities,
        "metadata": [(name, str(column[row])) for name, column in evaluation.metadata.items()],
        "picture": LinkedImages(evaluation).symbol(row, px=640),
        "text": text,
    }


def row_in_brief(audit: Audit, row: int) -> dict[str, Any]:
    """One row of many: what the model said of it, and the beginning of its text or the first of its columns."""
    evaluation = audit.evaluation
    losses = evaluation.losses
    loss = None if losses is None else loss_text(float(losses[row]))
    role = "search" if audit.discover[row] else "held-out"
    return {**row_outcome(evaluation, row), **row_content(evaluation, row), "loss": loss, "role": role}


def row_content(evaluation: Evaluation, row: int) -> dict[str, Any]:
    """The beginning of the text of a row, or the first of its columns where rows are neither texts nor images."""
    media = evaluation.media
    text = None
    if media is not None and media.kind == "text":
        text = clipped(media.text(row) or "", LONG)
    columns: list[tuple[str, str]] = []
    if media is None:
        named = list(evaluation.metadata.items())[:FEW_COLUMNS]
        columns = [(name, column_value(column[row])) for name, column in named]
    return {"text": text, "columns": columns}


def row_outcome(evaluation: Evaluation, row: int) -> dict[str, Any]:
    """Which row it is, and what the model said of it."""
    errors = evaluation.errors
    wrong = None if errors is None else bool(errors[row])
    return {
        "row": row,
        "id": str(evaluation.row_ids[row]),
        "label": _class(evaluation, evaluation.labels, row),
        "prediction": _class(evaluation, evaluation.predictions, row),
        "wrong": wrong,
    }


def _class(evaluation: Evaluation, column: Any, row: int) -> str | None:
    if column is None:
        return None
    value = column[row]
    if np.ndim(value):
        named = [evaluation.class_name(int(j)) for j in np.flatnonzero(value)]
        return ", ".join(named) or "none"
    if evaluation.task == "classification":
        return evaluation.class_name(int(value))
    return numbers.quantity(float(value))
