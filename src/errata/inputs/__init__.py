"""A model with its data, a table or a file as an Evaluation."""

from __future__ import annotations

from ..core import silent
from .bridge import Bridge
from .class_order import InputWarning, other_order
from .clip import ClipSpace
from .detections import read_detections
from .estimator import from_estimator
from .features import Features, encode_columns, encode_words
from .formats import FileFormat, InputFormat, ObjectFormat
from .influence import HeadInfluence, add_influence, fit_influence, load_influence, restore_influence, save_influence
from .media import ImageArrays, ImageBytes, ImageObjects, ImagePaths, Texts, as_media
from .predictor import from_predictor
from .progress import terminal_progress
from .registry import FORMATS, collect, read
from .robust import add_features, feature_maps
from .tables import from_table
from .texts import embed_captions, read_texts, read_vocabulary
from .thresholds import at_thresholds, f1_thresholds
from .torch_model import from_torch

__all__ = [
    "FORMATS",
    "Bridge",
    "ClipSpace",
    "Features",
    "FileFormat",
    "HeadInfluence",
    "ImageArrays",
    "ImageBytes",
    "ImageObjects",
    "ImagePaths",
    "InputFormat",
    "InputWarning",
    "ObjectFormat",
    "Texts",
    "add_features",
    "add_influence",
    "as_media",
    "at_thresholds",
    "collect",
    "embed_captions",
    "encode_columns",
    "encode_words",
    "f1_thresholds",
    "feature_maps",
    "fit_influence",
    "from_estimator",
    "from_predictor",
    "from_table",
    "from_torch",
    "load_influence",
    "other_order",
    "read",
    "read_detections",
    "read_texts",
    "read_vocabulary",
    "restore_influence",
    "save_influence",
    "silent",
    "terminal_progress",
]
