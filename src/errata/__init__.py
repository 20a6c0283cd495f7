"""Errata finds, explains and fixes the systematic errors of a trained model."""

__version__ = "0.1.0"

from .collect import ImageArrays, ImageBytes, ImagePaths, Texts, collect
from .core import Audit, ErrataError, Evaluation, InputError, Origin, Slice, Source
from .slicers import SLICERS
from .workflow import Settings, apply, audit, load, save

__all__ = [
    "SLICERS",
    "Audit",
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
    "load",
    "save",
]
