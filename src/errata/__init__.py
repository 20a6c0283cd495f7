"""Errata finds, explains and fixes the systematic errors of a trained model."""

__version__ = "0.1.0"

from .collect import ImageArrays, ImageBytes, ImagePaths, Texts, collect, influence, load_influence, save_influence
from .core import Audit, Captions, ErrataError, Evaluation, InputError, Origin, Slice, Source
from .explain import opponents, relabel_candidates
from .slicers import SLICERS
from .workflow import Settings, apply, audit, load, save

__all__ = [
    "SLICERS",
    "Audit",
    "Captions",
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
    "apply",
    "audit",
    "collect",
    "influence",
    "load",
    "load_influence",
    "opponents",
    "relabel_candidates",
    "save",
    "save_influence",
]
