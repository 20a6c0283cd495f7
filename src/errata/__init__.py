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
from .core import Audit, Captions, ErrataError, Evaluation, InputError, Origin, Slice, Source
from .explain import caption_candidates, opponents, picture_features, reference_captions, relabel_candidates
from .slicers import SLICERS
from .workflow import Settings, apply, audit, load, save

__all__ = [
    "SLICERS",
    "Audit",
    "Bridge",
    "Captions",
    "ClipSpace",
    "ErrataError",
    "Evaluation",
    "ImageArrays",
    "ImageBytes",
    "ImagePaths",
    "InputError",
    "Origin",
    "Settings",
    "Slice",
    "Source",
    "Texts",
    "add_features",
    "apply",
    "audit",
    "caption_candidates",
    "collect",
    "embed_captions",
    "feature_maps",
    "influence",
    "load",
    "load_influence",
    "opponents",
    "picture_features",
    "reference_captions",
    "relabel_candidates",
    "save",
    "save_influence",
]
