"""One row of an audit as plain values: what it is, what the model said, and what else is known of it."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core import Audit
from . import numbers
from .image_sources import LinkedImages
from .row_items import FEW_COLUMNS, LONG, clipped, column_value, loss_text


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
        **_outcome(audit, row),
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
    media = evaluation.media
    loss = None if losses is None else loss_text(float(losses[row]))
    role = "search" if audit.discover[row] else "held-out"
    text = None
    if media is not None and media.kind == "text":
        text = clipped(media.text(row) or "", LONG)
    columns: list[tuple[str, str]] = []
    if media is None:
        named = list(evaluation.metadata.items())[:FEW_COLUMNS]
        columns = [(name, column_value(column[row])) for name, column in named]
    return {
        **_outcome(audit, row),
        "loss": loss,
        "role": role,
        "text": text,
        "columns": columns,
    }


def _outcome(audit: Audit, row: int) -> dict[str, Any]:
    """Which row it is, and what the model said of it."""
    evaluation = audit.evaluation
    errors = evaluation.errors
    wrong = None if errors is None else bool(errors[row])
    return {
        "row": row,
        "id": str(evaluation.row_ids[row]),
        "label": _class(audit, evaluation.labels, row),
        "prediction": _class(audit, evaluation.predictions, row),
        "wrong": wrong,
    }


def _class(audit: Audit, column: Any, row: int) -> str | None:
    if column is None:
        return None
    value = column[row]
    if np.ndim(value):
        named = [audit.evaluation.class_name(int(j)) for j in np.flatnonzero(value)]
        return ", ".join(named) or "none"
    if audit.evaluation.task == "classification":
        return audit.evaluation.class_name(int(value))
    return numbers.quantity(float(value))
