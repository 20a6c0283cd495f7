"""Which look at its held-out rows an audit is, before and while it is made."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from ..core import Evaluation
from ..core.confirm import Settings
from ..core.looks import identify_look
from ..version import __version__
from .methods import Options


def audit_look(
    evaluation: Evaluation,
    settings: Settings,
    *,
    methods: Sequence[str],
    options: Options,
    seed: int,
    within: str,
    crossfit: bool,
    train: Evaluation | None,
) -> str:
    """Return what identifies the look that an audit with these arguments takes, whatever run it is."""
    strictness = {name: value for name, value in asdict(settings).items() if name != "run"}
    facts = {
        "version": __version__,
        "methods": list(methods),
        "options": options_as_json(options),
        "seed": seed,
        "settings": strictness,
        "within": within,
        "crossfit": crossfit,
    }
    return identify_look(evaluation, facts, train)


def options_as_json(options: Options) -> dict[str, dict[str, Any]]:
    """Return options as JSON has them; a function or an object of the user's by its name."""
    return {method: {key: _as_json(value) for key, value in own.items()} for method, own in options.items()}


def _as_json(value: Any) -> Any:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return getattr(value, "__name__", type(value).__name__)
    return value
