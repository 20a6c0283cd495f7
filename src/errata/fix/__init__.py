"""From an audit to a plan that fixes its slices, and from a corrected model to what it changed.

One kind of plan is one module. `PLANS` is the only list of them: the commands `errata plan KIND` are generated from
it. A plan function takes the audit first; each parameter annotated `Evaluation` is a file of rows on the command
line, `slices` is `--slices`, one annotated `Captions | None` is an option that takes a file of texts, and every other
parameter is an option with its default.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import entry_points

from ..core import Plan
from ..core.extensions import load_extensions
from .before_after import correct, hold_out, recheck
from .labels import Action as LabelAction
from .labels import By as LabelOrder
from .labels import plan_labels
from .prompts import make_prompts, plan_prompts
from .selection import by_caption, by_chance, by_confidence, plan_selection, select
from .weights import plan_weights, upweight

PlanFunction = Callable[..., Plan]

PLANS: dict[str, PlanFunction] = {
    "weights": plan_weights,
    "select": plan_selection,
    "prompts": plan_prompts,
    "labels": plan_labels,
}


def registry() -> dict[str, PlanFunction]:
    """Return our plans and those that other packages offer through the entry point `errata.plans`, by kind."""
    outside = load_extensions(entry_points(group="errata.plans"), ("__call__",))
    return {**outside, **PLANS}


__all__ = [
    "PLANS",
    "LabelAction",
    "LabelOrder",
    "by_caption",
    "by_chance",
    "by_confidence",
    "correct",
    "hold_out",
    "make_prompts",
    "plan_labels",
    "plan_prompts",
    "plan_selection",
    "plan_weights",
    "recheck",
    "registry",
    "select",
    "upweight",
]
