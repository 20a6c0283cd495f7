"""Errata finds, explains and fixes the systematic errors of a trained model.

The names below are what most users need. Everything else is imported from its room, such as `errata.inputs.Texts` or
`errata.explain.opponents`; a room is imported when it is first used.
"""

import importlib
from typing import Any

from .core import Audit, Captions, Comparison, ErrataError, Evaluation, Plan, Slice, Source
from .core.confirm import Settings
from .core.metrics_by import by
from .fix import correct, hold_out, plan_prompts, plan_selection, plan_weights, recheck
from .hypothesis import run_test as test
from .inputs import collect
from .notebook import audit_frame as _  # noqa: F401  # registers the frames, plots and cells of core types
from .version import __version__ as __version__
from .workflow import apply, audit, compare, load, save

ROOMS = (
    "app",
    "bench",
    "core",
    "defuse",
    "draw",
    "explain",
    "fix",
    "hypothesis",
    "inputs",
    "notebook",
    "people",
    "report",
    "slicers",
    "store",
    "tensors",
    "train",
)

__all__ = [
    "Audit",
    "Captions",
    "Comparison",
    "ErrataError",
    "Evaluation",
    "Plan",
    "Settings",
    "Slice",
    "Source",
    "apply",
    "audit",
    "by",
    "collect",
    "compare",
    "correct",
    "hold_out",
    "load",
    "plan_prompts",
    "plan_selection",
    "plan_weights",
    "recheck",
    "save",
    "test",
]


def __getattr__(name: str) -> Any:
    """Import a room when it is first used: some need torch or a server, which most audits do not."""
    if name in ROOMS:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *ROOMS})
