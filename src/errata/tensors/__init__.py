"""Shared torch numerics. Only those who have torch import this room."""

from .ascent import Ball, ascend, distances, project_to_ball
from .attribution import Attribution, FeatureCapture, Prepare, as_pixels
from .capture import LayerCapture, capture_layer, evaluating, is_head, unwrap
from .curvature import MeanHessian, RowLosses, flat, select_parameters, twice_differentiable
from .devices import device_of, is_out_of_memory, on_device, to_device
from .fingerprint import state_fingerprint
from .gradients import RowProjections
from .pixels import to_bytes, to_pixels, validate_images

__all__ = [
    "Attribution",
    "Ball",
    "FeatureCapture",
    "LayerCapture",
    "MeanHessian",
    "Prepare",
    "RowLosses",
    "RowProjections",
    "as_pixels",
    "ascend",
    "capture_layer",
    "device_of",
    "distances",
    "evaluating",
    "flat",
    "is_head",
    "is_out_of_memory",
    "on_device",
    "project_to_ball",
    "select_parameters",
    "state_fingerprint",
    "to_bytes",
    "to_device",
    "to_pixels",
    "twice_differentiable",
    "unwrap",
    "validate_images",
]
