"""The conductor of the main job: audit, apply, load, save."""

from __future__ import annotations

from ..core.apply import apply
from ..core.confirm import Settings
from .auditing import add_map, audit, load, save
from .comparing import COMPARE_METHODS, compare, rows_of
from .comparing_again import ComparisonWith
from .influence import influence_options
from .judging import judgement_of
from .keeping import keep, keep_in_folder
from .looks import audit_look
from .methods import DEFAULT_METHODS, check_methods, default_methods, options_of
from .planning import make_plan, plan_labels
from .searching import place

__all__ = [
    "COMPARE_METHODS",
    "DEFAULT_METHODS",
    "ComparisonWith",
    "Settings",
    "add_map",
    "apply",
    "audit",
    "audit_look",
    "check_methods",
    "compare",
    "default_methods",
    "influence_options",
    "judgement_of",
    "keep",
    "keep_in_folder",
    "load",
    "make_plan",
    "options_of",
    "place",
    "plan_labels",
    "rows_of",
    "save",
]
