"""Errata finds, explains and fixes the systematic errors of a trained model."""

__version__ = "0.1.0"

from .collect import (
    Bridge,
    ClipSpace,
    ImageArrays,
    ImageBytes,
    ImagePaths,
    Texts,
    add_features,
    collect,
    embed_captions,
    feature_maps,
    influence,
    load_influence,
    save_influence,
)
from .core import (
    Audit,
    Captions,
    Comparison,
    ErrataError,
    Evaluation,
    InputError,
    Origin,
    Plan,
    Slice,
    Source,
)
from .explain import caption_candidates, opponents, picture_features, reference_captions, relabel_candidates
from .mending import correct, keep_apart, plan_prompts, plan_selection, plan_weights, recheck
from .slicers import SLICERS
from .store import load_plan, save_plan
from .workflow import Settings, apply, audit, load, save

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
    "audit",
    "caption_candidates",
    "collect",
    "correct",
    "embed_captions",
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
