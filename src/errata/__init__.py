"""Errata finds, explains and fixes the systematic errors of a trained model."""

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

from .core import Audit, Captions, Comparison, ErrataError, Evaluation, InputError, Origin, Plan, Slice, Source
from .explain import caption_candidates, draw_map, opponents, picture_features, reference_captions, relabel_candidates
from .fix.workflow import correct, keep_apart, plan_prompts, plan_selection, plan_weights, recheck
from .inputs import (
    Bridge,
    ClipSpace,
    ImageArrays,
    ImageBytes,
    ImagePaths,
    Texts,
    add_features,
    at_thresholds,
    collect,
    embed_captions,
    f1_thresholds,
    feature_maps,
    influence,
    load_influence,
    save_influence,
)
from .slicers import SLICERS
from .store import load_plan, save_plan
from .workflow import Settings, apply, audit, load, save

if TYPE_CHECKING:
    from .defuse import defuse


def __getattr__(name: str) -> Any:
    """What needs torch to be imported at all is imported when it is asked for."""
    if name == "defuse":
        from .core import require

        require("torch", "torch")
        from .defuse import defuse

        return defuse
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


__all__ = [
    "SLICERS",
    "Audit",
    "Bridge",
    "Captions",
    "ClipSpace",
    "Comparison",
    "ErrataError",
    "Evaluation",
    "ImageArrays",
    "ImageBytes",
    "ImagePaths",
    "InputError",
    "Origin",
    "Plan",
    "Settings",
    "Slice",
    "Source",
    "Texts",
    "add_features",
    "apply",
    "at_thresholds",
    "audit",
    "caption_candidates",
    "collect",
    "correct",
    "defuse",
    "draw_map",
    "embed_captions",
    "f1_thresholds",
    "feature_maps",
    "influence",
    "keep_apart",
    "load",
    "load_influence",
    "load_plan",
    "opponents",
    "picture_features",
    "plan_prompts",
    "plan_selection",
    "plan_weights",
    "recheck",
    "reference_captions",
    "relabel_candidates",
    "save",
    "save_influence",
    "save_plan",
]
