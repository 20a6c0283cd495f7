"""Which look at its held-out rows an audit is, before and while it is made."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from ..core import Evaluation
from ..core.confirm import Settings
from ..core.looks import identify_look
from ..version import __version__
from .methods import Options


def audit_look(
    evaluation: Evaluation,
    settings: Settings,
    search: Mapping[str, Any],
    *,
    train: Evaluation | None = None,
    slices: Mapping[str, Any] | None = None,
) -> str:
    """Return what identifies the look that an audit takes, whatever run it is.

    Parameters
    ----------
    evaluation
        The rows.
    settings
        How strict the confirmation is; its `run` is not read.
    search
        Other arguments of `audit` that decide what is found: methods, options, seed, within, crossfit, groups.
    train, slices
        As of `audit`.
    """
    order = np.argsort(evaluation.row_ids, kind="stable")
    own = slices if isinstance(slices, Mapping) else {}  # what is wrong with others is said where they are read
    facts = {
        "version": __version__,
        "settings": {name: value for name, value in asdict(settings).items() if name != "run"},
        **search,
        "methods": [_method_as_json(method) for method in search["methods"]],
        "options": options_as_json(search["options"]),
        "slices": {name: _slice_as_json(value, order) for name, value in own.items()},
    }
    return identify_look(evaluation, facts, train)


def _method_as_json(method: Any) -> Any:
    """Return a method by its name; one that the user built with its options."""
    if isinstance(method, str):
        return method
    params = method.params() if hasattr(method, "params") else {}
    return [method.name, {name: _as_json(value) for name, value in params.items()}]


def _slice_as_json(value: Any, order: Any) -> Any:
    """Return a slice of the user's own: its condition, or a hash of its mask in the order of the ids."""
    if isinstance(value, str):
        return value
    rows = np.asarray(value)
    if rows.shape == order.shape:
        rows = rows[order]
    return [str(rows.dtype.kind), hashlib.blake2b(rows.tobytes(), digest_size=16).hexdigest()]


def options_as_json(options: Options) -> dict[str, dict[str, Any]]:
    """Return options as JSON has them; a function or an object of the user's by its name."""
    return {method: {key: _as_json(value) for key, value in own.items()} for method, own in options.items()}


def _as_json(value: Any) -> Any:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return getattr(value, "__name__", type(value).__name__)
    return value
