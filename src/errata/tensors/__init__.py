"""Shared torch numerics. Only those who have torch import this room."""

from .ascent import Ball, ascend, brought_back, distances
from .attribution import Lens, Prepare, Watch, as_pixels
from .capture import Tap, evaluating, is_head, tapped, unwrap
from .curvature import MeanHessian, RowLosses, chosen_parameters, flat, twice_differentiable
from .devices import device_of, moved, to_device
from .fingerprint import state_fingerprint
from .gradients import RowProjections
from .pixels import bytes_of, checked_pictures, pixels_of

__all__ = [
    "Ball",
    "Lens",
    "MeanHessian",
    "Prepare",
    "RowLosses",
    "RowProjections",
    "Tap",
    "Watch",
    "as_pixels",
    "ascend",
    "brought_back",
    "bytes_of",
    "checked_pictures",
    "chosen_parameters",
    "device_of",
    "distances",
    "evaluating",
    "flat",
    "is_head",
    "moved",
    "pixels_of",
    "state_fingerprint",
    "tapped",
    "to_device",
    "twice_differentiable",
    "unwrap",
]
